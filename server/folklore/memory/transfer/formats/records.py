"""Exports of mem0 and mcp-memory-service: JSON documents with a list of records.

mem0 (`get_all`, an export): {"results": [{"id", "memory", "hash", "metadata", "categories", "created_at", "updated_at",
"user_id", "agent_id", "app_id", "run_id"}, …]}, or the list alone. mcp-memory-service: {"export_metadata": {…},
"memories": [{"content", "content_hash", "tags", "created_at", "updated_at", "memory_type", "metadata"}, …]}, times in
seconds since 1970. A document is read whole: the exports of both systems fit into memory, where they come from.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import (
    Lines,
    Raw,
    id_of,
    line_of,
    numbered,
    uuid_or,
    valid_kind,
)

_NOT_SPACE = re.compile(r"\S")
_LISTS = ("results", "memories", "records")
_FIRST_RECORD = re.compile(rf'(?:^|"(?:{"|".join(_LISTS)})"\s*:)\s*\[\s*')
_HEAD_BYTES = 1 << 20  # by which a format is recognised
_decode = json.JSONDecoder().raw_decode


def mem0_lines(source: BinaryIO) -> Lines:
    """Yield the memories of a mem0 export."""
    return _converted(_mem0, records_of(source, _LISTS))


def service_lines(source: BinaryIO) -> Lines:
    """Yield the memories of an mcp-memory-service export."""
    return _converted(_service, records_of(source, ("memories",)))


def _converted(
    convert: Callable[[Any], Raw], records: Iterator[dict[str, Any] | InvalidInput]
) -> Lines:
    return numbered(
        record if isinstance(record, InvalidInput) else convert(record)
        for record in records
    )


def record_format(path: Path) -> str | None:
    """Return the format of an export if the fields of its first record are of one format alone, else None."""
    with (
        suppress(OSError, ValueError, IndexError, RecursionError),
        path.open("rb") as file,
    ):
        text = file.read(_HEAD_BYTES).decode("utf-8-sig", "ignore").lstrip()
        try:
            document, _ = _decode(text)
            record = _listed(document, _LISTS)[0]
        except ValueError:  # it is longer than the head
            document, start = None, _FIRST_RECORD.search(text)
            record = None if start is None else _decode(text, start.end())[0]
        if not isinstance(record, dict):
            return None
        if _is_text(record, "memory") and "content" not in record:
            return "mem0"
        if (
            _is_text(record, "content")
            and _is_text(record, "content_hash")
            and record is not document
        ):
            return "mcp-memory-service"
    return None


def records_of(
    source: BinaryIO, names: tuple[str, ...]
) -> Iterator[dict[str, Any] | InvalidInput]:
    """Yield the objects of a list, of the list under one of `names` in an object, or of JSON Lines.

    Raises InvalidInput, after the readable values, if the document cannot be read any further.
    """
    try:
        text = source.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(
            "FILE", "is not UTF-8.", hint="Convert it and import it again."
        ) from None
    at = 0
    while (start := _NOT_SPACE.search(text, at)) is not None:
        try:
            value, at = _decode(text, start.start())
        except (ValueError, RecursionError) as error:
            wrong = (
                "is not JSON, or ends too early,"
                if isinstance(error, ValueError)
                else "is nested too deeply"
            )
            problem = f"{wrong} from character {start.start() + 1:,} on."
            raise InvalidInput(
                "FILE", problem, hint="--format names other formats."
            ) from None
        for record in _listed(value, names):
            yield (
                record
                if isinstance(record, dict)
                else InvalidInput("record", "is not a JSON object.")
            )


def _listed(value: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the records of a document, or the document itself if it has no list of them."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    documents = (
        [value, value["data"]] if isinstance(value.get("data"), dict) else [value]
    )
    lists = [
        document[name]
        for document in documents
        for name in names
        if isinstance(document.get(name), list)
    ]
    return list(chain.from_iterable(lists)) if lists else [value]


def _mem0(record: Any) -> Raw:
    content = next(
        (
            record[name]
            for name in ("memory", "content", "text", "data")
            if _is_text(record, name)
        ),
        None,
    )
    if content is None:
        return InvalidInput("memory", "is missing.")
    tags = [
        f"{name}:{value}"
        for name in ("user", "agent", "app")
        if (value := record.get(f"{name}_id"))
    ]
    return line_of(
        {
            "id": uuid_or(
                record.get("id"), "mem0", str(record.get("user_id") or ""), content
            ),
            "content": content,
            "tags": _tags([*tags, *_list(record.get("categories"))]),
            "source": _source("mem0", record.get("id")),
            "session": str(record.get("run_id") or "")[:200],
            "metadata": _object(record.get("metadata")),
            "created_at": record.get("created_at"),
            "updated_at": record.get("updated_at"),
        }
    )


def _service(record: Any) -> Raw:
    if not _is_text(record, "content"):
        return InvalidInput("content", "is missing.")
    tags, hash_ = record.get("tags"), str(record.get("content_hash") or "")
    return line_of(
        {
            "id": id_of("mcp-memory-service", hash_ or record["content"]),
            "content": record["content"],
            "kind": valid_kind(str(record.get("memory_type") or "")) or "note",
            "tags": _tags(tags.split(",") if isinstance(tags, str) else _list(tags)),
            "source": _source("mcp-memory-service", hash_),
            "metadata": _object(record.get("metadata")),
            "created_at": record.get("created_at") or record.get("created_at_iso"),
            "updated_at": record.get("updated_at") or record.get("updated_at_iso"),
        }
    )


def _is_text(record: Mapping[str, Any], name: str) -> bool:
    return isinstance(record.get(name), str) and bool(record[name].strip())


def _source(system: str, id_: object) -> str:
    return f"{system}:{id_}"[:1000] if id_ else system


def _tags(values: Sequence[object]) -> list[str]:
    return [tag[:100] for value in values if (tag := str(value).strip())][:64]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
