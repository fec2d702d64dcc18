"""Store memories: validate, embed the batch in one call, write it in one transaction, answer after the commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from folklore.background import characters_in, on_texts
from folklore.contract.memories import StoreRequest, StoreResult
from folklore.db.stores.changes import Inserted
from folklore.errors import NotFound
from folklore.memory.context import RequestContext
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.context.validation import ValidBatch, check_batch
from folklore.memory.records.batch import Batch
from folklore.memory.records.batch_transaction import Written, write_batch
from folklore.memory.records.cues import embed_cues
from folklore.memory.records.embedding import embed_later, embed_soon
from folklore.memory.records.similar import find_neighbours, near_duplicates, shown
from folklore.memory.records.subjects import (
    ComparedMemory,
    older_on_subject,
    subjects_of,
)
from folklore.model import (
    Draft,
    Memory,
    OnSubject,
    Similar,
    StoreItem,
    StoreStatus,
    SupersededMemory,
)
from folklore.permissions import opens, require
from folklore.telemetry import stage
from folklore.text import names

_ADD_CUES = (
    "No cues yet: memory_update with id and cues, 3 to 6 phrases as somebody would "
    "type them when it is needed, adds them."
)
# New memories of a call for which older ones on their subject are looked up.
_MOST_ASKED = 20


async def store(context: RequestContext, request: StoreRequest) -> StoreResult:
    """Store at most 500 memories in one namespace, which is created if it is new.

    A text that is known is confirmed and answered as `duplicate`. A repeated request under an idempotency key is
    answered by the same memory and has no further effect; another request under a used key is refused. Superseded
    memories are closed in the same transaction. Similar memories are reported. If the embedder is unreachable or would
    delay the answer, the memories are stored, found by keyword at once, and their embeddings are pending.

    A memory with a fault is refused and reported, the others are stored. Raises InvalidInput, NotFound, Conflict,
    Refused if all are refused, DatabaseUnavailable; then nothing was written.
    """
    name = await _writable_namespace(context, request)
    valid = await _checked(context, name, request)
    superseded = await _superseded(context, name, valid)
    batch = Batch.of(valid, superseded, single=request.single)

    written, is_embedded = await _embed_and_write(context, name, batch)
    relatives = await _relatives(context, batch, written, later=not is_embedded)

    refusals = batch.refusals()
    notes = list(valid.notes)
    if refusals:
        counts = f"{len(refusals)} of {len(request.memories)}"
        notes.append(
            f"{counts} memories were refused, see refused; the others are stored."
        )
    notes += relatives.notes
    notes += _how_to_add_cues(context, request, batch, written.new)
    return StoreResult(
        written.name,
        _store_items(batch, written, relatives),
        " ".join(notes) or None,
        refusals,
    )


async def _writable_namespace(context: RequestContext, request: StoreRequest) -> str:
    """Return the name of the namespace to store in, which the caller may write, or create."""
    memory = context.memory
    guard_fields({"namespace": request.namespace}, memory.secrets)
    requested = request.namespace
    name = names.new(context.namespace() if requested is None else requested)
    require(context.caller, name, "writer")
    if not opens(context.caller, name):
        await require_new_namespace(
            memory.root.namespaces, context.caller.author, context.now
        )
    return name


async def _embed_and_write(
    context: RequestContext, name: str, batch: Batch
) -> tuple[Written, bool]:
    """Embed a batch, and write it; embeddings that would delay the answer are written after it, and False is returned."""
    memory = context.memory
    items = list(batch.memories.values())
    with stage("store.embed", memories=len(items)):
        batch.vectors, embedding_task = await embed_soon(memory, items)
    with stage("store.write", memories=len(batch.memories)):
        written = await write_batch(context, name, batch)
    memory.changed()

    await embed_cues(memory, written.namespace, written.cued)
    if embedding_task is None:
        return written, True
    work = embed_later(
        memory, written.namespace, items, written.new, embedding_task, context.now
    )
    memory.go_on(work)
    return written, False


@dataclass(frozen=True, slots=True)
class _Relatives:
    """Memories that were stored before, by the id of a new one: similar ones, older ones on its subject; and notes."""

    similar: Mapping[UUID, tuple[Similar, ...]]
    olders: Mapping[UUID, tuple[OnSubject, ...]]
    notes: Sequence[str]


async def _relatives(
    context: RequestContext, batch: Batch, written: Written, *, later: bool
) -> _Relatives:
    """Look up what is near to new memories; `later`: their embeddings are not made yet. One statement."""
    compared = _compared(written.outcome, batch, context.now)
    neighbours, notes = await find_neighbours(
        context,
        written.namespace,
        written.new,
        None if batch.vectors is None else batch.vectors.model,
        subjects_of(memory.id for memory in compared),
        later=later,
    )
    similar, not_shown = shown(near_duplicates(neighbours))
    olders = older_on_subject(compared, neighbours)
    return _Relatives(similar, olders, [*notes, *not_shown])


def _how_to_add_cues(
    context: RequestContext, request: StoreRequest, batch: Batch, new: Sequence[UUID]
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
    outcome: Mapping[int, Inserted], batch: Batch, now: datetime
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
    batch: Batch, written: Written, relatives: _Relatives
) -> tuple[StoreItem, ...]:
    """Return what became of each memory; older ones on its subject that are named or related already are left out."""
    results = []
    for index, item in written.outcome.items():
        draft = batch.memories[index].draft
        named = {near.id for near in relatives.similar.get(item.id, ())}
        named |= {link.id for link in draft.related}
        same_subject = [
            older
            for older in relatives.olders.get(item.id, ())
            if older.id not in named
        ]
        result = replace(
            _store_item(item, draft, relatives.similar, written.cued),
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
