"""Operations: for each request its use case, and the record of its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from folklore.contract.health import (
    BackupsRequest,
    ChecksRequest,
    SizesRequest,
    StatsRequest,
    StatusRequest,
)
from folklore.contract.hooks import (
    HookRequest,
    InjectedRequest,
    PauseRequest,
    StatementsRequest,
)
from folklore.contract.jobs import JobsRequest, RunJobsRequest
from folklore.contract.memories import (
    ForgetRequest,
    GetRequest,
    GetResult,
    HistoryRequest,
    ListRequest,
    RelateRequest,
    RenameTagRequest,
    ResolveRequest,
    StoreRequest,
    StoreResult,
    UndoRequest,
    UpdateRequest,
)
from folklore.contract.models import (
    BackfillRequest,
    DropModelRequest,
    EmbeddingsRequest,
    RecommendModelRequest,
    RestoreModelRequest,
    SwitchModelRequest,
)
from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    EraseNamespaceRequest,
    ListNamespacesRequest,
    MergeNamespacesRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
    ShareNamespaceRequest,
)
from folklore.contract.people import (
    AuditRequest,
    CallerRequest,
    CreateLinkRequest,
    CreateTokenRequest,
    InviteRequest,
    JoinRequest,
    ListTokensRequest,
    RevokeTokensRequest,
)
from folklore.contract.recall import (
    ExplainRequest,
    ListPresetsRequest,
    RecallRequest,
    SearchRequest,
)
from folklore.contract.requests import Request, Returns
from folklore.contract.review import (
    ActivityRequest,
    LogRequest,
    OverviewRequest,
    ReviewRequest,
    UsesRequest,
)
from folklore.errors import error_from_code
from folklore.lazy import Lazy
from folklore.memory.context import RequestContext
from folklore.model import Answer, Draft, Memory

if TYPE_CHECKING:
    from folklore.memory.auth import (
        audit,
        caller,
        console_sessions,
        invitations,
        tokens,
    )
    from folklore.memory.health import checkup, status
    from folklore.memory.hooks import events, injected, stated
    from folklore.memory.models import recommend, switch
    from folklore.memory.namespaces import administration, merge
    from folklore.memory.recall import pipeline, presets, trace
    from folklore.memory.records import (
        activity,
        forget,
        get,
        learning,
        listing,
        overview,
        relate,
        retag,
        review,
        store,
        update,
    )
    from folklore.memory.service import Service
else:  # each is imported at its first call: the first question of a cold server needs few of them
    audit = Lazy("folklore.memory.auth.audit")
    caller = Lazy("folklore.memory.auth.caller")
    console_sessions = Lazy("folklore.memory.auth.console_sessions")
    invitations = Lazy("folklore.memory.auth.invitations")
    tokens = Lazy("folklore.memory.auth.tokens")
    checkup = Lazy("folklore.memory.health.checkup")
    status = Lazy("folklore.memory.health.status")
    events = Lazy("folklore.memory.hooks.events")
    injected = Lazy("folklore.memory.hooks.injected")
    stated = Lazy("folklore.memory.hooks.stated")
    recommend = Lazy("folklore.memory.models.recommend")
    switch = Lazy("folklore.memory.models.switch")
    administration = Lazy("folklore.memory.namespaces.administration")
    merge = Lazy("folklore.memory.namespaces.merge")
    pipeline = Lazy("folklore.memory.recall.pipeline")
    presets = Lazy("folklore.memory.recall.presets")
    trace = Lazy("folklore.memory.recall.trace")
    activity = Lazy("folklore.memory.records.activity")
    forget = Lazy("folklore.memory.records.forget")
    get = Lazy("folklore.memory.records.get")
    learning = Lazy("folklore.memory.records.learning")
    listing = Lazy("folklore.memory.records.listing")
    overview = Lazy("folklore.memory.records.overview")
    relate = Lazy("folklore.memory.records.relate")
    retag = Lazy("folklore.memory.records.retag")
    review = Lazy("folklore.memory.records.review")
    store = Lazy("folklore.memory.records.store")
    update = Lazy("folklore.memory.records.update")

AnyRequest = TypeVar("AnyRequest", bound=Request)


@dataclass(frozen=True, slots=True)
class Operation(Generic[AnyRequest]):
    """An operation: its request, and functions that return its use case and record its result after the answer."""

    request: type[AnyRequest]
    use_case: Callable[[], Callable[[RequestContext, AnyRequest], Awaitable[Any]]]
    record: Callable[[Service, RequestContext, AnyRequest, Any], None] | None = None


def _record_answer(
    service: Service,
    context: RequestContext,
    request: RecallRequest | SearchRequest,
    answer: Answer,
) -> None:
    if request.counted:
        context.memory.recalled.add(answer)
        if isinstance(request, RecallRequest):
            learning.keep_questions(context, request, answer)
        service.usage().record(
            answer, *request.questions, caller=context.caller, now=context.now
        )


def _record_reading(
    service: Service,
    context: RequestContext,
    request: GetRequest,
    result: GetResult,
) -> None:
    read: dict[str, list[UUID]] = {}
    for item in result.found:
        read.setdefault(item.memory.namespace, []).append(item.memory.id)
    for namespace, ids in read.items():
        learning.teach_used(context, request.client_session, namespace, ids)
    _record_use(
        service,
        context,
        "read",
        [(item.memory.namespace, item.memory.id) for item in result.found],
    )


def _record_update(
    service: Service, context: RequestContext, request: UpdateRequest, memory: Memory
) -> None:
    learning.teach_used(context, request.client_session, memory.namespace, [request.id])
    _record_use(service, context, "updated", [(memory.namespace, request.id)])


def _record_store(
    service: Service,
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
        _record_use(service, context, use, [(result.namespace, id_) for id_ in ids])
    new = [item.id for item in result.stored if item.status != "duplicate"]
    session = request.client_session
    learning.teach_used(context, session, result.namespace, confirmed)
    learning.teach_stored(context, session, result.namespace, new)
    _teach_written(context, request, result)
    service.usage().metrics.stored(len(result.stored))
    for item in result.refused:
        error = error_from_code(item.code, f"{item.field}: {item.reason}")
        error.namespace = result.namespace
        service.on_denial(request.operation, error)


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
    service: Service,
    context: RequestContext,
    use: str,
    memories: Sequence[tuple[str, UUID]],
) -> None:
    service.usage().record_use(use, memories, caller=context.caller, now=context.now)


_ALL: tuple[Operation[Any], ...] = (
    Operation(StoreRequest, lambda: store.store, _record_store),
    Operation(RecallRequest, lambda: pipeline.recall, _record_answer),
    Operation(SearchRequest, lambda: pipeline.search, _record_answer),
    Operation(ExplainRequest, lambda: trace.explain),
    Operation(ListPresetsRequest, lambda: presets.list_presets),
    Operation(ListRequest, lambda: listing.list_memories),
    Operation(GetRequest, lambda: get.get_memories, _record_reading),
    Operation(ResolveRequest, lambda: get.resolve_ids),
    Operation(HistoryRequest, lambda: update.read_history),
    Operation(UpdateRequest, lambda: update.update, _record_update),
    Operation(UndoRequest, lambda: update.undo),
    Operation(ForgetRequest, lambda: forget.forget),
    Operation(RelateRequest, lambda: relate.relate),
    Operation(RenameTagRequest, lambda: retag.rename_tag),
    Operation(HookRequest, lambda: events.answer_hook),
    Operation(StatementsRequest, lambda: stated.list_statements),
    Operation(PauseRequest, lambda: stated.pause),
    Operation(InjectedRequest, lambda: injected.read_injected),
    Operation(StatusRequest, lambda: status.read_status),
    Operation(StatsRequest, lambda: status.read_stats),
    Operation(ListNamespacesRequest, lambda: administration.list_namespaces),
    Operation(CreateNamespaceRequest, lambda: administration.create_namespace),
    Operation(RenameNamespaceRequest, lambda: administration.rename_namespace),
    Operation(DescribeNamespaceRequest, lambda: administration.describe_namespace),
    Operation(ShareNamespaceRequest, lambda: administration.share_namespace),
    Operation(DeleteNamespaceRequest, lambda: administration.delete_namespace),
    Operation(MergeNamespacesRequest, lambda: merge.merge_namespaces),
    Operation(EraseNamespaceRequest, lambda: administration.erase_namespace),
    Operation(RestoreNamespaceRequest, lambda: administration.restore_namespace),
    Operation(CreateTokenRequest, lambda: tokens.create_token),
    Operation(InviteRequest, lambda: invitations.invite),
    Operation(JoinRequest, lambda: invitations.join),
    Operation(CreateLinkRequest, lambda: console_sessions.create_link),
    Operation(CallerRequest, lambda: caller.describe_caller),
    Operation(ChecksRequest, lambda: checkup.read_checks),
    Operation(BackupsRequest, lambda: status.read_backups),
    Operation(SizesRequest, lambda: status.read_sizes),
    Operation(JobsRequest, lambda: status.read_jobs),
    Operation(RunJobsRequest, lambda: status.run_jobs),
    Operation(EmbeddingsRequest, lambda: status.read_embeddings),
    Operation(BackfillRequest, lambda: switch.backfill),
    Operation(SwitchModelRequest, lambda: switch.switch_model),
    Operation(RestoreModelRequest, lambda: switch.restore_model),
    Operation(DropModelRequest, lambda: switch.drop_model),
    Operation(RecommendModelRequest, lambda: recommend.recommend_model),
    Operation(ListTokensRequest, lambda: tokens.list_tokens),
    Operation(RevokeTokensRequest, lambda: tokens.revoke_tokens),
    Operation(AuditRequest, lambda: audit.read_audit),
    Operation(LogRequest, lambda: activity.read_log),
    Operation(OverviewRequest, lambda: overview.read_overview),
    Operation(ActivityRequest, lambda: activity.read_activity),
    Operation(UsesRequest, lambda: activity.read_uses),
    Operation(ReviewRequest, lambda: review.read_review),
)
_BY_REQUEST: Mapping[type[Request], Operation[Any]] = {
    operation.request: operation for operation in _ALL
}


def import_all() -> None:
    """Import the module of each operation, so that its first call need not."""
    for operation in _ALL:
        operation.use_case()


def operation_of(request: Returns[Any]) -> Operation[Any]:
    """Return the operation of a request."""
    return _BY_REQUEST[type(request)]  # type: ignore[index]
