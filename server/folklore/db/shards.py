"""Statements on a Citus cluster: each is sent whole to the node of its namespaces, once for each shard, and merged."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from folklore.db.sql_loader import Statement, statement

Row = Any  # asyncpg.Record, or a mapping where several rows became one

# Postings that are read of each shard, so that the budget of a question can be spent on the rarest words of all.
_ALL = (1 << 31) - 1
# The id of no namespace and no model.
_NOWHERE = UUID(int=1)


def _best(row: Row) -> Any:
    return -row["score"], row["id"]


def _newest(row: Row) -> Any:
    return -row["at"].timestamp(), -row["id"].int


# The order of each statement that has one over several namespaces, and the parameter or number that limits it.
_ORDERS: Mapping[str, tuple[Callable[[Row], Any], str | int | None]] = {
    "activity/attention": (lambda row: row["namespace"], None),
    "activity/changes": (_newest, "fetch"),
    "activity/events": (lambda row: (*_newest(row), -row["namespace"].int), "fetch"),
    "activity/events_since": (lambda row: (row["at"], row["id"], row["namespace"]), "fetch"),
    "audit/read": (_newest, "fetch"),
    "audit/time": (lambda row: row["at"], 1),
    "changes/relations": (lambda row: (-row["strength"], row["type"], row["from_id"], row["to_id"]), "fetch"),
    "injections/last_session": (lambda row: -row["started_at"].timestamp(), 1),
    "injections/read": (
        lambda row: (-row["injected_at"].timestamp(), -row["injection"].int, row["rank"]), "fetch"),
    "injections/stated": (lambda row: (row["said_at"], row["sentence"]), None),
    "injections/written": (lambda row: -row["at"].timestamp(), 50),
    "memories/ending": (lambda row: (row["ending"], -row["id"].int), "fetch"),
    "memories/locate": (lambda row: (row["id"], row["namespace_id"]), None),
    "namespaces/stats": (lambda row: row["name"], None),
    "recall/dense": (_best, "fetch"),
    "recall/expand": (lambda row: (row["by"] == "entities", *_best(row)), "most"),
    "recall/keyword": (_best, "fetch"),
    "recall/nearest": (_best, "fetch"),
}  # fmt: skip
# Statements with one more column, which is the order of equal scores.
_BY_TIME = {"recall/expression", "recall/former", "recall/function_words"}
# Statements that count by other columns.
_COUNTS = {"activity/recalled": ("day",), "activity/written": ("day", "author", "action")}


class Shards:
    """Cache of the shard of each namespace. `distributed` is True if the tables are on a cluster."""

    def __init__(self) -> None:
        self.distributed = False
        self._of: dict[UUID, int] = {}

    async def rows(self, connection: Any, name: str, values: dict[str, object]) -> list[Row]:
        """Return the rows of a statement. Raises DRIVER_ERRORS."""
        query = statement(f"{name}:distributed")
        try:
            return await self._rows(connection, query, values)
        except asyncpg.FeatureNotSupportedError:
            if not self._of or connection.is_in_transaction():
                raise
            self._of.clear()  # a shard was split meanwhile
            return await self._rows(connection, query, values)

    async def _rows(self, connection: Any, query: Statement, values: dict[str, object]) -> list[Row]:
        name = query.name.split(":")[0]
        namespaces = values.get("namespaces")
        if "model" in query.parameters:
            values = {"model": None} | values  # a variant without vectors may have the same text here
        if name.startswith("transfer/memories") and "model" in values:
            # Without a model Postgres removes a join, and what remains names no shard.
            values = values | {"model": values["model"] or _NOWHERE}
        if namespaces == []:
            values = values | {"namespaces": [_NOWHERE]}  # no shard is an error
        if not isinstance(namespaces, Collection) or len(namespaces) < 2 or name.startswith("principals/"):
            rows = await connection.fetch(query.sql, *query.arguments(values))
            if name == "changes/insert" and not rows:  # the namespace has no row yet from which the insert reads it
                await connection.fetch(statement("postings/begin").sql, values["namespace"])
                rows = await connection.fetch(query.sql, *query.arguments(values))
            return [row[:-1] for row in rows] if name in _BY_TIME else rows
        parts = []
        for group in await self._groups(connection, list(namespaces)):
            part = values | {"namespaces": group} | ({"budget": _ALL} if name == "recall/words" else {})
            parts.append(await connection.fetch(query.sql, *query.arguments(part)))
        return merged(query.name, parts, values)

    async def _groups(self, connection: Any, namespaces: Sequence[UUID]) -> list[list[UUID]]:
        """Return namespaces by their shards."""
        if new := [namespace for namespace in namespaces if namespace not in self._of]:
            self._of.update(await connection.fetch(statement("server/shards").sql, new))
        groups: dict[int, list[UUID]] = {}
        for namespace in namespaces:
            groups.setdefault(self._of[namespace], []).append(namespace)
        return list(groups.values())


def merged(name: str, parts: Sequence[Sequence[Row]], values: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a statement over all shards, of those of each."""
    rows, (name, *variants) = [row for part in parts for row in part], name.split(":")
    if name == "recall/words":
        return [_words([part[0] for part in parts], values["budget"])]
    if name in _BY_TIME:
        rows.sort(key=lambda row: (-row["score"], -row["happened"].timestamp(), row["id"]))
        return [tuple(row)[:-1] for row in rows[: values["fetch"]]]
    if name in _COUNTS:
        return _counted(rows, _COUNTS[name])
    if name == "injections/given":
        tokens = {"tokens": sum(part[0]["tokens"] for part in parts)}
        return [dict(row) | tokens for row in [row for row in rows if row["id"] is not None] or rows[:1]]
    if name == "memories/list":
        rows.sort(key=lambda row: (row["sorted_by"], row["id"]), reverse="oldest" not in variants)
        return rows[: values["fetch"]]
    order, limit = _ORDERS.get(name, (None, None))
    if order is not None:
        rows.sort(key=order)
    return rows[: values[limit] if isinstance(limit, str) else limit]


def _counted(rows: Sequence[Row], by: Sequence[str]) -> list[Row]:
    """Add up the counts of rows that are equal in some columns."""
    sums: dict[object, dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in by)
        if (same := sums.get(key)) is None:
            sums[key] = dict(row)
        else:
            same["memories"] += row["memories"]
    return list(sums.values())


def _words(parts: Sequence[Row], budget: int) -> Row:
    """Return the words of all shards as one row: the rarest until their postings have spent the budget."""
    documents: dict[int, int] = {}
    for part in parts:
        for word, count in zip(part["words"] or (), part["documents"] or (), strict=True):
            documents[word] = documents.get(word, 0) + int(count)
    rarest, spent = set[int](), 0
    for word in sorted(documents, key=lambda word: (documents[word], word)):
        spent += documents[word]
        if spent <= budget or not rarest:
            rarest.add(word)
    listed = [
        item
        for part in parts
        for item in zip(part["spaces"] or (), part["rare"] or (), part["entries"] or (), strict=True)
        if item[1] in rarest
    ]
    spaces, rare, entries = zip(*listed, strict=True) if listed else ((), (), ())
    row = dict(parts[0]) | {"words": list(documents), "documents": list(documents.values())}
    row |= {"spaces": spaces, "rare": rare, "entries": entries}
    row |= {name: sum(part[name] for part in parts) for name in ("total", "length")}
    return row | {name: b"".join(part[name] or b"" for part in parts) for name in row if name.startswith("fresh_")}
