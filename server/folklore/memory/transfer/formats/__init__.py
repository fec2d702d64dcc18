"""What an import can read: each format turns a source into numbered lines as `folklore export` writes them.

A format is a function from a path (or `-`) to lines, read as they are asked for, so that a source may be larger than
memory. What cannot be turned into a line is given as the error it is; the others go on. Ids follow from what a record
is, so that importing it again changes only what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from folklore.memory.transfer.conflicts import OnConflict
from folklore.memory.transfer.formats.graph import graph_lines
from folklore.memory.transfer.formats.line import Lines, json_lines
from folklore.memory.transfer.formats.pages import claude_lines, markdown_lines
from folklore.memory.transfer.formats.records import mem0_lines, service_lines


@dataclass(frozen=True, slots=True)
class Format:
    """How to read one: from an open file, or from a path that may be a folder (`folders`).

    `on_conflict` is what to do with what is here already when nobody says: pages are edited, records are not.
    """

    read: Callable[[BinaryIO], Lines] | None = None
    folders: Callable[[str], Lines] | None = None
    on_conflict: OnConflict = "skip"


FORMATS: dict[str, Format] = {
    "jsonl": Format(json_lines),
    "markdown": Format(folders=markdown_lines, on_conflict="overwrite"),
    "claude-memory": Format(folders=claude_lines, on_conflict="overwrite"),
    "mcp-memory-json": Format(graph_lines),
    "mem0": Format(mem0_lines),
    "mcp-memory-service": Format(service_lines),
}
