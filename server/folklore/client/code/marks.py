"""Marks on memories whose files changed since: put into the JSON of results, by the process that has the working copy.

A result is that of a tool or a resource, which a server sends with the anchors of its memories; that of an operation is
read by client/code/results.py. Imports the standard library and small modules alone, as a session does.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.anchors import Anchor, stale_json
from folklore.contract.compact import JsonDict
from folklore.stale import Stale
from folklore.text.hooks.marks import encoded

_ID_DIGITS = 8  # of an id, as notes show it


async def marked_answer(
    copy: WorkingCopy, value: JsonDict, anchors: Mapping[str, Anchor]
) -> JsonDict:
    """Return the compact JSON of an answer, or of one memory, with marks."""
    stale = await stale_files(copy, anchors)
    if not stale:
        return value
    memories = value.get("memories")
    if not isinstance(memories, list):
        marked: JsonDict = _marked_memory(value, stale)
        return marked
    return {**value, "memories": [_marked_memory(memory, stale) for memory in memories]}


async def marked_hook(
    copy: WorkingCopy, value: Any, anchors: Mapping[str, Anchor]
) -> Any:
    """Return the answer to a hook, whatever JSON it is, with marks in its notes."""
    stale = await stale_files(copy, anchors)
    if not stale:
        return value
    notes = [(_note(id_), _mark_of_note(files[0])) for id_, files in stale.items()]
    return _marked_texts(value, notes)


async def marked_text(
    copy: WorkingCopy, text: str, anchors: Mapping[str, Anchor]
) -> str:
    """Return the answer to a hook as a client reads it, with marks in its notes."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    marked = await marked_hook(copy, value, anchors)
    if isinstance(marked, str):
        return marked
    return json.dumps(marked, ensure_ascii=False)


async def stale_files(
    copy: WorkingCopy, anchors: Mapping[str, Anchor]
) -> dict[str, tuple[Stale, ...]]:
    """Return the files that changed, of those memories that have any."""
    ours = {}
    for key, anchor in anchors.items():
        if copy.holds(anchor.namespace):
            ours[key] = anchor
    if not ours:
        return {}
    changed_files = await copy.marks(list(ours.values()))
    stale = {}
    for key, files in zip(ours, changed_files, strict=True):
        if files:
            stale[key] = files
    return stale


def _marked_memory(memory: Any, stale: Mapping[str, tuple[Stale, ...]]) -> Any:
    if not isinstance(memory, dict):
        return memory
    return with_mark(memory, stale_json(stale.get(str(memory.get("id")), ())))


def with_mark(entry: JsonDict, mark: object) -> JsonDict:
    """Return a memory with a mark, if there is one."""
    if not mark:
        return entry
    return {**entry, "stale": mark}


def _marked_texts(value: Any, notes: Sequence[tuple[re.Pattern[str], str]]) -> Any:
    if isinstance(value, str):
        for note, mark in notes:
            value = note.sub(rf"\1, {mark}", value)
        return value
    if isinstance(value, dict):
        return {name: _marked_texts(entry, notes) for name, entry in value.items()}
    return value


def _mark_of_note(file: Stale) -> str:
    """Return a mark as a pattern's replacement has it."""
    path = encoded(file.path).replace("\\", "\\\\")
    return f"{path} changed since, verify"


def _note(id_: str) -> re.Pattern[str]:
    """Return the beginning of a whole note: "- [206e7676, 40 days old, verify"."""
    digits = id_.replace("-", "")[-_ID_DIGITS:]
    return re.compile(
        rf"^(- \[{re.escape(digits)}, [^,\]]+)(?:, verify)?", re.MULTILINE
    )
