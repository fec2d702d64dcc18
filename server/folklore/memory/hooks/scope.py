"""Scope of a hook: the session, its project, and the namespaces of which notes are injected."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.contract.hooks import HookRequest
from folklore.db.stores.events.audit import NOWHERE
from folklore.db.stores.events.injections import AssistantSession, Injections, Place
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory.context import RequestContext
from folklore.permissions import role_in
from folklore.text import names

# Characters of a session's name that count.
_SESSION = 200


@dataclass(frozen=True, slots=True)
class HookScope:
    """The session of a hook, the name of its project, the namespace of the project if it exists, and those shared.

    `ledger` is None on a read-only server, which records nothing. With `paused`, the person wants silence.
    """

    session: AssistantSession
    project: str | None
    space: NamespaceInfo | None
    shared: Sequence[NamespaceInfo]
    ledger: Injections | None
    paused: bool = False

    @property
    def spaces(self) -> list[NamespaceInfo]:
        """The namespaces with memories of which notes are injected: a note of another project would be noise."""
        project = [] if self.space is None else [self.space]
        return [space for space in (*project, *self.shared) if not space.empty]

    @property
    def ids(self) -> list[UUID]:
        """The ids of those namespaces."""
        return [space.id for space in self.spaces]

    @property
    def place(self) -> Place:
        """The place under which the session is recorded."""
        return Place(
            NOWHERE if self.space is None else self.space.id, self.project or ""
        )


async def place_of(context: RequestContext, project: str) -> Place:
    """Return the place of a project by its name, which need not have a namespace yet. Raises InvalidInput."""
    name = names.normalise(project, field="namespace")
    namespaces = await context.memory.find_namespaces(())
    id_ = next(
        (space.id for space in namespaces if names.key(space.name) == names.key(name)),
        NOWHERE,
    )
    return Place(id_, name)


async def scope_of(context: RequestContext, request: HookRequest) -> HookScope:
    """Find the project of a hook: that of its directory if this machine has it, else the one of the request.

    A session without a name is that of the day, so that its client gets a note at most once a day. Two statements.
    """
    project = await _project_of(context, request)
    key = None if project is None else names.key(names.normalise(project))
    namespaces = await context.memory.find_namespaces(())
    name = (
        request.session[:_SESSION] or f"{context.now.astimezone(context.zone):%Y-%m-%d}"
    )
    session = AssistantSession(context.caller.author, name)
    ledger = Injections(context.memory.root.database)
    return HookScope(
        session=session,
        project=project,
        space=next(
            (space for space in namespaces if names.key(space.name) == key), None
        ),
        shared=[
            space
            for space in namespaces
            if space.shared and names.key(space.name) != key
        ],
        ledger=ledger if context.caller.may_write else None,
        paused=await ledger.paused(**session.columns, now=context.now) is not None,
    )


async def _project_of(context: RequestContext, request: HookRequest) -> str | None:
    project_at = context.project_at if request.directory else None
    if project_at is None:
        project = context.project()
    else:
        project = await project_at(request.directory)
    allowed = (
        project is not None
        and role_in(context.caller, names.normalise(project)) is not None
    )
    return project if allowed else None
