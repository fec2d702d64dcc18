"""Operations: for each request its use case, and what records its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
    HistoryRequest,
    ListRequest,
    RelateRequest,
    RenameTagRequest,
    ResolveRequest,
    StoreRequest,
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


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: its request, its use case, and what records its result after the answer.

    Both functions are named by their module within this package, which is imported at the first use: a server has none
    of them when it begins to listen.
    """

    request: type[Request]
    function: str
    recorder: str | None = None

    @property
    def use_case(self) -> Callable[[Any, Any], Awaitable[Any]]:
        """The function that answers a request in its context."""
        return _function(self.function)

    @property
    def record(self) -> Callable[[Any, Any, Any, Any], None]:
        """The function that records a result, where there is one."""
        assert self.recorder is not None
        return _function(self.recorder)


def _function(name: str) -> Callable[..., Any]:
    """Return the function of a name such as `records.store:store`."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(
        import_module(f"folklore.memory.{module}"), function
    )
    return found


_ALL: tuple[Operation, ...] = (
    Operation(StoreRequest, "records.store:store", "recording:record_store"),
    Operation(RecallRequest, "recall.pipeline:recall", "recording:record_answer"),
    Operation(SearchRequest, "recall.pipeline:search", "recording:record_answer"),
    Operation(ExplainRequest, "recall.trace:explain"),
    Operation(ListPresetsRequest, "recall.presets:list_presets"),
    Operation(ListRequest, "records.listing:list_memories"),
    Operation(GetRequest, "records.get:get_memories", "recording:record_reading"),
    Operation(ResolveRequest, "records.get:resolve_ids"),
    Operation(HistoryRequest, "records.update:read_history"),
    Operation(UpdateRequest, "records.update:update", "recording:record_update"),
    Operation(UndoRequest, "records.update:undo"),
    Operation(ForgetRequest, "records.forget:forget"),
    Operation(RelateRequest, "records.relate:relate"),
    Operation(RenameTagRequest, "records.retag:rename_tag"),
    Operation(HookRequest, "hooks.events:answer_hook"),
    Operation(StatementsRequest, "hooks.stated:list_assertions"),
    Operation(PauseRequest, "hooks.stated:pause"),
    Operation(InjectedRequest, "hooks.injected:read_injected"),
    Operation(StatusRequest, "health.status:read_status"),
    Operation(StatsRequest, "health.status:read_stats"),
    Operation(ListNamespacesRequest, "namespaces.administration:list_namespaces"),
    Operation(CreateNamespaceRequest, "namespaces.administration:create_namespace"),
    Operation(RenameNamespaceRequest, "namespaces.administration:rename_namespace"),
    Operation(DescribeNamespaceRequest, "namespaces.administration:describe_namespace"),
    Operation(ShareNamespaceRequest, "namespaces.administration:share_namespace"),
    Operation(DeleteNamespaceRequest, "namespaces.administration:delete_namespace"),
    Operation(MergeNamespacesRequest, "namespaces.merge:merge_namespaces"),
    Operation(EraseNamespaceRequest, "namespaces.administration:erase_namespace"),
    Operation(RestoreNamespaceRequest, "namespaces.administration:restore_namespace"),
    Operation(CreateTokenRequest, "auth.tokens:create_token"),
    Operation(InviteRequest, "auth.invitations:invite"),
    Operation(JoinRequest, "auth.invitations:join"),
    Operation(CreateLinkRequest, "auth.console_sessions:create_link"),
    Operation(CallerRequest, "auth.caller:describe_caller"),
    Operation(ChecksRequest, "health.checkup:read_checks"),
    Operation(BackupsRequest, "health.status:read_backups"),
    Operation(SizesRequest, "health.status:read_sizes"),
    Operation(JobsRequest, "health.status:read_jobs"),
    Operation(RunJobsRequest, "health.status:run_jobs"),
    Operation(EmbeddingsRequest, "health.status:read_embeddings"),
    Operation(BackfillRequest, "models.switch:backfill"),
    Operation(SwitchModelRequest, "models.switch:switch_model"),
    Operation(RestoreModelRequest, "models.switch:restore_model"),
    Operation(DropModelRequest, "models.switch:drop_model"),
    Operation(RecommendModelRequest, "models.recommend:recommend_model"),
    Operation(ListTokensRequest, "auth.tokens:list_tokens"),
    Operation(RevokeTokensRequest, "auth.tokens:revoke_tokens"),
    Operation(AuditRequest, "auth.audit:read_audit"),
    Operation(LogRequest, "records.activity:read_log"),
    Operation(OverviewRequest, "records.overview:read_overview"),
    Operation(ActivityRequest, "records.activity:read_activity"),
    Operation(UsesRequest, "records.activity:read_uses"),
    Operation(ReviewRequest, "records.review:read_review"),
)
_BY_REQUEST: Mapping[type[Request], Operation] = {
    operation.request: operation for operation in _ALL
}


def import_all() -> None:
    """Import the module of each operation, so that its first call need not."""
    for operation in _ALL:
        _function(operation.function)


def operation_of(request: Returns[Any]) -> Operation:
    """Return the operation of a request."""
    return _BY_REQUEST[type(request)]  # type: ignore[index]
