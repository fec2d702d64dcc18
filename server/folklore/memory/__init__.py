"""The memory: its use cases, behind `Memory.call(request, facts)`.

Code outside of this package imports from here alone. What stands in `_MODULES` is imported when it is first used: a
server listens before the driver of the database and numpy are there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from folklore.memory.operations import operation_of as operation_of
from folklore.memory.service import Facts as Facts, Memory as Memory, Service as Service

if TYPE_CHECKING:
    from folklore.memory.auth.authenticator import (
        INVITED as INVITED,
        Issuer as Issuer,
        TokenAuthenticator as TokenAuthenticator,
    )
    from folklore.memory.auth.console_sessions import (
        ConsoleSessions as ConsoleSessions,
        form_token as form_token,
    )
    from folklore.memory.auth.denial_log import Denial as Denial, DenialLog as DenialLog
    from folklore.memory.auth.token_watch import TokenWatch as TokenWatch
    from folklore.memory.auth.tokens import (
        ExternalIdentity as ExternalIdentity,
        authenticate as authenticate,
    )
    from folklore.memory.context import (
        MemoryContext as MemoryContext,
        RequestContext as RequestContext,
    )
    from folklore.memory.context.active_model import (
        ActiveModel as ActiveModel,
        Build as Build,
        ModelSource as ModelSource,
    )
    from folklore.memory.context.pagination import Feed as Feed
    from folklore.memory.context.usage import (
        CallMetrics as CallMetrics,
        UsageQueue as UsageQueue,
        UsageRecorder as UsageRecorder,
    )
    from folklore.memory.models.backfill import Backfill as Backfill, Pace as Pace
    from folklore.memory.namespaces.kept import kept_name as kept_name
    from folklore.memory.operations import import_all as import_all
    from folklore.memory.records.activity import new_events as new_events
    from folklore.memory.records.embedding import embed as embed
    from folklore.memory.upkeep.reflection import (
        compose_reflection as compose_reflection,
    )

_MODULES = {
    # what an application is made of
    "ActiveModel": "context.active_model",
    "Build": "context.active_model",
    "ModelSource": "context.active_model",
    "MemoryContext": "context",
    "RequestContext": "context",
    "CallMetrics": "context.usage",
    "UsageQueue": "context.usage",
    "UsageRecorder": "context.usage",
    "import_all": "operations",
    # who calls
    "INVITED": "auth.authenticator",
    "Issuer": "auth.authenticator",
    "TokenAuthenticator": "auth.authenticator",
    "ConsoleSessions": "auth.console_sessions",
    "form_token": "auth.console_sessions",
    "Denial": "auth.denial_log",
    "DenialLog": "auth.denial_log",
    "TokenWatch": "auth.token_watch",
    "ExternalIdentity": "auth.tokens",
    "authenticate": "auth.tokens",
    # work beside requests
    "Backfill": "models.backfill",
    "Pace": "models.backfill",
    "kept_name": "namespaces.kept",
    "Feed": "context.pagination",
    "new_events": "records.activity",
    "compose_reflection": "upkeep.reflection",
    "embed": "records.embedding",
}


def __getattr__(name: str) -> Any:
    """Import a name of _MODULES at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
