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
from folklore.memory.records.subjects import (
    ComparedMemory,
    older_on_subject,
    subjects_of,
)
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
    """Errors of memories by their index in the batch. It rolls the transaction back; the others are written anew."""

    def __init__(self, errors: Mapping[int, FolkloreError]) -> None:
        super().__init__()
        self.errors = errors


@dataclass(slots=True)
class _Batch:
    """Memories to store by their index in the batch, their vectors in the same order, and the refused ones.

    `superseded` are the memories that they supersede, by index. Those at the indexes `inherited` have the cues of that
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
        inherited = set()
        for index, old in superseded.items():
            if old.cues and not valid.drafts[index].cues:
                inherited.add(index)
        batch = cls(
            memories={},
            errors=dict(valid.errors),
            single=single,
            superseded=superseded,
            inherited=frozenset(inherited),
        )
        request_by_key: dict[str, bytes] = {}
        for index, draft in valid.drafts.items():
            if index in inherited:
                old = superseded[index]
                draft = replace(draft, cues=old.cues, learned_cues=old.learned)
            item = _prepared(draft)
            key = draft.idempotency_key
            request = item.request
            if key is not None and request_by_key.setdefault(key, request) != request:
                problem = "occurs earlier in this batch with another request."
                batch.errors[index] = batch.used_key(index, problem)
            else:
                batch.memories[index] = item
        return batch

    def refuse(self, errors: Mapping[int, FolkloreError]) -> None:
        """Take memories out of the batch. Raises the first error if none is left."""
        self.errors |= errors
        self.memories, self.vectors = self.without(errors)
        if not self.memories:
            raise self.errors[min(self.errors)]

    def refusals(self) -> tuple[RefusedMemory, ...]:
        """Return the refused memories with their errors, in the order of the request."""
        return tuple(
            RefusedMemory.of(index, self.errors[index]) for index in sorted(self.errors)
        )

    @property
    def changes_others(self) -> bool:
        """True if a memory supersedes or relates to a stored one."""
        drafts = [item.draft for item in self.memories.values()]
        return any(draft.supersedes is not None or draft.related for draft in drafts)

    def without(
        self, indexes: Collection[int]
    ) -> tuple[dict[int, PreparedMemory], Vectors | None]:
        """Return the memories at other indexes, and their vectors."""
        memories = {}
        rows = []
        for row, (index, memory) in enumerate(self.memories.items()):
            if index not in indexes:
                memories[index] = memory
                rows.append(row)
        vectors = None if self.vectors is None else self.vectors.select(rows)
        return memories, vectors

    def field(self, index: int, name: str) -> str:
        """Return the name of a field in errors."""
        return prefix_of(index, single=self.single) + name

    def used_key(self, index: int, problem: str) -> InvalidInput:
        """Return the error of another request under a used key."""
        hint = "Repeat the same content, supersedes and related under a key; give a new request another key, or none."
        return InvalidInput(
            self.field(index, "idempotency_key"),
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
    requested = request.namespace
    name = names.new(context.namespace() if requested is None else requested)
    require(context.caller, name, "writer")
    if not opens(context.caller, name):
        await require_new_namespace(
            memory.root.namespaces, context.caller.author, context.now
        )
    valid = await _checked(context, name, request)
    superseded = await _superseded(context, name, valid)
    batch = _Batch.of(valid, superseded, single=request.single)

    items = list(batch.memories.values())
    with stage("store.embed", memories=len(items)):
        batch.vectors, embedding_task = await _embed_soon(memory, items)
    with stage("store.write", memories=len(batch.memories)):
        written = await _write_batch(context, name, batch)
    memory.changed()
    await embed_cues(memory, written.namespace, written.cued)
    new = [item.id for item in written.outcome.values() if item.new]
    if embedding_task is not None:
        work = _embed_later(
            memory, written.namespace, items, new, embedding_task, context.now
        )
        memory.go_on(work)

    compared = _compared(written.outcome, batch, context.now)
    neighbours, notes = await find_neighbours(
        context,
        written.namespace,
        new,
        None if batch.vectors is None else batch.vectors.model,
        subjects_of(memory.id for memory in compared),
        later=embedding_task is not None,
    )
    similar, not_shown = shown(near_duplicates(neighbours))
    olders = older_on_subject(compared, neighbours)
    results = _store_items(batch, written, similar, olders)
    refusals = batch.refusals()
    if refusals:
        counts = f"{len(refusals)} of {len(request.memories)}"
        notes.insert(
            0, f"{counts} memories were refused, see refused; the others are stored."
        )
    notes += not_shown + _how_to_add_cues(context, request, batch, new)
    note = " ".join([*valid.notes, *notes]) or None
    return StoreResult(written.name, results, note, refusals)


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


def _compared(
    outcome: Mapping[int, Inserted], batch: _Batch, now: datetime
) -> list[ComparedMemory]:
    """Return the new memories whose subjects are looked for: the first ones, but none that supersedes another."""
    results = []
    for index, item in outcome.items():
        draft = batch.memories[index].draft
        if item.new and draft.supersedes is None:
            when = min(draft.occurred_at or now, now)
            compared = ComparedMemory(item.id, draft.content, draft.cues, when)
            results.append(compared)
    return results[:_MOST_ASKED]


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
    texts: list[object] = []
    for draft in drafts:
        if isinstance(draft, Draft):
            texts += [getattr(draft, name) for name in Draft.__dataclass_fields__]
    return await on_texts(check, characters_in(texts))


def _store_items(
    batch: _Batch,
    written: _Written,
    similar: Mapping[UUID, tuple[Similar, ...]],
    olders: Mapping[UUID, tuple[OnSubject, ...]],
) -> tuple[StoreItem, ...]:
    """Return what became of each memory; older ones on its subject that are named or related already are left out."""
    results = []
    for index, item in written.outcome.items():
        draft = batch.memories[index].draft
        named = {near.id for near in similar.get(item.id, ())}
        named |= {link.id for link in draft.related}
        same_subject = [
            older for older in olders.get(item.id, ()) if older.id not in named
        ]
        result = replace(
            _store_item(item, draft, similar, written.cued),
            same_subject=tuple(same_subject),
            superseded=_superseded_memory(batch.superseded.get(index)),
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


def _prepared(draft: Draft) -> PreparedMemory:
    """Return a checked draft with an id and its digests."""
    text = digest(draft.content)
    request = _request_digest(draft, text)
    return PreparedMemory(
        draft.id or new_id(), draft, text, request, detected_language(draft)
    )


def _request_digest(draft: Draft, text: bytes) -> bytes:
    """Return a digest of what is requested under a key: the text, and the changes to other memories."""
    if draft.supersedes is None and not draft.related:
        return text
    related = sorted((str(link.id), link.type, link.strength) for link in draft.related)
    content = json.dumps([text.hex(), str(draft.supersedes), related])
    return hashlib.sha256(content.encode()).digest()


def _same_request(answer: KeyAnswer, item: PreparedMemory) -> bool:
    """Return True if a key answered this request, or did so for a version with other digests of texts."""
    if answer.request == item.request:
        return True
    former = _request_digest(item.draft, former_digest(item.draft.content))
    return answer.request == former


@dataclass(frozen=True, slots=True)
class _Written:
    """The namespace of a batch, its name as it is called, and the outcome for each memory by its index.

    `cued` are the known memories that got further cues.
    """

    namespace: UUID
    name: str
    outcome: dict[int, Inserted]
    cued: Sequence[UUID]


async def _superseded(
    context: RequestContext, name: str, valid: ValidBatch
) -> dict[int, Memory]:
    """Return the memories that drafts supersede, by index. At most two statements."""
    superseded: dict[int, UUID] = {}
    for index, draft in valid.drafts.items():
        if draft.supersedes is not None:
            superseded[index] = draft.supersedes
    if not superseded:
        return {}
    try:
        spaces = await context.memory.find_namespaces((name,))
    except NotFound:  # it is created by this store
        return {}
    ids = list(set(superseded.values()))
    rows = await context.memory.memories.get([space.id for space in spaces], ids)
    by_id = {memory.id: memory for _, memory in rows}
    return {index: by_id[id_] for index, id_ in superseded.items() if id_ in by_id}


async def _write_batch(context: RequestContext, name: str, batch: _Batch) -> _Written:
    """Write a batch in one transaction, and return what was written.

    The transaction is repeated without memories in which the database shows a fault, and once if another process used
    one of the keys meanwhile. Raises the first error if no memory is left.
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
                rows = await change.insert(list(items.values()), vectors)
                inserted = dict(zip(items, rows, strict=True))
                await change.remember_keys(_keys(batch, inserted))
                errors = await supersede(change, _replacements(batch, inserted))
                await _relate(change, batch, inserted, errors)
                cued = await _add_cues(change, batch, inserted)
                outcome |= inserted
                new = [item.id for item in inserted.values() if item.new]
                distinct = {item.id for item in outcome.values()}
                await change.audit("store", new, len(distinct))
        except _RefusedItems as refused:
            batch.refuse(refused.errors)
        except ConcurrentChange:
            if retried:
                raise
            retried = True
        else:
            changes.statistics.stored(sum(item.new for item in outcome.values()))
            outcomes = {index: outcome[index] for index in batch.memories}
            return _Written(change.namespace, change.name, outcomes, cued)


