"""Lines of a source, in the format of an export."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.errors import InvalidInput
from folklore.memory.transfer.json_lines import LINE_BYTES
from folklore.text.tags import kind_of

SourceLine = bytes | InvalidInput
Lines = Iterator[tuple[int, SourceLine]]


def json_lines(source: BinaryIO) -> Lines:
    """Yield the lines of a file with their numbers, of a line that is too long only the beginning."""
    number = 0
    while raw := source.readline(LINE_BYTES + 1):
        number += 1
        yield number, raw
        while len(raw) > LINE_BYTES and not raw.endswith(b"\n"):
            raw = source.readline(LINE_BYTES + 1)


def line_of(fields: Mapping[str, Any]) -> bytes:
    """Return a line without empty fields."""
    return json.dumps({name: value for name, value in fields.items() if value not in (None, "", [], {})}).encode()


def id_of(*parts: str) -> str:
    """Return the id of a record of another system, always the same for the same parts."""
    return str(uuid5(NAMESPACE_URL, "\x1f".join(("folklore:import", *parts))))


def uuid_or(value: object, *parts: str) -> str:
    """Return a record's own id if it is a UUID, else one that follows from `parts`."""
    try:
        return str(UUID(str(value)))
    except ValueError:
        return id_of(*parts)


def valid_kind(text: str) -> str | None:
    """Return a kind in its normal form, None for another text."""
    try:
        return kind_of(text, "kind")
    except InvalidInput:
        return None
