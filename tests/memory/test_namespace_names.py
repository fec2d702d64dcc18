"""Names of namespaces in any script: every part of the product distinguishes the names that the database does."""

import sys
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
from mcp import Client

from folklore.errors import NotFound
from folklore.text import names
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.conftest import Cluster
from tests.mcp.test_tools import call
from tests.memory.auth.test_isolation import holder
from tests.person import NOON, Person, contents

# Pairs that some rule for lower case makes equal.
PAIRS = [
    ("ΟΔΟΣ", "οδος"),
    ("İstanbul", "istanbul"),
    ("Straẞe", "Straße"),
    ("ÜBER", "über"),
    ("ПЛАН", "план"),
]


async def test_keys_of_names_agree_with_the_database(
    connection: asyncpg.Connection,
) -> None:
    letters = [
        chr(point)
        for point in range(sys.maxunicode + 1)
        if chr(point).isalpha() or chr(point).isnumeric()
    ]
    ours = [names.key(f"A{letter}") for letter in letters]

    theirs = await connection.fetchval(
        'select array_agg(lower(name collate "C") order by place)'
        " from unnest($1::text[]) with ordinality named (name, place)",
        [f"A{letter}" for letter in letters],
    )

    assert [
        letter
        for letter, one, other in zip(letters, ours, theirs, strict=True)
        if one != other
    ] == []


async def test_a_text_recalled_in_one_namespace_is_no_quotation_in_the_other(
    client: Client,
) -> None:
    one, other = PAIRS[3]
    quoted = (
        "\N{LEFT DOUBLE QUOTATION MARK}The gate is open.\N{RIGHT DOUBLE QUOTATION MARK}"
    )
    await call(client, "memory_store", content="The gate is open.", namespace=one)
    await call(client, "memory_recall", query="gate", namespaces=[one])

    await call(client, "memory_store", content=quoted, namespace=other)

    found = await call(client, "memory_recall", query="gate", namespaces=[other])
    assert [memory["content"] for memory in found["memories"]] == [quoted]


@pytest.mark.parametrize(("one", "other"), PAIRS[:1])
async def test_an_export_of_similar_names_is_imported_completely(
    folklore: CommandLine,
    cluster: Cluster,
    template: str,
    tmp_path: Path,
    one: str,
    other: str,
) -> None:
    for name in (one, other):
        await folklore.done("store", "The same words.", "-n", name)
    file = tmp_path / "out.jsonl"
    await folklore.done("export", file)

    async with cluster.new_database(template) as empty:
        there = cluster.address(empty)
        imported = folklore.process(
            "import", str(file), "--json", FOLKLORE_DATABASE_URL=there
        ).json
        listed = folklore.process(
            "namespaces", "list", "--json", FOLKLORE_DATABASE_URL=there
        ).json["namespaces"]

    assert (imported["stored"], imported["duplicates"]) == (2, 0)
    assert {item["name"]: item["memories"] for item in listed} == {one: 1, other: 1}


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_a_token_has_a_separate_role_for_each_of_two_similar_names(
    folklore: CommandLine, one: str, other: str
) -> None:
    await folklore.done("namespaces", "create", one)
    await folklore.done(
        "tokens", "create", "--name", "t4", "--grant", f"{other}:reader"
    )
    await folklore.done(
        "tokens",
        "create",
        "--name",
        "t5",
        "--grant",
        f"{one}:admin",
        "--grant",
        f"{other}:reader",
    )
    await folklore.done(
        "tokens",
        "create",
        "--name",
        "t6",
        "--grant",
        f"{one}:writer",
        "--namespace",
        one,
    )

    listed = (await folklore.json("tokens", "list"))["tokens"]

    assert {token["name"]: set(token["grants"].split()) for token in listed} == {
        "t4": {f"{other}:reader"},
        "t5": {f"{one}:admin", f"{other}:reader"},
        "t6": {f"{one}:writer"},
    }
    assert (
        await folklore(
            "tokens",
            "create",
            "--name",
            "t7",
            "--grant",
            f"{other}:writer",
            "--namespace",
            one,
        )
    ).code == 2
    twice = await folklore(
        "tokens",
        "create",
        "--name",
        "t8",
        "--grant",
        "team:admin",
        "--grant",
        "TEAM:reader",
    )
    assert (twice.code, "given twice" in twice.err) == (2, True)


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_a_grant_for_one_name_does_not_open_a_similar_name(
    person: Person, one: str, other: str
) -> None:
    await person.keep("x", namespace=other)
    writer = await holder(person, "walter", f"{one}:writer")

    await writer.store("mine", namespace=one)
    with pytest.raises(NotFound, match="that you may write to"):
        await writer.store("not mine", namespace=other)

    assert contents(await writer.recall("mine")) == ["mine"]


async def test_names_ignore_the_case_of_ascii_letters_only(person: Person) -> None:
    await person.keep("x", namespace="Ünter-Den-Linden")

    spelled = ["ÜNTER-den-LINDEN", " Ünter-den-Linden "]
    assert [item.name for item in await person.library.find_namespaces(spelled)] == [
        "Ünter-Den-Linden"
    ]
    with pytest.raises(
        NotFound,
        match=r"no namespace 'ünter-den-linden'\. Did you mean Ünter-Den-Linden\?",
    ):
        await person.library.find_namespaces(["ünter-den-linden"])


async def test_the_database_refuses_a_name_that_differs_in_the_case_of_ascii_letters_only(
    connection: asyncpg.Connection,
) -> None:
    for number, name in enumerate(("ΟΔΟΣ", "οδος", "Team", "istanbul", "ıstanbul")):
        await _insert(connection, number, name)

    with pytest.raises(asyncpg.UniqueViolationError):
        await _insert(connection, 99, "TEAM")


async def _insert(connection: asyncpg.Connection, number: int, name: str) -> None:
    await connection.execute(
        "insert into namespaces (id, name, created_at, created_by) values ($1, $2, $3, 'tester')",
        UUID(int=number), name, NOON,
    )  # fmt: skip
