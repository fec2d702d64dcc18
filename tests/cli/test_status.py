"""`folklore` without a command, its help and its suggestions, on terminals and pipes."""

import asyncio

import asyncpg
import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.terminal import on_terminal

LONG = "We deploy every Tuesday, after the nightly backup was verified by hand and the engineer on call has agreed to it."


async def test_without_a_command_the_memory_of_the_project_is_shown(
    folklore: CommandLine,
) -> None:
    assert "notes: no memories yet" in await folklore.done()
    for number in range(7):
        await folklore.done("store", f"Fact {number}.")
    await folklore.done("store", "A fact of others.", "-n", "others")

    shown = await folklore.done()
    status = await folklore.json("status")

    assert "notes: 7 memories" in shown
    assert "1 memory in 1 other namespace" in shown
    assert "Postgres of database_url" in shown
    assert [
        line.split("  ")[-1] for line in shown.splitlines() if line[2:4] == ". "
    ] == [f"Fact {number}." for number in (6, 5, 4, 3, 2)]
    assert "Fact 6." in await folklore.done("show", "1")
    assert (status["project"], status["memories"], len(status["newest"])) == (
        "notes",
        7,
        5,
    )


async def test_what_wants_attention_is_shown_with_the_next_step(
    folklore: CommandLine,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await folklore.done("store", "The gate is open.")
    assert "!" not in await folklore.done()
    await connection.execute("delete from embeddings")
    await connection.execute(
        "insert into jobs (name, outcome, finished_at, seconds, done, error)"
        " values ('retention', 'failed', now() - interval '2 hours', 1, '{}', 'disk full')"
        " on conflict (name) do update set outcome = 'failed', finished_at = excluded.finished_at, error = 'disk full'"
    )

    shown = await folklore.done()

    assert (
        "! 1 embedding is pending: a server adds them, or `folklore embeddings backfill`"
        in shown
    )
    assert (
        "! the job retention failed 2 hours ago: disk full (`folklore jobs status`)"
        in shown
    )
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "none")
    assert "no embedding model" in await folklore.done()


@pytest.mark.parametrize("columns", [80, 160])
async def test_the_status_fits_the_terminal(
    folklore: CommandLine, columns: int
) -> None:
    await folklore.done("store", LONG)

    screen = await asyncio.to_thread(on_terminal, folklore.environment, columns=columns)

    assert screen.code == 0
    assert "\x1b[" in screen.raw
    (line,) = [line for line in screen.lines if "We deploy" in line]
    assert len(line) <= columns
    assert line.endswith("…") == (columns == 80)


MISSPELT: list[tuple[list[str], str]] = [
    (["shwo", "1"], "Did you mean show?"),
    (["tokens", "creat"], "Did you mean 'create'?"),
    (["list", "--limt", "3"], "'--limit'"),
    (["--utz"], "'--utc'"),
    (["zzz", "--json"], "\"No such command 'zzz'.\""),
]


async def test_a_misspelt_command_or_option_is_refused_with_the_nearest_if_there_is_one(
    folklore: CommandLine,
) -> None:
    for words, suggestion in MISSPELT:
        ran = await folklore(*words)

        assert ran.code == 2, words
        assert suggestion in ran.err, words


async def test_the_help_lists_all_commands_in_groups(folklore: CommandLine) -> None:
    help_ = await folklore.done("--help")

    assert [
        help_.index(f"\n{group}:\n") for group in ("Daily", "Team", "Operate")
    ] == sorted(help_.index(f"\n{group}:\n") for group in ("Daily", "Team", "Operate"))
    assert "Usage: folklore" in help_
