"""Lines of JSON-RPC on a stream of bytes, none longer than a limit."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

# As many bytes as the body of a request over HTTP may have.
LINE_LIMIT = 4 * 2**20
# Bytes at the beginning and at the end of a line that is too long, in which its id is looked for.
_MARGIN = 4096
_ID = rb'"id"\s*:\s*(?P<id>-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*'
_PLAIN = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*'
_FIRST = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb",\s*)*" + _ID + rb",")
_LAST = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _PLAIN + rb")*\}\s*\Z")


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line over the limit, which was not kept; `id` is that of the request in it, if it is found."""

    id: str | int | None

    @property
    def message(self) -> str:
        """Return the error for its sender."""
        return f"The line has more than {LINE_LIMIT:,} bytes. Store memories in smaller batches."


class LineReader:
    """Splits bytes into lines. It keeps at most a line of the limit, and the ends of a longer one."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._head: bytes | None = None  # of a line that is too long

    def feed(self, chunk: bytes) -> Iterator[bytes | LongLine]:
        """Yield the lines that end in the next bytes, without blank ones."""
        *lines, last = chunk.split(b"\n")
        for line in lines:
            self._add(line)
            yield from self.end()
        self._add(last)

    def end(self) -> Iterator[bytes | LongLine]:
        """Yield what no line break ended."""
        line = self._ended()
        if line is not None:
            yield line

    def _add(self, part: bytes) -> None:
        self._rest += part
        if self._head is None and len(self._rest) > self._limit:
            self._head = bytes(self._rest[:_MARGIN])
        if self._head is not None:
            del self._rest[:-_MARGIN]

    def _ended(self) -> bytes | LongLine | None:
        line = bytes(self._rest)
        head = self._head
        self._rest.clear()
        self._head = None
        if head is not None:
            return LongLine(_id_of(head, line))
        return line if line.strip() else None


def _id_of(head: bytes, tail: bytes) -> str | int | None:
    """Return the id of a request, which clients write first or last."""
    match = _FIRST.match(head) or _LAST.search(tail)
    if match is None:
        return None
    try:
        id_: str | int = json.loads(match["id"])
    except ValueError:
        return None
    return id_
