"""Exports of mem0, OpenMemory and mcp-memory-service: JSON documents with a list of records, or records by line.

mem0 (`get_all`, an export): {"results": [{"id", "memory", "hash", "metadata", "categories", "created_at", "updated_at",
"user_id", "agent_id", "app_id", "run_id", "expiration_date"}, …]}, or the list alone. OpenMemory (its backup, a zip file):
{"user", "apps", "categories", "memories": [{"id", "content", "state", "app_id", "category_ids", …}]}, in which ids stand
for names. mcp-memory-service: {"export_metadata": {…}, "memories": [{"content", "content_hash", "tags", "created_at",
"updated_at", "memory_type", "metadata"}, …]}, times in seconds since 1970. A document is read whole: these exports fit into
memory, where they come from.

Databases hold lists and objects as texts in JSON, and exports keep them so: they are decoded. A field that is not used is
named in the line, and so is one whose value has another type.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import Any, BinaryIO

from folklore.contract.lines import IGNORED, Lines, Raw, is_state, state_of
from folklore.errors import InvalidInput
from folklore.importers.json_values import json_records, listed
from folklore_import.lines import (
    id_of,
    line_of,
    record_lines,
    skipped_line,
    uuid_or,
    valid_kind,
)

_CONTENT = ("memory", "content", "text", "data")
_TAG_CHARACTERS = 100
_MOST_TAGS = 64
# Numbers above it are milliseconds since 1970, not seconds.
_MOST_SECONDS = 10**11


def mem0_lines(source: BinaryIO) -> Lines:
    """Yield the memories of an export of mem0 or OpenMemory."""
    return record_lines(json_records(source, _mem0_records), _mem0)


def service_lines(source: BinaryIO) -> Lines:
    """Yield the memories of an mcp-memory-service export."""
    return record_lines(json_records(source), _service)


class ForeignFields:
    """The fields of a record of another system. Those that nothing reads are named by `unused`."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._record = record
        self._used: set[str] = set()

    def text(self, *names: str) -> str:
        """Return the first text under these names that is not blank, else an empty one."""
        for name in names:
            value = self._record.get(name)
            if isinstance(value, str) and value.strip():
                self._used.add(name)
                return value
        return ""

    def name(self, *names: str) -> str:
        """Return the first text or number under these names, as a text."""
        for name in names:
            value = self._record.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._used.add(name)
                return str(value)
            if text := self.text(name):
                return text
        return ""

    def tags(self, *names: str) -> list[str]:
        """Return the words of lists, of texts in JSON, and of texts with commas."""
        return [tag for name in names for tag in self._tags_of(name)]

    def _tags_of(self, name: str) -> list[str]:
        entries = decoded_json(self._record.get(name))
        if isinstance(entries, str):
            entries = entries.split(",")
        if not isinstance(entries, list):
            return []
        words = [_word(entry) for entry in entries]
        are_tags = all(word is not None for word in words)
        tags = [word for word in words if word]
        are_short = all(len(tag) <= _TAG_CHARACTERS for tag in tags)
        if are_tags and are_short and len(words) <= _MOST_TAGS:
            self._used.add(name)
        return [tag[:_TAG_CHARACTERS] for tag in tags[:_MOST_TAGS]]

    def object(self, name: str) -> dict[str, Any] | None:
        """Return an object, which may be a text in JSON."""
        value = decoded_json(self._record.get(name))
        if not isinstance(value, dict):
            return None
        self._used.add(name)
        return value

    def time(self, *names: str) -> str | None:
        """Return the first time under these names: ISO 8601, or seconds or milliseconds since 1970."""
        for name in names:
            moment = _moment(self._record.get(name))
            if moment is not None:
                self._used.add(name)
                return moment
        return None

    def unused(self) -> list[str]:
        """Return the names of other fields with a value."""
        return sorted(
            name[:60]
            for name, value in self._record.items()
            if value and name not in self._used and not is_state(name, value)
        )


