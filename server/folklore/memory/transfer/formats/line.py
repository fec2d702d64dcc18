"""Lines of a source, in the format of an export."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.errors import FolkloreError, InvalidInput, Refused
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
            content = json.loads(self.raw)["content"]
            line += next((content.count("\n", 0, secret.start) for secret in find(content)), 0)
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


def skipped_line(reason: str) -> bytes:
    """Return a line that an import counts as skipped, by its reason."""
    return line_of({"type": reason})


def line_of(fields: Mapping[str, Any]) -> bytes:
    """Return a line without empty fields."""
    return json.dumps({name: value for name, value in fields.items() if value not in (None, "", [], {})}).encode()


def id_of(*parts: str) -> str:
    """Return the id of a record of another system, always the same for the same parts."""
    name = "\x1f".join(("folklore:import", *parts))
    return str(uuid5(NAMESPACE_URL, name.encode(errors="replace").decode()))  # half a surrogate pair has no UTF-8


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
