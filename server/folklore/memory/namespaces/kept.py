"""Projects whose memory has the name of an earlier version, which left out the host and the path: it stays there."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from folklore.errors import FolkloreError
from folklore.memory.context import RequestContext
from folklore.permissions import role_in
from folklore.text import names


async def with_kept_names(context: RequestContext) -> RequestContext:
    """Return a context whose projects are in the namespaces that have their memory. Raises DatabaseUnavailable."""
    at = context.project_at
    if at is not None:
        context = replace(context, project_at=_kept_at(context, at))
    try:
        project = context.project()
    except FolkloreError:  # raised again where the project is needed
        return context
    if project is None or names.former(project) is None:
        return context
    kept = await kept_name(context, project)
    return replace(context, project=lambda: kept, namespace=lambda: kept)


async def kept_name(context: RequestContext, project: str) -> str:
    """Return the namespace that has the memory of a project: its own, or that of its former name if that exists.

    A project without memory begins under its own name, or under the former one if the caller's grants open that alone.
    At most one statement; none for a project whose own namespace was seen in the last minute.
    """
    former = names.former(project)
    if former is None or context.memory.namespaces.has(project):
        return project
    found = await context.memory.root.namespaces.project(
        project, former, folder=names.is_of_folder(project)
    )
    caller = context.caller
    opened = [
        name for name in (found or project, project, former) if role_in(caller, name)
    ]
    return opened[0] if opened else project


def _kept_at(
    context: RequestContext, at: Callable[[str], Awaitable[str]]
) -> Callable[[str], Awaitable[str]]:
    async def project_at(directory: str) -> str:
        return await kept_name(context, await at(directory))

    return project_at
