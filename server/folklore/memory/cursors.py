"""Where an answer goes on: an opaque text that belongs to one question."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from datetime import datetime
from uuid import UUID

from folklore.db.memories import Page
from folklore.errors import InvalidInput

_INVALID = "is not one of ours, or belongs to another question."
_HINT = "Repeat the same arguments with the cursor of their last answer, or leave it out to start again."


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


def offset_cursor(offset: int, question: object) -> str:
    """The cursor of a ranked answer: how many results were given."""
    return _encode([offset, _fingerprint(question)])


def offset_of(cursor: str | None, question: object, *, most: int = 1_000) -> int:
    """How many results were given before. Raises InvalidInput for a cursor of another question."""
    if cursor is None:
        return 0
    offset, fingerprint = _decode(cursor, 2)
    if fingerprint != _fingerprint(question) or type(offset) is not int or not 0 <= offset <= most:
        raise InvalidInput("cursor", _INVALID, hint=_HINT)
    return offset


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
