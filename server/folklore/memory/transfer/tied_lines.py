"""Lines of an export that belong to memories: what they have to do with one another, and how they were changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from folklore.errors import InvalidInput
from folklore.memory.transfer.line_times import ZonedTime
from folklore.memory.validation import check_draft, relation_type
from folklore.model import DEFAULT_KIND, DEFAULT_LANGUAGE, Draft, Relation, Revision
from folklore.text.clean import clean


@dataclass(frozen=True, slots=True)
class TiedLine:
    """One such line, checked."""

    namespace: str | None
    tie: Relation | Revision


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    namespace: str | None = None


class _RelationLine(_Line):
    from_: Annotated[UUID, Field(alias="from")]
    relation: str
    to: UUID
    strength: Annotated[float, Field(ge=0, le=1)] = 1.0
    author: Annotated[str, Field(max_length=200)] | None = None
    created_at: ZonedTime | None = None


class _Before(BaseModel):
    """What columns held that were changed, by name: CHANGEABLE, each as a memory may hold it."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    content: str = "unchanged"
    summary: str | None = None
    kind: str = DEFAULT_KIND
    tags: tuple[str, ...] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    paths: tuple[str, ...] = ()
    commit: str | None = None
    importance: float | None = None
    confidence: float | None = None
    priority: int | None = None
    language: str = DEFAULT_LANGUAGE
    metadata: dict[str, JsonValue] | None = None
    occurred_at: ZonedTime | None = None
    expires_at: ZonedTime | None = None
    forgotten_at: ZonedTime | None = None
    superseded_at: ZonedTime | None = None
    superseded_by: UUID | None = None


class _RevisionLine(_Line):
    memory: UUID
    revision: Annotated[int, Field(ge=1, lt=2**31)]
    action: Annotated[str, Field(pattern="^[a-z]{1,40}$")]
    author: Annotated[str, Field(max_length=200)]
    agent: Annotated[str, Field(max_length=200)] | None = None
    changed_at: ZonedTime
    reason: Annotated[str, Field(max_length=2_000)] | None = None
    undoes: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    before: _Before


def read_tied(kind: str, line: Mapping[str, Any]) -> TiedLine | None:
    """What a line of this type says, if it is one of ours: another system's relations name their ends otherwise.

    Raises InvalidInput naming the field, never repeating its value.
    """
    try:
        if kind == "relation" and {"from", "relation", "to"} <= line.keys():
            said = _RelationLine.model_validate(line)
            type_ = relation_type(said.relation, "relation")
            author = _spoken(said.author)
            relation = Relation(said.from_, type_, said.to, round(said.strength, 6), author, said.created_at)
            return TiedLine(said.namespace, relation)
        if kind == "revision" and {"memory", "before"} <= line.keys():
            told = _RevisionLine.model_validate(line)
            revision = Revision(
                memory_id=told.memory,
                revision=told.revision,
                action=told.action,
                author=clean(told.author).text.strip(),
                changed_at=told.changed_at,
                before=_before(told.before),
                agent=_spoken(told.agent),
                reason=_spoken(told.reason),
                undoes=told.undoes,
            )
            return TiedLine(told.namespace, revision)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(place or "line", f"{first['msg']}.") from None
    return None


def relation_line(namespace: str, item: Relation) -> str:
    """One relation as a line."""
    return _dump(
        {
            "type": "relation",
            "namespace": namespace,
            "from": str(item.from_id),
            "relation": item.type,
            "to": str(item.to_id),
            "strength": item.strength,
            "author": item.author,
            "created_at": _iso(item.created_at),
        }
    )


def revision_line(namespace: str, item: Revision) -> str:
    """One change as a line; `before` keeps its nulls, as they say what was not set."""
    return _dump(
        {
            "type": "revision",
            "namespace": namespace,
            "memory": str(item.memory_id),
            "revision": item.revision,
            "action": item.action,
            "author": item.author,
            "agent": item.agent,
            "changed_at": _iso(item.changed_at),
            "reason": item.reason,
            "undoes": item.undoes,
            "before": dict(item.before),
        }
    )


def _before(told: _Before) -> dict[str, Any]:
    """What the columns held, checked like a new memory: an undo gives it back to one."""
    held = {name: getattr(told, name) for name in told.model_fields_set}
    stated = {name: value for name, value in held.items() if name in Draft.__dataclass_fields__}
    # Its time may be over by now.
    draft = Draft(**{"content": "unchanged"} | stated | {"expires_at": None})
    checked = check_draft(draft, prefix="before.", now=datetime.min.replace(tzinfo=UTC), zone=UTC)
    held |= {name: getattr(checked, name) for name in stated if name != "expires_at"}
    return {name: _column(value) for name, value in held.items()}


def _column(value: object) -> object:
    """As Postgres spells it in JSON: no zeros at the end of a fraction of a second."""
    if isinstance(value, datetime):
        whole = value.astimezone(UTC).replace(tzinfo=None)
        fraction = f".{whole.microsecond:06}".rstrip("0") if whole.microsecond else ""
        return f"{whole.replace(microsecond=0).isoformat()}{fraction}+00:00"
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _spoken(text: str | None) -> str | None:
    return None if text is None else clean(text).text.strip()


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat()


def _dump(value: dict[str, Any]) -> str:
    return json.dumps({name: given for name, given in value.items() if given is not None}, ensure_ascii=False)
