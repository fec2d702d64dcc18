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
        return await _with_code(copy, request)
    if isinstance(request, UpdateRequest):
        return await _updated(copy, request, call)
    filters = getattr(request, "filters", None)
    if isinstance(filters, FiltersRequest) and filters.paths:
        paths = await asyncio.to_thread(_spellings, copy, filters.paths)
        filters = filters.model_copy(update={"paths": paths})
        return request.model_copy(update={"filters": filters})
    return request


async def stale_memories(copy: WorkingCopy, call: Call) -> tuple[Recalled, ...]:
    """Return the memories of this project whose files changed or vanished since, newest first. Raises FolkloreError."""
    project = (await call(CallerRequest())).namespace or copy.namespace
    request = ListRequest(
        namespaces=(project,), filters=FiltersRequest(paths=(ROOT,)), limit=_PAGE
    )
    results: list[Recalled] = []
    while True:
        page = await call(request)
        memories = [result.memory for result in page.memories]
        changed_files = await _compared(copy, memories)
        for memory, files in zip(memories, changed_files, strict=True):
            if files:
                results.append(Recalled(memory, stale=files))
        if page.cursor is None:
            return tuple(results)
        request = request.model_copy(update={"cursor": page.cursor})


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
    paths = tuple(moved.get(path) or path for path in memory.paths)
    changes = Changes.model_validate({"paths": paths})
    return await _updated(copy, UpdateRequest(id=id_, changes=changes), call)


async def _compared(
    copy: WorkingCopy, memories: Sequence[Memory]
) -> list[tuple[Stale, ...]]:
    anchors = [Anchor.of(memory) for memory in memories]
    try:
        return await asyncio.to_thread(copy.stale, anchors, seconds=_SECONDS)
    except GitFailed as error:
        hint = f"Does `git log` work here? It has {_SECONDS:g} seconds for all memories of the project."
        raise FolkloreError(
            f"git cannot compare the memories with the history ({error}).", hint=hint
        ) from error


async def _with_code(copy: WorkingCopy, request: StoreRequest) -> StoreRequest:
    about: list[JsonDict] = []
    for memory in request.memories:
        if isinstance(memory, Draft):
            about.append(
                {"paths": memory.paths, "commit": memory.commit, "blobs": memory.blobs}
            )
        else:
            about.append({})
    tied = await _tied_each(copy, about, request.namespace)
    if tied == about:
        return request
    memories = list(request.memories)
    for index, memory in enumerate(memories):
        if isinstance(memory, Draft):
            memories[index] = replace(memory, **tied[index])
    return request.model_copy(update={"memories": tuple(memories)})


async def _updated(
    copy: WorkingCopy, request: UpdateRequest, call: Call
) -> UpdateRequest:
    async def anchor() -> Anchor | None:
        with suppress(FolkloreError):  # the update meets it too
            details = (await call(GetRequest(ids=(request.id,)))).found[0]
            return Anchor.of(details.memory)
        return None

    stated = without_nulls(dict(request.changes))
    code = await _present_code(copy, stated, request.clear, anchor)
    if not code:
        return request
    changes = request.changes.model_copy(update=code)
    return request.model_copy(update={"changes": changes})


async def _present_code(
    copy: WorkingCopy,
    stated: Any,
    clear: Collection[str],
    anchor: Callable[[], Awaitable[Anchor | None]],
) -> JsonDict:
    """Return the present code for an update that states paths, a commit or another text: then it is true now.

    `anchor` returns the code that the memory is about.
    """
    is_about_code = not stated.keys().isdisjoint(("content", "paths", "commit"))
    if not is_about_code or "blobs" in stated or "paths" in clear:
        return {}
    about = await anchor()
    if about is None:
        return {}
    code = {"paths": stated.get("paths", about.paths), "commit": stated.get("commit")}
    [tied] = await _tied_each(copy, [code], about.namespace)
    present = {}
    if "paths" in stated:
        present["paths"] = tied["paths"]
    for name in ("commit", "blobs"):
        if tied.get(name) and name not in clear:
            present[name] = tied[name]
    return present


def _spellings(copy: WorkingCopy, paths: Sequence[str]) -> tuple[str, ...]:
    """Return all spellings of the paths of a filter; of each the likeliest alone if these are too many."""
    likeliest = []
    spellings: dict[str, None] = {}
    for path in paths:
        of_path = copy.spellings(path) if path.strip() else (path,)
        likeliest.append(of_path[0])
        spellings |= dict.fromkeys(of_path)
    if len(spellings) > MAX_PATHS:
        return tuple(likeliest)
    return tuple(spellings)


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
        paths = await asyncio.to_thread(_spellings, copy, filters["paths"])
        arguments = arguments | {"filters": filters | {"paths": paths}}
    match tool:
        case "memory_store":
            return arguments | await _stored_json(copy, arguments)
        case "memory_update":
            return arguments | await _updated_json(copy, arguments, read)
        case "client_hook" if isinstance(arguments.get("cwd"), str):
            # Paths are relative to the root, wherever in the repository the session is.
            return {**arguments, "cwd": copy.top(arguments["cwd"])}
        case _:
            return arguments


async def _stored_json(copy: WorkingCopy, arguments: JsonDict) -> JsonDict:
    """Return the memories to store with the code that they are about."""
    memories = arguments.get("memories")
    namespace = arguments.get("namespace")
    if isinstance(namespace, str) and is_nothing(namespace):
        namespace = None
    if not isinstance(memories, list) or not isinstance(namespace, str | None):
        return {}
    return {"memories": await _tied_each(copy, memories, namespace)}


async def _updated_json(
    copy: WorkingCopy, arguments: JsonDict, read: Callable[[str], Awaitable[object]]
) -> JsonDict:
    """Return the code that an updated memory is about."""
    id_ = str(arguments.get("id"))
    clear = arguments.get("clear")
    if not isinstance(clear, list):
        clear = []

    async def anchor() -> Anchor | None:
        return read_anchors(await read(id_)).get(id_)

    return await _present_code(copy, arguments, clear, anchor)


async def _tied_each(
    copy: WorkingCopy, memories: Sequence[Any], namespace: str | None
) -> list[Any]:
    """Return memories of a namespace with the present code, but those that name none, or are not of their form."""
    about = {}
    for index, memory in enumerate(memories):
        stated = _stated_code(memory)
        if stated is not None:
            about[index] = stated
    tied = list(memories)
    if not about or not copy.holds(namespace):
        return tied
    codes = await asyncio.to_thread(copy.tie, list(about.values()))
    for index, code in zip(about, codes, strict=True):
        present = {"paths": code.paths, "commit": code.commit, "blobs": code.blobs}
        known = {name: value for name, value in present.items() if value}
        tied[index] = memories[index] | known
    return tied


def _stated_code(memory: object) -> tuple[Sequence[str], str | None] | None:
    """Return the paths and the commit that a memory names; None if it names none, or has its contents already."""
    if not isinstance(memory, dict) or memory.get("blobs"):
        return None
    paths = memory.get("paths") or ()
    commit = memory.get("commit") or None
    if not paths and not commit:
        return None
    if not isinstance(commit, str | None) or not _texts(paths or ("",)):
        return None
    return paths, commit


def _texts(value: object) -> bool:
    """Return True for as many texts as a memory may have paths."""
    if not isinstance(value, list | tuple) or not 0 < len(value) <= MAX_PATHS:
        return False
    return all(isinstance(entry, str) for entry in value)
