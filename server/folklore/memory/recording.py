"""Records that are written after an answer: uses of memories, lessons on their cues, refused drafts."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from folklore.contract.memories import (
    GetRequest,
    GetResult,
    StoreRequest,
    StoreResult,
    UpdateRequest,
)
from folklore.contract.recall import RecallRequest, SearchRequest
from folklore.errors import error_from_code
from folklore.memory import service
from folklore.memory.context import RequestContext
from folklore.memory.records import learning
from folklore.model import Answer, Draft, Memory


def record_answer(
    process: service.Memory,
    context: RequestContext,
    request: RecallRequest | SearchRequest,
    answer: Answer,
) -> None:
    """Record the memories of an answer, and keep its questions as cues may come of them."""
    if request.counted:
        context.memory.recalled.add(answer)
        if isinstance(request, RecallRequest):
            learning.keep_questions(context, request, answer)
        process.usage().record(
            answer, *request.questions, caller=context.caller, now=context.now
        )


def record_reading(
    process: service.Memory,
    context: RequestContext,
    request: GetRequest,
    result: GetResult,
) -> None:
    """Record the memories that were read whole."""
    read: dict[str, list[UUID]] = {}
    for item in result.found:
        read.setdefault(item.memory.namespace, []).append(item.memory.id)
    for namespace, ids in read.items():
        learning.teach_used(context, request.client_session, namespace, ids)
    _record_use(
        process,
        context,
        "read",
        [(item.memory.namespace, item.memory.id) for item in result.found],
    )


def record_update(
    process: service.Memory,
    context: RequestContext,
    request: UpdateRequest,
    memory: Memory,
) -> None:
    """Record a changed memory as used."""
    learning.teach_used(context, request.client_session, memory.namespace, [request.id])
    _record_use(process, context, "updated", [(memory.namespace, request.id)])


def record_store(
    process: service.Memory,
    context: RequestContext,
    request: StoreRequest,
    result: StoreResult,
) -> None:
    """Record the memories that a store confirmed or superseded, and refused ones as denied."""
    confirmed = [item.id for item in result.stored if item.status == "duplicate"]
    superseded = [
        draft.supersedes
        for draft in request.memories
        if isinstance(draft, Draft) and draft.supersedes
    ]
    for use, ids in (("confirmed", confirmed), ("superseded", superseded)):
        _record_use(process, context, use, [(result.namespace, id_) for id_ in ids])
    new = [item.id for item in result.stored if item.status != "duplicate"]
    session = request.client_session
    learning.teach_used(context, session, result.namespace, confirmed)
    learning.teach_stored(context, session, result.namespace, new)
    _teach_written(context, request, result)
    process.usage().metrics.stored(len(result.stored))
    for item in result.refused:
        error = error_from_code(item.code, f"{item.field}: {item.reason}")
        error.namespace = result.namespace
        process.on_denial(request.operation, error)


def _teach_written(
    context: RequestContext, request: StoreRequest, result: StoreResult
) -> None:
    """Teach what new memories superseded and quote."""
    refused = {item.index for item in result.refused}
    drafts = [
        draft
        for index, draft in enumerate(request.memories)
        if index not in refused and isinstance(draft, Draft)
    ]
    successors = {
        item.id: draft.supersedes
        for item, draft in zip(result.stored, drafts, strict=False)
        if draft.supersedes is not None
    }
    session = request.client_session
    learning.teach_successors(context, session, result.namespace, successors)
    learning.teach_quoted(context, session, *(draft.content for draft in drafts))


def _record_use(
    process: service.Memory,
    context: RequestContext,
    use: str,
    memories: Sequence[tuple[str, UUID]],
) -> None:
    process.usage().record_use(use, memories, caller=context.caller, now=context.now)
