"""Validation of memories before they are stored: limits and normal forms. Text is cleaned here and nowhere after."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from folklore.errors import InvalidInput
from folklore.model import FIELDS, Draft, Field, FieldType, JsonObject, Link
from folklore.text import tags as tag_rules
from folklore.text.clean import clean
from folklore.text.languages import language

MAX_BATCH = 500
MAX_CONTENT = FIELDS["content"].limit
MAX_PATHS = 64
MAX_RELATED = 64
MAX_REASON = 1_000
MAX_KEY = 200
MAX_SOURCE_BYTES = 2_000  # an index entry cannot hold more than 2,704 bytes
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RELATION = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class _Check:
    """The field under check, its name in errors, and the caller's time zone."""

    field: Field
    name: str
    zone: tzinfo


def check_batch(drafts: Sequence[Draft], *, now: datetime, zone: tzinfo = UTC, single: bool = False) -> list[Draft]:
    """Return the drafts as they will be stored, cleaned and normalised. Raises InvalidInput for the first bad one."""
    if not drafts:
        raise InvalidInput("memories", "is empty.", hint="Give content, or memories with one object each.")
    if len(drafts) > MAX_BATCH:
        raise InvalidInput(
            "memories",
            f"must hold at most {MAX_BATCH} memories, got {len(drafts)}.",
            hint="Split them over several calls.",
        )
    prefixes = field_prefixes(len(drafts), single=single)
    return [
        check_draft(draft, prefix=prefix, now=now, zone=zone) for draft, prefix in zip(drafts, prefixes, strict=True)
    ]


def field_prefixes(count: int, *, single: bool) -> list[str]:
    """Return what errors put before the field names of each memory of a batch."""
    return [""] if single else [f"memories[{place}]." for place in range(count)]


def check_draft(draft: Draft, *, prefix: str, now: datetime, zone: tzinfo) -> Draft:
    """Return one draft, cleaned and normalised; `prefix` is put before field names in errors."""
    values: dict[str, Any] = {
        name: _CHECKS[field.type](value, _Check(field, prefix + name, zone))
        for name, field in FIELDS.items()
        if (value := getattr(draft, name)) is not None
    }
    if draft.expires_at is not None and values["expires_at"] <= now:
        raise InvalidInput(f"{prefix}expires_at", "is in the past.", hint="Give a later time, or none.")
    source = values.get("source")
    if source is not None and len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidInput(f"{prefix}source", f"must be at most {MAX_SOURCE_BYTES:,} bytes.", hint="Shorten it.")
    return replace(
        draft,
        **values,
        idempotency_key=short_text(draft.idempotency_key, f"{prefix}idempotency_key", MAX_KEY),
        supersede_reason=short_text(draft.supersede_reason, f"{prefix}supersede_reason", MAX_REASON),
        related=_links(draft.related, f"{prefix}related"),
    )


def removed_characters(given: Draft, checked: Draft, *, prefix: str) -> list[str]:
    """Report the invisible characters that cleaning removed from texts, as "content: 2 characters"."""
    notes = []
    for name, field in FIELDS.items():
        if field.type != "text":
            continue
        text = getattr(given, name)
        if text != getattr(checked, name) and (count := clean(text).removed):  # most texts are unchanged
            notes.append(f"{prefix}{name}: {count} character{'s' if count > 1 else ''}")
    return notes


def with_zone(value: datetime | None, zone: tzinfo, field: str = "time") -> datetime | None:
    """Put a time without an offset in the caller's zone. Raises InvalidInput for one outside the years 1 to 9999."""
    if value is None:
        return None
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    try:
        aware.astimezone(UTC)  # Postgres would store it, but Python could not read it back
    except OverflowError as error:
        raise InvalidInput(field, "must be in the years 1 to 9999.") from error
    return aware


def kind_of(kind: str, field: str) -> str:
    """Return a normalised kind: lower-case letters, digits, - and _, at most 40."""
    normalised = kind.strip().lower()
    if not _KIND.fullmatch(normalised):
        raise InvalidInput(
            field,
            f"{kind[:60]!r} is not a kind.",
            hint="Use note, semantic, episodic, identity, procedural, decision, bug, or another lower-case word.",
        )
    return normalised


