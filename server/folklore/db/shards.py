"""Statements on a Citus cluster: each is sent whole to the nodes of its namespaces, and their answers are merged."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import accumulate
from typing import Any
from uuid import UUID

import asyncpg

from folklore.background import all_of
from folklore.db.rows import in_cues, is_of_cues, lexeme_hash
from folklore.db.silent_nodes import SilentNodes
from folklore.db.sql_loader import Statement, statement

Row = Any  # asyncpg.Record, or a mapping where several rows became one

# The id of no namespace and no model.
_NOWHERE = UUID(int=1)


def _best(row: Row) -> Any:
    return -row["score"], row["id"]


def _newest(row: Row) -> Any:
    return -row["at"].timestamp(), -row["id"].int


# The order of statements over several shards, and the parameter or number that limits them.
_ORDERS: Mapping[str, tuple[Callable[[Row], Any], str | int | None]] = {
    "activity/attention": (lambda row: row["namespace"], None),
    "activity/changes": (_newest, "fetch"),
    "activity/events": (lambda row: (*_newest(row), -row["namespace"].int), "fetch"),
    "activity/events_since": (lambda row: (row["at"], row["id"], row["namespace"]), "fetch"),
    "injections/written": (lambda row: -row["at"].timestamp(), 50),
    "memories/list": (lambda row: (row["sorted_by"], row["id"]), "fetch"),
    "namespaces/stats": (lambda row: row["name"], None),
    "recall/expand": (lambda row: (row["by"] == "entities", *_best(row)), "most"),
    "recall/few": (lambda _row: 0, None), "recall/few_vectors": (_best, "fetch"),
    "recall/dense": (_best, "fetch"), "recall/keyword": (_best, "fetch"), "recall/nearest": (_best, "fetch"),
}  # fmt: skip
# Statements with one more column, which is the order of equal scores.
_BY_TIME = {"recall/expression", "recall/former", "recall/function_words"}
# Statements of which one asks all shards at once, of each namespace, if it has no filters. Citus refuses others, as the
# filter by paths, or plans them for too long.
_AT_ONCE = {"recall/dense", "recall/nearest"}
# Statements that need an answer of each shard, if only for a token. Citus itself joins those of any other.
_ALONE = {
    *_ORDERS,
    *_BY_TIME,
    "activity/newest_similar",
    "recall/pool",
    "recall/lexemes",
}


class Shards:
    """Cache of the shard of each namespace. `distributed` is True if the tables are on a cluster."""

    def __init__(self, silent: SilentNodes) -> None:
        self.distributed = False
        self._of: dict[UUID, int] = {}
        self._silent = silent

    async def rows(
        self, session: Any, name: str, values: dict[str, object]
    ) -> list[Row]:
        """Return the rows of a statement. Raises DRIVER_ERRORS, DatabaseUnavailable."""
        return await self._silent.bound(
            self._rows_or_again(session, name, values),
            _namespaces_of(values),
            session.connection,
        )

    async def _rows_or_again(
        self, session: Any, name: str, values: dict[str, object]
    ) -> list[Row]:
        query = statement(f"{name}:distributed")
        try:
            return await self._rows(session, query, values)
        except asyncpg.FeatureNotSupportedError:
            if not self._of or session.connection.is_in_transaction():
                raise
            self._of.clear()  # a shard was split meanwhile
            return await self._rows(session, query, values)

    async def _rows(
        self, session: Any, query: Statement, values: dict[str, object]
    ) -> list[Row]:
        name = query.name.split(":")[0]
        values = _complete(query, values)
        namespaces = values.get("namespaces")
        if (
            name not in _ALONE
            or not isinstance(namespaces, Collection)
            or len(namespaces) < 2
        ):
            return await _sent_whole(session.connection, query, values)
        if name == "recall/lexemes":
            return [await self._lexemes(session.connection, query, values)]
        if name in _AT_ONCE and ":plain" in query.name:
            query = statement(f"{query.name}:each")
            return merged(
                query.name,
                [await session.connection.fetch(query.sql, *query.arguments(values))],
                values,
            )
        groups = await self._groups(session.connection, list(namespaces))
        commands = [query.arguments(values | {"namespaces": group}) for group in groups]
        return merged(query.name, await _fetched(session, query.sql, commands), values)

    async def _lexemes(
        self, connection: Any, query: Statement, values: dict[str, Any]
    ) -> Row:
        """Return the row of recall/lexemes. The postings of all are read: the rarest are not known before."""
        [pieces] = await connection.fetch(
            query.sql, *query.arguments(values | {"namespaces": [_NOWHERE]})
        )
        lexemes = {*values["lexemes"], *(pieces["lexemes"] or ())}
        of_text = set(map(lexeme_hash, lexemes))
        hashes = [*of_text, *(lexeme_hash(in_cues(lexeme)) for lexeme in lexemes)]
        sql = statement("distributed/recall_lexemes_of_each").sql
        return _in_all(
            [pieces, *await connection.fetch(sql, values["namespaces"], hashes)],
            values["budget"],
            of_text,
        )

    async def _groups(
        self, connection: Any, namespaces: Sequence[UUID]
    ) -> list[list[UUID]]:
        shards = {id_: self._of[id_] for id_ in namespaces if id_ in self._of}
        if new := [id_ for id_ in namespaces if id_ not in shards]:
            found = dict(await connection.fetch(statement("server/shards").sql, new))
            shards |= found
            # Not all of `shards`: another statement may have emptied the cache meanwhile.
            self._of |= found
        groups: dict[int, list[UUID]] = {}
        for namespace in namespaces:
            groups.setdefault(shards[namespace], []).append(namespace)
        return list(groups.values())


def _namespaces_of(values: Mapping[str, object]) -> Collection[UUID] | None:
    """Return the namespaces that a statement names by its parameters; None if it names none."""
    match values.get("namespaces") or values.get("namespace"):
        case UUID() as namespace:
            return [namespace]
        case list() | tuple() | set() as namespaces:
            return namespaces
        case _:
            return None


def _complete(query: Statement, values: dict[str, object]) -> dict[str, object]:
    """Return the values of a statement with those that only a cluster needs: no shard is an error there."""
    if "model" in query.parameters:
        values = {
            "model": None
        } | values  # a variant without vectors may have the same text here
    if query.name.startswith("transfer/memories") and "model" in values:
        # Without a model Postgres removes a join, and what remains names no shard.
        values = values | {"model": values["model"] or _NOWHERE}
    if values.get("namespaces") == []:
        return values | {"namespaces": [_NOWHERE]}
    return values


async def _sent_whole(
    connection: Any, query: Statement, values: dict[str, object]
) -> list[Row]:
    """Return the rows of a statement that one node answers, or that Citus divides itself."""
    rows: list[Row] = await connection.fetch(query.sql, *query.arguments(values))
    name = query.name.split(":")[0]
    # the namespace has no row yet from which the insert reads it
    if name == "changes/insert" and not rows:
        await connection.fetch(statement("postings/begin").sql, values["namespace"])
        rows = await connection.fetch(query.sql, *query.arguments(values))
    return [row[:-1] for row in rows] if name in _BY_TIME else rows


async def _fetched(
    session: Any, sql: str, commands: Sequence[Sequence[object]]
) -> list[Any]:
    """Return the rows for each of several lists of arguments, also by connections that are idle."""
    parts: dict[int, list[Row]] = {}
    waiting = iter(enumerate(commands))

    async def work(connection: Any) -> None:
        for index, arguments in waiting:
            parts[index] = await connection.fetch(sql, *arguments)

    async def join() -> None:
        if session.spare is not None and (idle := session.spare()) is not None:
            async with idle as joined:
                await work(joined.connection)

    await all_of(work(session.connection), *(join() for _ in commands[1:]))
    return [parts[index] for index in range(len(commands))]


def merged(
    name: str, parts: Sequence[Sequence[Row]], values: Mapping[str, Any]
) -> list[Row]:
    """Return the rows of a statement over all shards, of those of each."""
    rows = [row for part in parts for row in part]
    name, *variants = name.split(":")
    if name in _BY_TIME:
        rows.sort(
            key=lambda row: (-row["score"], -row["happened"].timestamp(), row["id"])
        )
        return [tuple(row)[:-1] for row in rows[: values["fetch"]]]

    if name not in _ORDERS:
        return rows
    order, limit = _ORDERS[name]
    newest_first = name == "memories/list" and "oldest" not in variants
    rows.sort(key=order, reverse=newest_first)
    most = values[limit] if isinstance(limit, str) else limit
    return rows[:most]


def _in_all(parts: Sequence[Row], budget: int, of_text: Set[int]) -> Row:
    """Return the lexemes of all namespaces as one row: the rarest until their postings have spent the budget.

    Those of cues, which are not in `of_text`, have a budget of their own.
    """
    documents: Counter[int] = Counter()
    for part in parts:
        for hash_, count in _together(part, "hashes", "documents"):
            documents[hash_] += int(count)
    text = {hash_: count for hash_, count in documents.items() if hash_ in of_text}
    cues = {hash_: count for hash_, count in documents.items() if hash_ not in of_text}
    rarest = _rarest(text, budget) | _rarest(cues, budget)

    row = dict(parts[0])
    row["hashes"] = list(documents)
    row["documents"] = list(documents.values())
    row |= _postings(parts, rarest)
    for name in ("total", "length"):
        row[name] = sum(part[name] for part in parts)
    for name in row:
        if name.startswith("fresh_"):
            row[name] = b"".join(part[name] or b"" for part in parts)
    return row


def _rarest(documents: Mapping[int, int], budget: int) -> set[int]:
    """Return the rarest lexemes, by their hashes, at least one, that are in no more documents together than the budget allows."""
    ordered = sorted(documents, key=lambda hash_: (documents[hash_], hash_))
    spent = list(accumulate(documents[hash_] for hash_ in ordered))
    return set(ordered[: max(1, bisect_right(spent, budget))])


def _postings(parts: Sequence[Row], hashes: Set[int]) -> dict[str, Sequence[object]]:
    """Return the postings of lexemes with these hashes as columns."""
    columns: dict[str, list[object]] = {
        "rare": [],
        "spaces": [],
        "counts": [],
        "entries": [],
    }
    for part in parts:
        for space, hash_, entries in _together(part, "spaces", "rare", "entries"):
            if hash_ not in hashes:
                continue
            number = len(entries) // (4 if is_of_cues(hash_) else 8)
            columns["rare"].append(hash_)
            columns["spaces"].append(space.bytes)
            columns["counts"].append(number.to_bytes(4, "big"))
            columns["entries"].append(entries)
    return dict(columns)


def _together(part: Row, *names: str) -> Iterator[tuple[Any, ...]]:
    """Return the entries of arrays of one length; null is an empty array."""
    return zip(*(part[name] or () for name in names), strict=True)
