"""Scope of a hook: the session, its project, and the namespaces of which notes are injected."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.contract.hooks import HookRequest
from folklore.db.stores.events.audit import NOWHERE
from folklore.db.stores.events.injections import (
    AssistantSession,
    Injections,
    SessionProject,
)
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory.context import RequestContext
from folklore.permissions import role_in
from folklore.text import names

_LONGEST_NAME = 200  # characters of a session's name that count


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
        candidates = list(self.shared)
        if self.space is not None:
            candidates.insert(0, self.space)
        return [space for space in candidates if not space.empty]

    @property
    def ids(self) -> list[UUID]:
        """The ids of those namespaces."""
        return [space.id for space in self.spaces]

    @property
    def recorded_project(self) -> SessionProject:
        """The project under which the session is recorded."""
        namespace = NOWHERE if self.space is None else self.space.id
        return SessionProject(namespace, self.project or "")


async def project_named(context: RequestContext, project: str) -> SessionProject:
    """Return a project by its name, which need not have a namespace yet. Raises InvalidInput."""
    name = names.normalise(project, field="namespace")
    namespace = _named(name, await context.memory.find_namespaces(()))
    return SessionProject(NOWHERE if namespace is None else namespace.id, name)


async def scope_of(context: RequestContext, request: HookRequest) -> HookScope:
    """Find the project of a hook: that of its directory if this machine has it, else the one of the request.

    A session without a name is that of the day, so that its client gets a note at most once a day. Two statements.
    """
    project = await _project_of(context, request)
    namespaces = await context.memory.find_namespaces(())
    own = None if project is None else _named(names.normalise(project), namespaces)
    today = context.now.astimezone(context.zone)
    session = AssistantSession(
        context.caller.author,
        request.session[:_LONGEST_NAME] or f"{today:%Y-%m-%d}",
    )
    ledger = Injections(context.memory.root.database)
    paused_until = await ledger.paused(**session.columns, now=context.now)
    return HookScope(
        session=session,
        project=project,
        space=own,
        shared=[space for space in namespaces if space.shared and space is not own],
        ledger=ledger if context.caller.may_write else None,
        paused=paused_until is not None,
    )


def _named(name: str, namespaces: Sequence[NamespaceInfo]) -> NamespaceInfo | None:
    """Return the namespace of this name, whatever its case."""
    key = names.key(name)
    for namespace in namespaces:
        if names.key(namespace.name) == key:
            return namespace
    return None


async def _project_of(context: RequestContext, request: HookRequest) -> str | None:
    """Return the name of the project, None without one or without a right to it."""
    if request.directory and context.project_at is not None:
        project: str | None = await context.project_at(request.directory)
    else:
        project = context.project()
    if project is None or role_in(context.caller, names.normalise(project)) is None:
        return None
    return project
