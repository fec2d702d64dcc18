"""Folklore in the real assistants: an empty home, the wheel, `folklore install`, and a model that follows a script.

They are looked for in FOLKLORE_TEST_CLIENTS and on the path; `make assistants` fetches them. A test of one that is not
there is skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from tests import ROOT
from tests.assistants.scripted_model import Json, Model, ToolCall, scripted_model
from tests.servers import free_port, own_servers_ended
from tests.temporary_engine import temporary_home
from tests.waiting import eventually

pytestmark = pytest.mark.strain

# Read before the tests take the variables of the developer's machine away.
PATH = os.pathsep.join(
    one for one in (os.environ.get("FOLKLORE_TEST_CLIENTS"), os.environ["PATH"]) if one
)
PLUGIN = ROOT / "plugin"
STARTS = 10
FACT = "Webhook signatures are computed over the raw request body, since the framework reorders the keys of JSON."
MONEY = "Prices are integer cents, since the invoices were rounded twice."
QUESTION = "The webhook signature check fails. What is the signature computed over?"
STORE = "mcp__plugin_folklore_folklore__memory_store"
CORE = {
    STORE,
    STORE.replace("memory_store", "memory_recall"),
    STORE.replace("memory_store", "search_keywords"),
}
INSTRUCTIONS = "Folklore is this team's long-term memory"


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine of a new user: a home, the command, two repositories, and the model that assistants ask."""

    home: Path
    folklore: Path
    model: Model

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every program: no setting of the developer's machine, no way off this machine."""
        nowhere = {
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }
        no_keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return (
            nowhere
            | no_keyring
            | {"HOME": str(self.home), "PATH": PATH, "LANG": "C.UTF-8"}
        )

    def repository(self, name: str) -> Path:
        """Return the repository of this name, which is that of its remote too."""
        folder = self.home / name
        if not folder.exists():
            for command in (
                ["init", "-q", str(folder)],
                ["-C", str(folder), "remote", "add", "origin"],
            ):
                remote = (
                    [f"git@example.com:acme/{name}.git"] if "remote" in command else []
                )
                subprocess.run(["git", *command, *remote], check=True)
        return folder

    def run(self, *command: str, folder: Path | None = None, **variables: str) -> str:
        """Run a program to its end and return what it prints."""
        done = subprocess.run(
            command,
            cwd=folder or self.home,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    @contextmanager
    def serving(self, port: int) -> Iterator[str]:
        """Serve over HTTP while the block runs, and yield the address."""
        url = f"http://127.0.0.1:{port}"
        command = [str(self.folklore), "serve", "--http", "--port", str(port)]
        with (self.home / "server.log").open("wb") as log:
            server = subprocess.Popen(
                command, cwd=self.home, env=self.environment, stdout=log, stderr=log
            )
            try:
                eventually(lambda: is_ready(url))
                yield url
            finally:
                server.terminate()
                server.wait(30)

    def claude(self, repository: str, prompt: str, *script: ToolCall) -> list[Json]:
        """Run a session of Claude Code; return the turns of the model."""
        model = self.model.following(*script)
        self.run(
            _program("claude"),
            *(
                "-p",
                prompt,
                "--allowedTools",
                "mcp__plugin_folklore_folklore,Write,Read,Bash",
            ),
            folder=self.repository(repository),
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
        )
        return model.turns()

    def codex(self, repository: str, prompt: str, *script: ToolCall) -> list[Json]:
        """Run a session of Codex in which its hooks are trusted; return the turns of the model."""
        model = self.model.following(*script)
        provider = f'{{name="scripted",base_url="{model.url}/v1",wire_api="responses",env_key="SCRIPTED_KEY"}}'
        self.run(
            _program("codex"),
            *("exec", "--dangerously-bypass-hook-trust", "-s", "danger-full-access"),
            *("-c", 'model_provider="scripted"', "-c", 'model="gpt-5.5"'),
            *("-c", f"model_providers.scripted={provider}", prompt),
            folder=self.repository(repository),
            SCRIPTED_KEY="none",
        )
        return model.turns()

    def gemini(self, repository: str, prompt: str) -> list[Json]:
        """Run a session of Gemini CLI; return the turns of the model."""
        model = self.model.following()
        settings = self.home / ".gemini" / "settings.json"
        settings.write_text(
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}}',
            encoding="utf-8",
        )
        self.run(
            _program("gemini"),
            *("-p", prompt, "-m", "gemini-2.5-flash"),
            folder=self.repository(repository),
            GEMINI_API_KEY="none",
            GOOGLE_GEMINI_BASE_URL=model.url,
            GEMINI_CLI_TRUST_WORKSPACE="true",
        )
        return model.turns()


