"""JSON as files have it: a value a line, several on a line, one over many lines, a list, an object with a list.

Files may be one line of gigabytes. `JsonValues` needs memory for one value: the standard library's decoder reads a value
from the beginning of a text, so no library that reads JSON piece by piece is needed.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, Protocol

from folklore.contract.lines import LINE_BYTES
from folklore.errors import InvalidInput
from folklore.importers.encodings import rejoined, unpacked

# Names of the list of records in a document.
LISTS = ("results", "memories", "records")
# The beginning of a document that is one long line: an object whose first list is one of records.
_FIRST_RECORD = re.compile(
    rb'\{[^\[\]]{0,400}?"(?:results|memories|records|data)"\s*:\s*[\[{]'
)
_CHUNK = 1024 * 1024
_LITERAL_CHARACTERS = 16  # of `-Infinity`, or an escape
_NOT_SPACE = re.compile(r"[^\s,]")
# bytes that are not UTF-8, as `surrogateescape` decodes them
_BROKEN = re.compile("[\udc80-\udcff]")
_HINT = "Export it again, or leave it out."
_decode = json.JSONDecoder().raw_decode
# In place of a value of which more is to be read.
_INCOMPLETE = object()


class JsonRecord(NamedTuple):
    """A record of a file, or as an InvalidInput why it is none, with its line, or its number in a document.

    `place` names it in messages, empty for a line.
    """

    number: int
    value: Any
    place: str = ""


def raw_lines(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, of a line that is too long only the beginning."""
    number = 0
    while raw := source.readline(LINE_BYTES + 1):
        number += 1
        yield number, raw
        while len(raw) > LINE_BYTES and not raw.endswith(b"\n"):
            raw = source.readline(LINE_BYTES + 1)


def listed(value: Any, names: tuple[str, ...] = LISTS) -> list[Any]:
    """Return the records in the lists of these names, in a document or its object `data`; a list itself as it is.

    Another value, and a document without such a list, is one record.
    """
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return [value]
    documents = [value]
    data = value.get("data")
    if isinstance(data, dict):
        documents.append(data)
    has_list = False
    records: list[Any] = []
    for document in documents:
        for name in names:
            entries = document.get(name)
            if isinstance(entries, list):
                has_list = True
                records += entries
    return records if has_list else [value]


def json_records(
    source: BinaryIO, records_of: Callable[[Any], list[Any]] = listed
) -> Iterator[JsonRecord]:
    """Yield the records of a file: of its lines, or of a document; `records_of` returns those of a value in either."""
    try:
        is_document, whole = is_one_document(unpacked(source))
        reader = records_of_document if is_document else _of_lines
        yield from reader(whole, records_of)
    except InvalidInput as error:
        yield JsonRecord(0, error, "FILE")


def records_of_document(
    source: BinaryIO, records_of: Callable[[Any], list[Any]] = listed
) -> Iterator[JsonRecord]:
    """Yield the records of a document, and at its end why it cannot be read any further."""
    number = 0
    try:
        for value in JsonValues(source):
            for record in records_of(value):
                number += 1
                yield JsonRecord(number, _object(record), f"record {number:,}")
    except InvalidInput as error:
        place = f"after record {number:,}" if number else "FILE"
        yield JsonRecord(number + 1, error, place)


def _of_lines(
    source: BinaryIO, records_of: Callable[[Any], list[Any]]
) -> Iterator[JsonRecord]:
    for number, raw in raw_lines(source):
        for value in values_of_line(raw):
            for record in records_of(value):
                yield JsonRecord(number, _object(record))


def _object(record: Any) -> Any:
    if isinstance(record, dict | InvalidInput):
        return record
    return InvalidInput("record", "is not a JSON object.")


def values_of_line(raw: bytes) -> list[Any]:
    """Return the values of a line, of which there may be several, and why it cannot be read any further."""
    if len(raw) > LINE_BYTES:
        return [InvalidInput("line", f"must be at most {LINE_BYTES:,} bytes.")]
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return [InvalidInput("line", "is not UTF-8.")]
    values: list[Any] = []
    end = 0
    while start := _NOT_SPACE.search(text, end):
        try:
            value, end = _decode(text, start.start())
        except (ValueError, RecursionError):
            return [*values, InvalidInput("line", "is not JSON.")]
        values.append(value)
    return values


