"""The types of our statements' parameters, told to asyncpg, which would else ask the catalogue on every connection.

To ask takes 10 ms of Postgres' processor time, thrice what a connection takes without. asyncpg offers no way to tell it
of arrays; `_introspect_types` is what it asks by (0.30 to 0.32). Were that to go by another name, it would ask again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, cast

import asyncpg
from pgvector import HalfVector

from folklore.errors import DatabaseUnavailable


def _array(oid: int, of: int, name: str, spelled: str, schema: str = "pg_catalog") -> dict[str, object]:
    """An array type as asyncpg's question would have told it."""
    nothing = ("basetype", "range_subtype", "attrtypoids", "attrnames", "basetype_name", "range_subtype_name")
    said: dict[str, object] = dict.fromkeys(nothing)
    named = {"oid": oid, "ns": schema, "name": f"_{name}", "elemtype": of, "elemtype_name": spelled}
    return said | named | {"kind": b"b", "elemdelim": b",", "depth": 0}


# Postgres numbers its own types, and keeps to it (pg_type.dat).
_BUILTIN = (
    _array(1001, 17, "bytea", "bytea"),
    _array(1005, 21, "int2", "smallint"),
    _array(1007, 23, "int4", "integer"),
    _array(1016, 20, "int8", "bigint"),
    _array(1021, 700, "float4", "real"),
    _array(1022, 701, "float8", "double precision"),
    _array(2951, 2950, "uuid", "uuid"),
)


class _Asked(NamedTuple):
    """What asyncpg wants to know of the statement that it would have asked by."""

    name: str = "none was sent"


class Types:
    """What is known of the types of one database; shared by its connections, and asked for once."""

    def __init__(self) -> None:
        self._schema: str | None = None
        self._known: dict[object, Mapping[str, object]] = {row["oid"]: row for row in _BUILTIN}

    def connection_class(self) -> type[asyncpg.Connection]:
        """asyncpg's connection, which finds here what is known."""
        known = self._known

        class Connection(asyncpg.Connection):
            __slots__ = ()

            async def _introspect_types(self, typeoids: Iterable[int], timeout: float) -> Any:
                asked = list(typeoids)
                if all(oid in known for oid in asked):
                    return [known[oid] for oid in asked], _Asked()
                return await super()._introspect_types(asked, timeout)  # type: ignore[misc]

        return Connection

    async def teach(self, connection: asyncpg.Connection) -> None:
        """Make vectors known to a new connection. Raises DatabaseUnavailable where there is no pgvector."""
        if self._schema is not None:
            with suppress(ValueError):  # where the extension has moved
                await _register(connection, self._schema)
                return
        self._schema = await self._look(connection)
        await _register(connection, self._schema)

    async def _look(self, connection: asyncpg.Connection) -> str:
        found = await connection.fetchrow(
            "select n.nspname, t.oid::bigint, t.typarray::bigint from pg_extension e"
            " join pg_namespace n on n.oid = e.extnamespace"
            " join pg_type t on t.typnamespace = n.oid and t.typname = 'halfvec' where e.extname = 'vector'"
        )
        if found is None:
            raise DatabaseUnavailable(
                "The database has no pgvector extension.",
                hint="Run `folklore db migrate` with a role that may create it.",
            )
        schema, vector, vectors = found
        self._known[vectors] = _array(vectors, vector, "halfvec", "halfvec", schema)
        return cast("str", schema)


async def _register(connection: asyncpg.Connection, schema: str) -> None:
    await connection.set_type_codec(
        "halfvec",
        schema=schema,
        encoder=lambda vector: vector.to_binary(),
        decoder=HalfVector.from_binary,
        format="binary",
    )
