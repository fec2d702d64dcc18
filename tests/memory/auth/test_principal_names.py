"""Names of principals in any script: tokens and the audit log distinguish those that the database distinguishes."""

from uuid import UUID

import asyncpg
import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.test_namespace_names import PAIRS


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_names_that_are_equal_in_a_locale_are_two_principals(
    folklore: CommandLine, one: str, other: str
) -> None:
    for name in (one, other):
        await folklore.done("tokens", "create", "--name", name, "--owner")

    listed = (await folklore.json("tokens", "list"))["tokens"]
    own = (await folklore.json("tokens", "list", "--name", other))["tokens"]
    revoked = (await folklore.json("tokens", "revoke", "--name", one))["revoked"]
    left = (await folklore.json("tokens", "list"))["tokens"]

    assert sorted(token["name"] for token in listed) == sorted([one, other])
    assert [token["name"] for token in own] == [other]
    assert [token["name"] for token in revoked] == [one]
    assert [token["name"] for token in left] == [other]


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_the_audit_log_separates_similar_principals(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    for author in (one, other):
        monkeypatch.setenv("FOLKLORE_AUTHOR", author)
        await folklore.done("store", f"The gate of {author} is open.")

    lines = (await folklore.json("audit", "--name", one))["audit"]

    assert [line["name"] for line in lines] == [one]


async def test_names_of_principals_ignore_the_case_of_ascii_letters(
    folklore: CommandLine,
) -> None:
    for name in ("Ümit-API", "ÜMIT-api"):
        await folklore.done("tokens", "create", "--name", name, "--owner")

    listed = (await folklore.json("tokens", "list", "--name", "ÜmiT-Api"))["tokens"]

    assert [token["name"] for token in listed] == ["Ümit-API"] * 2


async def test_the_database_refuses_a_principal_that_differs_in_the_case_of_ascii_letters_only(
    connection: asyncpg.Connection,
) -> None:
    for number, name in enumerate(("ΝΙΚΟΣ", "νικος", "Else")):
        await _insert(connection, number, name)

    with pytest.raises(asyncpg.UniqueViolationError):
        await _insert(connection, 9, "ELSE")


async def _insert(connection: asyncpg.Connection, number: int, name: str) -> None:
    await connection.execute(
        "insert into principals (id, name) values ($1, $2)", UUID(int=number), name
    )
