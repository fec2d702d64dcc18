"""The caller as this server sees it: for `folklore doctor`, and for an assistant that joined."""

from folklore import __version__
from folklore.callers import Access
from folklore.contract.people import CallerInfo, CallerRequest
from folklore.errors import NotFound
from folklore.memory.context import RequestContext
from folklore.permissions import role_in, stronger
from folklore.text import names


async def describe_caller(
    context: RequestContext, _request: CallerRequest
) -> CallerInfo:
    """Return the caller's name, grants and end of the token, the project of the request, and the server's time."""
    caller = context.caller
    project = context.project()
    grants: tuple[str, ...] = ()
    if caller.access is not None:
        grants = _grants(caller.access)
    role = None
    exists = False
    if project is not None:
        role = role_in(caller, project)
        exists = await _exists(context, project)
    return CallerInfo(
        principal=caller.author,
        owner=caller.access is None,
        grants=grants,
        version=__version__,
        at=context.now,
        may_write=caller.may_write,
        agent=caller.agent,
        expires_at=caller.expires_at,
        token=caller.token,
        namespace=project,
        role=role,
        exists=exists,
    )


def _grants(access: Access) -> tuple[str, ...]:
    """Return the patterns, and the namespaces in which no pattern gives the same role, as --grant takes them."""
    grants = [f"{pattern.prefix}*:{pattern.role}" for pattern in access.patterns]
    for grant in access.grants:
        key = names.key(grant.name)
        roles = [
            pattern.role
            for pattern in access.patterns
            if key.startswith(pattern.prefix)
        ]
        if all(stronger(grant.role, role) for role in roles):
            grants.append(f"{grant.name}:{grant.role}")
    return tuple(grants)


async def _exists(context: RequestContext, namespace: str) -> bool:
    try:
        await context.memory.find_namespace(namespace)
    except NotFound:
        return False
    return True
