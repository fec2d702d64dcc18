"""Lookup of the namespace that holds a memory, by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, NotFound
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.permissions import require
from folklore.model import Role


@dataclass(frozen=True, slots=True)
class Located:
    """The namespace of each memory, and the ids that no readable namespace holds."""

    namespaces: Mapping[UUID, NamespaceInfo]
    missing: tuple[UUID, ...]

    def by_namespace(self) -> dict[UUID, list[UUID]]:
        """Return the memories of each namespace, both in the order of their ids."""
        grouped: dict[UUID, list[UUID]] = {}
        for id_, namespace in sorted(self.namespaces.items(), key=lambda item: item[0]):
            grouped.setdefault(namespace.id, []).append(id_)
        return dict(sorted(grouped.items()))


async def locate(
    memory: MemoryContext, ids: Sequence[UUID], *, namespaces: Sequence[str] = (), unforgotten: bool = False
) -> Located:
    """Find memories in these namespaces, or in all. Two statements.

    Raises Conflict for an id that an import brought into several namespaces.
    """
    searched = {namespace.id: namespace for namespace in await memory.find_namespaces(namespaces)}
    found = await memory.changes.places(list(searched), ids, unforgotten=unforgotten)
    for id_, places in found.items():
        if len(places) > 1:
            names = ", ".join(sorted(searched[place].name for place in places))
            raise Conflict(f"The memory {id_} is in several namespaces: {names}.", hint="Name one of them.")
    return Located(
        namespaces={id_: searched[place] for id_, (place,) in found.items()},
        missing=tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in found),
    )


async def namespace_of(
    context: RequestContext, id_: UUID, *, namespaces: Sequence[str] = (), role: Role = "reader"
) -> NamespaceInfo:
    """Return the namespace of a memory in which the caller has this role. Raises NotFound, Conflict, Refused."""
    located = await locate(context.memory, [id_], namespaces=namespaces)
    if located.missing:
        raise unknown_memories(located.missing)
    namespace = located.namespaces[id_]
    require(context.caller, namespace.name, role)
    return namespace


def unknown_memories(ids: Sequence[UUID]) -> NotFound:
    """Make the error for ids that no readable namespace holds."""
    shown = ", ".join(str(id_) for id_ in ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return NotFound(f"There is no memory {shown}.", hint="Ids come from recall, search or list.")
