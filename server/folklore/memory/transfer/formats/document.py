"""Incremental reader of JSON documents: yields the records of a list that may be larger than memory."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO

from folklore.errors import InvalidInput
from folklore.memory.transfer.json_lines import LINE_BYTES

_CHUNK = 64 * 1024
_decode = json.JSONDecoder().raw_decode


class _Text:
    """The unread rest of a document; `_at` is the position in the buffered part."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decoder = getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0

    def _more(self) -> bool:
        """Read the next piece; return False at the end."""
        raw = self._source.read(_CHUNK)
        try:
            self._text = self._text[self._at :] + self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise InvalidInput("FILE", "is not UTF-8.", hint="Convert it and import it again.") from None
        self._at = 0
        return bool(raw)

    def next(self) -> str:
        """Return the next character after white space without reading it, an empty text at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def skip(self, mark: str) -> bool:
        """Read a character if it is the next one."""
        if self.next() != mark:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """Read a value. Raises InvalidInput if there is none that ends within the length of a line."""
        self.next()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except (ValueError, RecursionError):
                if len(self._text) - self._at > LINE_BYTES or not self._more():
                    raise _unknown_document() from None
                continue
            if end == len(self._text) and self._more():  # a number may continue
                continue
            self._at = end
            return value


def records_of(source: BinaryIO, names: tuple[str, ...]) -> Iterator[dict[str, Any] | InvalidInput]:
    """Yield the objects of a list, of the list under one of `names` in an object, or of JSON Lines.

    Raises InvalidInput, after the readable records, if the document cannot be read any further.
    """
    text = _Text(source)
    while text.next():
        if text.skip("["):
            yield from _listed(text)
        elif text.skip("{"):
            yield from _named(text, names)
        else:
            raise _unknown_document()


def _listed(text: _Text) -> Iterator[dict[str, Any] | InvalidInput]:
    while not text.skip("]"):
        value = text.value()
        yield value if isinstance(value, dict) else InvalidInput("record", "is not a JSON object.")
        if not text.skip(",") and text.next() != "]":
            raise InvalidInput("FILE", "ends within its list of memories.")


def _named(text: _Text, names: tuple[str, ...]) -> Iterator[dict[str, Any] | InvalidInput]:
    """Yield the records of the lists in an object, or the object itself if it has no such list."""
    record: dict[str, Any] = {}
    found = False
    while not text.skip("}"):
        name = text.value()
        if not text.skip(":"):
            raise _unknown_document()
        if name in names and text.skip("["):
            found = True
            yield from _listed(text)
        elif name == "data" and text.skip("{"):
            found = True
            yield from _named(text, names)
        else:
            record[name] = text.value()
        text.skip(",")
    if not found and record:
        yield record


def _unknown_document() -> InvalidInput:
    return InvalidInput("FILE", "is not the JSON document of this format.", hint="--format names the others.")
