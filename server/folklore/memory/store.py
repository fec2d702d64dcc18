"""Store memories: check, embed the batch in one call, write it in one transaction, answer after commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from uuid import UUID

import structlog

from folklore.db.changes import Changing
from folklore.db.database import Session
from folklore.db.memories import Afterwards, Prepared, Vectors
from folklore.errors import EmbedderUnavailable, InvalidInput, NotFound
from folklore.memory.access import must_write, require
from folklore.memory.checks import check_batch, taken_out
from folklore.memory.ids import new_id
from folklore.memory.library import Library
from folklore.memory.secrecy import guard_batch, guard_fields
from folklore.memory.similar import similar
from folklore.memory.supersede import Replacement, supersede
from folklore.memory.vectors import vectors_of
from folklore.model import DEFAULT_LANGUAGE, Caller, Draft, Relation, Similar, Stored, StoreStatus
from folklore.spans import stage
from folklore.text import names
from folklore.text.clean import digest

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What became of each draft, in the order given."""

    namespace: str
    stored: tuple[Stored, ...]
    note: str | None = None  # what was stored otherwise than it was given, or could not be looked for


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

    A text that is known already is confirmed and answered as `duplicate`. What a draft supersedes is closed in the same
    transaction. What says nearly the same is reported, and changes nothing. If the embedder is down the memories are
    stored all the same, found by keyword at once, and owe their vector. Raises InvalidInput, NotFound, Conflict,
    Refused, DatabaseUnavailable; then nothing was written.
    """
    must_write(caller)
    guard_fields({"namespace": namespace}, library.secrets)
    name = names.normalise(namespace)
    require(caller, name, "writer")
    guarded, replaced = guard_batch(drafts, library.secrets, many=many)
    checked = check_batch(guarded, now=now, zone=zone, many=many)
    unseen = [
        note
        for place, (given, draft) in enumerate(zip(guarded, checked, strict=True))
        for note in taken_out(given, draft, field=f"memories[{place}]." if many else "")
    ]
    digests = [digest(draft.content) for draft in checked]
    first = _first_of_each(checked, digests)
    batch = [
        Prepared(id=draft.id or new_id(), draft=draft, digest=digests[place])
        for place, draft in enumerate(checked)
        if first[place] == place
    ]
    with stage("store.embed", memories=len(batch)):
        vectors = await embed(library, [item.draft.content for item in batch])
    with stage("store.write", memories=len(batch)):
        inserted = await library.memories.insert(
            name,
            batch,
            vectors,
            caller=caller,
            namespace_id=new_id(),
            language=DEFAULT_LANGUAGE,
            now=now,
            then=_afterwards(checked, first, caller=caller, now=now, many=many),
        )
    library.stored()
    near: Mapping[UUID, tuple[Similar, ...]] = {}
    unlooked = None
    if vectors is not None:
        fresh = [id_ for id_, new in inserted.outcome if new]
        near, unlooked = await similar(library, inserted.namespace, fresh, vectors.model, now=now)
    kept = _of_each(first, inserted.outcome)
    stored = tuple(
        Stored(id=id_, status=_status(draft, new and place == other), similar=near.get(id_, ()) if new else ())
        for place, (draft, other, (id_, new)) in enumerate(zip(checked, first, kept, strict=True))
    )
    return StoreResult(namespace=name, stored=stored, note=_note(replaced, unseen, unlooked))


def _note(replaced: Sequence[str], unseen: Sequence[str], unlooked: str | None) -> str | None:
    """What was stored otherwise than it was given, and what could not be looked for; None if nothing."""
    told = []
    if replaced:
        told.append(f"Secrets were replaced by a marker before storing ({_some(replaced)}).")
    if unseen:
        told.append(f"What nobody can see was taken out before storing ({_some(unseen)}).")
    if unlooked:
        told.append(unlooked)
    return " ".join(told) or None


def _some(notes: Sequence[str]) -> str:
    return "; ".join(notes[:10]) + (f"; and {len(notes) - 10} more" if len(notes) > 10 else "")


def _status(draft: Draft, new: bool) -> StoreStatus:
    if draft.supersedes is not None:
        return "superseded_old"
    return "stored" if new else "duplicate"


def _of_each(first: Sequence[int], outcome: Sequence[tuple[UUID, bool]]) -> list[tuple[UUID, bool]]:
    """What became of each draft, given what became of those that were stored."""
    kept = dict(zip((place for place, other in enumerate(first) if place == other), outcome, strict=True))
    return [kept[other] for other in first]


def _afterwards(
    drafts: Sequence[Draft], first: Sequence[int], *, caller: Caller, now: datetime, many: bool
) -> Afterwards | None:
    """What the drafts say of memories that are there: which they supersede, which they are related to."""
    if not any(draft.supersedes is not None or draft.related for draft in drafts):
        return None

    async def then(session: Session, namespace: UUID, outcome: Sequence[tuple[UUID, bool]]) -> None:
        change = Changing(session, namespace, caller, now)
        kept = [id_ for id_, _ in _of_each(first, outcome)]
        fields = [f"memories[{place}]." if many else "" for place in range(len(drafts))]
        replacements = [
            Replacement(draft.supersedes, id_, f"{field}supersedes", draft.supersede_reason)
            for draft, id_, field in zip(drafts, kept, fields, strict=True)
            if draft.supersedes is not None
        ]
        await supersede(change, replacements, now=now)
        related = {
            (id_, link.type, link.id): (field, Relation(id_, link.type, link.id, link.strength))
            for draft, id_, field in zip(drafts, kept, fields, strict=True)
            for link in draft.related
        }
        if not related:
            return
        for field, relation in related.values():
            if relation.from_id == relation.to_id:
                raise InvalidInput(f"{field}related", "a memory cannot be related to itself.", hint="Leave it out.")
        written = await change.relate([relation for _, relation in related.values()])
        for key, (field, relation) in related.items():
            if key not in written:
                raise NotFound(
                    f"{field}related: there is no memory {relation.to_id} in this namespace.",
                    hint="Only memories of one namespace are related.",
                )

    return then


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
