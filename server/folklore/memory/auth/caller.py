"""The caller as this server sees it: for `folklore doctor`, and for an assistant that joined."""

from folklore import __version__
from folklore.contract.people import CallerInfo, CallerRequest
from folklore.errors import NotFound
from folklore.memory.context import RequestContext
from folklore.model import Access
from folklore.permissions import role_in, stronger
from folklore.text import names


async def describe_caller(
    context: RequestContext, _request: CallerRequest
) -> CallerInfo:
    """Return the caller's name, grants and end of the token, the project of the request, and the server's time."""
    caller = context.caller
    project = context.project()
    return CallerInfo(
        principal=caller.author,
        owner=caller.access is None,
        grants=() if caller.access is None else _grants(caller.access),
        version=__version__,
        at=context.now,
        may_write=caller.may_write,
        agent=caller.agent,
        expires_at=caller.expires_at,
        token=caller.token,
        namespace=project,
        role=None if project is None else role_in(caller, project),
        exists=project is not None and await _exists(context, project),
    )


def _grants(access: Access) -> tuple[str, ...]:
    """Return the patterns, and the namespaces in which no pattern gives the same role, as --grant takes them."""
    patterns = [f"{pattern.prefix}*:{pattern.role}" for pattern in access.patterns]
    by_name = [
        f"{grant.name}:{grant.role}"
        for grant in access.grants
        if all(
            stronger(grant.role, pattern.role)
            for pattern in access.patterns
            if names.key(grant.name).startswith(pattern.prefix)
        )
    ]
    return (*patterns, *by_name)


async def _exists(context: RequestContext, namespace: str) -> bool:
    try:
        await context.memory.find_namespace(namespace)
    except NotFound:
        return False
    return True
