"""A JSON document read record by record: the list it holds may be longer than memory is large."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import Any, BinaryIO

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import LINE_BYTES

_CHUNK = 64 * 1024
_decode = json.JSONDecoder().raw_decode


class _Text:
    """The rest of a document: what has been read of it and not been used yet, and where its use stands."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decoder = getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False

    def _more(self) -> bool:
        raw = self._source.read(_CHUNK)
        self._ended = not raw
        try:
            self._text = self._text[self._at :] + self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError:
            raise InvalidInput("FILE", "is not UTF-8.", hint="Convert it and import it again.") from None
        self._at = 0
        return not self._ended

    def next(self) -> str:
        """The next character that is no white space, unused still; nothing at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def skip(self, mark: str) -> bool:
        """Use up a character if it is next."""
        if self.next() != mark:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """Use up a whole value. Raises InvalidInput if there is none, or none that ends within what a line may have."""
        self.next()
        while True:
            try:
                value, end = _decode(self._text, self._at)
            except (ValueError, RecursionError):
                if len(self._text) - self._at > LINE_BYTES or not self._more():
                    raise InvalidInput("FILE", "is not the JSON document that this format is.") from None
                continue
            if end == len(self._text) and self._more():  # a number may go on
                continue
            self._at = end
            return value


def records_of(source: BinaryIO, names: tuple[str, ...]) -> Iterator[dict[str, Any] | InvalidInput]:
    """The objects of a list, or of the list that one of `names` has in an object, or of JSON Lines.

    Raises InvalidInput, after what could be read, when the document cannot be read any further.
    """
    text = _Text(source)
    while text.next():
        if text.skip("["):
            yield from _listed(text)
        elif text.skip("{"):
            yield from _named(text, names)
        else:
            raise InvalidInput("FILE", "is not the JSON document that this format is.")


def _listed(text: _Text) -> Iterator[dict[str, Any] | InvalidInput]:
    while not text.skip("]"):
        value = text.value()
        yield value if isinstance(value, dict) else InvalidInput("record", "is not a JSON object.")
        if not text.skip(",") and text.next() != "]":
            raise InvalidInput("FILE", "ends within its list of memories.")


def _named(text: _Text, names: tuple[str, ...]) -> Iterator[dict[str, Any] | InvalidInput]:
    """An object: the list in it, if it has one of these names, else itself."""
    record: dict[str, Any] = {}
    found = False
    while not text.skip("}"):
        name = text.value()
        if not text.skip(":"):
            raise InvalidInput("FILE", "is not the JSON document that this format is.")
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
