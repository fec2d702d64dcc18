"""What an edge (tools, HTTP, command line) works with: a library that may still be opening, who asks, the time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from folklore.errors import FolkloreError
from folklore.memory.usage import UsageRecorder
from folklore.model import Caller

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One process's way to the memory.

    `library` waits until database and model are ready and raises Unavailable if they cannot be; `namespace` returns
    the current namespace, for writes that name none, and raises InvalidInput if no source names one; `zone` applies to
    times without an offset; `engine` is the kind of Postgres (embedded or server); `retention` is how long a forgotten
    memory can be restored; `usage` records every answer, `refused` every call that was denied.
    """

    library: Callable[[], Awaitable[MemoryContext]]
    caller: Callable[[], Caller]
    now: Callable[[], datetime]
    namespace: Callable[[], str]
    zone: tzinfo
    engine: str = "server"
    retention: timedelta = timedelta(days=30)
    usage: UsageRecorder = field(default_factory=UsageRecorder)
    refused: Callable[[str, FolkloreError], None] = lambda _action, _error: None
