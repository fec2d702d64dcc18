"""Formats known by what is in a file: those that are read, and others, which are named with the way to import them."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from folklore.errors import InvalidInput
from folklore.importers.encodings import ZIP, head_of
from folklore.importers.json_values import (
    LISTS,
    JsonValues,
    listed,
)

_HEAD_BYTES = 1 << 20  # by which a format is recognised
_FEW_BYTES = 4096
_AS_LINES = (
    'Write a line {"content": "…"} for each memory, and import that file; '
    "`folklore import --help` names what is read."
)
_AS_PAGE = "--format markdown imports it as a page."
_AS_MARKDOWN = "Convert it to Markdown, and import that; pandoc can."
_UNPACK = "Unpack it, and import its folder or one of its files."

_LISTS_OF_FORMATS = (*LISTS, "entities", "relations")
# Fields of documents before their list, by which OpenMemory and mcp-memory-service are known.
_BEFORE_LIST = ("user", "apps", "categories", "export_metadata")
# Beginnings of files, and what they are.
_BEGINNINGS: tuple[tuple[bytes, str, str], ...] = (
    (b"%PDF-", "a PDF document", _AS_MARKDOWN),
    (b"{\\rtf", "a document in RTF", _AS_MARKDOWN),
    (b"\xd0\xcf\x11\xe0", "a document of an older Office", _AS_MARKDOWN),
    (b"PAR1", "a table in Parquet", _AS_LINES),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", _UNPACK),
    (b"BZh", "compressed by bzip2", _UNPACK),
    (b"\xfd7zXZ", "compressed by xz", _UNPACK),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"\x89PNG", "an image", "Describe it in a text."),
    (b"\xff\xd8\xff", "an image", "Describe it in a text."),
    (
        b"PGDMP",
        "a dump of Postgres",
        "Use `folklore restore` for a backup of Folklore.",
    ),
)
_TAR_AT = 257
# Tables of databases by which their programs are known.
_CLAUDE_MEM_QUERY = (
    "Its observations are lines of `sqlite3 FILE \"select json_object('content', coalesce(title || char(10), '') || "
    "coalesce(narrative, text, ''), 'kind', type, 'occurred_at', created_at) from observations\" | folklore import -`."
)
_DATABASES: tuple[tuple[frozenset[str], str, str], ...] = (
    (frozenset({"observations", "sdk_sessions"}), "the database of claude-mem", _CLAUDE_MEM_QUERY),
    (frozenset({"observations", "session_summaries"}), "the database of claude-mem", _CLAUDE_MEM_QUERY),
    (frozenset({"memories", "memory_embeddings"}), "the database of mcp-memory-service", "Export it as JSON, and import that."),
    (frozenset({"memories", "access_controls"}), "the database of OpenMemory", "Export a backup there, and import its zip file."),
    (frozenset({"cursorDiskKV"}), "the database of Cursor", "Its rules are in .cursor/rules: `folklore import .`"),
    (frozenset({"entity", "observation", "relation"}), "the database of Basic Memory", "Import its folder of Markdown pages."),
)  # fmt: skip


class _Shape(NamedTuple):
    """The form of a JSON document: what it is, how it is known by the document and a record, and what to do."""

    name: str
    fits: Callable[[Any, dict[str, Any]], bool]
    advice: str


def _has(*names: str) -> Callable[[Any, dict[str, Any]], bool]:
    return lambda _document, record: all(name in record for name in names)


def _document_has(*names: str) -> Callable[[Any, dict[str, Any]], bool]:
    return lambda document, _record: (
        isinstance(document, dict) and all(name in document for name in names)
    )


def _is_of_type(type_: str) -> Callable[[Any, dict[str, Any]], bool]:
    return lambda _document, record: record.get("type") == type_


_NOTES = "Its notes are imported by `folklore import ~/.claude`; what it says is proposed by its hooks."
_PAGES = "Export it as Markdown, and import that folder."
_TRANSCRIPT = "a transcript of Claude Code"
_SAVE = "Save its texts as Markdown pages, and import their folder."
_SHAPES = (
    _Shape(_TRANSCRIPT, _has("sessionId", "uuid"), _NOTES),
    _Shape(_TRANSCRIPT, _has("leafUuid", "summary"), _NOTES),
    _Shape(_TRANSCRIPT, _is_of_type("file-history-snapshot"), _NOTES),
    _Shape(_TRANSCRIPT, _is_of_type("queue-operation"), _NOTES),
    _Shape("the history of Claude Code", _has("display", "pastedContents"), _NOTES),
    _Shape("a transcript of Codex", _is_of_type("session_meta"), _AS_LINES),
    _Shape("a graph of Roam", _has("title", "children"), _PAGES),
    _Shape("a graph of Logseq", _has("page-name", "children"), _PAGES),
    _Shape("a graph of Logseq", _document_has("version", "blocks"), _PAGES),
    _Shape("a canvas of Obsidian", _document_has("nodes", "edges"), _PAGES),
    _Shape("a notebook of Jupyter", _document_has("cells", "nbformat"), _AS_MARKDOWN),
    _Shape("a note of Google Keep", _has("textContent", "isTrashed"), _AS_LINES),
    _Shape("memories.json of Claude's export", _has("conversations_memory"), _SAVE),
    _Shape("projects.json of Claude's export", _has("prompt_template", "docs"), _SAVE),
    _Shape("an agent of Letta", _document_has("agents", "blocks"), _AS_LINES),
    _Shape("messages of a chat", _has("role", "content"), _AS_LINES),
    _Shape("messages of a chat", _has("messages"), _AS_LINES),
)


def read_format(path: Path) -> str | None:
    """Return the format of an export of another system by what is in it, None for an unknown one. Raises InvalidInput.

    The error names what the file is, if that is known and not read.
    """
    refuse_unreadable(path)
    document, record = _first(path)
    if record is None:
        if document is None:
            _text_format(path)
        return None
    if form := _json_format(document, record):
        return form
    if "content" not in record or "role" in record:
        _refuse_shape(path.name, document, record)
    return None


def refuse_unreadable(path: Path) -> None:
    """Raise InvalidInput for a file that no format reads, with what it is and what to do."""
    head = _head(path, _FEW_BYTES)
    for beginning, name, advice in _BEGINNINGS:
        if head.startswith(beginning):
            raise _unreadable(path.name, name, advice)
    if head[_TAR_AT : _TAR_AT + 5] == b"ustar":
        raise _unreadable(path.name, "a tar archive", _UNPACK)
    if head.startswith(b"SQLite format 3\0"):
        _refuse_database(path)
    if head.startswith(ZIP):
        _refuse_zip(path)
    text = head.decode("utf-8-sig", "ignore").lstrip().lower()
    if text.startswith(("<!doctype html", "<html")):
        _refuse_page(path)
    if text.startswith(("<?xml", "<opml", "<en-export")):
        name = "an export of Evernote" if "<en-export" in text else "a document in XML"
        raise _unreadable(path.name, name, _AS_MARKDOWN)


def described(path: Path) -> str | None:
    """Return a sentence on what a file looks like whose lines were not read, None for an unknown one."""
    try:
        form = read_format(path)
        document, record = _first(path)
    except InvalidInput as error:
        return str(error)
    if form is not None:
        return f"{path.name} looks like {form}: use --format {form}."
    if record is None:
        return None
    names = ", ".join(name[:40] for name in list(record)[:8]) or "none"
    whole = "" if document is record else "first record "
    return f"The {whole or 'file '}has the fields {names}. A memory needs `content`."


def _head(path: Path, most: int) -> bytes:
    """Return the beginning of a file, of a compressed one unpacked, of a zip file as it is."""
    try:
        with path.open("rb") as file:
            if file.read(len(ZIP)) == ZIP and most == _FEW_BYTES:
                return ZIP
            file.seek(0)
            return head_of(file, most)
    except (OSError, InvalidInput):
        return b""


def _first(path: Path) -> tuple[Any, dict[str, Any] | None]:
    """Return the first JSON value of a file, and its first record; None for a file that has none."""
    head = _head(path, _HEAD_BYTES)
    with suppress(InvalidInput):
        for document in JsonValues(_Head(head)):
            records = listed(document, _LISTS_OF_FORMATS)
            record = next((entry for entry in records if isinstance(entry, dict)), None)
            is_list = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
            return [document] if is_list else document, record
    # A document that is longer than its head: the fields before its first list, and the first record there.
    return _first_of_long(head.decode("utf-8-sig", "ignore"))


def _first_of_long(text: str) -> tuple[Any, dict[str, Any] | None]:
    """Return the same of a document of which there is the beginning alone, with the fields before its list."""
    decode = json.JSONDecoder().raw_decode
    for name in _LISTS_OF_FORMATS:
        start = re.search(rf'"{name}"\s*:\s*\[\s*', text)
        if start is None:
            continue
        with suppress(ValueError, RecursionError):
            record, _ = decode(text, start.end())
            before = [
                key for key in _BEFORE_LIST if f'"{key}"' in text[: start.start()]
            ]
            if isinstance(record, dict):
                return dict.fromkeys(before) | {name: [record]}, record
    return None, None


class _Head:
    """The beginning of a file as one that is not at its end: a value that goes on is no value."""

    def __init__(self, head: bytes) -> None:
        self._head = head

    def read(self, _size: int) -> bytes:
        head = self._head
        self._head = b""
        return head


def _json_format(document: Any, record: dict[str, Any]) -> str | None:
    """Return the format that the fields of a record are of alone."""
    is_listed = document is not record
    if "folklore" in record:
        return "jsonl"
    if _is_text(record, "name") and "observations" in record:
        return "mcp-memory-json"
    if _is_text(record, "from") and _is_text(record, "relationType"):
        return "mcp-memory-json"
    if _is_text(record, "memory") and "content" not in record:
        return "mem0"
    if not _is_text(record, "content"):
        return None
    if is_listed and _is_text(record, "content_hash"):
        return "mcp-memory-service"
    if _document_has("user", "apps")(document, record):
        return "mem0"  # the backup of OpenMemory
    if {"state", "app", "categories"} <= record.keys():
        return "mem0"
    return None


def _refuse_shape(name: str, document: Any, record: dict[str, Any]) -> None:
    for shape in _SHAPES:
        if shape.fits(document, record):
            raise _unreadable(name, shape.name, shape.advice)


def _refuse_database(path: Path) -> None:
    tables = _tables(path)
    for known, name, advice in _DATABASES:
        if known <= tables:
            raise _unreadable(path.name, name, advice.replace("FILE", path.name))
    listed_tables = ", ".join(sorted(tables)[:8])
    if tables:
        name = f"a database of SQLite with the tables {listed_tables}"
    else:
        name = "a database of SQLite"
    raise _unreadable(path.name, name, _AS_LINES)


def _tables(path: Path) -> frozenset[str]:
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            rows = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
            return frozenset(str(name) for (name,) in rows)
    except sqlite3.Error:
        return frozenset()


def _refuse_zip(path: Path) -> None:
    """Raise for a zip file that is a document or a folder of pages; exports of one file are read."""
    try:
        with ZipFile(path) as archive:
            names = archive.namelist()
    except (BadZipFile, OSError):
        return
    folders = {name.partition("/")[0] for name in names}
    for folder, kind in (
        ("word", "a document of Word"),
        ("xl", "a table of Excel"),
        ("ppt", "slides"),
    ):
        if folder in folders:
            raise _unreadable(path.name, kind, _AS_MARKDOWN)
    if "mimetype" in names:
        raise _unreadable(path.name, "a book or a document of an office", _AS_MARKDOWN)
    pages = [
        name for name in names if name.lower().endswith((".md", ".markdown", ".html"))
    ]
    records = [name for name in names if name.endswith((".json", ".jsonl"))]
    if pages and not records:
        raise _unreadable(path.name, f"a zip file with {len(pages):,} pages", _UNPACK)


def _refuse_page(path: Path) -> None:
    head = _head(path, _HEAD_BYTES)
    if b"jsonData" in head or b"chat.html" in head or b"<title>ChatGPT" in head:
        raise _unreadable(
            path.name,
            "chat.html of ChatGPT's export",
            "Import the zip file of the export, or conversations.json beside it.",
        )
    raise _unreadable(path.name, "a page in HTML", _AS_MARKDOWN)


def _text_format(path: Path) -> None:
    """Raise for a file without JSON, as what it is; nothing for one that may be meant as JSON."""
    head = _head(path, _FEW_BYTES)
    if b"\0" in head:
        raise _unreadable(path.name, "a binary file", _AS_LINES)
    is_other = head == ZIP or not head.strip()
    if is_other or b"{" in head or b"[" in head:
        return
    if _is_table(head.decode("utf-8-sig", "ignore").splitlines()):
        raise _unreadable(path.name, "a table in CSV", _AS_LINES)
    raise _unreadable(path.name, "plain text", _AS_PAGE)


def _is_table(lines: list[str]) -> bool:
    """Return whether the second line has as many separators as the first, which has the names."""
    if len(lines) < 2:
        return False
    return any(
        0 < lines[0].count(sign) <= lines[1].count(sign) for sign in (",", "\t", ";")
    )


def _unreadable(name: str, what: str, advice: str) -> InvalidInput:
    return InvalidInput(
        "FILE", f"{name} looks like {what}, which is not read.", hint=advice
    )


def _is_text(record: dict[str, Any], name: str) -> bool:
    value = record.get(name)
    return isinstance(value, str) and bool(value.strip())