def _program(name: str) -> str:
    """Return the path of an assistant, or skip the test."""
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(
            f"{name} is neither on the path nor in FOLKLORE_TEST_CLIENTS; `make assistants` fetches it"
        )
    return found


@pytest.fixture(scope="module", name="command")
def the_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheels of Folklore and its importers; what they depend on is that of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }
    build = [
        *pip,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(ROOT),
        str(ROOT / "import"),
    ]
    subprocess.run(build, check=True, env=environment)
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")],
        check=True,
    )
    python = folder / "venv" / "bin" / "python"
    wheels = [str(wheel) for wheel in folder.glob("*.whl")]
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", *wheels],
        check=True,
        env=environment,
    )
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(
        f"{sysconfig.get_path('purelib')}\n", encoding="utf-8"
    )
    return python.with_name("folklore")


@pytest.fixture(name="machine")
def a_machine(tmp_path: Path, command: Path) -> Iterator[Machine]:
    """An empty home; the engine that is started in it ends with the test."""
    home = tmp_path / "home"
    home.mkdir()
    with (
        temporary_home() as memory,
        scripted_model() as model,
        own_servers_ended(home / ".folklore"),
    ):
        (home / ".folklore").symlink_to(memory)
        yield Machine(home, command, model)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def text_of(turn: Json) -> str:
    """Return all that the model was sent in a turn, without the tools."""
    return json.dumps(
        {key: value for key, value in turn.items() if key != "tools"},
        ensure_ascii=False,
    )


def failed_calls(turn: Json) -> list[Json]:
    """Return the results of the calls of Claude Code that failed; there must be one result."""
    parts = [
        part
        for message in turn["messages"]
        for part in message["content"]
        if isinstance(part, dict)
    ]
    results = [part for part in parts if part["type"] == "tool_result"]
    assert results
    return [part for part in results if part.get("is_error")]


def test_what_claude_code_stores_is_recalled_unasked_in_the_next_session_of_the_same_project(
    machine: Machine,
) -> None:
    _program("claude")
    machine.run(str(machine.folklore), "install", "claude-code")

    first = machine.claude(
        "shop",
        "We found out what the signature covers.",
        ToolCall(STORE, {"content": FACT}),
    )
    again = machine.claude("shop", QUESTION)
    elsewhere = machine.claude("wiki", QUESTION)

    assert not failed_calls(first[-1])
    assert FACT in text_of(again[0])
    assert FACT not in text_of(elsewhere[0])


def test_two_members_of_a_team_share_what_they_know_after_six_commands(
    machine: Machine, tmp_path: Path
) -> None:
    _program("claude")  # which needs the first command, pip install
    port = free_port()
    alice, bob = (replace(machine, home=tmp_path / name) for name in ("alice", "bob"))
    for member in (alice, bob):
        member.home.mkdir()
    with machine.serving(port) as url:
        invited = ("--repo", "acme/shop", "--url", url)
        lines = [
            machine.run(str(machine.folklore), "invite", name, *invited)
            for name in ("alice", "bob")
        ]
        for member, line in zip((alice, bob), lines, strict=True):
            variable, _folklore, *arguments = line.splitlines()[0].split()
            code = variable.removeprefix("FOLKLORE_INVITATION=")
            member.run(str(machine.folklore), *arguments, FOLKLORE_INVITATION=code)

        first = alice.claude(
            "shop",
            "We found out what the signature covers.",
            ToolCall(STORE, {"content": FACT}),
        )
        theirs = bob.claude("shop", QUESTION)
        elsewhere = bob.claude("wiki", QUESTION)

    assert not failed_calls(first[-1])
    assert FACT in text_of(theirs[0])
    assert "by alice" in text_of(theirs[0])
    assert FACT not in text_of(elsewhere[0])


