"""Answers as every edge gives them: compact JSON, no nulls, no more than the format asks for."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from folklore.model import Answer, Memory, Recalled

Format = Literal["concise", "detailed", "ids"]
JsonDict = dict[str, Any]


def answer(found: Answer, form: Format) -> JsonDict:
    """A recall's answer; empty parts are left out."""
    value: JsonDict = {
        "memories": [recalled(result, form) for result in found.memories],
        "searched": list(found.searched),
    }
    if found.degraded:
        value["degraded"] = [{"branch": item.branch, "reason": item.reason} for item in found.degraded]
    if found.truncated:
        value["truncated"] = True
    if found.cursor is not None:
        value["cursor"] = found.cursor
    if found.note is not None:
        value["note"] = found.note
    if found.explain is not None:
        value["explain"] = dict(found.explain)
    return value


def recalled(result: Recalled, form: Format) -> JsonDict:
    """One result: `ids` is its id and score, `concise` what a reader needs, `detailed` everything."""
    if form == "ids":
        value: JsonDict = {"id": str(result.memory.id)}
    elif form == "concise":
        value = _concise(result.memory)
    else:
        value = record(result.memory)
    if result.score is not None:
        value["score"] = result.score
    if result.explain is not None:
        value["explain"] = dict(result.explain)
    return value


def _concise(memory: Memory) -> JsonDict:
    value: JsonDict = {"id": str(memory.id), "content": memory.content, "namespace": memory.namespace}
    if memory.kind != "note":
        value["kind"] = memory.kind
    if memory.tags:
        value["tags"] = list(memory.tags)
    if memory.source is not None:
        value["source"] = memory.source
    value["author"] = memory.author
    value["when"] = _time(memory.when)
    return value


def record(memory: Memory) -> JsonDict:
    """A memory whole, without what is not set. `source` is always there."""
    value: JsonDict = {
        "id": str(memory.id),
        "content": memory.content,
        "summary": memory.summary,
        "namespace": memory.namespace,
        "kind": memory.kind,
        "tags": list(memory.tags) or None,
        "session": memory.session,
        "position": memory.position,
        "author": memory.author,
        "agent": memory.agent,
        "paths": list(memory.paths) or None,
        "commit": memory.commit,
        "importance": memory.importance,
        "confidence": memory.confidence,
        "priority": memory.priority,
        "quality": memory.quality,
        "language": memory.language,
        "metadata": None if memory.metadata is None else dict(memory.metadata),
        "when": _time(memory.when),
        "occurred_at": _time(memory.occurred_at),
        "created_at": _time(memory.created_at),
        "updated_at": _time(memory.updated_at),
        "expires_at": _time(memory.expires_at),
        "forgotten_at": _time(memory.forgotten_at),
        "superseded_at": _time(memory.superseded_at),
        "superseded_by": None if memory.superseded_by is None else str(memory.superseded_by),
        "recall_count": memory.recall_count or None,
        "revision": memory.revision,
    }
    short = {name: entry for name, entry in value.items() if entry is not None}
    return short | {"source": memory.source or ""}


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="seconds").replace("+00:00", "Z")
