"""Project: its counts and settings, with its tags, its export, and the changes of the whole of it."""

from collections.abc import Mapping
from uuid import UUID

from starlette.responses import Response

from folklore.contract.health import StatsRequest
from folklore.contract.memories import RenameTagRequest
from folklore.contract.namespaces import (
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    EraseNamespaceRequest,
    ListNamespacesRequest,
    MergeNamespacesRequest,
    RenameNamespaceRequest,
    ShareNamespaceRequest,
)
from folklore.errors import InvalidInput, NotFound
from folklore.model import Namespace
from folklore.permissions import require, require_owner, role_in
from folklore.server.console.visit import Visit
from folklore.text import names


async def show(visit: Visit) -> Response:
    """Show a project with exact counts."""
    project = await _project(visit)
    statistics = await visit.call(StatsRequest(namespaces=(project.name,)))
    return await visit.render(
        "project.html",
        project=project,
        role=role_in(visit.caller, project.name) or "reader",
        counts=statistics.namespaces[0],
    )


async def rename(visit: Visit) -> Response:
    """Rename a project."""
    name = await visit.call(
        RenameNamespaceRequest(name=_name(visit), to=visit.form.get("to", ""))
    )
    return visit.redirect("project", notice="renamed", project=name)


async def describe(visit: Visit) -> Response:
    """Set the description of a project, or remove it."""
    description = visit.form.get("description", "").strip() or None
    await visit.call(
        DescribeNamespaceRequest(name=_name(visit), description=description)
    )
    return visit.redirect("project", notice="saved", project=_name(visit))


async def share(visit: Visit) -> Response:
    """Search a project in every project too, or no longer."""
    await visit.call(
        ShareNamespaceRequest(name=_name(visit), off=visit.form.get("shared") != "1")
    )
    return visit.redirect("project", notice="saved", project=_name(visit))


async def ask_rename_tag(visit: Visit) -> Response:
    """Show which tags would get which names, on how many memories."""
    request = _tag_request(visit, dry_run=True)
    return await visit.render(
        "project_tag.html", request=request, done=await visit.call(request)
    )


async def rename_tag(visit: Visit) -> Response:
    """Rename a tag, or take that back."""
    request = _tag_request(visit)
    await visit.call(request)
    notice = "undone" if request.undo else "retagged"
    return visit.redirect("project", notice=notice, project=_name(visit))


async def ask_merge(visit: Visit) -> Response:
    """Show what moving all memories into another project would do; an undo is shown without a preview."""
    request = _merge_request(visit)
    preview = None
    if not request.undo:
        preview = await visit.call(request.model_copy(update={"dry_run": True}))
    return await visit.render("project_merge.html", request=request, preview=preview)


async def merge(visit: Visit) -> Response:
    """Move all memories into another project, or take that back."""
    request = _merge_request(visit)
    await visit.call(request)
    if request.undo:
        return visit.redirect("project", notice="undone", project=request.name)
    return visit.redirect("project", notice="merged", project=request.into)


async def ask_delete(visit: Visit) -> Response:
    """Show what deleting a project would do."""
    project = await _project(visit)
    require(visit.caller, project.name, "admin")
    return await visit.render("project_delete.html", project=project)


async def delete(visit: Visit) -> Response:
    """Delete a project; the owner can restore it for a while."""
    await visit.call(DeleteNamespaceRequest(name=_name(visit)))
    return visit.redirect("projects", notice="deleted")


async def ask_erase(visit: Visit, error: InvalidInput | None = None) -> Response:
    """Show what erasing a project would do."""
    require_owner(visit.caller)
    preview = await visit.call(EraseNamespaceRequest(name=_name(visit), dry_run=True))
    return await visit.render("project_erase.html", preview=preview, error=error)


async def erase(visit: Visit) -> Response:
    """Erase exactly what was shown, after the word was typed."""
    require_owner(visit.caller)
    if (error := visit.wrong_word("erase")) is not None:
        return await ask_erase(visit, error)
    try:
        only = tuple(UUID(id_) for id_ in visit.form.getlist("id"))
    except ValueError:
        raise InvalidInput(
            "id", "does not name a project.", hint="Reload the page."
        ) from None
    await visit.call(EraseNamespaceRequest(name=_name(visit), only=only))
    return visit.redirect("projects", notice="erased")


async def _project(visit: Visit) -> Namespace:
    """Return the project that the address names. Raises NotFound."""
    key = names.key(names.normalise(_name(visit), field="project"))
    for item in await visit.call(ListNamespacesRequest()):
        if names.key(item.name) == key:
            return item
    raise NotFound(
        f"There is no project {_name(visit)!r}.",
        hint="The page Projects has all that you may see.",
    )


def _name(visit: Visit) -> str:
    return visit.form.get("project") or visit.query.get("project", "")


def _parameters(visit: Visit) -> Mapping[str, str]:
    """Return the fields of the form, or the parameters of the address without one."""
    return visit.form or visit.query


def _tag_request(visit: Visit, *, dry_run: bool = False) -> RenameTagRequest:
    parameters = _parameters(visit)
    return RenameTagRequest(
        tag=parameters.get("tag", ""),
        to=parameters.get("to", ""),
        namespace=_name(visit),
        undo=parameters.get("undo") == "1",
        dry_run=dry_run,
    )


def _merge_request(visit: Visit) -> MergeNamespacesRequest:
    parameters = _parameters(visit)
    return MergeNamespacesRequest(
        name=_name(visit),
        into=parameters.get("into", ""),
        undo=parameters.get("undo") == "1",
    )
