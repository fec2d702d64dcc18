"""What asyncpg is told of types is what it would have been told by Postgres, and no statement makes it ask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import asyncpg
import numpy as np
import pytest
from pgvector import HalfVector

from folklore.db.sql_loader import statement
from folklore.db.types import Types
from folklore.errors import DatabaseUnavailable
from tests.test_statements import ASKED


async def asked_by(connection: asyncpg.Connection, oids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """What asyncpg's own question tells of these types."""
    rows, _ = await cast("Any", asyncpg.Connection)._introspect_types(connection, list(oids), None)
    return {row["oid"]: dict(row) for row in rows if row["oid"] in oids}


async def connected(url: str, types: Types) -> asyncpg.Connection:
    return await asyncpg.connect(url, connection_class=types.connection_class())


async def test_what_is_told_is_what_postgres_would_have_told(database_url: str) -> None:
    types = Types()
    connection = await connected(database_url, types)
    await types.teach(connection)

    told = {int(str(oid)): dict(row) for oid, row in types._known.items()}
    assert told == await asked_by(connection, told)
    assert "_halfvec" in {row["name"] for row in told.values()}
    await connection.close()


async def test_no_statement_makes_a_connection_ask_for_types(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    types, asked = Types(), []
    own = cast("Any", asyncpg.Connection)._introspect_types

    async def noted(connection: asyncpg.Connection, oids: Iterable[int], timeout: float) -> Any:
        asked.append(list(oids))
        return await own(connection, oids, timeout)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", noted)
    connection = await connected(database_url, types)
    await types.teach(connection)
    for name in ASKED:
        await connection.prepare(statement(name).sql)
    assert asked == []

    # Were nothing told, it would ask: also of another type, even beside one that is known.
    both = await connection.fetchrow("select $1::int8[], $2::interval[]", [1], None)
    assert both is not None
    assert tuple(both) == ([1], None)
    assert len(asked) == 1
    await connection.close()


async def test_where_the_extension_is_is_asked_once_for_all_connections(database_url: str) -> None:
    types, asked = Types(), []
    for _ in range(3):
        connection = await connected(database_url, types)
        with connection.query_logger(lambda said: asked.append("pg_extension" in said.query)):
            await types.teach(connection)
            await connection.fetchval("select 1")  # what was said is told in the loop's next turn
        await connection.close()

    assert sum(asked) == 1


async def test_arrays_and_vectors_come_and_go_as_they_are(database_url: str) -> None:
    types = Types()
    vector = np.array([0.5, -0.25, 1.0], dtype=np.float32)
    for _ in range(2):  # the second goes by what the first has learned
        connection = await connected(database_url, types)
        await types.teach(connection)
        row = await connection.fetchrow(
            "select $1::halfvec, $2::halfvec[], $3::int2[], $4::real[], $5::bytea[]",
            HalfVector(vector), [HalfVector(vector)] * 2, [1, None], [0.5], [b"x"],
        )  # fmt: skip
        assert row is not None
        one, two, small, real, raw = row
        assert [one.to_list(), *(each.to_list() for each in two)] == [vector.tolist()] * 3
        assert (small, real, raw) == ([1, None], [0.5], [b"x"])
        await connection.close()


async def test_an_extension_that_was_moved_or_made_anew_is_found_again(empty_database_url: str) -> None:
    types = Types()
    connection = await connected(empty_database_url, types)
    with pytest.raises(DatabaseUnavailable, match="no pgvector"):
        await types.teach(connection)
    await connection.execute("create extension vector")
    await types.teach(connection)
    await connection.close()
    for change in (
        "create schema elsewhere; alter extension vector set schema elsewhere",
        "drop extension vector; create extension vector schema public",
    ):
        connection = await connected(empty_database_url, types)
        await connection.execute(change)
        await types.teach(connection)
        schema = await connection.fetchval(
            "select n.nspname from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.typname = 'halfvec'"
        )
        got = await connection.fetchval(f"select $1::{schema}.halfvec[]", [HalfVector([1, 2])])
        assert [vector.to_list() for vector in got] == [[1.0, 2.0]]
        await connection.close()
