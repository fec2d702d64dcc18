"""Lines of a source, in the format of an export."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.contract.lines import Lines, Raw, SourceLine
from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.encodings import unpacked
from folklore.memory.transfer.formats.json_values import (
    JsonRecord,
    is_one_document,
    raw_lines,
    records_of_document,
    values_of_line,
)
from folklore.text.cues import phrase
from folklore.text.tags import kind_of

# The field of a line that names what the reader of another format left out.
IGNORED = "ignored_fields"
# Two objects on a line, or the parts of one.
_NEXT_OBJECT = re.compile(rb"\}\s*(?:,\s*)?\{")
# The states of a record of another system in which nobody is shown it, and the fields that say so.
_AWAY = ("deleted", "archived", "paused", "trashed")
_IN_FORCE = ("active", "enabled", "current")
_STATE_FIELDS = ("state", "status")


def json_lines(source: BinaryIO) -> Lines:
    """Yield the lines of a file with their numbers, of a line that is too long only the beginning.

    Several objects on a line, the objects of a list, and those in a list of an object are lines too.
    """
    try:
        is_document, whole = is_one_document(unpacked(source))
    except InvalidInput as error:
        yield SourceLine(0, error, "FILE")
        return
    if is_document:
        yield from (
            SourceLine(
                number,
                value if isinstance(value, InvalidInput) else _encoded(value),
                place,
            )
            for number, value, place in records_of_document(whole)
        )
        return
    for number, raw in raw_lines(whole):
        values = values_of_line(raw) if _NEXT_OBJECT.search(raw) else []
        if len(values) > 1 and all(isinstance(value, dict) for value in values):
            yield from (SourceLine(number, _encoded(value)) for value in values)
        else:
            yield SourceLine(number, raw)


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def record_lines(
    records: Iterable[JsonRecord], lines_of: Callable[[Any], Iterable[Raw]]
) -> Lines:
    """Yield the lines that the records of another system become, with the places of the records."""
    for number, value, place in records:
        if isinstance(value, InvalidInput):
            yield SourceLine(number, value, place)
        else:
            yield from (SourceLine(number, raw, place) for raw in lines_of(value))


def state_of(record: Mapping[str, Any]) -> str | None:
    """Return `deleted`, `archived` and the like for a record that its system shows to nobody, else None."""
    for field in _STATE_FIELDS:
        state = record.get(field)
        if isinstance(state, str) and state.lower() in _AWAY:
            return state.lower()
        if isinstance(state, str) and state.lower() in _IN_FORCE:
            return None  # it was restored, whatever time it has
    for state in _AWAY:
        *flags, time = _flags(state)
        if any(_is_true(record.get(flag)) for flag in flags) or record.get(time):
            return state
    return None


def _is_true(value: object) -> bool:
    return (
        value is True
        or value == 1
        or (isinstance(value, str) and value.lower() == "true")
    )


def is_state(name: str, value: object) -> bool:
    """Return True for a field that says in which state a record is: one of the known ones, or not in that one."""
    if name in _STATE_FIELDS:
        return isinstance(value, str) and value.lower() in (*_AWAY, *_IN_FORCE)
    return not value and any(name in _flags(state) for state in _AWAY)


def _flags(state: str) -> tuple[str, ...]:
    return state, f"is_{state}", f"is{state.title()}", f"{state}_at"


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
