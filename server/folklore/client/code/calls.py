"""Calls of operations from a working copy: requests get paths in one spelling, and the present code.

The same for a process that works on the database, one that sends requests to a server, and a bridge that passes an
assistant's calls on as JSON.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from folklore.client.code.git import GitFailed
from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import Anchor, read_anchors
from folklore.contract.compact import JsonDict
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import (
    Changes,
    GetRequest,
    ListRequest,
    StoreRequest,
    UpdateRequest,
)
from folklore.contract.people import CallerRequest
from folklore.contract.requests import without_nulls
from folklore.errors import FolkloreError, InvalidInput
from folklore.model import Draft, Memory, Recalled, Stale
from folklore.text.arguments import is_nothing
from folklore.text.paths import MAX_PATHS, ROOT

Call = Callable[[Any], Awaitable[Any]]
_PAGE = 1_000
# Seconds for all memories of a project; one answer has less.
_SECONDS = 30.0


async def prepare(copy: WorkingCopy, request: Any, call: Call) -> Any:
    """Return a request of a caller who works in this copy, with paths relative to its root, and the present code."""
    if isinstance(request, StoreRequest):
        return await _stored(copy, request)
    if isinstance(request, UpdateRequest):
        return await _updated(copy, request, call)
    if (
        isinstance(filters := getattr(request, "filters", None), FiltersRequest)
        and filters.paths
    ):
        paths = await asyncio.to_thread(_every_spelling, copy, filters.paths)
        return request.model_copy(
            update={"filters": filters.model_copy(update={"paths": paths})}
        )
    return request


async def stale_memories(copy: WorkingCopy, call: Call) -> tuple[Recalled, ...]:
    """Return the memories of this project whose files changed or vanished since, newest first. Raises FolkloreError."""
    results: list[Recalled] = []
    filters = FiltersRequest(paths=(ROOT,))
    cursor = None
    project = (await call(CallerRequest())).namespace or copy.namespace
    while True:
        page = await call(
            ListRequest(
                namespaces=(project,),
                filters=filters,
                limit=_PAGE,
                cursor=cursor,
            )
        )
        memories = [result.memory for result in page.memories]
        marks = await _compared(copy, memories)
        results += [
            Recalled(memory, stale=files)
            for memory, files in zip(memories, marks, strict=True)
            if files
        ]
        cursor = page.cursor
        if cursor is None:
            return tuple(results)


async def confirmation(copy: WorkingCopy, id_: UUID, call: Call) -> UpdateRequest:
    """Return the request that declares a memory true of the present code, under the new paths of moved files.

    Raises FolkloreError.
    """
    memory = (await call(GetRequest(ids=(id_,)))).found[0].memory
    if not memory.paths:
        raise InvalidInput(
            "ID",
            f"{id_} names no path, so it is never stale.",
            hint="`folklore edit` adds paths.",
        )
    if not copy.holds(memory.namespace):
        hint = "Confirm it in a working copy of that project."
        raise InvalidInput(
            "ID", f"{id_} is in {memory.namespace}, not in {copy.namespace}.", hint=hint
        )
    [files] = await _compared(copy, [memory])
    moved = {file.path: file.moved_to for file in files}
    changes = Changes.model_validate(
        {"paths": tuple(moved.get(path) or path for path in memory.paths)}
    )
    return await _updated(copy, UpdateRequest(id=id_, changes=changes), call)


async def _compared(
    copy: WorkingCopy, memories: Sequence[Memory]
) -> list[tuple[Stale, ...]]:
    try:
        return await asyncio.to_thread(
            copy.stale, list(map(Anchor.of, memories)), seconds=_SECONDS
        )
    except GitFailed as error:
        hint = f"Does `git log` work here? It has {_SECONDS:g} seconds for all memories of the project."
        raise FolkloreError(
            f"git cannot compare the memories with the history ({error}).", hint=hint
        ) from error


async def _stored(copy: WorkingCopy, request: StoreRequest) -> StoreRequest:
    about: list[JsonDict] = [
        {"paths": item.paths, "commit": item.commit, "blobs": item.blobs}
        if isinstance(item, Draft)
        else {}
        for item in request.memories
    ]
    tied = await _tied_each(copy, about, request.namespace)
    if tied == about:
        return request
    items = zip(request.memories, tied, strict=True)
    memories = tuple(
        replace(item, **code) if isinstance(item, Draft) else item
        for item, code in items
    )
    return request.model_copy(update={"memories": memories})


async def _updated(
    copy: WorkingCopy, request: UpdateRequest, call: Call
) -> UpdateRequest:
    async def anchor() -> Anchor | None:
        with suppress(FolkloreError):  # the update meets it too
            return Anchor.of(
                (await call(GetRequest(ids=(request.id,)))).found[0].memory
            )
        return None

    code = await _present_code(
        copy, without_nulls(dict(request.changes)), request.clear, anchor
    )
    changes = request.changes.model_copy(update=code)
    return request.model_copy(update={"changes": changes}) if code else request


async def _present_code(
    copy: WorkingCopy,
    stated: Any,
    clear: Collection[str],
    anchor: Callable[[], Awaitable[Anchor | None]],
) -> JsonDict:
    """Return the present code for an update that states paths, a commit or another text: then it is true now.

    `anchor` returns the code that the memory is about.
    """
    if (
        stated.keys().isdisjoint(("content", "paths", "commit"))
        or "blobs" in stated
        or "paths" in clear
    ):
        return {}
    about = await anchor()
    if about is None:
        return {}
    code = {"paths": stated.get("paths", about.paths), "commit": stated.get("commit")}
    [tied] = await _tied_each(copy, [code], about.namespace)
    present = {"paths": tied["paths"]} if "paths" in stated else {}
    return present | {
        name: tied[name]
        for name in ("commit", "blobs")
        if tied.get(name) and name not in clear
    }


def _every_spelling(copy: WorkingCopy, paths: Sequence[str]) -> tuple[str, ...]:
    """Return filters in all their spellings, or in one each if these are too many."""
    spellings = [copy.spellings(path) if path.strip() else (path,) for path in paths]
    every = tuple(dict.fromkeys(spelling for each in spellings for spelling in each))
    if len(every) <= MAX_PATHS:
        return every
    return tuple(each[0] for each in spellings)


# As JSON, for a bridge: it passes on what an assistant sends and gets, and reads neither but for this.


async def tied_json(
    copy: WorkingCopy,
    tool: str,
    arguments: JsonDict,
    read: Callable[[str], Awaitable[object]],
) -> JsonDict:
    """Return the arguments of a tool with paths in their one spelling and the code that memories are about.

    `read` returns the anchors that the server sends for one id. Arguments that are not of the tool's form stay as they
    are: the server names what is wrong.
    """
    filters = arguments.get("filters")
    if isinstance(filters, dict) and _texts(filters.get("paths")):
        paths = await asyncio.to_thread(_every_spelling, copy, filters["paths"])
        arguments = arguments | {"filters": filters | {"paths": paths}}
    if tool == "memory_store" and isinstance(
        memories := arguments.get("memories"), list
    ):
        namespace = arguments.get("namespace")
        if isinstance(namespace, str) and is_nothing(namespace):
            namespace = None
        if isinstance(namespace, str | None):
            return arguments | {"memories": await _tied_each(copy, memories, namespace)}
    if tool == "client_hook" and isinstance(folder := arguments.get("cwd"), str):
        # Paths are relative to the root, wherever in the repository the session is.
        return {**arguments, "cwd": copy.top(folder)}
    if tool == "memory_update":
        id_ = str(arguments.get("id"))
        clear = arguments.get("clear")

        async def anchor() -> Anchor | None:
            return read_anchors(await read(id_)).get(id_)

        return arguments | await _present_code(
            copy, arguments, clear if isinstance(clear, list) else (), anchor
        )
    return arguments


async def _tied_each(
    copy: WorkingCopy, memories: Sequence[Any], namespace: str | None
) -> list[Any]:
    """Return memories of a namespace with the present code, but those that name none, or are not of their form."""
    about = {
        place: code
        for place, memory in enumerate(memories)
        if (code := _stated_code(memory)) is not None
    }
    if not about or not copy.holds(namespace):
        return list(memories)
    tied = list(memories)
    for place, present in zip(
        about, await asyncio.to_thread(copy.tie, list(about.values())), strict=True
    ):
        tied[place] = memories[place] | {
            name: value
            for name in ("paths", "commit", "blobs")
            if (value := getattr(present, name))
        }
    return tied


def _stated_code(memory: object) -> tuple[Sequence[str], str | None] | None:
    if not isinstance(memory, dict) or memory.get("blobs"):
        return None
    paths = memory.get("paths") or ()
    commit = memory.get("commit") or None
    stated = (
        (paths or commit) and isinstance(commit, str | None) and _texts(paths or ("",))
    )
    return (paths, commit) if stated else None


def _texts(value: object) -> bool:
    if not isinstance(value, list | tuple):
        return False
    return 0 < len(value) <= MAX_PATHS and all(
        isinstance(entry, str) for entry in value
    )
