"""Names of principals in any script: tokens and the audit log distinguish those that the database distinguishes."""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest

from folklore.db import migrate as room
from folklore.db.migrate import migrate, migrations
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import NOON
from tests.test_namespace_names import PAIRS


@pytest.mark.parametrize(("one", "other"), PAIRS)
async def test_names_that_are_equal_in_a_locale_are_two_principals(folklore: CommandLine, one: str, other: str) -> None:
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


async def test_names_of_principals_ignore_the_case_of_ascii_letters(folklore: CommandLine) -> None:
    for name in ("Ümit-API", "ÜMIT-api"):
        await folklore.done("tokens", "create", "--name", name, "--owner")

    listed = (await folklore.json("tokens", "list", "--name", "ÜmiT-Api"))["tokens"]

    assert [token["name"] for token in listed] == ["Ümit-API"] * 2


async def test_principals_that_a_turkish_server_distinguished_remain_distinct(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(room, "migrations", lambda: [item for item in migrations() if item.name < "0011"])
        await migrate(empty_database_url)
    connection = await asyncpg.connect(empty_database_url)
    # As lower() does it where the server's language is Turkish, which this one cannot be.
    await connection.execute("drop index principals_name_key")
    await connection.execute("create unique index principals_name_key on principals (lower(translate(name, 'I', 'ı')))")
    for number, name in enumerate(("API", "api", "I" * 200, "i" * 200, "ΝΙΚΟΣ", "else"), start=1):
        await _insert(connection, number, name)
        await connection.execute(
            "insert into tokens (id, principal_id, digest, created_at, created_by)"
            " values ($1, $1, $2, $3, 'tester')",
            UUID(int=number), bytes([number]), NOON,
        )  # fmt: skip

    assert (await migrate(empty_database_url))[0] == "0011_principals.sql"

    rows = await connection.fetch(
        "select p.id, p.name, t.id as token from principals p join tokens t on t.principal_id = p.id"
    )
    assert {row["token"].int: row["name"] for row in rows} == {
        1: "API",
        2: "api-000000000002",
        3: "I" * 200,
        4: "i" * 187 + "-000000000004",
        5: "ΝΙΚΟΣ",
        6: "else",
    }
    await _insert(connection, 7, "νικος")
    with pytest.raises(asyncpg.UniqueViolationError):
        await _insert(connection, 8, "ELSE")
    await connection.close()


async def _insert(connection: asyncpg.Connection, number: int, name: str) -> None:
    await connection.execute(
        "insert into principals (id, name, created_at, created_by) values ($1, $2, $3, 'tester')",
        UUID(int=number), name, NOON,
    )  # fmt: skip
