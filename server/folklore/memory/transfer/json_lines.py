"""The export format, JSON Lines. Reading takes more than writing gives: a line with `content` alone is enough."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from folklore.db.stores.transfer import Origin
from folklore.db.stores.transfer_rows import Entry, Past
from folklore.errors import InvalidInput
from folklore.memory.ids import new_id
from folklore.memory.transfer.key_lines import FIELD as KEYS
from folklore.memory.transfer.key_lines import KeysField
from folklore.memory.transfer.line_times import Time, ZonedTime
from folklore.memory.transfer.tied_lines import TiedLine, read_tied
from folklore.memory.transfer.vector_lines import FIELD, EmbeddingField, embedding_field
from folklore.model import DEFAULT_KIND, DEFAULT_LANGUAGE, Draft
from folklore.text import names
from folklore.text.clean import clean
from folklore.text.languages import language as language_of

VERSION = 1
# Kinds of lines that an import knows and passes over; anything else that has content is a memory.
_PASSED_OVER = frozenset({"question", "relation", "revision"})  # the last two where they tie no memories of ours


_Count = Annotated[int, Field(ge=0, lt=2**31)]


class _MemoryLine(BaseModel):
    """The fields of a memory line, in the order they are written."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    namespace: str | None = None
    id: UUID | None = None
    content: str
    summary: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] | None = None
    source: str | None = None
    session: str | None = None
    position: int | None = None
    occurred_at: Time | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    author: Annotated[str, Field(max_length=200)] | None = None
    agent: Annotated[str, Field(max_length=200)] | None = None
    importance: float | None = None
    confidence: float | None = None
    priority: int | None = None
    quality: Annotated[float, Field(ge=0, le=1000)] | None = None
    trust: Annotated[str, Field(max_length=40)] | None = None
    language: str | None = None
    paths: tuple[str, ...] | None = None
    commit: str | None = None
    metadata: dict[str, JsonValue] | None = None
    expires_at: Time | None = None
    forgotten_at: Time | None = None
    superseded_at: Time | None = None
    superseded_by: UUID | None = None
    last_recalled_at: Time | None = None
    recall_count: _Count | None = None
    confirmed_count: _Count | None = None
    revision: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    idempotency_key: str | None = None
    idempotency_keys: KeysField | None = None
    embedding: EmbeddingField | None = None


class _NamespaceIn(BaseModel):
    name: str
    language: str = DEFAULT_LANGUAGE
    description: Annotated[str, Field(max_length=2_000)] | None = None
    created_at: ZonedTime
    created_by: Annotated[str, Field(max_length=200)]


class _Header(BaseModel):
    folklore: int
    namespaces: tuple[_NamespaceIn, ...] = ()


_FIELDS = frozenset(_MemoryLine.model_fields) | {"type"}


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """What stands before the memories of an export."""

    namespaces: tuple[Origin, ...]


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """A memory as its line states it, unchecked; `ignored` names the fields that have no place in a memory."""

    namespace: str | None
    entry: Entry
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OtherLine:
    """A line that is not a memory, by its type."""

    type: str


def read_line(raw: bytes) -> HeaderLine | MemoryLine | TiedLine | OtherLine:
    """What a line says. Raises InvalidInput naming the field, never repeating its value."""
    line = _object(raw)
    kind = line.get("type") or "memory"
    kind = kind if isinstance(kind, str) else "of no type"
    if tied := read_tied(kind, line):
        return tied
    if "folklore" in line and "content" not in line:
        return _header(line)
    if kind in _PASSED_OVER or (kind != "memory" and "content" not in line):
        return OtherLine(kind[:40])
    ignored = line.keys() - _FIELDS
    if kind != "memory":
        ignored |= {"type"}
    if "id" in line and not _is_uuid(line["id"]):  # another system's: the memory gets an id of its own
        del line["id"]
        ignored |= {"id"}
    if isinstance(line.get(FIELD), list):  # likewise: bare numbers do not say which model made them
        del line[FIELD]
        ignored |= {FIELD}
    try:
        told = _MemoryLine.model_validate(line)
    except ValidationError as error:
        raise _wrong(error) from None
    return MemoryLine(told.namespace, _entry(told), tuple(sorted(ignored)))


