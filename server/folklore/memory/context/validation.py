"""Validation of memories before they are stored: text is cleaned once, searched for secrets, and checked."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from folklore.background import stop_if_abandoned
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.context.secret_guard import guard_draft
from folklore.model import (
    FIELDS,
    Draft,
    Field,
    FieldType,
    JsonObject,
    Link,
    SecretPolicy,
    Unreadable,
    number,
)
from folklore.text import cues, tags as tag_rules
from folklore.text.amounts import amount
from folklore.text.clean import clean, cleaned, trimmed
from folklore.text.dates.zones import with_zone
from folklore.text.hooks.injected import OPENING, without_blocks
from folklore.text.languages import detect, language
from folklore.text.paths import MAX_PATHS, plain_path

MAX_BATCH = 500
MAX_CONTENT = FIELDS["content"].limit
MAX_RELATED = 64
MAX_REASON = 1_000
MAX_KEY = 200
MAX_SOURCE_BYTES = 2_000  # an index entry cannot hold more than 2,704 bytes
_BLOB = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64}) [^\n]{1,1000}")
_RELATION = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TEXTS = [name for name, field in FIELDS.items() if field.type == "text"]
_PHRASES = [name for name, field in FIELDS.items() if field.type == "phrases"]
# Other fields with text in them; a guard must not miss a key behind an invisible character.
_WITH_TEXT = [
    *(
        name
        for name, field in FIELDS.items()
        if field.type
        in ("kind", "language", "tags", "paths", "phrases", "json", "blobs")
    ),
    "idempotency_key",
    "supersede_reason",
]
# What a check changes in texts, as an answer notes it, and notes of one kind that it shows.
_CHANGES = (
    "Secrets were replaced by a marker",
    "Invisible characters were removed",
    "Notes that Folklore had injected were removed",
)
_NOTES = 10


@dataclass(frozen=True, slots=True)
class _Check:
    """The field under check, its name in errors, and the caller's time zone."""

    field: Field
    name: str
    zone: tzinfo


@dataclass(frozen=True, slots=True)
class ValidBatch:
    """Checked drafts by index in the batch, the errors of the others, and notes on what was changed before storing."""

    drafts: dict[int, Draft]
    errors: dict[int, FolkloreError]
    notes: list[str]


def check_batch(
    drafts: Sequence[Draft | Unreadable],
    *,
    now: datetime,
    zone: tzinfo = UTC,
    secrets: SecretPolicy = "refuse",
    single: bool = False,
) -> ValidBatch:
    """Return the drafts as they will be stored: cleaned, without secrets, normalised.

    With `single`, errors name fields without their index in the batch. Raises InvalidInput for a batch that is empty or
    too large; if all drafts are refused, the first error.
    """
    if not drafts:
        raise InvalidInput(
            "memories",
            "is empty.",
            hint="Give content, or memories with one object each.",
        )
    if len(drafts) > MAX_BATCH:
        problem = f"must hold at most {MAX_BATCH} memories, got {len(drafts)}."
        raise InvalidInput("memories", problem, hint="Split them over several calls.")
    checked: dict[int, Draft] = {}
    errors: dict[int, FolkloreError] = {}
    notes: dict[str, list[str]] = {text: [] for text in _CHANGES}
    redacted, removed, injected = notes.values()
    for index, item in enumerate(drafts):
        stop_if_abandoned()
        prefix = prefix_of(index, single=single)
        try:
            stated = _stated(item, prefix)
            _check_lengths(stated, prefix)
            cleaned = _without_injected(stated, prefix)
            draft, invisible = clean_draft(cleaned, prefix)
            draft, replaced = guard_draft(draft, secrets, prefix=prefix)
            draft = check_cleaned(draft, prefix=prefix, now=now, zone=zone)
            tag_rules.refuse_null_words(draft.tags, f"{prefix}tags")
            checked[index] = draft
        except FolkloreError as error:
            errors[index] = error
        else:
            removed += invisible
            redacted += replaced
            injected += [] if cleaned is stated else [f"{prefix}content"]
    if not checked:
        raise errors[min(errors)]
    return ValidBatch(
        checked, errors, [_note(text, items) for text, items in notes.items() if items]
    )


def prefix_of(index: int, *, single: bool) -> str:
    """Return what precedes the name of a field in the errors of a memory."""
    if single:
        return ""
    return f"memories[{index}]."


def _stated(draft: Draft | Unreadable, prefix: str) -> Draft:
    """Return a memory that could be read. Raises InvalidInput."""
    if isinstance(draft, Unreadable):
        raise InvalidInput(f"{prefix}{draft.field}".removesuffix("."), draft.reason)
    return draft


