"""A memory: its text and fields, relations, history and uses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from math import cos, pi, sin
from typing import Any
from uuid import UUID

from starlette.responses import Response

from folklore.contract.endings import whole_ids
from folklore.contract.ids import id_or_ending
from folklore.contract.memories import (
    GetRequest,
    History,
    HistoryRequest,
    MemoryDetails,
    record_json,
)
from folklore.contract.review import UsesRequest
from folklore.errors import InvalidInput, NotFound
from folklore.model import FIELDS, VISIBLE, Memory, Relation, Revision
from folklore.permissions import role_in
from folklore.server.console.visit import Visit
from folklore.text.difference import Part, changed_lines

# Neighbours that the graph shows; the list has all.
_IN_GRAPH = 10
# Related memories whose texts are read, uses that are shown.
_READ = 100
_USES = 20
_WIDTH = 640
_HEIGHT = 300
_RADIUS_X = 235
_RADIUS_Y = 110
_LABEL = 28
_IDS = "Ids come from recall, search or list."
# Fields that the page shows elsewhere than in the list of fields.
_APART = ("id", "content", "tags", "kind", "pinned")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Related memory, if the caller may read it, with its position in the graph."""

    relation: Relation
    outgoing: bool
    id: UUID
    memory: Memory | None
    x: int = 0
    y: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A revision, and how each field differed: its name, and its lines with a sign, in parts."""

    revision: Revision
    fields: Sequence[tuple[str, Sequence[tuple[str, Sequence[Part]]]]]


async def show(visit: Visit) -> Response:
    """Show a memory."""
    details = await read(visit)
    memory = details.memory
    history = await visit.call(
        HistoryRequest(id=memory.id, namespaces=(memory.namespace,))
    )
    return await visit.render(
        "memory.html",
        memory=memory,
        fields=list(_fields(memory)),
        neighbours=await _neighbours(visit, details),
        may_undo=bool(history.revisions),
        changes=shown_changes(history),  # compared when the template reads them
        uses=await visit.call(
            UsesRequest(id=memory.id, namespaces=(memory.namespace,), limit=_USES)
        ),
        may_write=role_in(visit.caller, memory.namespace) in ("writer", "admin"),
        may_erase=role_in(visit.caller, memory.namespace) == "admin",
        most_cues=FIELDS["cues"].most,
        longest_cue=FIELDS["cues"].limit,
        width=_WIDTH,
        height=_HEIGHT,
    )


async def memory_id(visit: Visit, text: str) -> UUID:
    """Return the id that an address or a form names, whole or by its end. Raises NotFound, InvalidInput."""
    try:
        named = id_or_ending(text, "ID", _IDS)
    except InvalidInput:  # as for an id that no memory has
        raise NotFound(f"There is no memory {text[:60]}.", hint=_IDS) from None
    return (await whole_ids(visit.service, [named], hint=_IDS))[0]


async def read(visit: Visit) -> MemoryDetails:
    """Read the memory that the address names, a forgotten one too. Raises NotFound, InvalidInput."""
    ids = (await memory_id(visit, visit.request.path_params["id"]),)
    return (await visit.call(GetRequest(ids=ids, forgotten=True))).found[0]


def _fields(memory: Memory) -> Iterator[tuple[str, str | datetime]]:
    """Yield the fields that have a value, stated ones first, each with a text or a time."""
    others = [field.name for field in fields(Memory) if field.name not in FIELDS]
    for name in (*VISIBLE, *others):
        value = getattr(memory, name)
        is_default = name in FIELDS and value == FIELDS[name].default
        if name in _APART or is_default or value in (None, (), "", False):
            continue
        if isinstance(value, datetime):
            yield name.replace("_", " "), value
        else:
            yield name.replace("_", " "), _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False, default=str)
    return str(value)


async def _neighbours(visit: Visit, details: MemoryDetails) -> list[Neighbour]:
    """Return the related memories, around the middle of the graph."""
    ids = [
        relation.to_id if _is_outgoing(relation, details) else relation.from_id
        for relation in details.relations
    ]
    memories = await _known(visit, ids)
    drawn = min(len(ids), _IN_GRAPH)
    neighbours = []
    for index, (relation, id_) in enumerate(zip(details.relations, ids, strict=True)):
        memory = memories.get(id_)
        if memory is None:
            label = "forgotten"
        else:
            label = _short(memory.summary or memory.content)
        angle = 2 * pi * index / drawn - pi / 2
        neighbours.append(
            Neighbour(
                relation,
                _is_outgoing(relation, details),
                id_,
                memory,
                x=round(_WIDTH / 2 + _RADIUS_X * cos(angle)),
                y=round(_HEIGHT / 2 + _RADIUS_Y * sin(angle)),
                label=label,
            )
        )
    return neighbours


def _is_outgoing(relation: Relation, details: MemoryDetails) -> bool:
    return relation.from_id == details.memory.id


async def _known(visit: Visit, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """Return those of the memories that the caller may read, by id."""
    if not ids:
        return {}
    unique = tuple(dict.fromkeys(ids))
    try:
        details = (await visit.call(GetRequest(ids=unique[:_READ]))).found
    except NotFound:
        return {}
    return {item.memory.id: item.memory for item in details}


def _short(text: str) -> str:
    line = " ".join(text[:200].split())
    if len(line) <= _LABEL:
        return line
    return f"{line[:_LABEL]}…"


def shown_changes(history: History) -> Iterator[Change]:
    """Yield the changes, the last one first: the values before each, compared with those after it."""
    following: dict[str, Any] = record_json(history.memory)
    for revision in history.revisions:
        changed = []
        for name, before in revision.before.items():
            if name not in VISIBLE:
                continue
            lines = list(changed_lines(_plain(before), _plain(following.get(name))))
            if lines:
                changed.append((name.replace("_", " "), lines))
        yield Change(revision, changed)
        following |= revision.before
