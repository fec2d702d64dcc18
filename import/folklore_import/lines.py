"""Lines that the records of other systems become, in the format of an export."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.contract.lines import IGNORED, Lines, Raw, SourceLine
from folklore.errors import InvalidInput
from folklore.importers.json_values import JsonRecord
from folklore.text.cues import phrase
from folklore.text.tags import kind_of


def record_lines(
    records: Iterable[JsonRecord], lines_of: Callable[[Any], Iterable[Raw]]
) -> Lines:
    """Yield the lines that the records of another system become, with the places of the records."""
    for number, value, place in records:
        if isinstance(value, InvalidInput):
            yield SourceLine(number, value, place)
        else:
            yield from (SourceLine(number, raw, place) for raw in lines_of(value))


def skipped_line(reason: str, left_out: Iterable[str] = ()) -> bytes:
    """Return a line that an import counts as skipped, by its reason, with the names of what was left out of it."""
    return line_of({"type": reason, IGNORED: list(left_out)})


def line_of(fields: Mapping[str, Any]) -> bytes:
    """Return a line without empty fields."""
    return json.dumps(
        {
            name: value
            for name, value in fields.items()
            if value not in (None, "", [], {})
        }
    ).encode()


def id_of(*parts: str) -> str:
    """Return the id of a record of another system, always the same for the same parts."""
    name = "\x1f".join(("folklore:import", *parts))
    # half a surrogate pair has no UTF-8
    return str(uuid5(NAMESPACE_URL, name.encode(errors="replace").decode()))


def cues_of(*phrases: str) -> list[str]:
    """Return those of some phrases of a source that can be cues."""
    return [cue for cue in map(phrase, phrases) if cue is not None]


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