def decoded_json(value: Any) -> Any:
    """Return a list or an object that is a text in JSON; another value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _word(entry: Any) -> str | None:
    """Return an entry of a list of tags as a word: a text, a number, or an object with a name."""
    named = entry.get("name") if isinstance(entry, dict) else entry
    if isinstance(named, bool) or not isinstance(named, str | int | float):
        return None
    return str(named).strip()


def _moment(value: object) -> str | None:
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value.strip()).isoformat()
            except ValueError:
                value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MOST_SECONDS else value
            return datetime.fromtimestamp(seconds, UTC).isoformat()
    return None


def _mem0_records(document: Any) -> list[Any]:
    """Return the records of a document. Those of OpenMemory get the names for which they have ids."""
    if not isinstance(document, dict) or not isinstance(document.get("user"), dict):
        return listed(document)
    user = document["user"].get("user_id")
    apps = _names_by_id(document.get("apps"))
    categories = _names_by_id(document.get("categories"))
    records = listed(document)
    for index, record in enumerate(records):
        if isinstance(record, dict):
            records[index] = _with_names(record, user, apps, categories)
    return records


def _names_by_id(entries: Any) -> dict[str, str]:
    names: dict[str, str] = {}
    if not isinstance(entries, list):
        return names
    for entry in entries:
        if isinstance(entry, dict) and entry.get("id") and entry.get("name"):
            names[str(entry["id"])] = str(entry["name"])
    return names


def _with_names(
    record: dict[str, Any],
    user: Any,
    apps: Mapping[str, str],
    categories: Mapping[str, str],
) -> dict[str, Any]:
    """Return a record of OpenMemory with the names for which it has ids; an id without a name stays."""
    named = dict(record)
    if isinstance(user, str) and user:
        named["user_id"] = user
    if str(record.get("app_id")) in apps:
        named["app_id"] = apps[str(record["app_id"])]
    ids = record.get("category_ids")
    if isinstance(ids, list) and all(str(id_) in categories for id_ in ids):
        del named["category_ids"]
        named["categories"] = [categories[str(id_)] for id_ in ids]
    return named


def _mem0(record: dict[str, Any]) -> Iterator[Raw]:
    if state := state_of(record):
        yield skipped_line(f"{state} memory")
        return
    fields = ForeignFields(record)
    content = fields.text(*_CONTENT)
    if not content:
        yield InvalidInput("memory", "is missing.")
        return
    id_ = fields.name("id")
    user = fields.name("user_id")
    origins = {
        "user": user,
        "agent": fields.name("agent_id"),
        "app": fields.name("app_id", "app"),
    }
    tags = [
        f"{name}:{value}"[:_TAG_CHARACTERS] for name, value in origins.items() if value
    ]
    tags += fields.tags("categories", "tags")
    values = {
        "id": uuid_or(id_, "mem0", user, content),
        "content": content,
        "tags": tags[:_MOST_TAGS],
        "source": _source("mem0", id_),
        "session": fields.name("run_id")[:200],
        "metadata": fields.object("metadata"),
        "created_at": fields.time("created_at"),
        "updated_at": fields.time("updated_at"),
        "expires_at": _end_of_day(fields.time("expiration_date")),
    }
    yield line_of(values | {IGNORED: fields.unused()})


def _end_of_day(moment: str | None) -> str | None:
    """Return the last second of a day that is a date alone: mem0 shows a memory on the day itself."""
    if moment is None:
        return None
    end = datetime.fromisoformat(moment)
    if end.time() == time():
        end = end.replace(hour=23, minute=59, second=59)
    return end.isoformat()


def _service(record: dict[str, Any]) -> Iterator[Raw]:
    if state := state_of(record):
        yield skipped_line(f"{state} memory")
        return
    fields = ForeignFields(record)
    content = fields.text("content")
    if not content:
        yield InvalidInput("content", "is missing.")
        return
    hash_ = fields.text("content_hash")
    type_ = valid_kind(str(record.get("memory_type") or ""))
    if type_:
        fields.text("memory_type")  # not named as unused
    values = {
        "id": id_of("mcp-memory-service", hash_ or content),
        "content": content,
        "kind": type_ or "note",
        "tags": fields.tags("tags"),
        "source": _source("mcp-memory-service", hash_),
        "metadata": fields.object("metadata"),
        "created_at": fields.time("created_at", "created_at_iso"),
        "updated_at": fields.time("updated_at", "updated_at_iso"),
    }
    for other in ("created_at_iso", "updated_at_iso"):
        fields.time(other)  # the same moment once more
    yield line_of(values | {IGNORED: fields.unused()})


def _source(system: str, id_: str) -> str:
    return f"{system}:{id_}"[:1000] if id_ else system
