"""Arguments of tools from a working copy, as JSON: paths in their one spelling, and the present code.

A bridge passes on what an assistant sends, and reads it for this alone. Imports the standard library and small modules
alone, as a session does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import Anchor, read_anchors
from folklore.contract.compact import JsonDict
from folklore.text.arguments import is_nothing
from folklore.text.paths import MAX_PATHS


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
        paths = await asyncio.to_thread(spellings, copy, filters["paths"])
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
    return {"memories": await tied_each(copy, memories, namespace)}


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

    return await present_code(copy, arguments, clear, anchor)


async def tied_each(
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


async def present_code(
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
    [tied] = await tied_each(copy, [code], about.namespace)
    present = {}
    if "paths" in stated:
        present["paths"] = tied["paths"]
    for name in ("commit", "blobs"):
        if tied.get(name) and name not in clear:
            present[name] = tied[name]
    return present


def spellings(copy: WorkingCopy, paths: Sequence[str]) -> tuple[str, ...]:
    """Return all spellings of the paths of a filter; of each the likeliest alone if these are too many."""
    likeliest = []
    every: dict[str, None] = {}
    for path in paths:
        of_path = copy.spellings(path) if path.strip() else (path,)
        likeliest.append(of_path[0])
        every |= dict.fromkeys(of_path)
    if len(every) > MAX_PATHS:
        return tuple(likeliest)
    return tuple(every)


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