def _check_lengths(draft: Draft, prefix: str) -> None:
    """Refuse a text far over its limit before anything reads it. Raises InvalidInput."""
    for name in _TEXTS:
        # what is removed from it may be as long
        if len(getattr(draft, name) or "") > 2 * FIELDS[name].limit:
            _CHECKS["text"](
                getattr(draft, name), _Check(FIELDS[name], prefix + name, UTC)
            )
    for name in _PHRASES:
        phrases = getattr(draft, name)
        longest = max(map(len, phrases), default=0)
        if longest > 2 * FIELDS[name].limit or len(phrases) > 2 * FIELDS[name].most:
            _CHECKS["phrases"](phrases, _Check(FIELDS[name], prefix + name, UTC))


def _without_injected(draft: Draft, prefix: str) -> Draft:
    """Return a draft without what a hook injected into the session: it is stored already. Raises InvalidInput."""
    if OPENING in draft.content:
        content = without_blocks(draft.content).strip()
    else:
        content = draft.content
    if draft.content.strip() and not content:
        problem = (
            "holds nothing but notes that Folklore injected, which are stored already."
        )
        raise InvalidInput(
            f"{prefix}content",
            problem,
            hint="Store what is new, or update a note by its id.",
        )
    if content == draft.content:
        return draft
    return replace(draft, content=content)


def clean_draft(draft: Draft, prefix: str = "") -> tuple[Draft, list[str]]:
    """Remove invisible characters from every text; return notes on long fields, as "content: 2 characters"."""
    values: dict[str, Any] = {}
    notes = []
    for name in _TEXTS:
        if (text := getattr(draft, name)) is not None:
            result = clean(text)
            values[name] = result.text
            if result.removed:
                notes.append(f"{prefix}{name}: {amount(result.removed, 'character')}")
    for name in _WITH_TEXT:
        try:
            values[name] = cleaned(getattr(draft, name))
        except RecursionError:
            raise InvalidInput(
                f"{prefix}{name}", "is nested too deeply.", hint="Keep it flat."
            ) from None
    values["related"] = tuple(
        replace(link, type=clean(link.type).text) for link in draft.related
    )
    return replace(draft, **values), notes


def check_draft(draft: Draft, *, prefix: str, now: datetime, zone: tzinfo) -> Draft:
    """Return one draft, cleaned and normalised; `prefix` is put before field names in errors. Raises InvalidInput."""
    return check_cleaned(
        clean_draft(draft, prefix)[0], prefix=prefix, now=now, zone=zone
    )


def check_cleaned(draft: Draft, *, prefix: str, now: datetime, zone: tzinfo) -> Draft:
    """Check the limits of a cleaned draft and normalise it. Raises InvalidInput."""
    values: dict[str, Any] = {
        name: _CHECKS[field.type](value, _Check(field, prefix + name, zone))
        for name, field in FIELDS.items()
        if (value := getattr(draft, name)) is not None
    }
    if draft.expires_at is not None and values["expires_at"] <= now:
        raise InvalidInput(
            f"{prefix}expires_at", "is in the past.", hint="Give a later time, or none."
        )
    source = values.get("source")
    if source is not None and len(source.encode()) > MAX_SOURCE_BYTES:
        raise InvalidInput(
            f"{prefix}source",
            f"must be at most {MAX_SOURCE_BYTES:,} bytes.",
            hint="Shorten it.",
        )
    return replace(
        draft,
        **values,
        idempotency_key=_limited(
            draft.idempotency_key, f"{prefix}idempotency_key", MAX_KEY
        ),
        supersede_reason=_limited(
            draft.supersede_reason, f"{prefix}supersede_reason", MAX_REASON
        ),
        related=_links(draft.related, f"{prefix}related") if draft.related else (),
    )


def detected_language(draft: Draft) -> str | None:
    """Return the language of a checked draft that states none, if it is clear."""
    if draft.language:
        return None
    return detect(draft.content)


def _note(text: str, items: Sequence[str]) -> str:
    more = f"; and {len(items) - _NOTES} more" if len(items) > _NOTES else ""
    return f"{text} before storing ({'; '.join(items[:_NOTES])}{more})."


def relation_type(name: str, field: str) -> str:
    """Return a normalised relation type: lower-case letters, digits and _, at most 40."""
    normalised = name.strip().lower()
    if not _RELATION.fullmatch(normalised):
        raise InvalidInput(
            field,
            "is no relation type.",
            hint="Use relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies, prefers_over, "
            "precedes, or another lower-case word.",
        )
    return normalised


