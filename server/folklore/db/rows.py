"""Conversion of rows to model objects, and of drafts to columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from folklore.model import FIELDS, Draft, FieldType, Filters, Memory, Relation, Revision

# a server on stdio imports this before it may take the time to import a driver
if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from asyncpg import Record

Value = TypeVar("Value", bound="DataclassInstance")

# Memories with a lower quality are left out of every answer; those without one are kept.
QUALITY_FLOOR = 0.05
# The sign before a lexeme in cues (folklore_cues).
_IN_CUES = "~"


@lru_cache(50_000)
def lexeme_hash(lexeme: str) -> int:
    """Return the hash of a lexeme, as folklore_word does: even, and the odd one after it for a lexeme in cues."""
    digest = sha256(lexeme.lstrip(_IN_CUES).encode()).digest()
    even = int.from_bytes(digest[:4], "big", signed=True) & ~1
    return even | lexeme.startswith(_IN_CUES)


def in_cues(lexeme: str) -> str:
    """Return a lexeme as it is indexed where cues hold it (folklore_cues)."""
    return f"{_IN_CUES}{lexeme}"


def is_of_cues(key: int) -> bool:
    """Return whether this is the hash of a lexeme in cues."""
    return key % 2 == 1


def made(type_: type[Value], row: Record, /, **others: object) -> Value:
    """Return a dataclass with the columns of its fields' names, arrays as tuples, and `others` in their place."""
    columns = {name: row[name] for name in type_.__dataclass_fields__ if name in row}
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in columns.items()
    }
    return type_(**values | others)


def as_json(rows: object) -> str:
    """Return rows (dataclasses or mappings) as JSON that `jsonb_to_recordset` reads; bytes are hexadecimal."""
    return json.dumps(rows, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def memory_of(row: Record, namespace: str) -> Memory:
    """Return the memory of one row of the columns of `record`."""
    return Memory(  # not by `made`: a recall makes dozens, and 0.4 ms is 5 % of it
        id=row["id"],
        namespace=namespace,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        author=row["author"],
        agent=row["agent"],
        quality=short(row["quality"]),
        forgotten_at=row["forgotten_at"],
        superseded_at=row["superseded_at"],
        superseded_by=row["superseded_by"],
        last_recalled_at=row["last_recalled_at"],
        recall_count=row["recall_count"],
        revision=row["revision"],
        changed_by=row["changed_by"],
        changed_at=row["changed_at"],
        **fields_of(row),
    )


def fields_of(row: Record) -> dict[str, Any]:
    """Return the declared fields of a row, by name."""
    return {
        name: row[name] if read is None else read(row[name]) for name, read in _READ
    }


def columns_of(draft: Draft) -> dict[str, object]:
    """Return the declared fields of a draft by column, as JSON that `jsonb_to_recordset` reads."""
    return {
        name: getattr(draft, name) if write is None else write(getattr(draft, name))
        for name, write in _WRITE
    }


def relation_of(row: Record) -> Relation:
    """Return the relation of one row of the relations table."""
    return made(Relation, row, strength=round(row["strength"], 6))


def revision_of(row: Record) -> Revision:
    """Return the revision of one row of the revisions table."""
    return made(Revision, row, before=json.loads(row["before"]))


def short(value: float | None) -> float | None:
    """Round a four-byte float, which Postgres returns as 0.800000011920929."""
    if value is None:
        return None
    return round(value, 6)


def iso(value: datetime | None) -> str | None:
    """Return a time as ISO 8601."""
    if value is None:
        return None
    return value.isoformat()


_READERS: Mapping[FieldType, Callable[[Any], object]] = {
    "tags": tuple, "paths": tuple, "phrases": tuple, "share": short, "json": lambda value: value and json.loads(value),
    "blobs": tuple,
}  # fmt: skip
_WRITERS: Mapping[FieldType, Callable[[Any], object]] = {
    "tags": list,
    "paths": list,
    "phrases": list,
    "time": iso,
    "blobs": list,
}
_READ = [(name, _READERS.get(field.type)) for name, field in FIELDS.items()]
_WRITE = [(name, _WRITERS.get(field.type)) for name, field in FIELDS.items()]
_FILTERS = [name for name, field in FIELDS.items() if field.filter]


def seen(
    name: str, filters: Filters, now: datetime, searched: Sequence[str] | None = None
) -> tuple[str, dict[str, object]]:
    """Return the variant of a statement that has only the needed filters, and the parameters of its filters.

    `searched` as for `filtered`.
    """
    if filters.empty:
        return f"{name}:plain", {"now": now, "quality_floor": QUALITY_FLOOR}
    return filtered(name, filters, now, searched)


def filtered(
    name: str, filters: Filters, now: datetime, searched: Sequence[str] | None = None
) -> tuple[str, dict[str, object]]:
    """Return the variant of a statement for memories as they are now or at `as_of`, and the parameters of its filters.

    A statement that searches an index leaves out memories whose columns `searched` changed since `as_of`.
    """
    values = visibility(filters, now)
    if filters.as_of is None:
        return name, values
    return f"{name}:as_of", values if searched is None else {
        **values,
        "searched": list(searched),
    }


def visibility(filters: Filters, now: datetime) -> dict[str, object]:
    """Return the parameters of `visible`; an unset filter is null, which the planner folds away."""
    return {
        "now": now,
        "as_of": filters.as_of,
        "include_superseded": filters.include_superseded,
        "quality_floor": QUALITY_FLOOR,
        "faded": filters.faded,
        "reflections": filters.reflections,
        "kinds": list(filters.kinds) or None,
        "tags": list(filters.tags) or None,
        "tag_exact": filters.tag_match == "exact",
        "tag_all": filters.tag_mode == "all",
        "exclude_tags": list(filters.exclude_tags) or None,
        "negations": filters.negations,
        "source_prefix": filters.source_prefix,
        "author": filters.author,
        "paths": list(filters.paths) or None,
        "metadata": filters.metadata,
        "since": filters.since,
        "until": filters.until,
        **{name: filters.equal.get(name) for name in _FILTERS},
    }
