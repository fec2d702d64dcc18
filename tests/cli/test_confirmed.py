"""What a person confirms is what is done, whatever others do between the question and the answer."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from folklore.cli.main import outcome
from folklore.config import Settings
from tests.commands import CommandLine, answers, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import serving
from tests.team import library_at, root

Meanwhile = Callable[..., None]


@pytest.fixture(name="where", params=["here", "at a server"])
async def command_place(
    request: pytest.FixtureRequest,
    folklore: CommandLine,
    database_url: str,
    tmp_path: Path,
) -> AsyncIterator[tuple[str, ...]]:
    """The words that say where a command is carried out."""
    if request.param == "here":
        yield ()
        return
    settings = Settings(database_url=database_url, home=tmp_path / "server")
    async with library_at(database_url) as library, serving(settings) as url:
        boss = await root(library).create_token("boss", owner=True)
        yield "--server", url, "--token", boss.secret


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """`meanwhile(*commands)`: run these while a terminal asks, which is answered by yes."""

    def arm(*commands: tuple[str, ...]) -> None:
        def confirm(*_: object, **__: object) -> bool:
            return not any(outcome(list(command)) for command in commands)

        monkeypatch.setattr("sys.stdin.isatty", lambda: True)
        monkeypatch.setattr("click.confirm", confirm)

    return arm


async def contents(folklore: CommandLine, *words: str) -> set[str]:
    return {
        memory["content"]
        for memory in (await folklore.json("list", *words))["memories"]
    }


async def test_a_namespace_that_got_the_name_meanwhile_is_not_erased(
    folklore: CommandLine, where: tuple[str, ...], meanwhile: Meanwhile
) -> None:
    await folklore.keep("Old.", "-n", "nv")
    meanwhile(
        ("namespaces", "rename", "nv", "elsewhere"), ("store", "New.", "-n", "nv")
    )

    ran = await folklore("namespaces", "delete", "nv", "--erase", *where)

    assert (
        ran.code,
        "nothing was erased" in ran.err,
        "Run the command again" in ran.err,
    ) == (1, True, True)
    assert await contents(folklore, "-n", "nv") == {"New."}
    assert await contents(folklore, "-n", "elsewhere") == {"Old."}


async def test_a_namespace_created_meanwhile_is_not_erased_instead_of_deleted_ones(
    folklore: CommandLine, meanwhile: Meanwhile
) -> None:
    await folklore.keep("Old.", "-n", "nv")
    await folklore.done("namespaces", "delete", "nv")
    meanwhile(("store", "New.", "-n", "nv"))

    assert (await folklore("namespaces", "delete", "nv", "--erase")).code == 1

    assert await contents(folklore, "-n", "nv") == {"New."}
    assert (
        len((await folklore.json("namespaces", "list", "--deleted"))["namespaces"]) == 1
    )


async def test_the_confirmed_namespace_is_erased(
    folklore: CommandLine, where: tuple[str, ...], meanwhile: Meanwhile
) -> None:
    await folklore.keep("Old.", "-n", "nv")
    meanwhile(("store", "Said meanwhile.", "-n", "nv"))

    said = await folklore.done("namespaces", "delete", "nv", "--erase", *where)

    assert said.splitlines()[-1] == "erased nv with 2 memories"
    assert (await folklore.json("namespaces", "list"))["namespaces"] == []


@pytest.mark.parametrize("how", [(), ("--erase",)])
async def test_filters_forget_only_the_memories_shown(
    folklore: CommandLine,
    where: tuple[str, ...],
    meanwhile: Meanwhile,
    how: tuple[str, ...],
) -> None:
    for text in ("junk 0", "junk 1"):
        await folklore.keep(text, "--tag", "junk")
    outdated = await folklore.keep("junk that is none", "--tag", "junk")
    meanwhile(
        ("store", "Said meanwhile.", "--tag", "junk"),
        ("store", "No junk.", "--supersedes", outdated),
    )

    said = await folklore.done("forget", "--tag", "junk", *how, *where)

    assert said.splitlines()[-1] == f"2 {'erased' if how else 'forgotten'}"
    assert await contents(folklore) == {"Said meanwhile.", "No junk."}
    assert (await folklore.json("show", outdated))["memories"][0].get(
        "forgotten_at"
    ) is None


async def test_nothing_is_forgotten_if_nothing_was_shown(
    folklore: CommandLine, where: tuple[str, ...], meanwhile: Meanwhile
) -> None:
    await folklore.keep("gold")
    meanwhile(("store", "Said meanwhile.", "--tag", "junk"))

    said = await folklore.done("forget", "--tag", "junk", *where)

    assert said.splitlines()[-1] == "0 forgotten"
    assert await contents(folklore) == {"gold", "Said meanwhile."}


async def test_a_full_call_forgets_the_memories_shown(
    folklore: CommandLine, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.memory.records.forget.MAX_AT_ONCE", 2)
    await folklore.done("namespaces", "create", "a")  # looked at first
    shown = [
        await folklore.keep(f"junk {number}", "--tag", "junk", "-n", "b")
        for number in range(2)
    ]
    await folklore.keep("junk 2", "--tag", "junk", "-n", "b")
    meanwhile(("store", "Said meanwhile.", "--tag", "junk", "-n", "a"))

    said = await folklore.done("forget", "--tag", "junk", "-n", "a", "-n", "b")

    assert said.splitlines()[-1] == "2 forgotten, more match: run it again"
    assert await contents(folklore, "-n", "a", "-n", "b") == {
        "junk 2",
        "Said meanwhile.",
    }
    assert all(
        item.get("forgotten_at")
        for item in (await folklore.json("show", *shown))["memories"]
    )


async def test_a_merge_of_namespaces_is_confirmed_with_what_moves(
    folklore: CommandLine, where: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, namespace in (("green", "old"), ("open", "old"), ("open", "notes")):
        await folklore.done("store", f"The gate is {text}.", "-n", namespace, *where)
    asked = answers(monkeypatch)

    await folklore.done("namespaces", "merge", "old", "--into", "notes", *where)

    assert asked == [
        "Move 2 memories (1 superseded by the same text) into notes, after which old is deleted?"
    ]
    assert await contents(folklore, "-n", "notes", *where) == {
        "The gate is green.",
        "The gate is open.",
    }
