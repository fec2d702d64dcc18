"""Formats that an import reads: each turns a source into numbered lines as `folklore export` writes them.

Lines, pages and conversations are read on demand, so that a source may be larger than memory; other JSON documents are
read whole. A record that cannot become a line is given as its error. Ids follow from the record, so that a repeated
import changes only the records that changed.
"""

from collections.abc import Callable, Mapping
from typing import BinaryIO

from folklore.contract.lines import Lines
from folklore.contract.transfer import OnConflict
from folklore.memory.transfer.formats.graph import graph_lines
from folklore.memory.transfer.formats.line import json_lines
from folklore.memory.transfer.formats.records import mem0_lines, service_lines

# Formats of one file, which stdin can be.
FILE_FORMATS: Mapping[str, Callable[[BinaryIO], Lines]] = {
    "jsonl": json_lines,
    "mcp-memory-json": graph_lines,
    "mem0": mem0_lines,
    "mcp-memory-service": service_lines,
}
# Formats of a path, which may be a folder. Pages are edited, turns of a conversation are not.
PATH_FORMATS: Mapping[str, OnConflict] = {
    "markdown": "overwrite",
    "rules": "overwrite",
    "claude-memory": "overwrite",
    "web": "overwrite",
    "git": "overwrite",
    "conversations": "skip",
}
