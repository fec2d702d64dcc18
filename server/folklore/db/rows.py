"""Conversion of rows to model objects, and of drafts to columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import asyncpg

from folklore.model import FIELDS, Draft, FieldType, Filters, Memory, Relation, Revision

# Memories with a lower quality are left out of every answer; those without one are kept.
QUALITY_FLOOR = 0.05


def memory_of(row: asyncpg.Record, namespace: str) -> Memory:
    """Return the memory of one row of `record.sql`'s columns."""
    return Memory(
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
        **fields_of(row),
    )


def fields_of(row: asyncpg.Record) -> dict[str, Any]:
    """Return the declared fields of a row, by name."""
    return {name: row[name] if read is None else read(row[name]) for name, read in _READ}


def columns_of(draft: Draft) -> dict[str, object]:
    """Return the declared fields of a draft by column, as JSON that `jsonb_to_recordset` reads."""
    return {name: getattr(draft, name) if write is None else write(getattr(draft, name)) for name, write in _WRITE}


def relation_of(row: asyncpg.Record) -> Relation:
    """Return the relation of one row of the relations table."""
    return Relation(
        from_id=row["from_id"],
        type=row["type"],
        to_id=row["to_id"],
        strength=round(row["strength"], 6),
        author=row["author"],
        created_at=row["created_at"],
    )


def revision_of(row: asyncpg.Record) -> Revision:
    """Return the revision of one row of the revisions table."""
    return Revision(
        memory_id=row["memory_id"],
        revision=row["revision"],
        action=row["action"],
        author=row["author"],
        agent=row["agent"],
        changed_at=row["changed_at"],
        reason=row["reason"],
        undoes=row["undoes"],
        before=json.loads(row["before"]),
    )


def short(value: float | None) -> float | None:
    """Round a four-byte float, which Postgres returns as 0.800000011920929."""
    return None if value is None else round(value, 6)


def _object(value: str | None) -> object:
    return None if value is None else json.loads(value)


def iso(value: datetime | None) -> str | None:
    """Return a time as ISO 8601."""
    return None if value is None else value.isoformat()


_READERS: Mapping[FieldType, Callable[[Any], object]] = {"tags": tuple, "paths": tuple, "share": short, "json": _object}
_WRITERS: Mapping[FieldType, Callable[[Any], object]] = {"tags": list, "paths": list, "time": iso}
_READ = [(name, _READERS.get(field.type)) for name, field in FIELDS.items()]
_WRITE = [(name, _WRITERS.get(field.type)) for name, field in FIELDS.items()]
_FILTERS = [name for name, field in FIELDS.items() if field.filter]


def seen(name: str, filters: Filters, now: datetime) -> tuple[str, dict[str, object]]:
    """Return the variant of a statement that has only the needed filters, and the parameters of its filters."""
    if filters.empty:
        return f"{name}:plain", {"now": now, "quality_floor": QUALITY_FLOOR}
    return name, visibility(filters, now)


def visibility(filters: Filters, now: datetime) -> dict[str, object]:
    """Return the parameters of `visible.sql`; an unset filter is null, which the planner folds away."""
    return {
        "now": now,
        "as_of": filters.as_of,
        "include_superseded": filters.include_superseded,
        "quality_floor": QUALITY_FLOOR,
        "reflections": filters.reflections,
        "kinds": list(filters.kinds) or None,
        "tags": list(filters.tags) or None,
        "tag_exact": filters.tag_match == "exact",
        "tag_all": filters.tag_mode == "all",
        "exclude_tags": list(filters.exclude_tags) or None,
        "source_prefix": filters.source_prefix,
        "author": filters.author,
        "paths": list(filters.paths) or None,
        "since": filters.since,
        "until": filters.until,
        **{name: filters.equal.get(name) for name in _FILTERS},
    }
