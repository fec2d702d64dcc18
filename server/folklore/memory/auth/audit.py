"""The audit log for people."""

from folklore.callers import AuditEntry
from folklore.contract.operations import OPERATIONS
from folklore.contract.people import AuditRequest
from folklore.db.stores.events.audit import NOWHERE, WRITES, Audit
from folklore.errors import InvalidInput, NotFound, Refused
from folklore.memory.auth.tokens import period, principal_of
from folklore.memory.context import RequestContext
from folklore.permissions import require

# Actions under which denied accesses are logged, besides operations.
_PATHS = (
    "http /mcp",
    "http /sse",
    "http /messages/",
    "http /api/",
    "http /metrics",
    "http other",
    "api",
    "export",
)


async def read_audit(
    context: RequestContext, request: AuditRequest
) -> tuple[AuditEntry, ...]:
    """Return the latest entries, newest first: to the owner, or to an administrator of the namespaces named.

    Raises InvalidInput, NotFound, Refused.
    """
    _check_action(request.action)
    if not request.namespaces and context.caller.access is not None:
        hint = "Name the namespaces that you administer, as in `folklore audit --namespace NAME`."
        raise Refused(
            "Only the owner of this deployment reads the whole audit log.", hint=hint
        )
    namespaces = await context.memory.find_namespaces(request.namespaces)
    for namespace in namespaces:
        require(context.caller, namespace.name, "admin", dry_run=True)
    ids = [namespace.id for namespace in namespaces]
    if not request.namespaces:
        ids.append(NOWHERE)
    audit = Audit(context.memory.root.database)
    after_at = None
    if request.after is not None:
        after_at = await audit.time(namespaces=ids, id=request.after)
        if after_at is None:
            raise NotFound(
                "The last entry of the page before is no longer there.",
                hint="Begin at the first page.",
            )
    principal = principal_of(request.principal)
    since = None
    if request.since is not None:
        since = context.now - period(request.since, "since")
    entries = await audit.read(
        namespaces=ids,
        fetch=request.limit,
        principal=principal,
        refused=request.denied,
        action=request.action,
        since=since,
        after_at=after_at,
        after_id=request.after,
    )
    return tuple(entries)


def _check_action(action: str | None) -> None:
    if action is None or action in WRITES:
        return
    operations = [name for name in OPERATIONS if name not in WRITES]
    actions = dict.fromkeys([*_PATHS, *operations])
    if action not in actions:
        hint = f"Writes are {', '.join(WRITES)}; denied accesses are logged under the operation: {', '.join(actions)}."
        raise InvalidInput("action", f"{action[:60]!r} is never logged.", hint=hint)
