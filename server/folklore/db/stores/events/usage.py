"""The usage table: which memory was put into which answer."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from folklore.db.store import Store, affected, number

# A use counts for what was injected so long before.
USED_WITHIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """Memory that a caller used. In an `answer` it has a rank from 1 and a score; `query` is a digest of the query."""

    namespace: str
    memory: UUID
    at: datetime
    caller: str
    used: str = "recalled"
    answer: UUID | None = None
    rank: int | None = None
    score: float | None = None
    query: bytes | None = None
    session: str | None = None


class UsageStore(Store):
    """The usage table, and the recall counts of memories that it keeps up to date."""

    count = number("fresh")
    delete = affected("fresh")

    async def record(self, entries: Iterable[UsageEntry]) -> list[UsageEntry]:
        """Log entries with one statement a namespace and return those whose memory was not found or is locked.

        The caller tries those again. Nothing is counted twice. Entries of a deleted namespace are dropped.
        """
        by_name = defaultdict[str, list[UsageEntry]](list)
        for entry in entries:
            by_name[entry.namespace].append(entry)
        rows = await self._database.rows(
            "namespaces/find", names=by_name.keys(), within=None, known=None, hollow=[]
        )
        remaining: list[UsageEntry] = []
        for row in rows:
            batch = by_name[row["name"]]
            recorded = await self._database.rows(
                "usage/record", namespace=row["id"], used=batch, within=USED_WITHIN
            )
            ids = {row["id"] for row in recorded}
            remaining += [entry for entry in batch if entry.memory not in ids]
        return remaining
