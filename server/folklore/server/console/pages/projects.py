"""Projects: all that the visitor may see; for the owner also how to create, restore and import."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from starlette.responses import Response

from folklore.callers import Role
from folklore.contract.namespaces import (
    CreateNamespaceRequest,
    ListNamespacesRequest,
    RestoreNamespaceRequest,
)
from folklore.contract.transfer import ImportRequest
from folklore.errors import InvalidInput
from folklore.importers.json_lines import json_lines
from folklore.model import Namespace
from folklore.permissions import require_owner, role_in
from folklore.server.console.visit import Visit

_PROJECTS = 50


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the visitor's role in it."""

    namespace: Namespace
    role: Role


@dataclass(frozen=True, slots=True)
class Projects:
    """A page of the projects, those with most memories first; the pages begin with 1."""

    rows: Sequence[Project]
    total: int
    memories: int
    page: int
    pages: int

    @classmethod
    def of(cls, visit: Visit, namespaces: Sequence[Namespace], size: int) -> Projects:
        """Return the page that the address names, or the last one."""
        pages = max(1, ceil(len(namespaces) / size))
        page = 1
        number = visit.query.get("projects", "")
        if number.isascii() and number.isdigit() and len(number) < 7:
            page = min(max(int(number), 1), pages)
        first = (page - 1) * size
        rows = []
        for namespace in sorted(namespaces, key=_by_size)[first : first + size]:
            role = role_in(visit.caller, namespace.name) or "reader"
            rows.append(Project(namespace, role))
        memories = sum(namespace.memories or 0 for namespace in namespaces)
        return cls(rows, len(namespaces), memories, page, pages)


async def show(visit: Visit) -> Response:
    """Show the projects whose names hold the words of the address, and to the owner the deleted ones."""
    words = visit.query.get("q", "").casefold().split()
    namespaces = await visit.call(ListNamespacesRequest())
    for word in words:
        namespaces = tuple(
            namespace for namespace in namespaces if word in namespace.name.casefold()
        )
    deleted: tuple[Namespace, ...] = ()
    if visit.is_owner:
        deleted = await visit.call(ListNamespacesRequest(deleted=True))
    return await visit.render(
        "projects.html",
        projects=Projects.of(visit, namespaces, _PROJECTS),
        deleted=deleted,
        words=" ".join(words),
    )


def _by_size(namespace: Namespace) -> tuple[int, str]:
    return -(namespace.memories or 0), namespace.name


async def create(visit: Visit) -> Response:
    """Create an empty project, and show it."""
    form = visit.form
    request = CreateNamespaceRequest(
        name=form.get("name", ""),
        language=form.get("language") or None,
        description=form.get("description") or None,
    )
    name = await visit.call(request)
    return visit.redirect("project", notice="created", project=name)


async def restore(visit: Visit) -> Response:
    """Restore a deleted project, and show it."""
    name = await visit.call(RestoreNamespaceRequest(name=visit.form.get("project", "")))
    return visit.redirect("project", notice="restored", project=name)


async def show_import(visit: Visit) -> Response:
    """Show the form of an import."""
    require_owner(visit.caller)
    return await visit.render(
        "import.html", report=None, dry_run=False, project="", on_conflict="skip"
    )


async def import_file(visit: Visit) -> Response:
    """Import the lines of a file, or count what an import would do; authors and times are those of the file."""
    require_owner(visit.caller)
    form = visit.form
    content = form.get("file", "")
    project = form.get("project", "").strip()
    dry_run = form.get("dry_run") == "1"
    if not content.strip():
        raise InvalidInput("file", "is empty.", hint="Choose an export of Folklore.")
    request = ImportRequest.model_validate(
        {
            "namespace": project or None,
            "on_conflict": form.get("on_conflict", "skip"),
            "dry_run": dry_run,
        }
    )
    lines = json_lines(io.BytesIO(content.encode()))
    await visit.service.memory.import_lines(lines, request, visit.service.facts())
    return await visit.render(
        "import.html",
        report=request.report,
        dry_run=dry_run,
        project=project,
        on_conflict=request.on_conflict,
    )