def test_the_first_turn_of_claude_code_has_the_core_tools_and_the_instructions(
    machine: Machine,
) -> None:
    _program("claude")
    machine.run(str(machine.folklore), "install", "claude-code")
    if os.getloadavg()[0] > 3 * (os.cpu_count() or 1):
        pytest.skip("the machine is busy: Claude Code waits five seconds for a server")

    starts = [machine.claude("shop", "Hello.")[0] for _ in range(STARTS)]

    assert [CORE - {tool["name"] for tool in start["tools"]} for start in starts] == [
        set()
    ] * STARTS
    assert [INSTRUCTIONS in text_of(start) for start in starts] == [True] * STARTS


def test_the_prompt_hook_of_codex_recalls_unasked_in_the_same_project(
    machine: Machine,
) -> None:
    _program("codex")
    machine.run(str(machine.folklore), "install", "codex")
    machine.run(str(machine.folklore), "store", FACT, folder=machine.repository("shop"))

    [turn] = machine.codex("shop", QUESTION)
    [elsewhere] = machine.codex("wiki", QUESTION)

    assert FACT in text_of(turn)
    assert FACT not in text_of(elsewhere)
    assert "- folklore: How to use Folklore" in text_of(turn)


PATCH = "*** Begin Patch\n*** Add File: shop/prices.py\n+PRICE = 1.5\n*** End Patch"


@pytest.mark.parametrize(
    ("assistant", "program"), [("claude-code", "claude"), ("codex", "codex")]
)
def test_an_edit_gets_the_memory_that_is_tied_to_its_file(
    machine: Machine, tmp_path: Path, assistant: str, program: str
) -> None:
    _program(program)
    machine.run(str(machine.folklore), "install", assistant)
    decisions = [
        {"content": f"Harbour {number} keeps its lighthouse.", "kind": "decision"}
        for number in range(13)
    ]
    lines: list[Json] = [
        {"content": MONEY, "paths": ["shop/prices.py"]},
        *decisions,
    ]  # more than a start shows
    export = tmp_path / "memories.jsonl"
    export.write_text(
        "\n".join(json.dumps({"type": "memory", **line}) for line in lines),
        encoding="utf-8",
    )
    repository = machine.repository("shop")
    machine.run(str(machine.folklore), "import", str(export), folder=repository)
    written = {
        "file_path": str(repository / "shop" / "prices.py"),
        "content": "PRICE = 1.5\n",
    }

    if program == "claude":
        before, after = machine.claude(
            "shop", "Write that down.", ToolCall("Write", written)
        )
    else:
        before, after = machine.codex(
            "shop", "Write that down.", ToolCall("apply_patch", PATCH)
        )

    assert MONEY not in text_of(before)
    assert MONEY in text_of(after)


READ = {"file_path": "prices.py"}
FAILING = "echo 'ModuleNotFoundError: No module named freezegun' >&2; exit 3"
FREEZE = "No module named freezegun: freeze time by time-machine."
ASKED = "What is the webhook signature computed over?"


def stored_among_others(machine: Machine, folder: Path, *memories: Json) -> None:
    """Store memories, and more decisions than the start of a session shows."""
    decisions = [
        {"content": f"Harbour {number} keeps its lighthouse.", "kind": "decision"}
        for number in range(13)
    ]
    export = folder / "memories.jsonl"
    export.write_text(
        "\n".join(
            json.dumps({"type": "memory", **memory})
            for memory in (*memories, *decisions)
        ),
        encoding="utf-8",
    )
    machine.run(
        str(machine.folklore), "import", str(export), folder=machine.repository("shop")
    )


