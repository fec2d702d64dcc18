"""Formats that an import reads: each turns a source into numbered lines as `folklore export` writes them.

Lines and pages are read on demand, so that a source may be larger than memory; JSON documents are read whole. A record
that cannot become a line is given as its error. Ids follow from the record, so that a repeated import changes only the
records that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from folklore.memory.requests import OnConflict
from folklore.memory.transfer.formats.graph import graph_lines
from folklore.memory.transfer.formats.line import Lines, json_lines
from folklore.memory.transfer.formats.pages import claude_lines, markdown_lines
from folklore.memory.transfer.formats.records import mem0_lines, service_lines


@dataclass(frozen=True, slots=True)
class Format:
    """Reader of one format: from an open file (`read`), or from a path that may be a folder (`folders`).

    `on_conflict` is the default: pages are edited, records are not. A format with `several_projects` has the notes of
    several projects and does not state their namespaces.
    """

    read: Callable[[BinaryIO], Lines] | None = None
    folders: Callable[[str], Lines] | None = None
    on_conflict: OnConflict = "skip"
    several_projects: bool = False


FORMATS: dict[str, Format] = {
    "jsonl": Format(json_lines),
    "markdown": Format(folders=markdown_lines, on_conflict="overwrite"),
    "claude-memory": Format(folders=claude_lines, on_conflict="overwrite", several_projects=True),
    "mcp-memory-json": Format(graph_lines),
    "mem0": Format(mem0_lines),
    "mcp-memory-service": Format(service_lines),
}
