"""What an edge (tools, HTTP, command line) works with: a library that may still be opening, who asks, the time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from folklore.errors import FolkloreError
from folklore.memory.usage_record import Traces
from folklore.model import Caller

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One process's way to the memory.

    `library` waits until database and model are ready and raises Unavailable if they cannot be; `namespace` names
    where to write when the caller does not say; `zone` is what times without an offset are read in; `engine` says whose
    Postgres it is (embedded or server); `retention` is how long what was forgotten can be brought back; `traces` is
    told of every answer that goes out, `refused` of every call that was not let do what it wanted.
    """

    library: Callable[[], Awaitable[MemoryContext]]
    caller: Callable[[], Caller]
    now: Callable[[], datetime]
    namespace: Callable[[], str]
    zone: tzinfo
    engine: str = "server"
    retention: timedelta = timedelta(days=30)
    traces: Traces = field(default_factory=Traces)
    refused: Callable[[str, FolkloreError], None] = lambda _action, _error: None