def is_one_document(source: BinaryIO) -> tuple[bool, BinaryIO]:
    """Return whether a file is a document, or else lines; and the file from its beginning.

    A document begins with a list, or with an object that goes on in lines which are none themselves.
    """
    read: list[bytes] = []
    starts: list[bytes] = []
    for _, raw in raw_lines(source):
        read.append(raw)
        if raw.strip():
            starts.append(raw.lstrip(b"\xef\xbb\xbf \t\r\n"))
        if len(starts) == 2 or len(raw) > LINE_BYTES:
            break
    return _begins_document(starts), rejoined(b"".join(read), source)


def _begins_document(starts: list[bytes]) -> bool:
    """Return whether a file is a document, by its first two lines that are not blank."""
    first = starts[0] if starts else b""
    if first[:1] != b"{":
        return first[:1] == b"["
    if len(first) > LINE_BYTES:
        return bool(_FIRST_RECORD.match(first))
    if _is_incomplete(first):
        return not (len(starts) > 1 and _is_whole_object(starts[1]))
    return len(starts) == 1 and _has_records(first)


def _has_records(line: bytes) -> bool:
    """Return whether a line is an object that is no record, but has a list of them."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(value, dict) and "content" not in value and listed(value) != [value]
    )


def _is_incomplete(line: bytes) -> bool:
    """Return whether an object goes on after a line. A text does not, and `{"a" 1` is none."""
    text = line.decode(errors="replace").rstrip()
    try:
        _decode(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (ValueError, RecursionError):
        return False
    return False


def _is_whole_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


class Readable(Protocol):
    """A file of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes, none at the end."""


class JsonValues:
    """The values of a JSON list, or those that follow each other, read with memory for one of them.

    A value has at most `most` characters; `noun` is what errors call it.

    The text grows to twice its length until a value in it is whole, so each is parsed about twice at most.
    """

    def __init__(
        self, source: Readable, noun: str = "record", most: int | None = None
    ) -> None:
        self._source = source
        self._noun = noun
        self._most = most
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._at = 0
        self._at_end = False

    def __iter__(self) -> Iterator[Any]:
        listed = False
        while True:
            first = self._first()
            if first == "]" or (self._at_end and not first):
                return
            if first == "[" and not listed:
                self._at += 1
                listed = True
                continue
            value = self._value()
            if value is _INCOMPLETE:
                self._read()
            else:
                yield value
                listed = True

    def _first(self) -> str:
        """Return the next character that begins or ends a value, empty if none was read yet."""
        match = _NOT_SPACE.search(self._text, self._at)
        self._at = len(self._text) if match is None else match.start()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        """Return the next value; _INCOMPLETE if the text may end within it."""
        start = self._at
        length = len(self._text)
        try:
            value, end = _decode(self._text, start)
        except RecursionError:
            raise InvalidInput(
                self._noun, "is nested too deep to be read.", hint=_HINT
            ) from None
        except ValueError as error:
            if self._at_end or not _is_cut(error, length):
                problem = f"is not JSON ({getattr(error, 'msg', 'a number too long')}), or ends too early."
                raise InvalidInput("FILE", problem, hint=_HINT) from None
            return _INCOMPLETE
        # A number may go on in the next piece, after `.` or `e+`.
        is_closed = isinstance(value, dict | list | str) or end + 2 < length
        if not (is_closed or self._at_end):
            return _INCOMPLETE
        self._at = end
        if _BROKEN.search(self._text, start, end):
            return InvalidInput(self._noun, "is not UTF-8.", hint=_HINT)
        return value

    def _read(self) -> None:
        """Read another piece, as long as the text that is not used yet. Raises InvalidInput for a value too long."""
        text = self._text[self._at :]
        if self._most is not None and len(text) > self._most:
            problem = f"has a {self._noun} of more than {self._most:,} characters, or is not JSON."
            raise InvalidInput("FILE", problem, hint=_HINT)
        piece = self._source.read(max(_CHUNK, len(text)))
        self._text = text + self._decoder.decode(piece, final=not piece)
        self._at = 0
        self._at_end = not piece


def _is_cut(error: ValueError, length: int) -> bool:
    """Return True if the text may only end too early: in a string, or within the last characters of a literal."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return (
        error.msg.startswith("Unterminated")
        or error.pos >= length - _LITERAL_CHARACTERS
    )
