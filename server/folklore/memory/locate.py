"""Find the namespace of a memory that is known by its id alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, NotFound
from folklore.memory.context import MemoryContext


@dataclass(frozen=True, slots=True)
class Places:
    """Where each memory is, and which are nowhere the caller may look."""

    of: Mapping[UUID, NamespaceInfo]
    missing: tuple[UUID, ...]

    def by_namespace(self) -> dict[UUID, list[UUID]]:
        """The memories of each namespace, both in the order of their ids."""
        grouped: dict[UUID, list[UUID]] = {}
        for id_, notebook in sorted(self.of.items()):
            grouped.setdefault(notebook.id, []).append(id_)
        return dict(sorted(grouped.items()))


async def locate(
    library: MemoryContext, ids: Sequence[UUID], *, namespaces: Sequence[str] = (), unforgotten: bool = False
) -> Places:
    """Look the memories up in these namespaces, or in all. Two statements.

    Raises Conflict for an id that an import has brought into several namespaces: which one is meant is not ours to say.
    """
    notebooks = {notebook.id: notebook for notebook in await library.notebooks(namespaces)}
    found = await library.changes.places(list(notebooks), ids, unforgotten=unforgotten)
    for id_, places in found.items():
        if len(places) > 1:
            names = ", ".join(sorted(notebooks[place].name for place in places))
            raise Conflict(
                f"The memory {id_} is in several namespaces: {names}.", hint="Say by namespace which one is meant."
            )
    return Places(
        of={id_: notebooks[place] for id_, (place,) in found.items()},
        missing=tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in found),
    )


async def place_of(library: MemoryContext, id_: UUID, *, namespaces: Sequence[str] = ()) -> NamespaceInfo:
    """The namespace of one memory. Raises NotFound, Conflict."""
    places = await locate(library, [id_], namespaces=namespaces)
    if places.missing:
        raise unknown(places.missing)
    return places.of[id_]


def unknown(ids: Sequence[UUID]) -> NotFound:
    """There are no such memories."""
    shown = ", ".join(str(id_) for id_ in ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return NotFound(f"There is no memory {shown}.", hint="Ids come from recall, search or list.")
