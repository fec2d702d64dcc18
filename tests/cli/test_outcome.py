"""How commands end: exit codes, one clear line, JSON for programs, nothing on stdout that is not the result."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import click
import pytest

from folklore.cli import main
from folklore.cli.main import _COMMANDS
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

UNKNOWN = "01a1f934-20b1-7685-80b9-aa643f7eaeb1"


BAD_INPUT = [
    ["recall"],
    ["recall", "x", "--limit", "0"],
    ["recall", "x", "--ranking", "dense=much"],
    ["recall", "x", "--ranking", "sparse=1"],
    ["recall", "x", "--ranking", "dense"],
    ["recall", "x", "--time", "at the dawn of time"],
    ["recall", "x", "--filter", "since=soon"],
    ["recall", "x", "--filter", "mood=good"],
    ["recall", "x", "--filter", "session=a", "--filter", "session=b"],
    ["show", "not-an-id"],
    ["store", "x", "--field", "metadata=[1]"],
    ["store", "x", "--field", "mood=good"],
    ["store", "x", "--field", "content=y"],
    ["store"],
    ["store", " "],
    ["import", "/nowhere.jsonl"],
    ["backups", "verify", "/nowhere"],
    ["join", "https://folklore.example.com", "code", "--ca", "/nowhere.pem"],
    ["export", "--json"],
    ["db", "stop"],
    ["fetch"],
]


async def test_bad_input_ends_with_2_and_one_clear_message(
    folklore: CommandLine,
) -> None:
    for arguments in BAD_INPUT:
        ran = await folklore(*arguments)
        assert (ran.code, ran.out) == (2, ""), arguments
        assert ran.err
        assert "Traceback" not in ran.err


async def test_errors_of_bad_input_name_the_next_step(folklore: CommandLine) -> None:
    assert (
        "Understood are: today"
        in (await folklore("recall", "x", "--filter", "since=soonish")).err
    )
    assert (
        "ISO 8601 time"
        in (await folklore("store", "x", "--occurred-at", "yesterday")).err
    )
    assert (
        "'content' is the text itself. Give it as TEXT"
        in (await folklore("store", "x", "--field", "content=y")).err
    )
    assert "TEXT: is missing." in (await folklore("store")).err
    assert (
        "Use one of kinds, tags,"
        in (await folklore("recall", "x", "--filter", "mood=good")).err
    )
    assert (
        "`folklore tokens list` shows ids"
        in (await folklore("tokens", "revoke", "alice")).err
    )
    assert "`folklore list` shows them" in (await folklore("show", "alice")).err


async def test_a_database_that_is_away_ends_with_3(folklore: CommandLine) -> None:
    ran = await folklore("--database-url", "postgresql://127.0.0.1:1/none", "list")

    assert ran.code == 3
    assert len(ran.err.splitlines()) == 1
    assert "doctor" in ran.err


async def test_writing_where_only_reading_is_allowed_ends_with_5(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_READ_ONLY", "true")

    assert (await folklore("store", "a fact")).code == 5
    assert (await folklore("list")).code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        *(
            (["show", UNKNOWN], "not_found"),
            (["recall", "x", "--limit", "0"], "invalid_input"),
        ),
        (["import", ""], "invalid_input"),
    ],
)
async def test_errors_are_json_with_json(
    folklore: CommandLine, arguments: list[str], code: str
) -> None:
    ran = await folklore(*arguments, "--json")

    assert ran.out == ""
    assert json.loads(ran.err)["error"]["code"] == code
    assert json.loads(ran.err)["error"]["message"]


async def test_an_internal_error_is_one_line(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("the flux\ncapacitor")

    monkeypatch.setattr(main.cli, "main", crash)

    ran = await folklore("list")
    assert (ran.code, ran.err) == (
        1,
        "folklore: internal error (RuntimeError: the flux); run with --debug to see its place.\n",
    )
    with pytest.raises(RuntimeError, match="flux"):
        await folklore("list", "--debug")


async def test_a_closed_pipe_is_no_error(folklore: CommandLine) -> None:
    for number in range(3):
        await folklore("store", f"fact {number} " + "long " * 5000)
    shell = f"{shlex.quote(sys.executable)} -m folklore export | head -c 10"

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        capture_output=True,
        env=os.environ | folklore.environment,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


async def test_a_full_disk_is_one_line(folklore: CommandLine) -> None:
    await folklore.done("store", "a fact")
    command = [sys.executable, "-m", "folklore", "export"]

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | folklore.environment,
            check=False,
        )

    assert (done.returncode, done.stderr) == (
        1,
        b"folklore: output: No space left on device.\n",
    )


def importing(folklore: CommandLine) -> subprocess.Popen[bytes]:
    """An import from a pipe that Ctrl-C reaches."""
    return subprocess.Popen(
        [sys.executable, "-m", "folklore", "import", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | folklore.environment,
        # A shell starts what runs in its background with this signal ignored, and a child inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


CONNECTED = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'folklore'"
STORED = "select count(*) from memories"


@pytest.mark.parametrize(
    ("lines", "begun", "count", "said"),
    [
        (1, CONNECTED, 1, b""),
        (
            2_500,
            STORED,
            1_000,
            b"Interrupted. What was stored stays; run it again to continue.",
        ),
    ],
)
async def test_ctrl_c_ends_an_import_with_130_even_while_it_reads_and_says_what_to_do(
    folklore: CommandLine,
    connection: asyncpg.Connection,
    lines: int,
    begun: str,
    count: int,
    said: bytes,
) -> None:
    with importing(folklore) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.writelines(
            b'{"content": "fact %d"}\n' % number for number in range(lines)
        )
        process.stdin.flush()
        async with asyncio.timeout(120):
            while await connection.fetchval(begun) < count:
                await asyncio.sleep(0.02)
        if begun == CONNECTED:
            # it reads by now; if not, it has to end the same way
            await asyncio.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 120) == 130
        errors = process.stderr.read()
        assert said in errors
        assert b"Traceback" not in errors


OF_A_DATABASE: list[str] = [
    "db start",
    "db stop",
    "db status",
    "db migrate",
    "db role",
    "backup",
]


async def test_commands_for_a_database_refuse_a_server(folklore: CommandLine) -> None:
    for command in OF_A_DATABASE:
        ran = await folklore(*command.split(), "--server", "http://127.0.0.1:1")

        assert (ran.code, ran.out) == (2, ""), command
        assert "Run it where the server runs." in ran.err, command


async def test_a_token_that_does_not_fit_a_header_is_bad_input(
    folklore: CommandLine,
) -> None:
    ran = await folklore("list", "--server", "http://127.0.0.1:1", "--token", "fk_…")

    assert ran.code == 2
    assert (
        ran.err
        == "folklore: token: is not a token. `folklore tokens create` shows one, once.\n"
    )


def test_every_command_has_help_and_at_most_18_options() -> None:
    context = click.Context(main.cli)
    for name in _COMMANDS:
        command = main.cli.get_command(context, name)
        assert command is not None
        assert command.help
        commands = (
            command.commands.values() if isinstance(command, click.Group) else [command]
        )
        for one in commands:
            options = [
                option for option in one.params if isinstance(option, click.Option)
            ]
            assert len(options) <= (18 if name == "recall" else 16), name


def test_serve_imports_no_slow_module() -> None:
    code = (
        "import sys, folklore.cli.main, folklore.cli.operate.serve; print(*sys.modules)"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    # structlog imports a part of rich.
    assert {
        "rich.progress",
        "numpy",
        "asyncpg",
        "wordllama",
        "mcp",
        "uvicorn",
    }.isdisjoint(loaded)


def test_the_help_takes_little_processor_time() -> None:
    code = "import time; from folklore.cli.main import outcome; outcome(['--help']); print(time.process_time())"

    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert float(shown.split()[-1]) < 0.25
