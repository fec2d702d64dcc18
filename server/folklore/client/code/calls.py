"""Calls of operations from a working copy: requests get paths in one spelling, and the present code.

A bridge does the same with the arguments of tools (client/code/tied.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from folklore.client.code.git import GitFailed
from folklore.client.code.tied import present_code, spellings, tied_each
from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import Anchor
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
from folklore.text.paths import ROOT

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
        paths = await asyncio.to_thread(spellings, copy, filters.paths)
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
    tied = await tied_each(copy, about, request.namespace)
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
    code = await present_code(copy, stated, request.clear, anchor)
    if not code:
        return request
    changes = request.changes.model_copy(update=code)
    return request.model_copy(update={"changes": changes})
