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
    first_with: dict[bytes, int] = {}
    for place, value in enumerate(digests):
        first_with.setdefault(value, place)
    batch = [
        Prepared(id=checked[place].id or new_id(), draft=checked[place], digest=value)
        for value, place in first_with.items()
    ]
    vectors = await embed(library, [item.draft.content for item in batch])
    outcome = await library.memories.insert(
        name, batch, vectors, caller=caller, namespace_id=new_id(), language=DEFAULT_LANGUAGE, now=now
    )
    by_digest = {item.digest: id_new for item, id_new in zip(batch, outcome, strict=True)}
    stored = tuple(
        Stored(
            id=by_digest[value][0],
            status="stored" if by_digest[value][1] and first_with[value] == place else "duplicate",
        )
        for place, value in enumerate(digests)
    )
    return StoreResult(namespace=name, stored=stored)


async def embed(library: Library, texts: Sequence[str]) -> Vectors | None:
    """The vectors of a batch of texts; None when there is no embedder or it is down, and they are owed."""
    if library.embedder is None:
        return None
    try:
        model = await library.embedder.model()
        vectors = await library.embedder.embed(texts, "document")
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None
    # A text without a single known token has no direction; a zero vector would be at no distance from anything.
    return Vectors(
        model=model.id,
        provider=model.provider,
        name=model.name,
        dimensions=model.dimensions,
        vectors=[vector if vector.any() else None for vector in vectors],
    )