async def _add_cues(
    change: NamespaceTransaction, batch: _Batch, inserted: Mapping[int, Inserted]
) -> list[UUID]:
    """Add the cues of known texts to their memories; return those that changed."""
    stated: dict[UUID, list[str]] = {}
    inherited: set[UUID] = set()
    learned: dict[UUID, list[str]] = {}
    for index, item in inserted.items():
        draft = batch.memories[index].draft
        if item.new or not draft.cues:
            continue
        stated.setdefault(item.id, []).extend(draft.cues)
        if index in batch.inherited:
            inherited.add(item.id)
            learned.setdefault(item.id, []).extend(draft.learned_cues)
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
    answers = {}
    for index, item in inserted.items():
        memory = batch.memories[index]
        key = memory.draft.idempotency_key
        if key is not None:
            answers[key] = KeyAnswer(item.id, memory.request)
    return answers


def _answered(
    batch: _Batch, answers: Sequence[KeyAnswer | None]
) -> dict[int, Inserted]:
    """Return the memories of requests that were answered before, by index. Refuses another request under a used key."""
    answered: dict[int, Inserted] = {}
    errors: dict[int, FolkloreError] = {}
    for index, answer in zip(batch.memories, answers, strict=True):
        if answer is None:
            continue
        if _same_request(answer, batch.memories[index]):
            answered[index] = Inserted(answer.id, new=False)
        else:
            problem = f"was used before for another request, which the memory {answer.id} answered."
            errors[index] = batch.used_key(index, problem)
    if errors:
        raise _RefusedItems(errors)
    return answered


