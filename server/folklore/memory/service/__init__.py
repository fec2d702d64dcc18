"""The application service: one entry for the MCP tools, the command line and the HTTP API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from folklore.errors import FolkloreError, error_from_code
from folklore.memory import requests
from folklore.memory.results import StoreResult
from folklore.memory.service.code import mark, prepare
from folklore.model import Caller, Draft, Unreadable

if TYPE_CHECKING:  # imports the database driver
    from folklore.memory.context import RequestContext
    from folklore.memory.usage import UsageRecorder


_IMPORTED = ("id", "author", "created_at", "position")


def _without_imported(draft: Draft | Unreadable) -> Draft | Unreadable:
    """Return a draft, or the field in it that only an import may state."""
    stated = next((name for name in _IMPORTED if getattr(draft, name, None) is not None), None)
    return draft if stated is None else Unreadable(stated, "is set by the server. Only an import may state it.")


class Operations(Protocol):
    """The operations of this process, or those of a server over HTTP."""

    async def call(self, request: requests.Returns[requests.Result]) -> requests.Result:
        """Run an operation. Raises FolkloreError."""


def _ignore(_operation: str, _error: FolkloreError) -> None:
    """Log no denied access: the caller is the user who runs the process."""


@dataclass(frozen=True, slots=True)
class Service:
    """The operations of one process.

    `open` returns the context of the current request; it waits until database and model are ready and raises
    Unavailable if they cannot be. `caller` and `namespace` describe the current request without waiting. `denied`
    receives every error, for the audit log.
    """

    open: Callable[[], Awaitable[RequestContext]]
    caller: Callable[[], Caller]
    namespace: Callable[[], str]
    usage: Callable[[], UsageRecorder]
    denied: Callable[[str, FolkloreError], None] = _ignore

    async def call(self, request: requests.Returns[requests.Result]) -> requests.Result:
        """Run an operation: open the context of its caller and call its use case. Raises FolkloreError."""
        operation = cast("requests.Request", request).operation
        try:
            context = await self.open()
            # Imported here, so that a server lists its tools before the driver and numpy are there.
            from folklore.memory.service.operations import use_case

            if context.copy is not None:
                request = await prepare(context.copy, request, self.call)
            if isinstance(request, requests.StoreRequest):
                request = self._prepared(request, context)
            result = await use_case(operation)(context, request)
        except FolkloreError as error:
            self.denied(operation, error)
            raise
        self._record(request, result, context)
        return cast("requests.Result", result if context.copy is None else await mark(context.copy, result))

    def _prepared(self, request: requests.StoreRequest, context: RequestContext) -> Any:
        namespace = context.namespace() if request.namespace is None else request.namespace
        memories = tuple(map(_without_imported, self.usage().unquote(namespace, request.memories)))
        return request.model_copy(update={"namespace": namespace, "memories": memories})

    def _record(self, request: object, result: Any, context: RequestContext) -> None:
        if isinstance(request, requests.RecallRequest | requests.SearchRequest):
            if not request.counted:
                return
            several = request.queries if isinstance(request, requests.RecallRequest) else ()
            queries = several or (request.query or "",)
            self.usage().record(result, *queries, caller=context.caller, now=context.now)
        elif isinstance(request, requests.GetRequest):
            read = [(item.memory.namespace, item.memory.id) for item in result.found]
            self.usage().record_use("read", read, caller=context.caller, now=context.now)
        elif isinstance(request, requests.UpdateRequest):
            self.usage().record_use("updated", [(result.namespace, request.id)], caller=context.caller, now=context.now)
        elif isinstance(request, requests.StoreRequest):
            self.usage().metrics.stored(len(result.stored))
            self._record_stored_again(request, result, context)
            for item in result.refused:
                self.denied(request.operation, error_from_code(item.code, f"{item.field}: {item.reason}"))

    def _record_stored_again(
        self, request: requests.StoreRequest, result: StoreResult, context: RequestContext
    ) -> None:
        """Record the memories that a store confirmed or superseded."""
        confirmed = [item.id for item in result.stored if item.status == "duplicate"]
        superseded = [draft.supersedes for draft in request.memories if isinstance(draft, Draft) and draft.supersedes]
        for used, ids in (("confirmed", confirmed), ("superseded", superseded)):
            memories = [(result.namespace, id_) for id_ in ids]
            self.usage().record_use(used, memories, caller=context.caller, now=context.now)