def test_claude_code_gets_notes_at_a_read_and_a_failure_and_its_sub_agent_gets_them_too(
    machine: Machine, tmp_path: Path
) -> None:
    _program("claude")
    machine.run(str(machine.folklore), "install", "claude-code")
    prices = machine.repository("shop") / "prices.py"
    prices.write_text("PRICE = 1.5\n", encoding="utf-8")
    facts: list[Json] = [
        {"content": MONEY, "paths": ["prices.py"]},
        {"content": FREEZE},
        {"content": FACT},
    ]
    stored_among_others(machine, tmp_path, *facts)
    task = {"description": "signature", "prompt": ASKED}

    turns = machine.claude(
        "shop",
        "Go on.",
        ToolCall("Read", {"file_path": str(prices)}),
        ToolCall("Bash", {"command": FAILING, "description": "Fail"}),
        ToolCall("Agent", {**task, "subagent_type": "general-purpose"}),
    )

    start, read, failed = turns[:3]
    assert MONEY not in text_of(start)
    assert MONEY in text_of(read)
    assert FREEZE not in text_of(read)
    assert FREEZE in text_of(failed)
    first_of_agent = [turn for turn in turns if ASKED in text_of(turn)]
    tasks = [
        json.dumps(turn["messages"][0], ensure_ascii=False) for turn in first_of_agent
    ]
    assert any(ASKED in task and FACT in task for task in tasks)


def test_codex_gets_notes_at_a_failure_and_before_a_question(
    machine: Machine, tmp_path: Path
) -> None:
    _program("codex")
    machine.run(str(machine.folklore), "install", "codex")
    stored_among_others(machine, tmp_path, {"content": FREEZE}, {"content": FACT})
    question = {"id": "a", "header": "A", "question": ASKED, "options": []}

    before, failed, held = machine.codex(
        "shop",
        "Go on.",
        ToolCall("exec_command", {"cmd": FAILING}),
        ToolCall("request_user_input", {"questions": [question]}),
    )

    assert FREEZE not in text_of(before)
    assert FREEZE in text_of(failed)
    assert FACT not in text_of(failed)
    assert FACT in text_of(held)
    assert "ask the same question again" in text_of(held)


def test_gemini_gets_the_notes_of_the_project_at_the_start_of_a_session(
    machine: Machine,
) -> None:
    _program("gemini")
    machine.run(str(machine.folklore), "install", "gemini")
    machine.run(
        str(machine.folklore),
        "store",
        FACT,
        "--pinned",
        folder=machine.repository("shop"),
    )

    [turn] = machine.gemini("shop", "Hello.")

    assert FACT in text_of(turn)
    assert INSTRUCTIONS in text_of(turn)
    listed = machine.run(_program("gemini"), "extensions", "list")
    assert "folklore" in listed


def test_the_validators_of_assistants_accept_the_plugin(machine: Machine) -> None:
    claude = _program("claude")
    assert "Validation passed" in machine.run(
        claude, "plugin", "validate", "--strict", str(PLUGIN)
    )
    assert "Validation passed" in machine.run(
        claude, "plugin", "validate", "--strict", str(ROOT)
    )
    machine.run(str(machine.folklore), "install", "claude-code")
    installed = machine.home / ".claude" / "skills" / "folklore"
    assert "Validation passed" in machine.run(
        claude, "plugin", "validate", "--strict", str(installed)
    )


def test_gemini_accepts_the_extension(machine: Machine) -> None:
    gemini = _program("gemini")
    machine.run(str(machine.folklore), "install", "gemini")

    for folder in (PLUGIN, machine.home / ".gemini" / "extensions" / "folklore"):
        assert "successfully validated" in machine.run(
            gemini, "extensions", "validate", str(folder)
        )


def test_codex_takes_the_plugin_from_the_marketplace_of_the_repository(
    machine: Machine,
) -> None:
    codex = _program("codex")
    machine.run(codex, "plugin", "marketplace", "add", str(ROOT))

    machine.run(codex, "plugin", "add", "folklore@folklore")

    assert "installed" in machine.run(codex, "plugin", "list")


def test_opencode_connects_to_the_installed_server(machine: Machine) -> None:
    opencode = _program("opencode")
    machine.run(str(machine.folklore), "install", "opencode")

    listed = machine.run(opencode, "mcp", "list", folder=machine.repository("shop"))

    assert "folklore" in listed
    assert "connected" in listed
