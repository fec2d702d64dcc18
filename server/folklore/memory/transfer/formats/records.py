"""Exports of mem0 and mcp-memory-service: JSON documents with a list of records.

mem0 (`get_all`, an export): {"results": [{"id", "memory", "hash", "metadata", "categories", "created_at", "updated_at",
"user_id", "agent_id", "app_id", "run_id"}, …]}, or the list alone. mcp-memory-service: {"export_metadata": {…},
"memories": [{"content", "content_hash", "tags", "created_at", "updated_at", "memory_type", "metadata"}, …]}, times in
seconds since 1970. A document is read whole: the exports of both systems fit into memory, where they come from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import Lines, SourceLine, id_of, line_of, uuid_or, valid_kind

_NOT_SPACE = re.compile(r"\S")
_decode = json.JSONDecoder().raw_decode


def mem0_lines(source: BinaryIO) -> Lines:
    """Yield the memories of a mem0 export."""
    return _numbered(map(_mem0, records_of(source, ("results", "memories", "records"))))


def service_lines(source: BinaryIO) -> Lines:
    """Yield the memories of an mcp-memory-service export."""
    return _numbered(map(_service, records_of(source, ("memories",))))


def _numbered(lines: Iterator[SourceLine]) -> Lines:
    return ((number, line) for number, line in enumerate(lines, start=1))


def records_of(source: BinaryIO, names: tuple[str, ...]) -> Iterator[dict[str, Any] | InvalidInput]:
    """Yield the objects of a list, of the list under one of `names` in an object, or of JSON Lines.

    Raises InvalidInput, after the readable values, if the document cannot be read any further.
    """
    try:
        text = source.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("FILE", "is not UTF-8.", hint="Convert it and import it again.") from None
    at = 0
    while (start := _NOT_SPACE.search(text, at)) is not None:
        try:
            value, at = _decode(text, start.start())
        except (ValueError, RecursionError):
            problem = f"is not JSON from character {start.start() + 1:,} on, or ends too early."
            raise InvalidInput("FILE", problem, hint="--format names other formats.") from None
        for record in _listed(value, names):
            yield record if isinstance(record, dict) else InvalidInput("record", "is not a JSON object.")


def _listed(value: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the records of a document, or the document itself if it has no list of them."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    documents = [item for item in (value, value.get("data")) if isinstance(item, dict)]
    lists = [document[name] for document in documents for name in names if isinstance(document.get(name), list)]
    return [record for records in lists for record in records] if lists else [value]


def _mem0(record: Any) -> SourceLine:
    if isinstance(record, InvalidInput):
        return record
    content = next((record[name] for name in ("memory", "content", "text", "data") if _is_text(record, name)), None)
    if content is None:
        return InvalidInput("memory", "is missing.")
    owner = str(record.get("user_id") or "")
    tags = [f"{name}:{value}" for name in ("user", "agent", "app") if (value := record.get(f"{name}_id"))]
    categories = record.get("categories")
    tags += [str(category) for category in categories] if isinstance(categories, list) else []
    return line_of(
        {
            "id": uuid_or(record.get("id"), "mem0", owner, content),
            "content": content,
            "tags": [_label(tag) for tag in tags][:64],
            "source": f"mem0:{record['id']}"[:1000] if record.get("id") else "mem0",
            "session": _text(record.get("run_id"), 200),
            "metadata": _object(record.get("metadata")),
            "created_at": record.get("created_at"),
            "updated_at": record.get("updated_at"),
        }
    )


def _service(record: Any) -> SourceLine:
    if isinstance(record, InvalidInput):
        return record
    if not _is_text(record, "content"):
        return InvalidInput("content", "is missing.")
    tags = record.get("tags") or []
    tags = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else []
    hash_ = str(record.get("content_hash") or "")
    return line_of(
        {
            "id": id_of("mcp-memory-service", hash_ or record["content"]),
            "content": record["content"],
            "kind": valid_kind(str(record.get("memory_type") or "")) or "note",
            "tags": [_label(str(tag)) for tag in tags if str(tag).strip()][:64],
            "source": f"mcp-memory-service:{hash_}"[:1000] if hash_ else "mcp-memory-service",
            "metadata": _object(record.get("metadata")),
            "created_at": record.get("created_at") or record.get("created_at_iso"),
            "updated_at": record.get("updated_at") or record.get("updated_at_iso"),
        }
    )


def _is_text(record: Mapping[str, Any], name: str) -> bool:
    return isinstance(record.get(name), str) and bool(record[name].strip())


def _label(tag: str) -> str:
    return tag.strip()[:100]


def _text(value: object, limit: int) -> str | None:
    return None if value is None else str(value)[:limit]


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