def relation_type(name: str, field: str) -> str:
    """Return a normalised relation type: lower-case letters, digits and _, at most 40."""
    normalised = name.strip().lower()
    if not _RELATION.fullmatch(normalised):
        raise InvalidInput(
            field,
            f"{name[:60]!r} is not a relation type.",
            hint="Use relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies, prefers_over, "
            "precedes, or another lower-case word.",
        )
    return normalised


def short_text(text: str | None, field: str, limit: int) -> str | None:
    """Return a cleaned text of at most `limit` characters, None for an empty one. Raises InvalidInput."""
    if text is None:
        return None
    cleaned = clean(text).text.strip()
    if len(cleaned) > limit:
        raise InvalidInput(field, f"must be at most {limit:,} characters, got {len(cleaned):,}.", hint="Shorten it.")
    return cleaned or None


def share(value: float, field: str) -> float:
    """Return a number from 0 to 1. Raises InvalidInput."""
    if not 0 <= value <= 1:  # also refuses NaN
        raise InvalidInput(field, f"must be between 0 and 1, got {value}.")
    return value


def _content(text: str, name: str) -> str:
    cleaned = clean(text).text.strip()
    if not cleaned:
        raise InvalidInput(name, "is empty.", hint="State one fact that can be understood by itself.")
    if len(cleaned) > MAX_CONTENT:
        raise InvalidInput(
            name,
            f"must be at most {MAX_CONTENT:,} characters, got {len(cleaned):,}.",
            hint="Split it into several memories of one fact each.",
        )
    return cleaned


def _text(value: str, check: _Check) -> str | None:
    if check.field.name == "content":
        return _content(value, check.name)
    return short_text(value, check.name, check.field.limit)


def _integer(value: int, check: _Check) -> int:
    if not check.field.least <= value <= check.field.limit:
        raise InvalidInput(check.name, f"must be between {check.field.least} and {check.field.limit}, got {value}.")
    return value


def _paths(paths: Sequence[str], check: _Check) -> tuple[str, ...]:
    if len(paths) > MAX_PATHS:
        raise InvalidInput(check.name, f"must hold at most {MAX_PATHS} paths, got {len(paths)}.")
    cleaned = (short_text(path, f"{check.name}[{place}]", 1_000) for place, path in enumerate(paths))
    return tuple(dict.fromkeys(path.rstrip("/") for path in cleaned if path))


def _json(value: JsonObject, check: _Check) -> JsonObject:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        cleaned = {clean(name).text: _clean_json(entry) for name, entry in value.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(check.name, "must be a JSON object that is not nested too deeply.") from error
    if len(text.encode("utf-8", "surrogatepass")) > check.field.limit:
        limit = check.field.limit // 1024
        raise InvalidInput(check.name, f"must be at most {limit} KB.", hint="Keep only what is needed later.")
    return cleaned


def _clean_json(value: object) -> object:
    """Clean the texts within JSON; jsonb cannot hold NUL and lone surrogates."""
    if isinstance(value, str):
        return clean(value).text
    if isinstance(value, list | tuple):
        return [_clean_json(entry) for entry in value]
    if isinstance(value, Mapping):
        return {clean(str(name)).text: _clean_json(entry) for name, entry in value.items()}
    return value


def _links(links: Sequence[Link], field: str) -> tuple[Link, ...]:
    if len(links) > MAX_RELATED:
        raise InvalidInput(field, f"must hold at most {MAX_RELATED} relations, got {len(links)}.")
    checked = []
    for place, link in enumerate(links):
        type_ = relation_type(link.type, f"{field}[{place}].type")
        if type_ == "supersedes":
            raise InvalidInput(f"{field}[{place}].type", "belongs in the field supersedes.", hint="Put the id there.")
        checked.append(Link(link.id, type_, share(link.strength, f"{field}[{place}].strength")))
    return tuple(checked)


_CHECKS: Mapping[FieldType, Callable[[Any, _Check], object]] = {
    "text": _text,
    "kind": lambda value, check: kind_of(value, check.name),
    "tags": lambda value, check: tag_rules.normalise(value, field=check.name),
    "paths": _paths,
    "language": lambda value, check: language(value, field=check.name),
    "share": lambda value, check: share(value, check.name),
    "integer": _integer,
    "time": lambda value, check: with_zone(value, check.zone, check.name),
    "json": _json,
    "flag": lambda value, _check: bool(value),
}
