"""Lines of an import: in the format of an export, with their places in the source; and as they are sent to a server."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, cast

from folklore.errors import FolkloreError, InvalidInput, Refused, error_from_code
from folklore.text.secrets.finder import SearchEnded, find

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
    return content.count("\n", 0, secrets[0].start) if secrets else 0


Lines = Iterator[SourceLine]


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
