"""Rows become model objects here and nowhere else."""

from __future__ import annotations

import json
from datetime import datetime

import asyncpg

from folklore.model import Filters, Memory, Relation, Revision

# Scored memories below this are left out of every answer; unscored ones are kept.
QUALITY_FLOOR = 0.05


def memory_of(row: asyncpg.Record, namespace: str) -> Memory:
    """The memory of one row of `record.sql`'s columns."""
    return Memory(
        id=row["id"],
        namespace=namespace,
        content=row["content"],
        kind=row["kind"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        author=row["author"],
        language=row["language"],
        summary=row["summary"],
        tags=tuple(row["tags"]),
        source=row["source"],
        session=row["session"],
        position=row["position"],
        agent=row["agent"],
        paths=tuple(row["paths"]),
        commit=row["commit"],
        importance=short(row["importance"]),
        confidence=short(row["confidence"]),
        priority=row["priority"],
        quality=short(row["quality"]),
        metadata=None if row["metadata"] is None else json.loads(row["metadata"]),
        occurred_at=row["occurred_at"],
        expires_at=row["expires_at"],
        forgotten_at=row["forgotten_at"],
        superseded_at=row["superseded_at"],
        superseded_by=row["superseded_by"],
        last_recalled_at=row["last_recalled_at"],
        recall_count=row["recall_count"],
        revision=row["revision"],
    )


def relation_of(row: asyncpg.Record) -> Relation:
    """The relation of one row of the relations table."""
    return Relation(
        from_id=row["from_id"],
        type=row["type"],
        to_id=row["to_id"],
        strength=round(row["strength"], 6),
        author=row["author"],
        created_at=row["created_at"],
    )


def revision_of(row: asyncpg.Record) -> Revision:
    """The revision of one row of the revisions table."""
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
    """A four-byte float comes back as 0.800000011920929; nobody stored that."""
    return None if value is None else round(value, 6)


def seen(name: str, filters: Filters, now: datetime) -> tuple[str, dict[str, object]]:
    """The statement that asks what these filters ask and no more, and the parameters of its filters."""
    if filters.empty:
        return f"{name}/plain", {"now": now, "quality_floor": QUALITY_FLOOR}
    return name, visibility(filters, now)


def visibility(filters: Filters, now: datetime) -> dict[str, object]:
    """The parameters of `visible.sql`; an empty filter is null, which the planner folds away."""
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
        "session": filters.session,
        "author": filters.author,
        "paths": list(filters.paths) or None,
        "since": filters.since,
        "until": filters.until,
    }
