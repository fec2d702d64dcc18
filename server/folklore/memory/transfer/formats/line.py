"""Lines of a source, in the format of an export."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.errors import FolkloreError, InvalidInput, Refused, error_from_code
from folklore.text.secrets.finder import find
from folklore.text.tags import kind_of

# The most bytes of a line.
LINE_BYTES = 1024 * 1024
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
            line += next(
                (content.count("\n", 0, secret.start) for secret in find(content)), 0
            )
        return f"{self.file}:{line}"


Lines = Iterator[SourceLine]


def numbered(lines: Iterable[Raw]) -> Lines:
    """Give lines their numbers, from 1."""
    return (SourceLine(number, raw) for number, raw in enumerate(lines, start=1))


def json_lines(source: BinaryIO) -> Lines:
    """Yield the lines of a file with their numbers, of a line that is too long only the beginning."""
    number = 0
    while raw := source.readline(LINE_BYTES + 1):
        number += 1
        yield SourceLine(number, raw)
        while len(raw) > LINE_BYTES and not raw.endswith(b"\n"):
            raw = source.readline(LINE_BYTES + 1)


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
    """Return lines as they are sent to a server: number and place, a tab, and the line or its error."""
    return b"".join(
        json.dumps(
            (
                number,
                file,
                begins,
                None if isinstance(raw, bytes) else (raw.message, raw.hint),
            )
        ).encode()
        + b"\t%s\n" % (raw.rstrip(b"\n") if isinstance(raw, bytes) else b"")
        for number, raw, file, begins in lines
    )


def decoded(line: bytes) -> SourceLine:
    """Return a line that a client has sent. Raises InvalidInput."""
    head, _, raw = line.partition(b"\t")
    try:
        number, file, begins, error = json.loads(head)
        given = (
            cast("InvalidInput", error_from_code(InvalidInput.code, *error))
            if error
            else raw
        )
        return SourceLine(int(number), given, str(file), int(begins))
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise InvalidInput(
            "body", "is not what `folklore import` of this version sends."
        ) from None


def skipped_line(reason: str) -> bytes:
    """Return a line that an import counts as skipped, by its reason."""
    return line_of({"type": reason})


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
    return str(
        uuid5(NAMESPACE_URL, name.encode(errors="replace").decode())
    )  # half a surrogate pair has no UTF-8


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
