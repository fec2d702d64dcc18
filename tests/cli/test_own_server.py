"""The user's own server: one process for the sessions and commands of a home, started and replaced by its clients."""

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree, which
from tempfile import TemporaryDirectory

import httpx
import pytest
from mcp import Client

from folklore.cli import forkserver
from folklore.cli.main import _COMMANDS
from folklore.client import forked, local_server as local
from folklore.client.local_server import LocalServer
from folklore.memory import operations
from folklore.text.names import former
from tests import forks
from tests.commands import Ran
from tests.repositories import Repository, empty_repository, git_without_settings  # noqa: F401 - fixtures
from tests.servers import (
    Watched,
    free_port,
    on_http,
    on_stdio,
    own_servers,
    own_servers_ended,
    watched,
)
from tests.team import called
from tests.terminal import on_terminal
from tests.waiting import STUCK, eventually
from tests.wire import INITIALIZE, call, message

EACH = "Each release has a name of a river."


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of one person: its home and the environment of its shells."""

    server: Watched
    home: Path

    def shell(self, **more: str) -> dict[str, str]:
        return {**self.server.environment, **more}

    def run(
        self,
        *arguments: str,
        cwd: Path | None = None,
        stdin: str | None = None,
        **more: str,
    ) -> Ran:
        command = [*forks.command(), *arguments]
        shell = self.shell(**more)
        done = subprocess.run(
            command,
            env=shell,
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=STUCK,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def contents(self) -> list[str]:
        ran = self.run("list", "--json")
        assert ran.code == 0, ran.err
        return [memory["content"] for memory in ran.json["memories"]]

    def session(self, **more: str) -> Client:
        started = Watched(self.shell(**more), self.server.notes)
        return Client(on_stdio(started, alone=True), read_timeout_seconds=STUCK)

    @property
    def local(self) -> LocalServer:
        return LocalServer(str(self.home), self.shell())

    @property
    def process(self) -> int:
        """The only server."""
        [process] = own_servers(self.home)
        return process


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
async def machine(database_url: str, tmp_path: Path) -> AsyncIterator[Machine]:
    with (
        TemporaryDirectory(dir="/tmp") as folder,
        own_servers_ended(home := Path(folder, "home")),
    ):
        server = watched(tmp_path, database_url=database_url, own="", home=str(home))
        yield (machine := Machine(server, home))
    assert machine.server.attempts() == ""


async def test_sessions_and_commands_at_the_same_time_share_one_server(
    machine: Machine,
) -> None:
    ran = await asyncio.gather(
        *(asyncio.to_thread(machine.run, "store", f"{EACH} {n}") for n in range(5))
    )
    async with machine.session() as one, machine.session() as other:
        await called(one, "memory_store", content="The queue is NATS.")
        found = await called(other, "memory_recall", query="which queue?")

    assert [(done.code, done.err) for done in ran] == [(0, "")] * 5
    assert found["memories"][0]["content"] == "The queue is NATS."
    assert sorted(machine.contents()) == sorted(
        [*(f"{EACH} {n}" for n in range(5)), "The queue is NATS."]
    )
    assert machine.process == machine.local.pid()
    assert stat.S_IMODE(Path(machine.local.path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(machine.local.path).parent.stat().st_mode) == 0o700


async def test_what_one_project_knows_stays_away_from_another_of_the_same_name(
    machine: Machine, tmp_path: Path
) -> None:
    for folder in ("alpha/app", "beta/app", "gamma/shop", "delta/shop"):
        subprocess.run(["git", "init", "-q", str(tmp_path / folder)], check=True)
    for folder, host in (("gamma", "github.com"), ("delta", "gitlab.example.com")):
        remote = ["remote", "add", "origin", f"https://{host}/acme/shop"]
        place = str(tmp_path / folder / "shop")
        subprocess.run(["git", "-C", place, *remote], check=True)

    def run(folder: str, *arguments: str) -> Ran:
        place = tmp_path / folder
        return machine.run(*arguments, cwd=place, FOLKLORE_NAMESPACE="")

    run("alpha/app", "store", "Client Alpha pays by invoice only.")
    run("gamma/shop", "store", "The shop of GitHub sells lamps.")

    for folder in ("beta/app", "delta/shop"):
        listed = run(folder, "status", "--json")
        assert listed.json["memories"] == 0, folder
    assert "invoice" in run("alpha/app", "status").out
    assert "lamps" in run("gamma/shop", "status").out

    # A namespace that has the name of an earlier version is used as before.
    run("beta/app", "store", "Known before.", "-n", "repo:harbour")
    subprocess.run(["git", "init", "-q", str(tmp_path / "harbour")], check=True)
    assert "Known before." in run("harbour", "status").out
    assert (
        "repo:harbour; an earlier version named it so" in run("harbour", "doctor").out
    )
    assert (
        run("harbour", "store", "More.", "--json").json["namespace"] == "repo:harbour"
    )


async def test_author_namespace_and_time_zone_are_those_of_each_session(
    machine: Machine, tmp_path: Path
) -> None:
    repository = tmp_path / "harbour"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    async with machine.session(
        FOLKLORE_AUTHOR="zoë", FOLKLORE_NAMESPACE="cafés"
    ) as zoe:
        theirs = await called(zoe, "memory_store", content="Zoë's note.")
        whole = await called(zoe, "memory_get", ids=[theirs["stored"][0]["id"]])
        hook = {
            "event": "UserPromptSubmit",
            "prompt": "Where is Zoë's note?",
            "session": "1",
            "cwd": str(repository),
        }
        [note] = (await zoe.call_tool("client_hook", hook)).content
    there = machine.run(
        "store", "The harbour's note.", "--json", cwd=repository, FOLKLORE_NAMESPACE=""
    )
    zones = [
        machine.run("list", "--json", FOLKLORE_TIME_ZONE=zone).code
        for zone in ("Asia/Tokyo", "UTC")
    ]

    assert (theirs["namespace"], whole["memories"][0]["author"]) == ("cafés", "zoë")
    assert "by zoë" in str(note)
    assert former(there.json["namespace"]) == "repo:harbour"
    assert zones == [0, 0]
    assert machine.process


async def test_a_session_starts_with_its_notes_without_the_modules_of_other_commands(
    machine: Machine, tmp_path: Path
) -> None:
    def started(stdin: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-X",
            "importtime",
            "-m",
            "folklore",
            "hook",
            "session-start",
            "--json",
        ]
        environment = machine.shell(**more)
        return subprocess.run(
            command,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=STUCK,
            check=True,
        )

    repository = tmp_path / "harbour"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    machine.run("store", "The harbour's note.", cwd=repository, FOLKLORE_NAMESPACE="")
    machine.run("store", "A note of cafés.", FOLKLORE_NAMESPACE="cafés")
    event = json.dumps({"session_id": "1", "source": "startup", "cwd": str(repository)})

    there, named = (started(event, FOLKLORE_NAMESPACE=name) for name in ("", "cafés"))
    nothing = started("")
    for streams in ("<&-", ">&-", ">/dev/full"):
        command = [
            "sh",
            "-c",
            f"{sys.executable} -m folklore hook session-start {streams}",
        ]
        closed = subprocess.run(
            command, env=machine.shell(), capture_output=True, check=True
        )
        assert closed.stderr == b"", streams
    unknown = started(event, FOLKLORE_TIME_ZONE="Mars/Olympus")

    assert (
        "The harbour's note."
        in json.loads(there.stdout)["hookSpecificOutput"]["additionalContext"]
    )
    assert (
        "A note of cafés."
        in json.loads(named.stdout)["hookSpecificOutput"]["additionalContext"]
    )
    assert nothing.stdout
    assert "gave no notes: Folklore-Time-Zone" in unknown.stdout
    machine.local.stop()
    assert machine.local.wait(STUCK)
    Path(machine.local.path).parent.chmod(0o755)  # others reach it: not used
    assert "The harbour's note." in started(event, FOLKLORE_NAMESPACE="").stdout
    Path(machine.local.path).parent.chmod(0o700)
    imported = there.stderr.replace("  ", "")
    assert "| json\n" in imported
    for module in (
        "click",
        "pydantic",
        "asyncio",
        "pathlib",
        "http.client",
        "subprocess",
    ):
        assert f"| {module}\n" not in imported


def test_commands_run_in_forks_of_the_server_as_their_own_process_would(
    machine: Machine, tmp_path: Path
) -> None:
    def imported(
        *arguments: str, before: str = ""
    ) -> tuple[subprocess.CompletedProcess[str], bool]:
        program = f"import sys, os; {before}sys.argv[1:] = {arguments!r}; from folklore.__main__ import main; main()"
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", program],
            env=machine.shell(FOLKLORE_NAMESPACE="cafés"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=STUCK,
            check=False,
        )
        return done, "| click\n" in done.stderr.replace("  ", "")

    machine.run("store", EACH, FOLKLORE_NAMESPACE="cafés")
    listed = imported("list")
    wrong = imported("list", "--limit", "x")
    unknown = imported("show", "1234")
    # no new privileges
    sandboxed = imported(
        "list", before="import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); "
    )
    closed = imported("list", before="os.close(0); ")
    stored = machine.run(
        "--home",
        str(machine.home),
        "store",
        "-",
        FOLKLORE_NAMESPACE="cafés",
        stdin="é?",
    )

    assert [
        done.returncode for done, _ in (listed, wrong, unknown, sandboxed, closed)
    ] == [0, 2, 4, 0, 0]
    assert [slow for _, slow in (listed, wrong, unknown, sandboxed, closed)] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert listed[0].stdout == sandboxed[0].stdout == closed[0].stdout
    assert "cafés" in listed[0].stdout
    assert "'x' is not a valid integer" in wrong[0].stderr
    assert stored.code == 0
    # of the list of this terminal
    assert EACH in machine.run("show", "1", FOLKLORE_NAMESPACE="cafés").out
    eventually(lambda: len(own_servers(machine.home, forks=True)) == 1)


def test_a_fork_ends_with_its_client(machine: Machine) -> None:
    machine.run("store", EACH)
    eventually(lambda: len(own_servers(machine.home, forks=True)) == 1)
    command = [sys.executable, "-m", "folklore", "store", "-"]
    for sent in (signal.SIGKILL, signal.SIGINT):
        with subprocess.Popen(
            command, env=machine.shell(), stdin=subprocess.PIPE
        ) as waiting:
            eventually(lambda: len(own_servers(machine.home, forks=True)) == 2)
            waiting.send_signal(sent)
            assert waiting.wait(STUCK) in (-sent, 130)
        eventually(lambda: len(own_servers(machine.home, forks=True)) == 1)


async def test_a_session_outlives_the_server(machine: Machine) -> None:
    machine.run("store", EACH)
    async with machine.session() as client:
        await client.list_tools()  # which tell what may be repeated
        os.kill(machine.process, signal.SIGKILL)
        await called(client, "memory_store", content="After the crash.")
    assert sorted(machine.contents()) == ["After the crash.", EACH]


def test_a_session_imports_the_standard_library_and_small_modules_alone(
    machine: Machine,
) -> None:
    program = (
        "import atexit, sys\n"
        "known = {*sys.modules, *sys.stdlib_module_names, 'folklore', 'tzlocal'}\n"
        "names = lambda: {name.partition('.')[0] for name in sys.modules\n"
        "    if not name.startswith('_sysconfigdata')} - known\n"
        "atexit.register(lambda: print(sorted(names()), file=sys.stderr))\n"
        "sys.argv[1:] = ['serve']\n"
        "from folklore.__main__ import main\n"
        "main()\n"
    )
    arguments = {"content": "The queue is NATS.", "paths": ["queue.py"]}
    requests = [INITIALIZE, message("tools/list"), call("memory_store", **arguments)]
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=machine.shell(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        assert session.stderr is not None
        for request in requests:
            session.stdin.write(json.dumps(request) + "\n")
            session.stdin.flush()
            assert "result" in json.loads(session.stdout.readline())
        session.stdin.close()
        imported = session.stderr.read()

    assert imported == "[]\n"


@pytest.mark.parametrize(
    ("settings", "stated"),
    [
        ("author: ada\n", "ada"),
        ("", "bea"),
    ],
)
def test_a_session_writes_under_the_name_of_its_settings(
    machine: Machine, settings: str, stated: str
) -> None:
    machine.home.mkdir()
    (machine.home / "config.yaml").write_text(settings)
    environ = machine.shell(FOLKLORE_AUTHOR="" if settings else stated)
    stored = call("memory_store", content="The queue is NATS.")
    with subprocess.Popen(
        [sys.executable, "-m", "folklore", "serve"],
        env={name: value for name, value in environ.items() if value},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        session.stdin.write(json.dumps(stored) + "\n")
        session.stdin.flush()
        assert "result" in json.loads(session.stdout.readline())
        session.stdin.close()

    [memory] = machine.run("list", "--json").json["memories"]
    assert memory["author"] == stated


def hook_of_cursor(
    machine: Machine, directory: Path, module: str
) -> subprocess.CompletedProcess[str]:
    """Run `folklore hook cursor` after a read of a file; its standard error says whether it imported a module."""
    event = {
        "hook_event_name": "postToolUse",
        "conversation_id": "1",
        "tool_name": "Read",
        "tool_input": {"file_path": "web/labels.json"},
        "tool_output": json.dumps({"content": "{}"}),
    }
    program = (
        "import atexit, sys\n"
        f"atexit.register(lambda: print({module!r} in sys.modules, file=sys.stderr))\n"
        "sys.argv[1:] = ['hook', 'cursor']\n"
        "from folklore.__main__ import main\n"
        "main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env=machine.shell(FOLKLORE_NAMESPACE=""),
        cwd=directory,
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_hook_of_cursor_gets_marked_notes_by_small_modules_alone(
    machine: Machine, repository: Repository
) -> None:
    fact = "Labels are generated."
    repository.commit({"web/labels.json": "one\n"})
    machine.run(
        *("store", fact, "--path", "web/labels.json"),
        cwd=repository.root,
        FOLKLORE_NAMESPACE="",
    )
    repository.commit({"web/labels.json": "two\n"})

    done = hook_of_cursor(machine, repository.root, "pydantic")

    notes = json.loads(done.stdout)["additional_context"]
    assert fact in notes
    assert "web/labels.json changed since, verify" in notes
    assert done.stderr == "False\n"


def test_a_hook_of_cursor_without_notes_of_files_does_not_import_what_marks_them(
    machine: Machine, repository: Repository
) -> None:
    machine.run("store", EACH, cwd=repository.root, FOLKLORE_NAMESPACE="")

    done = hook_of_cursor(machine, repository.root, "asyncio")

    assert EACH in json.loads(done.stdout)["additional_context"]
    assert done.stderr == "False\n"


def test_a_session_asks_git_each_thing_once(
    machine: Machine, repository: Repository, tmp_path: Path
) -> None:
    repository.commit({"web/labels.json": "one\n"})
    asked = tmp_path / "asked"
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {which("git")} "$@"\n')
    git.chmod(0o755)
    path = f"{git.parent}{os.pathsep}{os.environ['PATH']}"
    stored = call("memory_store", content="It is NATS.", paths=["web/labels.json"])
    with subprocess.Popen(
        [sys.executable, "-m", "folklore", "serve"],
        env=machine.shell(FOLKLORE_NAMESPACE="", PATH=path),
        cwd=repository.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdin is not None
        assert session.stdout is not None
        for request in (INITIALIZE, stored):
            session.stdin.write(json.dumps(request) + "\n")
            session.stdin.flush()
            assert "result" in json.loads(session.stdout.readline())
        session.stdin.close()

    commands = asked.read_text().splitlines()
    assert any("get-regexp" in command for command in commands)
    assert sorted(commands) == sorted(set(commands))


def test_a_session_says_what_is_wrong_with_its_settings(machine: Machine) -> None:
    machine.home.mkdir()
    (machine.home / "config.yaml").write_text("retention_days: never\n")

    ran = machine.run("serve", stdin="")

    assert ran.code == 2
    assert "retention_days" in ran.err


async def test_a_namespace_of_the_settings_that_is_no_name_is_named_as_the_setting(
    machine: Machine,
) -> None:
    told = "namespace: a name is made of letters"

    ran = machine.run("store", EACH, FOLKLORE_NAMESPACE="*")
    async with machine.session(FOLKLORE_NAMESPACE="*") as session:
        answer = await session.call_tool("memory_store", {"content": EACH})

    assert ran.code == 2
    assert f"folklore: {told}" in ran.err
    assert answer.is_error
    assert told in str(answer.content)


def test_a_server_that_can_make_no_forks_serves_all_the_same(machine: Machine) -> None:
    Path(machine.local.forks_path).mkdir(parents=True)
    Path(machine.local.path).parent.chmod(0o700)

    assert machine.run("store", EACH).code == 0
    assert machine.contents() == [EACH]
    assert machine.process
    assert own_servers(machine.home, forks=True) == []


def test_a_killed_fork_is_reported_and_a_hook_that_is_late_is_no_failure(
    machine: Machine,
) -> None:
    machine.run("store", EACH)
    # the command's own fork ends after its client
    eventually(lambda: len(own_servers(machine.home, forks=True)) == 1)
    command = [sys.executable, "-m", "folklore", "store", "-"]
    with subprocess.Popen(
        command, env=machine.shell(), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as session:
        eventually(lambda: len(own_servers(machine.home, forks=True)) == 2)
        [forks] = [
            pid
            for pid in own_servers(machine.home, forks=True)
            if parent_of(pid) == machine.process
        ]
        [fork] = set(own_servers(machine.home, forks=True)) - {forks}
        # its client knows that it has begun
        eventually(lambda: len(list(Path(f"/proc/{fork}/task").iterdir())) > 1)
        os.kill(fork, signal.SIGKILL)
        assert session.wait(STUCK) == 137
        assert session.stderr is not None
        assert b"was killed" in session.stderr.read()
    os.kill(machine.process, signal.SIGSTOP)
    late = machine.run("--home", str(machine.home), "hook", "session-start", stdin="")
    os.kill(machine.process, signal.SIGCONT)
    assert (late.code, "did not answer within 4 seconds" in late.out) == (0, True)


def test_a_fork_leaves_its_page_to_the_terminal_of_its_client(
    machine: Machine, tmp_path: Path
) -> None:
    lines = tmp_path / "memories.jsonl"
    lines.write_text(
        "".join(json.dumps({"content": f"{EACH} {n}"}) + "\n" for n in range(12))
    )
    assert machine.run("import", str(lines)).code == 0
    page = tmp_path / "page.txt"
    pager = tmp_path / "pager.sh"
    pager.write_text(f"#!/bin/sh\ncat /proc/$PPID/comm - > {page}\n")
    pager.chmod(0o755)

    screen = on_terminal(machine.shell(), "list", PAGER=str(pager))

    assert (screen.code, screen.text) == (0, "")
    assert "folklore-forks" not in page.read_text()
    assert page.read_text().count(EACH) == 12


async def test_kills_under_load_lose_nothing_that_was_acknowledged(
    machine: Machine,
) -> None:
    stored: list[str] = []

    async def work(session: Client, name: str) -> None:
        for number in range(12):
            text = f"The fact {number} of session {name} is kept."
            await called(session, "memory_store", content=text)
            stored.append(text)

    async def kill() -> None:
        for _ in range(4):
            await asyncio.sleep(1.0)
            for process in own_servers(machine.home):
                os.kill(process, signal.SIGKILL)

    async with machine.session() as one, machine.session() as other:
        # which tell what may be repeated
        await asyncio.gather(one.list_tools(), other.list_tools())
        await asyncio.gather(work(one, "one"), work(other, "other"), kill())

    kept = [
        line["content"]
        for line in map(json.loads, machine.run("export").out.splitlines())
        if "content" in line
    ]
    assert len(stored) == 24
    assert sorted(kept) == sorted(stored)


@pytest.mark.parametrize(
    ("modules", "left_out"),
    [
        (
            "folklore.server.application.local, folklore.memory.operations",
            ("mcp", "numpy", "jinja2", "prometheus_client", "rich"),
        ),
        (
            "folklore.server.application.local, folklore.memory.operations",
            (
                "folklore.text.secrets.key_formats",
                "folklore.text.hooks.assertions",
                "folklore.memory.transfer.importer",
            ),
        ),
        ("folklore.cli.daily.read", ("folklore.text.secrets.context", "numpy")),
    ],
    ids=["libraries of the server", "modules of the server", "modules of a command"],
)
def test_a_cold_start_imports_nothing_that_its_first_call_does_not_need(
    modules: str, left_out: tuple[str, ...]
) -> None:
    program = (
        f"import sys, {modules}\n"
        "from folklore import log\n"
        "log.configure('info', 'console')\n"
        f"print([name for name in {left_out} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


def test_every_operation_is_imported_once_the_server_has_started() -> None:
    operations.import_all()

    assert "folklore.memory.records.retag" in sys.modules
    assert "folklore.memory.hooks.events" in sys.modules


@pytest.mark.parametrize(
    ("arguments", "settings", "variable", "starts"),
    [
        (["recall", "rivers"], "", "", True),
        (["status"], "time_zone: UTC\n", "", True),
        (["recall", "--help"], "", "", False),
        (["doctor"], "", "", False),
        (["recall", "rivers"], "server: https://folklore.example\n", "", False),
        (["recall", "rivers"], "read_only: true\n", "", False),
        (["recall", "rivers"], "{server: 'https://folklore.example'}\n", "", False),
        (["recall", "rivers"], "", "FOLKLORE_SERVER", False),
        (["recall", "rivers"], "", "FOLKLORE_OWN", False),
    ],
)
def test_a_command_starts_the_server_before_it_imports_its_own_modules(
    machine: Machine, arguments: list[str], settings: str, variable: str, starts: bool
) -> None:
    machine.home.mkdir()
    (machine.home / "config.yaml").write_text(settings)
    environ = machine.shell(**({variable: "https://f.example"} if variable else {}))
    server = LocalServer(str(machine.home), environ)
    program = (
        "import os, sys\n"
        "from folklore.client.forked import exit_code\n"
        f"print(exit_code({arguments!r}, os.environ), 'pydantic' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "None False\n"
    assert (server.inode() is not None) is starts


def test_a_hook_says_whether_the_server_is_starting_or_away(machine: Machine) -> None:
    machine.home.mkdir()
    bound = machine.local.take_over()  # a server that has its socket, and is not ready
    assert bound is not None
    with bound.listening:
        starting = machine.run("hook", "session-start", stdin="")
        os.utime(machine.local.path, (0, 0))
        away = machine.run("hook", "session-start", stdin="")

    assert (starting.code, away.code) == (0, 0)
    assert "is starting: it did not answer within 4 seconds" in starting.out
    assert "is away: it did not answer within 4 seconds" in away.out


async def test_a_server_that_does_not_answer_is_replaced_and_one_that_does_is_not(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run("store", EACH)
    stuck = machine.process
    await asyncio.to_thread(machine.local.replace_stuck)
    assert machine.process == stuck
    os.kill(stuck, signal.SIGSTOP)
    monkeypatch.setattr(local, "_STUCK_SECONDS", 0.5)

    await asyncio.to_thread(machine.local.replace_stuck)

    assert machine.contents() == [EACH]
    assert machine.process != stuck


def test_a_server_ends_when_it_is_told_and_when_it_is_idle(machine: Machine) -> None:
    assert machine.run("server", "stop").out == "It did not run.\n"
    machine.run("store", EACH)
    told = machine.process
    shown = machine.run("server", "status", "--json").json
    stopped = machine.run("server", "stop")
    assert shown == {
        "pid": told,
        "url": None,
        "http": False,
        "database": "that of database_url",
        "socket": machine.local.path,
        "log": machine.local.log,
    }
    assert (stopped.code, stopped.out) == (0, f"Process {told} has ended.\n")
    assert not Path(machine.local.path).exists()

    began = time.monotonic()
    assert machine.run("list", FOLKLORE_ENGINE__IDLE_MINUTES="0.05").code == 0
    eventually(lambda: not own_servers(machine.home))
    assert time.monotonic() - began > 3.0
    assert "ending" in machine.run("server", "log").out


async def test_a_server_without_its_home_ends_and_another_starts(
    machine: Machine,
) -> None:
    machine.run("store", EACH)
    before = machine.process
    Path(machine.local.path).unlink()

    assert machine.contents() == [EACH]
    eventually(lambda: before not in own_servers(machine.home))
    assert machine.process != before


def test_another_configuration_and_another_version_have_a_server_of_their_own(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = machine.local.path
    environ = machine.shell()
    assert (
        LocalServer(
            str(machine.home),
            environ | {"FOLKLORE_AUTHOR": "x", "FOLKLORE_NAMESPACE": "y"},
        ).path
        == first
    )
    assert (
        LocalServer(str(machine.home), environ | {"FOLKLORE_RETENTION_DAYS": "1"}).path
        != first
    )
    assert (
        LocalServer(str(machine.home), environ | {"FOLKLORE_HTTP__PORT": "1"}).path
        == first
    )
    assert LocalServer(str(machine.home), environ, read_only="true").path != first
    machine.home.mkdir()
    (machine.home / "config.yaml").write_text("retention_days: 2\n")
    assert machine.local.path != first
    (machine.home / "config.yaml").unlink()
    monkeypatch.setattr(local, "__version__", "0.0.1")
    assert machine.local.path != first


def test_a_home_with_a_long_path_has_its_socket_elsewhere(
    machine: Machine, database_url: str
) -> None:
    home = machine.home / ("long" * 30)
    with own_servers_ended(home):
        ran = machine.run("store", EACH, FOLKLORE_HOME=str(home))
        again = machine.run("list", FOLKLORE_HOME=str(home))

        assert (ran.code, again.code, ran.err) == (0, 0, "")
        assert EACH in again.out
        assert len(own_servers(home)) == 1
        rmtree(home)
        eventually(lambda: not own_servers(home))


def test_without_a_private_folder_a_command_says_so_and_does_without(
    machine: Machine,
) -> None:
    folder = Path(machine.local.path).parent
    folder.mkdir(parents=True)
    folder.chmod(0o755)

    ran = machine.run("store", EACH)

    assert ran.code == 0
    assert "no_local_server" in ran.err
    assert own_servers(machine.home) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_even_where_the_folder_lets_him_in(
    machine: Machine,
) -> None:
    machine.run("store", EACH)
    program = (
        "import os, socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX); os.seteuid(65534); connection.connect(sys.argv[1])\n"
        "connection.sendall(b'GET /healthz HTTP/1.0\\r\\nhost: localhost\\r\\n\\r\\n'); print(connection.recv(9))\n"
    )
    path = Path(machine.local.path)
    folder = Path(machine.local.path).parent
    before = [(one, one.stat().st_mode) for one in (*folder.parents, folder, path)]
    for one, mode in before:
        one.chmod(mode | (0o077 if one in (folder, path) else 0o011))
    try:
        other = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for one, mode in before:
            one.chmod(stat.S_IMODE(mode))

    assert "HTTP" not in other.stdout
    assert "b''" in other.stdout or other.stderr.endswith(
        ("reset by peer\n", "Broken pipe\n")
    )
    with socket.socket(socket.AF_UNIX) as own, suppress(TimeoutError):
        own.connect(str(path))
        own.sendall(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
        assert own.recv(4) == b"HTTP"


# `folklore serve --http` as the user's server


async def test_sessions_and_commands_use_the_server_that_serves_http(
    machine: Machine, tmp_path: Path
) -> None:
    repository = tmp_path / "harbour"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    # The server's own namespace, notes, is not that of a session in another repository.
    async with (
        on_http(machine.server, alone=True) as http,
        machine.session(FOLKLORE_NAMESPACE="") as session,
    ):
        stored = await asyncio.to_thread(machine.run, "store", EACH)
        found = await called(
            session,
            "memory_recall",
            query="what names a release?",
            namespaces=["notes"],
        )
        there = await asyncio.to_thread(
            machine.run,
            *("store", "The harbour's note.", "--json"),
            cwd=repository,
            FOLKLORE_NAMESPACE="",
        )
        hook = {
            "event": "UserPromptSubmit",
            "prompt": "Where is the harbour's note?",
            "session": "1",
            "cwd": str(repository),
        }
        [note] = (await session.call_tool("client_hook", hook)).content
        link = await asyncio.to_thread(machine.run, "open", "--json")
        status = await asyncio.to_thread(machine.run, "server", "status", "--json")

        assert (stored.code, stored.err) == (0, "")
        assert found["memories"][0]["content"] == EACH
        assert former(there.json["namespace"]) == "repo:harbour"
        assert "by tester] The harbour" in str(note)
        assert link.json["url"].startswith(f"{http.url}/open?code=")
        assert machine.local.pid() == http.process.pid == status.json["pid"]
        assert (status.json["http"], status.json["url"]) == (True, http.url)
        assert own_servers(machine.home) == []
        await http.end()
    assert not Path(machine.local.path).exists()
    assert EACH in machine.contents()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_serving_http_takes_over_from_the_server_that_runs(
    machine: Machine, workers: str
) -> None:
    port = free_port()
    async with machine.session(FOLKLORE_HTTP__PORT=str(port)) as session:
        await called(session, "memory_store", content=EACH)
        former = machine.process
        link = await asyncio.to_thread(
            machine.run, "open", "--json", FOLKLORE_HTTP__PORT=str(port)
        )
        serving = Watched(
            machine.shell(FOLKLORE_HTTP__WORKERS=workers), machine.server.notes
        )
        async with on_http(serving, port=port, alone=True) as http:
            await asyncio.to_thread(eventually, lambda: not own_servers(machine.home))
            found = await called(
                session, "memory_recall", query="what names a release?"
            )
            opened = await asyncio.to_thread(machine.run, "open", "--json")
            await asyncio.to_thread(
                eventually, lambda: machine.local.pid() == http.process.pid
            )
            await http.end()

    assert link.json["url"].startswith(f"http://127.0.0.1:{port}/")
    assert opened.json["url"].startswith(f"http://127.0.0.1:{port}/")
    assert found["memories"][0]["content"] == EACH
    assert former not in own_servers(machine.home)


async def test_servers_and_commands_that_start_at_once_leave_one_server(
    machine: Machine,
) -> None:
    async with on_http(machine.server, alone=True) as http:
        pass
    for number in range(3):
        works = [
            asyncio.to_thread(machine.run, "store", f"{EACH} {number} {n}")
            for n in range(3)
        ]
        begun = [asyncio.create_task(work) for work in works]
        async with on_http(machine.server, alone=True) as http:
            ran = await asyncio.gather(*begun)
            assert [(done.code, done.err) for done in ran] == [(0, "")] * 3
            await asyncio.to_thread(
                eventually, lambda: machine.local.pid() == http.process.pid
            )
            await asyncio.to_thread(eventually, lambda: not own_servers(machine.home))
            assert len(await asyncio.to_thread(machine.contents)) == 3 * number + 3
            if number:
                http.process.kill()


async def test_a_server_of_http_that_does_not_answer_is_left_and_not_killed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_STUCK_SECONDS", 0.5)
    async with on_http(machine.server, alone=True) as http:
        await asyncio.to_thread(machine.run, "store", EACH)
        await asyncio.to_thread(
            eventually, lambda: machine.local.pid() == http.process.pid
        )
        os.kill(http.process.pid, signal.SIGSTOP)
        await asyncio.to_thread(machine.local.replace_stuck)
        listed = await asyncio.to_thread(machine.contents)
        os.kill(http.process.pid, signal.SIGCONT)

        assert listed == [EACH]
        assert machine.process == machine.local.pid()
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{http.url}/healthz")).status_code == 200
        await http.end()
    assert machine.process == machine.local.pid()


async def test_a_server_of_http_whose_socket_was_removed_makes_room_for_another(
    machine: Machine,
) -> None:
    async with on_http(machine.server, alone=True) as http:
        await asyncio.to_thread(machine.run, "store", EACH)
        Path(machine.local.path).unlink()

        assert await asyncio.to_thread(machine.contents) == [EACH]
        assert machine.process == machine.local.pid() != http.process.pid


async def test_a_port_that_is_taken_names_the_folklore_server_that_has_it(
    machine: Machine, tmp_path: Path
) -> None:
    async with on_http(machine.server, alone=True) as http:
        await asyncio.to_thread(
            eventually, lambda: machine.local.pid() == http.process.pid
        )
        serve = ("serve", "--http", "--port", str(http.port))
        here = await asyncio.to_thread(machine.run, *serve)
        elsewhere = await asyncio.to_thread(
            machine.run, *serve, FOLKLORE_HOME=str(tmp_path / "other")
        )
        restart = await asyncio.to_thread(machine.run, "server", "restart")
        stopped = await asyncio.to_thread(machine.run, "server", "stop")

        assert here.code == elsewhere.code == 2
        assert f"`folklore serve --http` (process {http.process.pid})" in here.err
        assert "another Folklore server" in elsewhere.err
        assert (restart.code, "serve --http" in restart.err) == (5, True)
        assert stopped.out == f"Process {http.process.pid} has ended.\n"


def test_the_process_that_forks_has_imported_every_command_that_it_carries_out() -> (
    None
):
    modules = {f"cli.{_COMMANDS[name][0]}" for name in forked._COMMANDS}

    assert modules - set(forkserver._MODULES) == set(), (
        "Add it to _MODULES in cli/forkserver.py, or each call imports it anew."
    )
