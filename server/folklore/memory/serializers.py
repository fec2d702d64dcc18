"""Answers as every edge gives them: compact JSON, no nulls, no more than the format asks for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from folklore.model import Answer, Memory, Namespace, Recalled, Relation, Revision, Similar, Stored

if TYPE_CHECKING:  # the tools are listed before the slow rooms are there
    from folklore.memory.records.forget import Forgotten
    from folklore.memory.records.get import Detail
    from folklore.memory.records.relate import Related
    from folklore.memory.status import Status

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
    if result.expanded is not None:
        value["expanded"] = result.expanded
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


# A near-duplicate is recognised by its beginning.
_BEGINNING = 200


def stored(items: Sequence[Stored]) -> list[JsonDict]:
    """What became of each draft of a batch."""
    shown = []
    for item in items:
        value: JsonDict = {"id": str(item.id), "status": item.status}
        if item.similar:
            value["similar"] = [_similar(near) for near in item.similar]
        shown.append(value)
    return shown


def _similar(near: Similar) -> JsonDict:
    return {
        "id": str(near.id),
        "similarity": near.similarity,
        "content": beginning(near.content),
        "author": near.author,
    }


def beginning(text: str) -> str:
    """The first words of a text, to recognise it by."""
    return text if len(text) <= _BEGINNING else text[: _BEGINNING - 1].rstrip() + "…"


def detail(item: Detail) -> JsonDict:
    """A memory whole with its relations, seen from it, and how many revisions it has."""
    value = record(item.memory)
    if item.relations:
        value["relations"] = [relation(entry, item.memory.id) for entry in item.relations]
    value["revisions"] = item.revisions
    return value


def relation(item: Relation, seen_from: UUID | None = None) -> JsonDict:
    """A relation; the end it is seen from is left out."""
    value: JsonDict = {"from": str(item.from_id), "type": item.type, "to": str(item.to_id), "strength": item.strength}
    if seen_from is not None:
        del value["from" if item.from_id == seen_from else "to"]
    return value


def related(outcome: Related) -> JsonDict:
    """What became of relations; empty parts are left out, but for `created`."""
    value: JsonDict = {
        "created": [relation(item) for item in outcome.created],
        "updated": [relation(item) for item in outcome.updated],
        "removed": [relation(item) for item in outcome.removed],
        "failed": [relation(item.relation) | {"reason": item.reason} for item in outcome.failed],
    }
    return {name: items for name, items in value.items() if items or name == "created"}


def revision(item: Revision) -> JsonDict:
    """A change, and what the fields it touched held before."""
    value: JsonDict = {
        "revision": item.revision,
        "action": item.action,
        "author": item.author,
        "agent": item.agent,
        "changed_at": _time(item.changed_at),
        "reason": item.reason,
        "undoes": item.undoes,
    }
    short = {name: entry for name, entry in value.items() if entry is not None}
    return short | {"before": {name: entry for name, entry in item.before.items() if entry is not None}}


def forgotten(outcome: Forgotten, *, erase: bool, dry_run: bool) -> JsonDict:
    """What was forgotten, or would be. The text of what was erased is not said once more."""
    silent = erase and not dry_run
    value: JsonDict = {
        "forgotten": [
            {"id": str(memory.id), "namespace": memory.namespace}
            | ({} if silent else {"content": beginning(memory.content)})
            for memory in outcome.memories
        ]
    }
    if outcome.already:
        value["already_forgotten"] = [str(id_) for id_ in outcome.already]
    flags = {"erased": silent, "dry_run": dry_run, "more": outcome.more}
    return value | {name: True for name, flag in flags.items() if flag}


def namespace(item: Namespace) -> JsonDict:
    """A namespace as people and assistants see it."""
    value: JsonDict = {
        "name": item.name,
        "memories": item.memories or 0,
        "language": item.language,
        "description": item.description,
        "created_at": _time(item.created_at),
        "deleted_at": _time(item.deleted_at),
        "deleted_by": item.deleted_by,
    }
    return {name: entry for name, entry in value.items() if entry is not None}


def status(found: Status, *, engine: str, version: str) -> JsonDict:
    """How the memory is doing."""
    model = found.model
    value: JsonDict = {
        "version": version,
        "engine": engine,
        "model": model and {"provider": model.provider, "name": model.name, "dimensions": model.dimensions},
        "namespaces": [
            {"name": item.name, "memories": item.memories, "role": found.roles[item.name]} for item in found.namespaces
        ],
        "embedding_debt": None if model is None else found.owed,
        "degraded": [{"branch": item.branch, "reason": item.reason} for item in found.degraded] or None,
    }
    return {name: entry for name, entry in value.items() if entry is not None}


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="seconds").replace("+00:00", "Z")