def header_line(exported_at: datetime, namespaces: Sequence[Origin]) -> str:
    """The first line of an export."""
    described = [
        {
            "name": origin.name,
            "language": origin.language,
            "description": origin.description,
            "created_at": _iso(origin.created_at),
            "created_by": origin.created_by,
        }
        for origin in namespaces
    ]
    return _dump({"folklore": VERSION, "exported_at": _iso(exported_at), "namespaces": [*map(_set, described)]})


def memory_line(namespace: str, entry: Entry) -> str:
    """One memory as a line, its fields always in the same order, those that are not set left out."""
    draft, past = entry.draft, entry.past
    value: dict[str, Any] = {"type": "memory"}
    for name in _MemoryLine.model_fields:
        given = getattr(draft, name) if name in Draft.__dataclass_fields__ else getattr(past, name, None)
        value[name] = _plain(given)
    value["namespace"] = namespace
    value[KEYS] = dict(entry.keys) or None
    value[FIELD] = None if entry.carried is None else embedding_field(entry.carried)
    return _dump(_set(value))


def is_memory(line: str) -> bool:
    """Whether a line of an export is a memory, and not what hangs on one."""
    return line.startswith(_MEMORY)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        line = json.loads(raw)
    except UnicodeDecodeError:
        raise InvalidInput("line", "is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidInput("line", f"is not JSON ({error.msg}, character {error.pos + 1}).") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
        raise InvalidInput("line", "is not JSON that can be read.") from None
    if not isinstance(line, dict):
        raise InvalidInput("line", "is not a JSON object.")
    return line


def _header(line: dict[str, Any]) -> HeaderLine:
    try:
        told = _Header.model_validate(line)
    except ValidationError as error:
        raise _wrong(error) from None
    if told.folklore > VERSION:
        raise InvalidInput("folklore", f"format {told.folklore} is of a newer Folklore.", hint="Upgrade this one.")
    return HeaderLine(
        tuple(
            Origin(
                id=new_id(),
                name=names.normalise(namespace.name),
                language=language_of(namespace.language),
                created_at=namespace.created_at,
                created_by=clean(namespace.created_by).text.strip(),
                description=clean(namespace.description or "").text.strip() or None,
            )
            for namespace in told.namespaces
        )
    )


def _entry(told: _MemoryLine) -> Entry:
    given = told.model_dump(exclude={"namespace", "kind", "tags", "paths", FIELD})
    stated = {name: value for name, value in given.items() if name in Draft.__dataclass_fields__}
    lived = {name: value for name, value in given.items() if name in Past.__dataclass_fields__}
    for shares in (stated, lived):  # as exact as the database keeps them, so that comparing finds them equal
        for name in ("importance", "confidence", "quality"):
            if shares.get(name) is not None:
                shares[name] = round(shares[name], 6)
    draft = Draft(kind=told.kind or DEFAULT_KIND, tags=told.tags or (), paths=told.paths or (), **stated)
    carried = None if told.embedding is None else told.embedding.carried
    return Entry(draft, Past(**lived), carried, told.idempotency_keys or {})


def _wrong(error: ValidationError) -> InvalidInput:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    return InvalidInput(place or "line", f"{first['msg'].removeprefix('Value error, ')}.")


def _is_uuid(value: object) -> bool:
    try:
        return value is None or (isinstance(value, str) and UUID(value) is not None)
    except ValueError:
        return False


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _iso(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


def _set(value: dict[str, Any]) -> dict[str, Any]:
    return {name: given for name, given in value.items() if given is not None}


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


_MEMORY = _dump({"type": "memory"}).removesuffix("}")