def _replacements(
    batch: _Batch, inserted: Mapping[int, Inserted]
) -> dict[int, Replacement]:
    """Return what the new memories supersede, by index."""
    replacements = {}
    for index, item in inserted.items():
        draft = batch.memories[index].draft
        if draft.supersedes is not None:
            replacements[index] = Replacement(
                old=draft.supersedes,
                new=item.id,
                field=batch.field(index, "supersedes"),
                reason=draft.supersede_reason,
            )
    return replacements


async def _relate(
    change: NamespaceTransaction,
    batch: _Batch,
    items: Mapping[int, Inserted],
    errors: dict[int, FolkloreError],
) -> None:
    """Write the relations of new memories. Refuses those with an error, or with a relation that is not possible."""
    related: dict[tuple[UUID, str, UUID], tuple[int, Relation]] = {}
    for index, item in items.items():
        for link in batch.memories[index].draft.related:
            if link.id == item.id:
                hint = "Leave it out."
                errors[index] = InvalidInput(
                    batch.field(index, "related"), "names the memory itself.", hint=hint
                )
            related[item.id, link.type, link.id] = (
                index,
                Relation(item.id, link.type, link.id, link.strength),
            )
    if errors:
        raise _RefusedItems(errors)
    if not related:
        return
    relations = await change.relate([relation for _, relation in related.values()])
    for key in related.keys() - relations.keys():
        index, relation = related[key]
        errors[index] = NotFound(
            f"{batch.field(index, 'related')}: there is no memory {relation.to_id} in this namespace.",
            hint="Relations stay within one namespace.",
        )
    if errors:
        raise _RefusedItems(errors)


async def _embed_batch(
    memory: MemoryContext, batch: Sequence[PreparedMemory]
) -> Vectors | None:
    # Each text once. Of equal ones the first is stored, so that its cues are embedded.
    drafts = {item.digest: item.draft for item in reversed(batch)}
    vectors = await embed(
        memory,
        [draft.content for draft in drafts.values()],
        [draft.cues for draft in drafts.values()],
    )
    if vectors is None:
        return None
    row_of = {text: row for row, text in enumerate(drafts)}
    return vectors.select(row_of[item.digest] for item in batch)


async def _embed_soon(
    memory: MemoryContext, items: Sequence[PreparedMemory]
) -> tuple[Vectors | None, asyncio.Task[Vectors | None] | None]:
    """Embed a batch. If that takes longer than a store waits, return the task that goes on.

    The bundled model, which embeds a text in a tenth of a millisecond, is always waited for.
    """
    if not memory.embeds_later:
        return await _embed_batch(memory, items), None
    task = asyncio.create_task(_embed_batch(memory, items), name="folklore-embed")
    try:
        done, _ = await asyncio.wait({task}, timeout=memory.embedding_wait)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result(), None
    return None, task


async def _embed_later(
    memory: MemoryContext,
    namespace: UUID,
    items: Sequence[PreparedMemory],
    new: Sequence[UUID],
    embedding_task: asyncio.Task[Vectors | None],
    now: datetime,
) -> None:
    """Write the embeddings of stored memories when they are made; those that fail stay pending for the job."""
    try:
        vectors = await embedding_task
        if vectors is None:
            return
        rows = []
        pending = []
        for row, item in enumerate(items):
            if item.id in new:
                draft = item.draft
                rows.append(row)
                pending.append(
                    PendingMemory(item.id, draft.content, item.digest, draft.cues)
                )
        await memory.root.embeddings.backfill(
            namespace, pending, vectors.select(rows), now
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
