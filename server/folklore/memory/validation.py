"""What may be stored: limits and spellings, each refusal naming the field, the limit and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo

from folklore.errors import InvalidInput
from folklore.model import Draft, JsonObject, Link
from folklore.text import tags as tag_rules
from folklore.text.clean import clean
from folklore.text.languages import language

MAX_BATCH = 500
MAX_CONTENT = 32_000
MAX_SUMMARY = 2_000
MAX_METADATA_BYTES = 8 * 1024
MAX_PATHS = 64
MAX_RELATED = 64
MAX_REASON = 1_000
MAX_KEY = 200
MAX_SOURCE = 1_000
MAX_SOURCE_BYTES = 2_000  # an entry of its index cannot hold 2,704
_TEXTS = ("content", "summary", "source", "session", "commit")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_RELATION = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_batch(drafts: Sequence[Draft], *, now: datetime, zone: tzinfo = UTC, many: bool = True) -> list[Draft]:
    """The drafts as they will be stored, cleaned and normalised. Raises InvalidInput for the first that cannot be."""
    if not drafts:
        raise InvalidInput("memories", "nothing to store.", hint="Give content, or memories with one object each.")
    if len(drafts) > MAX_BATCH:
        raise InvalidInput(
            "memories",
            f"{len(drafts)} are over the limit of {MAX_BATCH} a call.",
            hint="Split them over several calls.",
        )
    return [
        check_draft(draft, field=f"memories[{place}]." if many else "", now=now, zone=zone)
        for place, draft in enumerate(drafts)
    ]


def check_draft(draft: Draft, *, field: str, now: datetime, zone: tzinfo) -> Draft:
    """One draft, cleaned and normalised; `field` is put before the names of its fields in errors."""
    expires_at = zoned(draft.expires_at, zone, f"{field}expires_at")
    if expires_at is not None and expires_at <= now:
        raise InvalidInput(f"{field}expires_at", "lies in the past.", hint="Give a later time, or none.")
    if draft.priority is not None and not 1 <= draft.priority <= 4:
        raise InvalidInput(f"{field}priority", f"must be 1 (first) to 4, not {draft.priority}.")
    if draft.position is not None and not 0 <= draft.position < 2**31:
        raise InvalidInput(f"{field}position", "must be 0 or more.")
    return replace(
        draft,
        content=content_of(draft.content, f"{field}content"),
        summary=_short(draft.summary, f"{field}summary", MAX_SUMMARY),
        kind=kind_of(draft.kind, f"{field}kind"),
        tags=tag_rules.normalise(draft.tags, field=f"{field}tags"),
        importance=share(draft.importance, f"{field}importance"),
        confidence=share(draft.confidence, f"{field}confidence"),
        occurred_at=zoned(draft.occurred_at, zone, f"{field}occurred_at"),
        expires_at=expires_at,
        language=None if draft.language is None else language(draft.language, field=f"{field}language"),
        paths=_paths(draft.paths, f"{field}paths"),
        metadata=_metadata(draft.metadata, f"{field}metadata"),
        source=_indexed(draft.source, f"{field}source"),
        session=_short(draft.session, f"{field}session", 200),
        commit=_short(draft.commit, f"{field}commit", 100),
        idempotency_key=_short(draft.idempotency_key, f"{field}idempotency_key", MAX_KEY),
        supersede_reason=_short(draft.supersede_reason, f"{field}supersede_reason", MAX_REASON),
        related=_related(draft.related, f"{field}related"),
    )


def taken_out(given: Draft, checked: Draft, *, field: str) -> list[str]:
    """What cleaning took out of the texts of a draft, as "content: 2 characters"."""
    notes = []
    for name in _TEXTS:
        text = getattr(given, name)
        if text != getattr(checked, name) and (count := clean(text).removed):  # most texts are as they were
            notes.append(f"{field}{name}: {count} character{'s' if count > 1 else ''}")
    return notes


def zoned(value: datetime | None, zone: tzinfo, field: str = "time") -> datetime | None:
    """A time without an offset is in the caller's zone. Raises InvalidInput for one that UTC has no date for."""
    if value is None:
        return None
    aware = value.replace(tzinfo=zone) if value.tzinfo is None else value
    try:
        aware.astimezone(UTC)  # Postgres would take it, and nothing that reads it back could
    except OverflowError as error:
        raise InvalidInput(field, "lies outside the years 1 to 9999.") from error
    return aware


