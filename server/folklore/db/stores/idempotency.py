"""Idempotency keys: what was asked under each, and which memory answered; within the transaction of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.database import Session


@dataclass(frozen=True, slots=True)
class Answered:
    """What was asked under a key before, as a digest, and the memory that answered."""

    id: UUID
    request: bytes


# What had answered the key of each of a batch before, in order.
Answers = Sequence[Answered | None]


async def answered(session: Session, namespace: UUID, keys: Sequence[str | None]) -> Mapping[str | None, Answered]:
    """The answers of the keys that were used. One statement, if any is given.

    The key of a forgotten memory becomes free, as its text is: two statements more.
    """
    given = sorted({key for key in keys if key is not None})
    if not given:
        return {}
    rows = await session.rows("memories_by_key", namespace=namespace, keys=given)
    if forgotten := [row["key"] for row in rows if row["forgotten"]]:
        await session.rows("memories_release_keys", namespace=namespace, keys=forgotten)
        await session.rows("keys_release", namespace=namespace, keys=forgotten)
    return {row["key"]: Answered(row["id"], bytes(row["request"])) for row in rows if not row["forgotten"]}


async def remember(session: Session, namespace: UUID, answers: Mapping[str | None, Answered]) -> None:
    """Keep what was asked under keys, each of them once. One statement, if any is given.

    Of all who use a key at the same time, whether for a new text or for one that is known, this lets only one through;
    to the others it is ConcurrentChange. A memory's own row tells the key it was made with, too.
    """
    keyed = {key: answer for key, answer in answers.items() if key is not None}
    if keyed:
        await session.rows(
            "keys_insert",
            namespace=namespace,
            keys=list(keyed),
            ids=[answer.id for answer in keyed.values()],
            requests=[answer.request.hex() for answer in keyed.values()],
        )
