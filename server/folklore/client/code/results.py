"""Marks on memories whose files changed since: put into the results of operations, as the API gives them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from folklore.client.code.marks import marked_hook, stale_files, with_mark
from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import Anchor, read_anchors
from folklore.contract.hooks import HookRequest
from folklore.contract.memories import GetRequest, ListRequest
from folklore.contract.recall import RecallRequest, SearchRequest
from folklore.model import Memory
from folklore.stale import Stale

# The field with the memories in the result of an operation.
_FIELDS: Mapping[type, str] = {
    RecallRequest: "memories",
    SearchRequest: "memories",
    ListRequest: "memories",
    GetRequest: "found",
}


async def marked_result(copy: WorkingCopy, request: object, result: Any) -> Any:
    """Return the JSON of an operation's result with marks."""
    if isinstance(request, HookRequest):
        return await marked_hook(copy, result, read_anchors(result.get("anchors")))
    field = _FIELDS.get(type(request))
    if field is None:
        return result
    anchors = {}
    for index, entry in enumerate(result[field]):
        if entry["memory"].get("paths"):
            anchors[str(index)] = Anchor.of(_memory().validate_python(entry["memory"]))
    stale = await stale_files(copy, anchors)
    if not stale:
        return result
    entries = list(result[field])
    for key, files in stale.items():
        mark = _files().dump_python(files, mode="json")
        entries[int(key)] = with_mark(entries[int(key)], mark)
    return {**result, field: entries}


@cache
def _files() -> TypeAdapter[tuple[Stale, ...]]:
    return TypeAdapter(tuple[Stale, ...])


@cache
def _memory() -> TypeAdapter[Memory]:
    return TypeAdapter(Memory)