def content_of(text: str, field: str) -> str:
    """The text of a memory without what nobody can see. Raises InvalidInput if it is empty or too long."""
    cleaned = clean(text).text.strip()
    if not cleaned:
        raise InvalidInput(field, "is empty.", hint="State one fact that stands on its own.")
    if len(cleaned) > MAX_CONTENT:
        raise InvalidInput(
            field,
            f"has {len(cleaned):,} characters; the limit is {MAX_CONTENT:,}.",
            hint="Split it into several memories, each of one fact.",
        )
    return cleaned


def kind_of(kind: str, field: str) -> str:
    """A kind: lower-case letters, digits, - and _, at most 40."""
    spelled = kind.strip().lower()
    if not _KIND.fullmatch(spelled):
        raise InvalidInput(
            field,
            f"{kind[:60]!r} is not a kind.",
            hint="Use note, semantic, episodic, identity, procedural, decision, bug, or a word of your own.",
        )
    return spelled


def relation_type(name: str, field: str) -> str:
    """A type of relation: lower-case letters, digits and _, at most 40."""
    spelled = name.strip().lower()
    if not _RELATION.fullmatch(spelled):
        raise InvalidInput(
            field,
            f"{name[:60]!r} is not a type of relation.",
            hint="Use relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies, prefers_over, "
            "precedes, or a word of your own in lower case.",
        )
    return spelled


def _related(links: Sequence[Link], field: str) -> tuple[Link, ...]:
    if len(links) > MAX_RELATED:
        raise InvalidInput(field, f"{len(links)} are over the limit of {MAX_RELATED}.")
    checked = []
    for place, link in enumerate(links):
        type_ = relation_type(link.type, f"{field}[{place}].type")
        if type_ == "supersedes":
            raise InvalidInput(f"{field}[{place}].type", "is said by the field supersedes.", hint="Put the id there.")
        strength = share(link.strength, f"{field}[{place}].strength")
        checked.append(Link(link.id, type_, 1.0 if strength is None else strength))
    return tuple(checked)


def _short(text: str | None, field: str, limit: int) -> str | None:
    if text is None:
        return None
    cleaned = clean(text).text.strip()
    if len(cleaned) > limit:
        raise InvalidInput(field, f"has {len(cleaned):,} characters; the limit is {limit:,}.", hint="Shorten it.")
    return cleaned or None


def _indexed(text: str | None, field: str) -> str | None:
    source = _short(text, field, MAX_SOURCE)
    if source is not None and len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidInput(field, f"takes more than {MAX_SOURCE_BYTES:,} bytes.", hint="Shorten it.")
    return source


def share(value: float | None, field: str) -> float | None:
    """A number from 0 to 1, or none. Raises InvalidInput."""
    if value is not None and not 0 <= value <= 1:  # also refuses NaN, which no comparison holds for
        raise InvalidInput(field, f"must be between 0 and 1, not {value}.")
    return value


def _paths(paths: Sequence[str], field: str) -> tuple[str, ...]:
    if len(paths) > MAX_PATHS:
        raise InvalidInput(field, f"{len(paths)} are over the limit of {MAX_PATHS}.")
    spelled = (_short(path, f"{field}[{place}]", 1_000) for place, path in enumerate(paths))
    return tuple(dict.fromkeys(path.rstrip("/") for path in spelled if path))


def _metadata(value: JsonObject | None, field: str) -> JsonObject | None:
    if value is None:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        cleaned = {clean(name).text: _cleaned(entry) for name, entry in value.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field, "must be a JSON object, not nested too deeply.") from error
    if len(text.encode("utf-8", "surrogatepass")) > MAX_METADATA_BYTES:
        raise InvalidInput(
            field, f"is over the limit of {MAX_METADATA_BYTES // 1024} KB.", hint="Keep only what helps later."
        )
    return cleaned


def _cleaned(value: object) -> object:
    """JSON without what nobody can see; jsonb cannot hold NUL and lone surrogates at all."""
    if isinstance(value, str):
        return clean(value).text
    if isinstance(value, list | tuple):
        return [_cleaned(entry) for entry in value]
    if isinstance(value, Mapping):
        return {clean(str(name)).text: _cleaned(entry) for name, entry in value.items()}
    return value
