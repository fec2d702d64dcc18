"""Store memories: check, embed the batch in one call, write it in one transaction, answer after commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

import structlog

from folklore.db.memories import Prepared, Vectors
from folklore.errors import EmbedderUnavailable, Refused
from folklore.memory.checks import check_batch
from folklore.memory.ids import new_id
from folklore.memory.library import Library
from folklore.memory.vectors import vectors_of
from folklore.model import DEFAULT_LANGUAGE, Caller, Draft, Stored
from folklore.text import names
from folklore.text.clean import digest

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What became of each draft, in the order given."""

    namespace: str
    stored: tuple[Stored, ...]


async def store(
    library: Library,
    namespace: str,
    drafts: Sequence[Draft],
    *,
    caller: Caller,
    now: datetime,
    zone: tzinfo = UTC,
    many: bool = True,
) -> StoreResult:
    """Store a batch (at most 500) in one namespace, which is made if it is new.

    A text that is known already is confirmed and answered as `duplicate`. If the embedder is down the memories are
    stored all the same, found by keyword at once, and owe their vector. Raises InvalidInput, Refused,
    DatabaseUnavailable; then nothing was written.
    """
    if not caller.may_write:
        raise Refused("This server is read-only; nothing was stored.")
    name = names.normalise(namespace)
    checked = check_batch(drafts, now=now, zone=zone, many=many)
    digests = [digest(draft.content) for draft in checked]
    first = _first_of_each(checked, digests)
    batch = [
        Prepared(id=draft.id or new_id(), draft=draft, digest=digests[place])
        for place, draft in enumerate(checked)
        if first[place] == place
    ]
    vectors = await embed(library, [item.draft.content for item in batch])
    outcome = await library.memories.insert(
        name, batch, vectors, caller=caller, namespace_id=new_id(), language=DEFAULT_LANGUAGE, now=now
    )
    library.recent.clear()
    kept = dict(zip((place for place, other in enumerate(first) if place == other), outcome, strict=True))
    stored = tuple(
        Stored(id=kept[other][0], status="stored" if kept[other][1] and place == other else "duplicate")
        for place, other in enumerate(first)
    )
    return StoreResult(namespace=name, stored=stored)


def _first_of_each(drafts: Sequence[Draft], digests: Sequence[bytes]) -> list[int]:
    """For each draft the place of the one it repeats, by text or by idempotency key; its own if it is new."""
    seen: dict[bytes | str, int] = {}
    first = []
    for place, (draft, text) in enumerate(zip(drafts, digests, strict=True)):
        marks: list[bytes | str] = [text] if draft.idempotency_key is None else [text, draft.idempotency_key]
        first.append(min((seen[mark] for mark in marks if mark in seen), default=place))
        if first[place] == place:
            seen.update(dict.fromkeys(marks, place))
    return first


async def embed(library: Library, texts: Sequence[str]) -> Vectors | None:
    """The vectors of a batch of texts; None when there is no embedder or it is down, and they are owed."""
    await library.generations.look()
    embedder = library.embedder
    if embedder is None:
        return None
    try:
        return await vectors_of(embedder, texts)
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None
