"""Store memories: validate, embed the batch in one call, write it in one transaction, answer after the commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from folklore.db.stores.changes import Inserted, KeyAnswer, NamespaceTransaction
from folklore.db.stores.memories import PreparedMemory, Vectors
from folklore.db.stores.namespaces import NewNamespace
from folklore.errors import ConcurrentChange, EmbedderUnavailable, FolkloreError, InvalidInput, NotFound
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.ids import new_id
from folklore.memory.models.active_model import embed_texts
from folklore.memory.permissions import require
from folklore.memory.records.supersede import Replacement, supersede
from folklore.memory.requests import StoreRequest
from folklore.memory.results import StoreResult
from folklore.memory.secret_guard import guard_fields
from folklore.memory.validation import ValidBatch, check_batch, detected_language
from folklore.model import DEFAULT_LANGUAGE, Draft, Relation, Similar, Stored, StoreStatus
from folklore.telemetry import stage
from folklore.text import names
from folklore.text.clean import digest

log = structlog.get_logger(__name__)

# Least cosine of two similar texts. A cosine does not distinguish agreement from contradiction.
_NEAREST = 0.92
# The newest memories of the namespace that a batch is compared with: 1.5 million distances at 256 dimensions take about
# 0.3 s of one core for a batch of 500, 7 ms for one memory. Older ones are compared where they share a rare word.
_NEWEST = 3_000
_UNKNOWN = "Everything is stored, but similar memories could not be looked up:"


@dataclass(frozen=True, slots=True)
class _Batch:
    """Memories to store, and the prefix of each in errors."""

    memories: list[PreparedMemory]
    prefixes: list[str]

    @classmethod
    def of(cls, valid: ValidBatch) -> _Batch:
        """Give every checked draft an id and its digests. Raises InvalidInput for two requests under one key."""
        memories = []
        first: dict[str, bytes] = {}
        for draft, prefix in zip(valid.drafts, valid.prefixes, strict=True):
            text = digest(draft.content)
            item = PreparedMemory(
                draft.id or new_id(), draft, text, _request_digest(draft, text), detected_language(draft)
            )
            key = draft.idempotency_key
            if key is not None and first.setdefault(key, item.request) != item.request:
                raise _used_key(prefix, "occurs earlier in this batch with another request.")
            memories.append(item)
        return cls(memories, valid.prefixes)


async def store(context: RequestContext, request: StoreRequest) -> StoreResult:
    """Store at most 500 memories in one namespace, which is created if it is new.

    A text that is known is confirmed and answered as `duplicate`. A repeated request under an idempotency key is
    answered by the same memory and has no further effect; another request under a used key is refused. Superseded
    memories are closed in the same transaction. Similar memories are reported. If the embedder is unreachable, the
    memories are stored, found by keyword at once, and their embeddings are pending. Raises InvalidInput, NotFound,
    Conflict, Refused, DatabaseUnavailable; then nothing was written.
    """
    memory = context.memory
    guard_fields({"namespace": request.namespace}, memory.secrets)
    name = names.normalise(context.namespace() if request.namespace is None else request.namespace)
    require(context.caller, name, "writer")
    valid = check_batch(
        request.memories, now=context.now, zone=context.zone, secrets=memory.secrets, single=request.single
    )
    batch = _Batch.of(valid)
    with stage("store.embed", memories=len(batch.memories)):
        vectors = await _embed_batch(memory, batch.memories)
    with stage("store.write", memories=len(batch.memories)):
        namespace, outcome = await _write_batch(context, name, batch, vectors)
    memory.changed()
    new = [item.id for item in outcome if item.new]
    similar, notes = await find_similar(context, namespace, new, None if vectors is None else vectors.model)
    stored = tuple(
        Stored(item.id, _status(prepared.draft, item.new), similar.get(item.id, ()) if item.new else ())
        for prepared, item in zip(batch.memories, outcome, strict=True)
    )
    return StoreResult(name, stored, " ".join([*valid.notes, *notes]) or None)


def _status(draft: Draft, new: bool) -> StoreStatus:
    if draft.supersedes is not None:
        return "superseded_old"
    return "stored" if new else "duplicate"


def _request_digest(draft: Draft, text: bytes) -> bytes:
    """Return a digest of what is requested under a key: the text, and the changes to other memories."""
    if draft.supersedes is None and not draft.related:
        return text
    related = sorted((str(link.id), link.type, link.strength) for link in draft.related)
    return hashlib.sha256(json.dumps([text.hex(), str(draft.supersedes), related]).encode()).digest()


def _used_key(prefix: str, problem: str) -> InvalidInput:
    return InvalidInput(
        f"{prefix}idempotency_key",
        f"{problem} Nothing was stored.",
        hint="Repeat the same content, supersedes and related under a key; give a new request another key, or none.",
    )


async def _write_batch(
    context: RequestContext, name: str, batch: _Batch, vectors: Vectors | None
) -> tuple[UUID, list[Inserted]]:
    """Write a batch in one transaction; once more if another process used one of its keys meanwhile.

    Returns the namespace, and the outcome for each memory.
    """
    try:
        namespace, outcome = await _write(context, name, batch, vectors)
    except ConcurrentChange:
        namespace, outcome = await _write(context, name, batch, vectors)
    context.memory.changes.count_stored(sum(item.new for item in outcome))
    return namespace, outcome


async def _write(
    context: RequestContext, name: str, batch: _Batch, vectors: Vectors | None
) -> tuple[UUID, list[Inserted]]:
    drafts = [item.draft for item in batch.memories]
    languages = sorted({draft.language for draft in drafts if draft.language})
    changes_others = any(draft.supersedes is not None or draft.related for draft in drafts)
    detected = sorted({item.detected for item in batch.memories if item.detected})
    namespace = NewNamespace(new_id(), name, DEFAULT_LANGUAGE, languages, detected)
    async with context.memory.changes.storing(
        namespace, caller=context.caller, now=context.now, exclusive=changes_others
    ) as change:
        answers = await change.key_answers([draft.idempotency_key for draft in drafts])
        outcome = _answered(batch, answers)
        places = [place for place, answer in enumerate(answers) if answer is None]
        inserted = await change.insert([batch.memories[place] for place in places], vectors and vectors.select(places))
        stored = dict(zip(places, inserted, strict=True))
        await change.remember_keys(
            {
                key: KeyAnswer(item.id, batch.memories[place].request)
                for place, item in stored.items()
                if (key := drafts[place].idempotency_key) is not None
            }
        )
        await supersede(change, _replacements(batch, stored), now=context.now)
        await _relate(change, batch, stored)
        outcome |= stored
        ids = {item.id for item in outcome.values()}
        await change.audit("store", [item.id for item in inserted if item.new], len(ids))
    return change.namespace, [outcome[place] for place in range(len(drafts))]


def _answered(batch: _Batch, answers: Sequence[KeyAnswer | None]) -> dict[int, Inserted]:
    """Return the memories of requests that were answered before, by place. Refuses another request under a used key."""
    found = {}
    for place, (item, prefix, answer) in enumerate(zip(batch.memories, batch.prefixes, answers, strict=True)):
        if answer is None:
            continue
        if answer.request != item.request:
            raise _used_key(prefix, f"was used before for another request, which the memory {answer.id} answered.")
        found[place] = Inserted(answer.id, new=False)
    return found


def _replacements(batch: _Batch, stored: Mapping[int, Inserted]) -> list[Replacement]:
    items = ((batch.memories[place].draft, batch.prefixes[place], item.id) for place, item in stored.items())
    return [
        Replacement(draft.supersedes, id_, f"{prefix}supersedes", draft.supersede_reason)
        for draft, prefix, id_ in items
        if draft.supersedes is not None
    ]


async def _relate(change: NamespaceTransaction, batch: _Batch, stored: Mapping[int, Inserted]) -> None:
    related: dict[tuple[UUID, str, UUID], tuple[str, Relation]] = {}
    for place, item in stored.items():
        field = f"{batch.prefixes[place]}related"
        for link in batch.memories[place].draft.related:
            if link.id == item.id:
                raise InvalidInput(field, "names the memory itself.", hint="Leave it out.")
            related[item.id, link.type, link.id] = field, Relation(item.id, link.type, link.id, link.strength)
    if not related:
        return
    written = await change.relate([relation for _, relation in related.values()])
    for key, (field, relation) in related.items():
        if key not in written:
            raise NotFound(
                f"{field}: there is no memory {relation.to_id} in this namespace.",
                hint="Relations stay within one namespace.",
            )


async def _embed_batch(memory: MemoryContext, batch: Sequence[PreparedMemory]) -> Vectors | None:
    """Embed the texts of a batch, each once."""
    texts = {item.digest: item.draft.content for item in batch}
    vectors = await embed(memory, list(texts.values()))
    if vectors is None:
        return None
    by_text = dict(zip(texts, vectors.vectors, strict=True))
    return replace(vectors, vectors=[by_text[item.digest] for item in batch])


async def embed(memory: MemoryContext, texts: Sequence[str]) -> Vectors | None:
    """Embed texts with the active model; None without a reachable one: the embeddings are pending."""
    await memory.active_model.refresh()
    embedder = memory.embedder
    if embedder is None:
        return None
    try:
        return await embed_texts(embedder, texts)
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None


async def find_similar(
    context: RequestContext, namespace: UUID, ids: Sequence[UUID], model: UUID | None
) -> tuple[Mapping[UUID, tuple[Similar, ...]], list[str]]:
    """Return at most three similar memories for each new one, the nearest first, or a note why they are unknown.

    One statement, after the commit: an error here is logged and noted, and the memories are stored all the same.
    Without `model` the new memories have no embeddings yet.
    """
    memory = context.memory
    if not ids or (model is None and memory.embedder is None):
        return {}, []
    if model is None:
        return {}, [f"{_UNKNOWN} the embedding model is unavailable."]
    try:
        found = await memory.embeddings.similar(
            namespace, ids, model, nearest=_NEAREST, newest=_NEWEST, now=context.now
        )
    except FolkloreError as error:
        log.warning("similar_memories_unknown", count=len(ids), reason=error.message)
        return {}, [f"{_UNKNOWN} {error.message}"]
    return found, []
