"""Encodings and compressions in which files come: UTF-8, UTF-16 as Windows writes it, gzip, a zip file of one export."""

import codecs
import errno
import io
import zlib
from collections.abc import Callable
from gzip import GzipFile
from typing import IO, BinaryIO, cast
from zipfile import BadZipFile, ZipFile

from folklore.errors import InvalidInput
from folklore.text.amounts import amount

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD_BYTES = 4
_RECORDS = (".json", ".jsonl", ".ndjson")
# The export of OpenMemory has its memories twice: with all fields, and as lines.
_PREFERRED = "memories.json"


def encoding_of(head: bytes) -> str:
    """Return the encoding of a text by its first bytes."""
    return "utf-16" if head.startswith(_UTF_16) else "utf-8-sig"


def unpacked(source: BinaryIO) -> BinaryIO:
    """Return a file as UTF-8 and without its compression. Raises InvalidInput for a zip file that is no export."""
    head = source.read(_HEAD_BYTES)
    whole = rejoined(head, source)
    if head == ZIP:
        return _as_utf_8(_export_in_zip(whole))
    if head.startswith(GZIP):
        return _as_utf_8(_readable(GzipFile(fileobj=whole).read1))
    return _as_utf_8(whole)


def _as_utf_8(source: BinaryIO) -> BinaryIO:
    head = source.read(_HEAD_BYTES)
    whole = rejoined(head, source)
    if not head.startswith(_UTF_16):
        return whole
    decoder = codecs.getincrementaldecoder("utf-16")()

    def read(size: int) -> bytes:
        while piece := _read_available(whole, max(2, size)):
            if text := decoder.decode(piece):
                return text.encode()
        return decoder.decode(b"", final=True).encode()

    return _readable(read)


def _export_in_zip(source: BinaryIO) -> BinaryIO:
    if not source.seekable():
        raise InvalidInput("FILE", "is a zip file.", hint="Name the file instead of -.")
    try:
        archive = ZipFile(source)
        records = [name for name in archive.namelist() if name.endswith(_RECORDS)]
        preferred = [name for name in records if name.rpartition("/")[2] == _PREFERRED]
        chosen = preferred or records
        if len(chosen) != 1:
            raise InvalidInput(
                "FILE",
                f"is a zip file with {amount(len(archive.namelist()), 'file')}, and no export of one system.",
                hint="Unzip it, and import its folder or one of its files.",
            )
        return cast("BinaryIO", archive.open(chosen[0]))
    except (BadZipFile, NotImplementedError, RuntimeError) as error:
        raise InvalidInput("FILE", f"is no readable zip file ({error}).") from None


def rejoined(head: bytes, source: BinaryIO) -> BinaryIO:
    """Return a file from its beginning, of which `head` was read already."""
    if source.seekable():
        source.seek(-len(head), io.SEEK_CUR)
        return source
    parts = [head]
    return _readable(
        lambda size: (
            parts.pop() if parts and parts[0] else _read_available(source, size)
        )
    )


def _read_available(source: BinaryIO, size: int) -> bytes:
    """Return what a pipe holds by now, without waiting until it holds so many bytes."""
    return cast("io.BufferedReader", source).read1(size)


def _readable(read: Callable[[int], bytes]) -> BinaryIO:
    return io.BufferedReader(_Bytes(read), 1 << 16)


class _Bytes(io.RawIOBase):
    """The bytes that a function returns piece by piece. What is damaged is an OSError, as of any file."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        if not self._rest:
            try:
                self._rest = self._read(len(view))
            except (EOFError, zlib.error, UnicodeError, OSError) as error:
                raise OSError(errno.EIO, f"it is damaged: {error}") from None
        piece = self._rest[: len(view)]
        self._rest = self._rest[len(view) :]
        view[: len(piece)] = piece
        return len(piece)


def head_of(source: IO[bytes], most: int) -> bytes:
    """Return the first bytes of a file, unpacked; what can be read of a damaged one."""
    opened = unpacked(cast("BinaryIO", source))
    head = b""
    try:
        while len(head) < most and (piece := opened.read1(most - len(head))):  # type: ignore[attr-defined]
            head += piece
    except OSError:
        pass
    return head
