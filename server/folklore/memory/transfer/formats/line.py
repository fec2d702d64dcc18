"""Numbered lines: what every format gives, and JSON Lines, which are that already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.errors import InvalidInput

# No memory we would take is longer: 32,000 characters escaped, with every other field at its limit.
LINE_BYTES = 1024 * 1024
Line = bytes | InvalidInput
Lines = Iterator[tuple[int, Line]]


def json_lines(source: BinaryIO) -> Lines:
    """Lines with their numbers; of one that is too long to be a memory, only its beginning is kept."""
    number = 0
    while raw := source.readline(LINE_BYTES + 1):
        number += 1
        yield number, raw
        while len(raw) > LINE_BYTES and not raw.endswith(b"\n"):
            raw = source.readline(LINE_BYTES + 1)


def line_of(fields: Mapping[str, Any]) -> bytes:
    """A line as `folklore export` writes it, without what is not set."""
    return json.dumps({name: value for name, value in fields.items() if value not in (None, "", [], {})}).encode()


def id_of(*parts: str) -> str:
    """The id of a record of another system: always the same for the same record."""
    return str(uuid5(NAMESPACE_URL, "\x1f".join(("folklore:import", *parts))))


def uuid_or(value: object, *parts: str) -> str:
    """A record's own id if that is a UUID, else one that follows from `parts`."""
    try:
        return str(UUID(str(value)))
    except ValueError:
        return id_of(*parts)
