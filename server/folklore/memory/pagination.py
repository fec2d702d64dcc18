"""Where an answer goes on: an opaque text that belongs to one question."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from folklore.db.stores.memories import Page
from folklore.errors import InvalidInput
from folklore.model import Filters

_MARK = 3
# So many results can be paged through: each page ranks all before it anew.
MOST_GIVEN = 2_000
_INVALID = "is not one of ours, or belongs to another question."
_HINT = "Repeat the same arguments with the cursor of their last answer, or leave it out to start again."


def as_said(filters: Filters) -> Filters:
    """The filters as a question is known by: a time by its words, for what they mean moves on with the clock."""
    return filters if filters.said is None else replace(filters, since=None, until=None)


def _fingerprint(question: object) -> str:
    return hashlib.sha256(repr(question).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _encode(value: list[object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def _decode(cursor: str, length: int) -> list[object]:
    try:
        value = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidInput("cursor", _INVALID, hint=_HINT) from error
    if not isinstance(value, list) or len(value) != length:
        raise InvalidInput("cursor", _INVALID, hint=_HINT)
    return value


def _mark(id_: UUID) -> bytes:
    return hashlib.blake2b(id_.bytes, digest_size=_MARK).digest()


def given_cursor(given: Collection[UUID], before: frozenset[bytes], question: object) -> str:
    """The cursor of a ranked answer: three bytes for each result given so far.

    A ranking depends on how much of it is wanted, and memories come and go, so that a count of results would repeat
    some and miss others.
    """
    marks = b"".join(sorted(before | {_mark(id_) for id_ in given}))
    return _encode([base64.urlsafe_b64encode(marks).decode(), _fingerprint(question)])


def given_before(cursor: str | None, question: object) -> frozenset[bytes]:
    """The marks of the results given before. Raises InvalidInput for a cursor of another question."""
    if cursor is None:
        return frozenset()
    text, fingerprint = _decode(cursor, 2)
    if fingerprint != _fingerprint(question) or not isinstance(text, str):
        raise InvalidInput("cursor", _INVALID, hint=_HINT)
    try:
        marks = base64.urlsafe_b64decode(text)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("cursor", _INVALID, hint=_HINT) from error
    if len(marks) % _MARK or len(marks) > MOST_GIVEN * _MARK:
        raise InvalidInput("cursor", _INVALID, hint=_HINT)
    return frozenset(marks[start : start + _MARK] for start in range(0, len(marks), _MARK))


def is_given(id_: UUID, before: frozenset[bytes]) -> bool:
    """Whether a result was given before (one in sixteen million is taken for another)."""
    return bool(before) and _mark(id_) in before


def page_cursor(page: Page, question: object) -> str:
    """The cursor of a listing: its last row."""
    return _encode([page.time.isoformat(), str(page.id), _fingerprint(question)])


def page_of(cursor: str | None, question: object) -> Page | None:
    """The row a listing goes on after. Raises InvalidInput for a cursor of another question."""
    if cursor is None:
        return None
    time, id_, fingerprint = _decode(cursor, 3)
    if fingerprint != _fingerprint(question):
        raise InvalidInput("cursor", _INVALID, hint=_HINT)
    try:
        return Page(datetime.fromisoformat(str(time)), UUID(str(id_)))
    except ValueError as error:
        raise InvalidInput("cursor", _INVALID, hint=_HINT) from error
