"""The usage log: which memory was put into which answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database


@dataclass(frozen=True, slots=True)
class Used:
    """A memory in an answer: at which rank (from 1), with which score; `query` is a digest of the question."""

    namespace: str
    memory: UUID
    answer: UUID
    at: datetime
    rank: int
    score: float | None
    query: bytes
    session: str | None
    caller: str


class UsageStore:
    """The usage table, and the counts it keeps on memories."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, entries: Iterable[Used]) -> list[Used]:
        """Log entries, a statement a namespace; those whose memory is held by somebody come back, to be tried again.

        What is logged already is not counted twice. An entry of a namespace that is gone is dropped. Of those that
        come back some may be of memories that were erased: nobody can tell them from those that are held.
        """
        by_name: dict[str, list[Used]] = {}
        for entry in entries:
            by_name.setdefault(entry.namespace, []).append(entry)
        async with self._database.session() as session:
            rows = await session.rows("namespaces/find", names=list(by_name), within=None)
        left: list[Used] = []
        for row in rows:
            batch = by_name.get(row["name"], [])
            async with self._database.session() as session:
                held = await session.rows("usage_record", namespace=row["id"], used=_as_json(batch))
            counted = {found["id"] for found in held}
            left += [entry for entry in batch if entry.memory not in counted]
        return left

    async def old(self, namespace: UUID, before: datetime) -> int:
        """How many entries are from before a time."""
        async with self._database.session("fresh") as session:
            row = await session.row("usage_old", namespace=namespace, before=before)
        return 0 if row is None else int(row["count"])

    async def drop(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Drop at most `batch` entries from before a time; how many."""
        async with self._database.session("fresh") as session:
            return len(await session.rows("usage_forget", namespace=namespace, before=before, batch=batch))


def _as_json(batch: Sequence[Used]) -> str:
    return json.dumps(
        [
            {
                "memory": str(entry.memory),
                "answer": str(entry.answer),
                "at": entry.at.isoformat(),
                "rank": entry.rank,
                "score": entry.score,
                "query": entry.query.hex(),
                "session": entry.session,
                "caller": entry.caller,
            }
            for entry in batch
        ]
    )
