"""Lines of an import: in the format of an export, with their places in the source; and as they are sent to a server."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

from folklore.errors import FolkloreError, InvalidInput, Refused, error_from_code
from folklore.text.secrets.finder import SearchEnded, find

# The most bytes of a line.
LINE_BYTES = 1024 * 1024
# The field of a line that names what the reader of another format left out.
IGNORED = "ignored_fields"
# The states of a record of another system in which nobody is shown it, and the fields that say so.
_AWAY = ("deleted", "archived", "paused", "trashed")
_IN_FORCE = ("active", "enabled", "current")
_STATE_FIELDS = ("state", "status")

# A line in the format of an export, or the error of a record that cannot become one.
Raw = bytes | InvalidInput


class SourceLine(NamedTuple):
    """A line with its number, and for messages its file and the line there on which its text begins."""

    number: int
    raw: Raw
    file: str = ""
    begins: int = 0

    def place(self, error: FolkloreError | None = None) -> str:
        """Return file and line for messages; for a secret the line that it is on."""
        if not self.begins:
            return self.file
        line = self.begins
        if isinstance(error, Refused) and isinstance(self.raw, bytes):
            content = str(json.loads(self.raw).get("content", ""))
            line += _lines_before_secret(content)
        return f"{self.file}:{line}"


def _lines_before_secret(content: str) -> int:
    try:
        secrets = find(content)
    except SearchEnded:
        return 0
    if not secrets:
        return 0
    return content.count("\n", 0, secrets[0].start)


Lines = Iterator[SourceLine]


def is_memory(line: str) -> bool:
    """Return True if a line of an export is a memory."""
    return line.startswith('{"type": "memory"')


def numbered(lines: Iterable[Raw]) -> Lines:
    """Give lines their numbers, from 1."""
    return (SourceLine(number, raw) for number, raw in enumerate(lines, start=1))


def chunks_of(lines: Lines, most: int) -> Iterator[list[SourceLine]]:
    """Yield the lines of a source, so many at once. Raises InvalidInput if it cannot be read any further."""
    try:
        while chunk := list(islice(lines, most)):
            yield chunk
    except OSError as error:
        raise InvalidInput(
            "FILE", f"cannot be read any further ({error.strerror})."
        ) from error


def encoded(lines: Iterable[SourceLine]) -> bytes:
    """Return lines as they are sent to a server: number, file and the line in it, a tab, and the line or its error."""
    body = bytearray()
    for number, raw, file, begins in lines:
        error = None
        content = b""
        if isinstance(raw, bytes):
            content = raw.rstrip(b"\n")
        else:
            error = (raw.message, raw.hint)
        head = json.dumps((number, file, begins, error)).encode()
        body += b"%b\t%b\n" % (head, content)
    return bytes(body)


def decoded(line: bytes) -> SourceLine:
    """Return a line that a client has sent. Raises InvalidInput."""
    head, _, raw = line.partition(b"\t")
    try:
        number, file, begins, error = json.loads(head)
        content: Raw = raw
        if error:
            content = cast("InvalidInput", error_from_code(InvalidInput.code, *error))
        return SourceLine(int(number), content, str(file), int(begins))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidInput(
            "body", "is not what `folklore import` of this version sends."
        ) from None


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