def short_text(text: str | None, field: str, limit: int) -> str | None:
    """Return a cleaned text of at most `limit` characters, None for an empty one. Raises InvalidInput."""
    if text is None:
        return None
    return _limited(clean(text).text, field, limit)


def _limited(
    text: str | None, field: str, limit: int, hint: str = "Shorten it."
) -> str | None:
    text = (text or "").strip()
    if len(text) > limit:
        raise InvalidInput(
            field,
            f"must be at most {limit:,} characters, got {len(text):,}.",
            hint=hint,
        )
    return text or None


def share(value: float, field: str) -> float:
    """Return a number from 0 to 1. Raises InvalidInput."""
    if not 0 <= value <= 1:  # also refuses NaN
        raise InvalidInput(field, f"must be between 0 and 1, got {value}.")
    try:
        return number(value)
    except ValueError as error:
        raise InvalidInput(field, f"{error}.") from None


def _text(value: str, check: _Check) -> str | None:
    if check.field.name != "content":
        return _limited(value, check.name, check.field.limit)
    text = _limited(
        trimmed(value),
        check.name,
        MAX_CONTENT,
        hint="Split it into several memories of one fact each.",
    )
    if text is None:
        raise InvalidInput(
            check.name,
            "is empty.",
            hint="State one fact that can be understood by itself.",
        )
    return text


def _integer(value: int, check: _Check) -> int:
    if not check.field.least <= value <= check.field.limit:
        raise InvalidInput(
            check.name,
            f"must be between {check.field.least} and {check.field.limit}, got {value}.",
        )
    return value


def _paths(paths: Sequence[str], check: _Check) -> tuple[str, ...]:
    if len(paths) > MAX_PATHS:
        raise InvalidInput(
            check.name, f"must hold at most {MAX_PATHS} paths, got {len(paths)}."
        )
    limited = (
        _limited(path, f"{check.name}[{index}]", 1_000)
        for index, path in enumerate(paths)
    )
    return tuple(dict.fromkeys(plain_path(path) for path in limited if path))


def _phrases(phrases: Sequence[str], check: _Check) -> tuple[str, ...]:
    """Return phrases, each on one line, without repetitions."""
    limited = (
        _limited(" ".join(phrase.split()), f"{check.name}[{index}]", check.field.limit)
        for index, phrase in enumerate(phrases)
    )
    distinct = cues.distinct(phrase for phrase in limited if phrase)
    if len(distinct) > check.field.most:
        raise InvalidInput(
            check.name,
            f"must hold at most {check.field.most} phrases, got {len(distinct)}.",
            hint="Keep those that differ most from the content and from each other.",
        )
    return distinct


def _blobs(blobs: Sequence[str], check: _Check) -> tuple[str, ...]:
    if len(blobs) > MAX_PATHS or not all(map(_BLOB.fullmatch, blobs)):
        raise InvalidInput(
            check.name,
            f"must hold at most {MAX_PATHS} texts: git's id of a file, a space, its path.",
        )
    return tuple(blobs)


def _json(value: JsonObject, check: _Check) -> JsonObject:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            check.name,
            "must be a JSON object of finite numbers, not nested too deeply.",
        ) from error
    if len(text.encode()) > check.field.limit:
        limit = check.field.limit // 1024
        raise InvalidInput(
            check.name,
            f"must be at most {limit} KB.",
            hint="Keep only what is needed later.",
        )
    return value


def _links(links: Sequence[Link], field: str) -> tuple[Link, ...]:
    if len(links) > MAX_RELATED:
        raise InvalidInput(
            field, f"must hold at most {MAX_RELATED} relations, got {len(links)}."
        )
    checked = []
    for index, link in enumerate(links):
        type_ = relation_type(link.type, f"{field}[{index}].type")
        if type_ == "supersedes":
            raise InvalidInput(
                f"{field}[{index}].type",
                "belongs in the field supersedes.",
                hint="Put the id there.",
            )
        checked.append(
            Link(link.id, type_, share(link.strength, f"{field}[{index}].strength"))
        )
    return tuple(checked)


_CHECKS: Mapping[FieldType, Callable[[Any, _Check], object]] = {
    "text": _text,
    "kind": lambda value, check: tag_rules.kind_of(value, check.name),
    "tags": lambda value, check: tag_rules.normalise(value, field=check.name),
    "paths": _paths,
    "phrases": _phrases,
    "language": lambda value, check: language(value, field=check.name),
    "share": lambda value, check: share(value, check.name),
    "integer": _integer,
    "time": lambda value, check: with_zone(value, check.zone, check.name),
    "json": _json,
    "flag": lambda value, _check: bool(value),
    "blobs": _blobs,
}
