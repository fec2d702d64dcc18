"""Postings: packing the words of fresh memories, and deleting the entries of removed ones."""

from collections.abc import AsyncIterator
from uuid import UUID

from folklore.db.store import Store

# Below every hash.
_START = -(1 << 31) - 1
# Memories and words that one transaction takes, so that those that change memories wait for tenths of a second.
PACKED_AT_ONCE = 2_000
_CLEANED_AT_ONCE = 2_000
# A namespace is packed from so many fresh memories on. A question reads the whole table of them. So from more than so
# many in all on, small ones are packed too until half are left, and if it has more pages, all: a vacuum truncates it.
_LARGE = 250
_MOST_FRESH = 4_000
_MOST_PAGES = 2_000


class PostingStore(Store):
    """Packed and fresh postings. Each batch is one transaction, during which stores and questions go on."""

    async def due(self) -> tuple[list[UUID], dict[UUID, int]]:
        """Return the namespaces to pack, and those to clean with how many memories were removed. One statement."""
        rows = await self.rows("postings/due", "fresh", most=PACKED_AT_ONCE)
        remaining = sum(row["fresh"] for row in rows)
        namespaces = list[UUID]()
        left = _MOST_FRESH // 2 if remaining > _MOST_FRESH else remaining
        for row in rows:
            if row["fresh"] >= _LARGE or remaining > (
                left if row["pages"] <= _MOST_PAGES else 0
            ):
                namespaces.append(row["namespace"])
                remaining -= row["fresh"]
        return namespaces, {
            row["namespace"]: row["dead"] for row in rows if row["dead"]
        }

    async def pack(self, namespace: UUID) -> int:
        """Pack a batch of fresh memories of a namespace and return the number of them."""
        async with self._database.transaction() as session:
            [first] = await session.rows("postings/begin", namespace=namespace)
            [packed] = await session.rows(
                "postings/pack",
                namespace=namespace,
                next=first["next"],
                most=PACKED_AT_ONCE,
            )
        return int(packed["documents"])

    async def clean(self, namespace: UUID, dead: int) -> AsyncIterator[None]:
        """Delete the entries of removed memories, of which `dead` were counted, in batches."""
        cursor: int | None = _START
        while cursor is not None:
            async with self._database.transaction() as session:
                await session.rows("postings/begin", namespace=namespace)
                [last] = await session.rows(
                    "postings/clean",
                    namespace=namespace,
                    after=cursor,
                    most=_CLEANED_AT_ONCE,
                )
                cursor = last["last"]
                if cursor is None:
                    await session.rows(
                        "postings/cleaned", namespace=namespace, dead=dead
                    )
            yield
