"""Store memories: check, embed the batch in one call, write it in one transaction, answer after commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from uuid import UUID

import structlog

from folklore.db.database import Session
from folklore.db.stores.changes import Changing
from folklore.db.stores.idempotency import Answers
from folklore.db.stores.memories import Afterwards, Outcome, Prepared, Vectors
from folklore.errors import EmbedderUnavailable, InvalidInput, NotFound
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.models.active_model import embed_texts
from folklore.memory.permissions import must_write, require
from folklore.memory.records.near_duplicates import similar, unlooked_for
from folklore.memory.records.supersede import Replacement, supersede
from folklore.memory.secret_guard import guard_batch, guard_fields
from folklore.memory.validation import check_batch, taken_out
from folklore.model import DEFAULT_LANGUAGE, Caller, Draft, Relation, Similar, Stored, StoreStatus
from folklore.telemetry import stage
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
    library: MemoryContext,
    namespace: str,
    drafts: Sequence[Draft],
    *,
    caller: Caller,
    now: datetime,
    zone: tzinfo = UTC,
    many: bool = True,
) -> StoreResult:
    """Store a batch (at most 500) in one namespace, which is made if it is new.

    A text that is known already is confirmed and answered as `duplicate`. What comes again under its idempotency key is
    answered by the same memory, as `duplicate` too if it was `stored` then, and has no further effect; something else
    under a key that was used is refused. What a draft supersedes is closed in the same transaction. What says nearly
    the same is reported, and changes nothing. If the embedder is down the memories are stored all the same, found by
    keyword at once, and owe their vector. Raises InvalidInput, NotFound, Conflict, Refused, DatabaseUnavailable; then
    nothing was written.
    """
    must_write(caller)
    guard_fields({"namespace": namespace}, library.secrets)
    name = names.normalise(namespace)
    require(caller, name, "writer")
    guarded, replaced = guard_batch(drafts, library.secrets, many=many)
    checked = check_batch(guarded, now=now, zone=zone, many=many)
    fields = [f"memories[{place}]." if many else "" for place in range(len(checked))]
    unseen = [
        note
        for given, draft, field in zip(guarded, checked, fields, strict=True)
        for note in taken_out(given, draft, field=field)
    ]
    batch = [_prepared(draft) for draft in checked]
    _one_request_a_key(batch, fields)
    with stage("store.embed", memories=len(batch)):
        vectors = await _vectors(library, batch)
    with stage("store.write", memories=len(batch)):
        inserted = await library.memories.insert(
            name,
            batch,
            vectors,
            caller=caller,
            namespace_id=new_id(),
            language=DEFAULT_LANGUAGE,
            now=now,
            judge=partial(_same_requests, batch, fields),
            then=_afterwards(checked, fields, caller=caller, now=now),
        )
    library.stored()
    near: Mapping[UUID, tuple[Similar, ...]] = {}
    unlooked = None
    fresh = [id_ for id_, new in inserted.outcome if new]
    if vectors is not None:
        near, unlooked = await similar(library, inserted.namespace, fresh, vectors.model, now=now)
    elif fresh and library.embedder is not None:
        unlooked = unlooked_for("the embedding model is unavailable.")
    stored = tuple(
        Stored(id=id_, status=_status(draft, new), similar=near.get(id_, ()) if new else ())
        for draft, (id_, new) in zip(checked, inserted.outcome, strict=True)
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


def _prepared(draft: Draft) -> Prepared:
    text = digest(draft.content)
    return Prepared(draft.id or new_id(), draft, text, _request(draft, text))


def _request(draft: Draft, text: bytes) -> bytes:
    """A digest of what is asked under a key: the text, and what is to happen to other memories because of it."""
    if draft.supersedes is None and not draft.related:
        return text
    related = sorted((str(link.id), link.type, link.strength) for link in draft.related)
    return hashlib.sha256(json.dumps([text.hex(), str(draft.supersedes), related]).encode()).digest()


def _one_request_a_key(batch: Sequence[Prepared], fields: Sequence[str]) -> None:
    first: dict[str, bytes] = {}
    for item, field in zip(batch, fields, strict=True):
        key = item.draft.idempotency_key
        if key is not None and first.setdefault(key, item.request) != item.request:
            raise _used(field, "stands before in this batch with something else.")


def _same_requests(batch: Sequence[Prepared], fields: Sequence[str], answers: Answers) -> None:
    for item, field, answer in zip(batch, fields, answers, strict=True):
        if answer is not None and answer.request != item.request:
            raise _used(field, f"was used before for something else, which the memory {answer.id} answered.")


def _used(field: str, how: str) -> InvalidInput:
    return InvalidInput(
        f"{field}idempotency_key",
        f"{how} Nothing was stored.",
        hint="The same key is for the same content, supersedes and related; give what is new another key, or none.",
    )


def _afterwards(drafts: Sequence[Draft], fields: Sequence[str], *, caller: Caller, now: datetime) -> Afterwards | None:
    """What the drafts say of memories that are there: which they supersede, which they are related to.

    What was answered before has had its effect then.
    """
    if not any(draft.supersedes is not None or draft.related for draft in drafts):
        return None

    async def then(session: Session, namespace: UUID, outcome: Outcome, answers: Answers) -> None:
        change = Changing(session, namespace, caller, now)
        effective = [
            (draft, id_, field)
            for draft, (id_, _), field, answer in zip(drafts, outcome, fields, answers, strict=True)
            if answer is None
        ]
        replacements = [
            Replacement(draft.supersedes, id_, f"{field}supersedes", draft.supersede_reason)
            for draft, id_, field in effective
            if draft.supersedes is not None
        ]
        await supersede(change, replacements, now=now)
        related = {
            (id_, link.type, link.id): (field, Relation(id_, link.type, link.id, link.strength))
            for draft, id_, field in effective
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


async def _vectors(library: MemoryContext, batch: Sequence[Prepared]) -> Vectors | None:
    """The vector of each of a batch; a text that stands in it several times is embedded once."""
    texts = {item.digest: item.draft.content for item in batch}
    vectors = await embed(library, list(texts.values()))
    if vectors is None:
        return None
    by_text = dict(zip(texts, vectors.vectors, strict=True))
    return replace(vectors, vectors=[by_text[item.digest] for item in batch])


async def embed(library: MemoryContext, texts: Sequence[str]) -> Vectors | None:
    """The vectors of a batch of texts; None when there is no embedder or it is down, and they are owed."""
    await library.active_model.refresh()
    embedder = library.embedder
    if embedder is None:
        return None
    try:
        return await embed_texts(embedder, texts)
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None
