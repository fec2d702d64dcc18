"""Store memories: validate, embed the batch in one call, write it in one transaction, answer after the commit."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from folklore.background import characters_in, on_texts
from folklore.contract.memories import RefusedMemory, StoreRequest, StoreResult
from folklore.db.stores.changes import Inserted, KeyAnswer, NamespaceTransaction
from folklore.db.stores.embeddings import PendingMemory
from folklore.db.stores.memories import PreparedMemory, Vectors
from folklore.db.stores.namespaces import NewNamespace
from folklore.db.stores.transfer import TransferredMemory
from folklore.errors import (
    ConcurrentChange,
    EmbedderUnavailable,
    FolkloreError,
    InvalidInput,
    NotFound,
)
from folklore.log import get_logger
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.context.active_model import embed_texts
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.context.validation import (
    ValidBatch,
    check_batch,
    detected_language,
    prefix_of,
)
from folklore.memory.records.cues import add_cues, embed_cues
from folklore.memory.records.similar import find_neighbours, near_duplicates, shown
from folklore.memory.records.subjects import Stored, older_on_subject, subjects_of
from folklore.memory.records.supersede import Replacement, supersede
from folklore.model import (
    DEFAULT_LANGUAGE,
    Draft,
    Memory,
    OnSubject,
    Relation,
    Similar,
    StoreItem,
    StoreStatus,
    SupersededMemory,
)
from folklore.new_ids import new_id
from folklore.permissions import opens, require
from folklore.telemetry import stage
from folklore.text import names
from folklore.text.clean import digest, former_digest

log = get_logger(__name__)

_ADD_CUES = (
    "No cues yet: memory_update with id and cues, 3 to 6 phrases as somebody would "
    "type them when it is needed, adds them."
)
# New memories of a call for which older ones on their subject are looked up.
_MOST_ASKED = 20


class _RefusedItems(Exception):
    """Errors of memories by their place in the batch. It rolls the transaction back; the others are written anew."""

    def __init__(self, errors: Mapping[int, FolkloreError]) -> None:
        super().__init__()
        self.errors = errors


@dataclass(slots=True)
class _Batch:
    """Memories to store by their place in the batch, their vectors in the same order, and the refused ones.

    `superseded` are the memories that they supersede, by place. Those at the places `inherited` have the cues of that
    memory, since they state none.
    """

    memories: dict[int, PreparedMemory]
    errors: dict[int, FolkloreError]
    single: bool
    vectors: Vectors | None = None
    superseded: Mapping[int, Memory] = field(default_factory=dict)
    inherited: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, valid: ValidBatch, superseded: Mapping[int, Memory], *, single: bool
    ) -> _Batch:
        """Give every checked draft an id and its digests; one without cues takes over those of what it supersedes."""
        inherited = frozenset(
            place
            for place, old in superseded.items()
            if old.cues and not valid.drafts[place].cues
        )
        batch = cls(
            {},
            dict(valid.errors),
            single,
            superseded=superseded,
            inherited=inherited,
        )
        first: dict[str, bytes] = {}
        for place, stated in valid.drafts.items():
            draft = stated
            if place in inherited:
                old = superseded[place]
                draft = replace(stated, cues=old.cues, learned_cues=old.learned)
            text = digest(draft.content)
            request = _request_digest(draft, text)
            item = PreparedMemory(
                draft.id or new_id(), draft, text, request, detected_language(draft)
            )
            key = draft.idempotency_key
            if key is not None and first.setdefault(key, item.request) != item.request:
                batch.errors[place] = batch.used_key(
                    place, "occurs earlier in this batch with another request."
                )
            else:
                batch.memories[place] = item
        return batch

    def refuse(self, errors: Mapping[int, FolkloreError]) -> None:
        """Take memories out of the batch. Raises the first error if none is left."""
        self.errors |= errors
        self.memories, self.vectors = self.without(errors)
        if not self.memories:
            raise self.errors[min(self.errors)]

    @property
    def changes_others(self) -> bool:
        """True if a memory supersedes or relates to a stored one."""
        return any(
            item.draft.supersedes is not None or item.draft.related
            for item in self.memories.values()
        )

    def without(
        self, places: Collection[int]
    ) -> tuple[dict[int, PreparedMemory], Vectors | None]:
        """Return the memories at other places, and their vectors."""
        rows = {
            place: row for row, place in enumerate(self.memories) if place not in places
        }
        vectors = self.vectors and self.vectors.select(rows.values())
        return {place: self.memories[place] for place in rows}, vectors

    def field(self, place: int, name: str) -> str:
        """Return the name of a field in errors."""
        return prefix_of(place, single=self.single) + name

    def used_key(self, place: int, problem: str) -> InvalidInput:
        """Return the error of another request under a used key."""
        hint = "Repeat the same content, supersedes and related under a key; give a new request another key, or none."
        return InvalidInput(
            self.field(place, "idempotency_key"),
            f"{problem} The memory was not stored.",
            hint=hint,
        )


async def store(context: RequestContext, request: StoreRequest) -> StoreResult:
    """Store at most 500 memories in one namespace, which is created if it is new.

    A text that is known is confirmed and answered as `duplicate`. A repeated request under an idempotency key is
    answered by the same memory and has no further effect; another request under a used key is refused. Superseded
    memories are closed in the same transaction. Similar memories are reported. If the embedder is unreachable or would
    delay the answer, the memories are stored, found by keyword at once, and their embeddings are pending.

    A memory with a fault is refused and reported, the others are stored. Raises InvalidInput, NotFound, Conflict,
    Refused if all are refused, DatabaseUnavailable; then nothing was written.
    """
    memory = context.memory
    guard_fields({"namespace": request.namespace}, memory.secrets)
    name = names.new(
        context.namespace() if request.namespace is None else request.namespace
    )
    require(context.caller, name, "writer")
    if not opens(context.caller, name):
        await require_new_namespace(
            memory.root.namespaces, context.caller.author, context.now
        )
    valid = await _checked(context, name, request)
    batch = _Batch.of(
        valid, await _superseded(context, name, valid), single=request.single
    )
    items = list(batch.memories.values())
    with stage("store.embed", memories=len(items)):
        batch.vectors, embedding_task = await _embed_soon(memory, items)
    with stage("store.write", memories=len(batch.memories)):
        written = await _write_batch(context, name, batch)
    namespace = written.namespace
    name = written.name
    outcome = written.outcome
    memory.changed()
    await embed_cues(memory, namespace, written.cued)
    new = [item.id for item in outcome.values() if item.new]
    if embedding_task is not None:
        work = _embed_later(memory, namespace, items, new, embedding_task, context.now)
        memory.go_on(work)
    model = None if batch.vectors is None else batch.vectors.model
    asked = _asked_of(outcome, batch, context.now)
    neighbours, notes = await find_neighbours(
        context,
        namespace,
        new,
        model,
        subjects_of(memory.id for memory in asked),
        later=embedding_task is not None,
    )
    similar, not_shown = shown(near_duplicates(neighbours))
    olders = older_on_subject(asked, neighbours)
    results = _store_items(batch, written, similar, olders)
    refusals = tuple(
        RefusedMemory.of(place, batch.errors[place]) for place in sorted(batch.errors)
    )
    return StoreResult(
        name,
        results,
        _note(
            valid.notes,
            [*notes, *not_shown, *_how_to_add_cues(context, request, batch, new)],
            len(refusals),
            len(request.memories),
        ),
        refusals,
    )


def _how_to_add_cues(
    context: RequestContext, request: StoreRequest, batch: _Batch, new: Sequence[UUID]
) -> list[str]:
    """Return how to add cues, once a session, if new memories were stored without any."""
    session = request.client_session
    with_cues = any(item.draft.cues for item in batch.memories.values())
    if session is None or with_cues or not new:
        return []
    caller = context.caller
    first = context.memory.told_of_cues.is_first((caller.author, caller.token), session)
    return [_ADD_CUES] if first else []


def _asked_of(
    outcome: Mapping[int, Inserted], batch: _Batch, now: datetime
) -> list[Stored]:
    """Return the new memories whose subjects are looked for: the first ones, but none that supersedes another."""
    asked = []
    for place, item in outcome.items():
        draft = batch.memories[place].draft
        if item.new and draft.supersedes is None:
            when = min(draft.occurred_at or now, now)
            asked.append(Stored(item.id, draft.content, draft.cues, when))
    return asked[:_MOST_ASKED]


async def _checked(
    context: RequestContext, name: str, request: StoreRequest
) -> ValidBatch:
    """Check a batch, a large one in a thread, while other calls go on."""
    memory = context.memory
    drafts = memory.recalled.unquoted(name, request.memories)
    check = partial(
        check_batch,
        drafts,
        now=context.now,
        zone=context.zone,
        secrets=memory.secrets,
        single=request.single,
    )
    texts = (
        getattr(draft, name)
        for draft in drafts
        if isinstance(draft, Draft)
        for name in Draft.__dataclass_fields__
    )
    return await on_texts(check, characters_in(texts))


def _store_items(
    batch: _Batch,
    written: _Written,
    similar: Mapping[UUID, tuple[Similar, ...]],
    olders: Mapping[UUID, tuple[OnSubject, ...]],
) -> tuple[StoreItem, ...]:
    """Return what became of each memory; older ones on its subject that are named or related already are left out."""
    results = []
    for place, item in written.outcome.items():
        draft = batch.memories[place].draft
        named = {near.id for near in similar.get(item.id, ())}
        named |= {link.id for link in draft.related}
        same_subject = [
            older for older in olders.get(item.id, ()) if older.id not in named
        ]
        result = replace(
            _store_item(item, draft, similar, written.cued),
            same_subject=tuple(same_subject),
            superseded=_superseded_memory(batch.superseded.get(place)),
        )
        results.append(result)
    return tuple(results)


def _store_item(
    item: Inserted,
    draft: Draft,
    similar: Mapping[UUID, tuple[Similar, ...]],
    cued: Collection[UUID],
) -> StoreItem:
    status: StoreStatus = "stored" if item.new else "duplicate"
    if draft.supersedes is not None:
        status = "superseded_old"
    if item.new:
        return StoreItem(item.id, status, similar.get(item.id, ()))
    return StoreItem(item.id, status, cues="added" if item.id in cued else None)


def _superseded_memory(memory: Memory | None) -> SupersededMemory | None:
    if memory is None:
        return None
    return SupersededMemory(memory.id, memory.content, memory.author)


def _note(
    of_check: Sequence[str], of_result: Sequence[str], refusals: int, requested: int
) -> str | None:
    warning = f"{refusals} of {requested} memories were refused, see refused; the others are stored."
    return " ".join([*of_check, *([warning] if refusals else []), *of_result]) or None


def _request_digest(draft: Draft, text: bytes) -> bytes:
    """Return a digest of what is requested under a key: the text, and the changes to other memories."""
    if draft.supersedes is None and not draft.related:
        return text
    related = sorted((str(link.id), link.type, link.strength) for link in draft.related)
    return hashlib.sha256(
        json.dumps([text.hex(), str(draft.supersedes), related]).encode()
    ).digest()


def _same_request(answer: KeyAnswer, item: PreparedMemory) -> bool:
    """Return True if a key answered this request, or did so for a version with other digests of texts."""
    if answer.request == item.request:
        return True
    return answer.request == _request_digest(
        item.draft, former_digest(item.draft.content)
    )


@dataclass(frozen=True, slots=True)
class _Written:
    """The namespace of a batch, its name as it is called, and the outcome for each memory by its place.

    `cued` are the known memories that got further cues.
    """

    namespace: UUID
    name: str
    outcome: dict[int, Inserted]
    cued: Sequence[UUID]


async def _superseded(
    context: RequestContext, name: str, valid: ValidBatch
) -> dict[int, Memory]:
    """Return the memories that drafts supersede, by place. At most two statements."""
    superseded = {
        place: draft.supersedes
        for place, draft in valid.drafts.items()
        if draft.supersedes is not None
    }
    if not superseded:
        return {}
    try:
        spaces = await context.memory.find_namespaces((name,))
    except NotFound:  # it is created by this store
        return {}
    ids = list(set(superseded.values()))
    read = await context.memory.memories.get([space.id for space in spaces], ids)
    by_id = {memory.id: memory for _, memory in read}
    return {place: by_id[id_] for place, id_ in superseded.items() if id_ in by_id}


async def _write_batch(context: RequestContext, name: str, batch: _Batch) -> _Written:
    """Write a batch in one transaction; once more if another process used one of its keys meanwhile, and without the
    memories that the database shows to be faulty.
    """
    changes = context.memory.changes
    retried = False
    while True:
        target = namespace_for(name, batch.memories.values())
        exclusive = batch.changes_others
        try:
            async with changes.storing(
                target, caller=context.caller, now=context.now, exclusive=exclusive
            ) as change:
                keys = [item.draft.idempotency_key for item in batch.memories.values()]
                outcome = _answered(batch, await change.key_answers(keys))
                items, vectors = batch.without(outcome)
                inserted = dict(
                    zip(
                        items,
                        await change.insert(list(items.values()), vectors),
                        strict=True,
                    )
                )
                await change.remember_keys(_keys(batch, inserted))
                await _relate(
                    change,
                    batch,
                    inserted,
                    await supersede(change, _replacements(batch, inserted)),
                )
                cued = await _add_cues(change, batch, inserted)
                outcome |= inserted
                ids = {item.id for item in outcome.values()}
                await change.audit(
                    "store",
                    [item.id for item in inserted.values() if item.new],
                    len(ids),
                )
        except _RefusedItems as refused:
            batch.refuse(refused.errors)
        except ConcurrentChange:
            if retried:
                raise
            retried = True
        else:
            changes.statistics.stored(sum(item.new for item in outcome.values()))
            outcomes = {place: outcome[place] for place in batch.memories}
            return _Written(change.namespace, change.name, outcomes, cued)


async def _add_cues(
    change: NamespaceTransaction, batch: _Batch, inserted: Mapping[int, Inserted]
) -> list[UUID]:
    """Add the cues of known texts to their memories; return those that changed."""
    stated: dict[UUID, list[str]] = {}
    inherited: set[UUID] = set()
    learned: dict[UUID, list[str]] = {}
    for place, item in inserted.items():
        cues = batch.memories[place].draft.cues
        if item.new or not cues:
            continue
        stated.setdefault(item.id, []).extend(cues)
        if place in batch.inherited:
            inherited.add(item.id)
            learned.setdefault(item.id, []).extend(
                batch.memories[place].draft.learned_cues
            )
    return await add_cues(change, stated, inherited, learned)


def namespace_for(
    name: str, items: Collection[PreparedMemory | TransferredMemory]
) -> NewNamespace:
    """Return what is needed to create the namespace, and the languages that these memories bring."""
    languages = sorted({item.draft.language for item in items if item.draft.language})
    detected = sorted({item.detected for item in items if item.detected})
    return NewNamespace(new_id(), name, DEFAULT_LANGUAGE, languages, detected)


def _keys(batch: _Batch, inserted: Mapping[int, Inserted]) -> dict[str, KeyAnswer]:
    """Return what answers the idempotency keys of these memories from now on."""
    return {
        key: KeyAnswer(item.id, batch.memories[place].request)
        for place, item in inserted.items()
        if (key := batch.memories[place].draft.idempotency_key) is not None
    }


def _answered(
    batch: _Batch, answers: Sequence[KeyAnswer | None]
) -> dict[int, Inserted]:
    """Return the memories of requests that were answered before, by place. Refuses another request under a used key."""
    repeats = {
        place: answer
        for place, answer in zip(batch.memories, answers, strict=True)
        if answer is not None
    }
    if errors := {
        place: batch.used_key(
            place,
            f"was used before for another request, which the memory {answer.id} answered.",
        )
        for place, answer in repeats.items()
        if not _same_request(answer, batch.memories[place])
    }:
        raise _RefusedItems(errors)
    return {place: Inserted(answer.id, new=False) for place, answer in repeats.items()}


def _replacements(
    batch: _Batch, inserted: Mapping[int, Inserted]
) -> dict[int, Replacement]:
    items = (
        (place, batch.memories[place].draft, item.id)
        for place, item in inserted.items()
    )
    return {
        place: Replacement(
            draft.supersedes,
            id_,
            batch.field(place, "supersedes"),
            draft.supersede_reason,
        )
        for place, draft, id_ in items
        if draft.supersedes is not None
    }


async def _relate(
    change: NamespaceTransaction,
    batch: _Batch,
    items: Mapping[int, Inserted],
    errors: dict[int, FolkloreError],
) -> None:
    """Write the relations of new memories. Refuses those with an error, or with a relation that is not possible."""
    related: dict[tuple[UUID, str, UUID], tuple[int, Relation]] = {}
    for place, item in items.items():
        for link in batch.memories[place].draft.related:
            if link.id == item.id:
                hint = "Leave it out."
                errors[place] = InvalidInput(
                    batch.field(place, "related"), "names the memory itself.", hint=hint
                )
            related[item.id, link.type, link.id] = (
                place,
                Relation(item.id, link.type, link.id, link.strength),
            )
    if errors:
        raise _RefusedItems(errors)
    if related:
        relations = await change.relate([relation for _, relation in related.values()])
    else:
        relations = {}
    for key in related.keys() - relations.keys():
        place, relation = related[key]
        errors[place] = NotFound(
            f"{batch.field(place, 'related')}: there is no memory {relation.to_id} in this namespace.",
            hint="Relations stay within one namespace.",
        )
    if errors:
        raise _RefusedItems(errors)


async def _embed_batch(
    memory: MemoryContext, batch: Sequence[PreparedMemory]
) -> Vectors | None:
    drafts = {item.digest: item.draft for item in reversed(batch)}
    vectors = await embed(
        memory,
        [draft.content for draft in drafts.values()],
        [draft.cues for draft in drafts.values()],
    )
    place = {text: number for number, text in enumerate(drafts)}
    return vectors and vectors.select(place[item.digest] for item in batch)


async def _embed_soon(
    memory: MemoryContext, items: Sequence[PreparedMemory]
) -> tuple[Vectors | None, asyncio.Task[Vectors | None] | None]:
    """Embed a batch. If that takes longer than a store waits, return the task that goes on.

    The bundled model, which embeds a text in a tenth of a millisecond, is always waited for.
    """
    if not memory.embeds_later:
        return await _embed_batch(memory, items), None
    making = asyncio.create_task(_embed_batch(memory, items), name="folklore-embed")
    try:
        done, _ = await asyncio.wait({making}, timeout=memory.embedding_wait)
    except asyncio.CancelledError:
        making.cancel()
        raise
    if done:
        return (making.result(), None)
    return (None, making)


async def _embed_later(
    memory: MemoryContext,
    namespace: UUID,
    items: Sequence[PreparedMemory],
    new: Sequence[UUID],
    making: asyncio.Task[Vectors | None],
    now: datetime,
) -> None:
    """Write the embeddings of stored memories when they are made; those that fail stay pending for the job."""
    try:
        vectors = await making
        if vectors is None:
            return
        pairs = [(row, item) for row, item in enumerate(items) if item.id in new]
        pending = [
            PendingMemory(item.id, item.draft.content, item.digest, item.draft.cues)
            for _, item in pairs
        ]
        await memory.root.embeddings.backfill(
            namespace, pending, vectors.select(row for row, _ in pairs), now
        )
        memory.changed()
    except FolkloreError as error:
        log.warning("embeddings_left_pending", count=len(new), reason=error.message)


async def embed(
    memory: MemoryContext, texts: Sequence[str], cues: Sequence[Sequence[str]] = ()
) -> Vectors | None:
    """Embed texts, with the cues of each if given, by the active model.

    None without a reachable one: the embeddings are pending.
    """
    await memory.active_model.refresh()
    embedder = memory.embedder
    if embedder is None:
        return None
    try:
        return await embed_texts(embedder, texts, cues)
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None
