"""Cursors: opaque texts that continue the answer to one question."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from folklore.db.stores.events.activity import EventKey
from folklore.db.stores.memories import ListKey
from folklore.errors import InvalidInput
from folklore.model import Filters

Value = TypeVar("Value")
_MARK = 3
_EVENT_MARK = 4
# Most results that can be paged through: each page ranks all results before it again.
MAX_PAGED = 2_000
_INVALID = "is not valid, or belongs to another question."
_HINT = "Repeat the same arguments with the cursor of their last answer, or leave it out to start again."


def without_clock(filters: Filters) -> Filters:
    """Return the filters by which a question is recognised: a time by its expression, as its meaning moves on."""
    if filters.time_expression is None:
        return filters
    return replace(filters, since=None, until=None, as_of=None)


def _fingerprint(question: object) -> str:
    return hashlib.sha256(repr(question).encode("utf-8", "surrogatepass")).hexdigest()[
        :12
    ]


def _encode(value: list[object]) -> str:
    return (
        urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode())
        .decode()
        .rstrip("=")
    )


def _decoded(cursor: str, question: object, read: Callable[..., Value]) -> Value:
    """Return what `read` makes of the values in a cursor. Raises InvalidInput for a cursor of another question."""
    try:
        *values, fingerprint = json.loads(
            urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        )
        if fingerprint == _fingerprint(question):
            return read(*map(str, values))
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput("cursor", _INVALID, hint=_HINT)


def _mark(id_: UUID) -> bytes:
    return hashlib.blake2b(id_.bytes, digest_size=_MARK).digest()


def given_cursor(
    ids: Collection[UUID], marks_before: frozenset[bytes], question: object
) -> str | None:
    """Return the cursor of a ranked answer: three bytes for each result given so far; None at the end of paging.

    A ranking depends on its length, and memories are stored meanwhile: an offset would repeat or skip results.
    """
    marks = marks_before | {_mark(id_) for id_ in ids}
    encoded = urlsafe_b64encode(b"".join(sorted(marks))).decode()
    if len(marks) <= MAX_PAGED:
        return _encode([encoded, _fingerprint(question)])
    return None


def given_before(cursor: str | None, question: object) -> frozenset[bytes]:
    """Return the marks of the results given before. Raises InvalidInput for a cursor of another question."""
    if cursor is None:
        return frozenset()
    return _decoded(cursor, question, _given)


def _given(text: str) -> frozenset[bytes]:
    marks = urlsafe_b64decode(text)
    if len(marks) % _MARK or len(marks) > MAX_PAGED * _MARK:
        raise ValueError(text)
    return _split(marks, _MARK)


def _split(marks: bytes, size: int) -> frozenset[bytes]:
    return frozenset(
        marks[start : start + size] for start in range(0, len(marks), size)
    )


def is_given(id_: UUID, marks: frozenset[bytes]) -> bool:
    """Return True if a result was given before (with one false positive in sixteen million)."""
    return bool(marks) and _mark(id_) in marks


@dataclass(frozen=True, slots=True)
class Feed:
    """Progress of a feed of events: it gave all before `since`, and from then on those with these marks.

    An event is seen after its commit, later than the time that it bears. So a feed reads some time again, and leaves
    out what it has given.
    """

    since: datetime
    marks: frozenset[bytes]

    def holds(self, key: EventKey) -> bool:
        """Return True if an event was given (with one false positive in 4 billion for each mark)."""
        return _event_mark(key) in self.marks

    @classmethod
    def of(cls, since: datetime, keys: Iterable[EventKey]) -> Feed:
        """Make a feed of the events that were given."""
        return cls(
            since,
            frozenset(_event_mark(key) for key in keys if key.at >= since),
        )


def _event_mark(key: EventKey) -> bytes:
    return hashlib.blake2b(
        key.id.bytes + key.namespace.bytes, digest_size=_EVENT_MARK
    ).digest()


def feed_cursor(feed: Feed, question: object) -> str:
    """Return the cursor of a feed."""
    marks = urlsafe_b64encode(b"".join(sorted(feed.marks))).decode()
    return _encode([feed.since.isoformat(), marks, _fingerprint(question)])


def feed_of(cursor: str, question: object) -> Feed:
    """Return the feed that a cursor continues. Raises InvalidInput for a cursor of another question."""

    def read(since: str, marks: str) -> Feed:
        return Feed(_aware(since), _split(urlsafe_b64decode(marks), _EVENT_MARK))

    return _decoded(cursor, question, read)


def event_cursor(key: EventKey, question: object) -> str:
    """Return the cursor of a page of events: the key of its last one."""
    return _encode(
        [
            key.at.isoformat(),
            str(key.id),
            str(key.namespace),
            _fingerprint(question),
        ]
    )


def event_key_of(cursor: str, question: object) -> EventKey:
    """Return the key of the event before which a page begins. Raises InvalidInput for a cursor of another question."""
    return _decoded(
        cursor,
        question,
        lambda at, id_, namespace: EventKey(_aware(at), UUID(id_), UUID(namespace)),
    )


def _aware(text: str) -> datetime:
    """Parse a time. Raises ValueError without an offset."""
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    return time


def list_cursor(key: ListKey, question: object) -> str:
    """Return the cursor of a list: the key of its last row."""
    return _encode([key.time.isoformat(), str(key.id), _fingerprint(question)])


def list_key_of(cursor: str | None, question: object) -> ListKey | None:
    """Return the key after which a list continues. Raises InvalidInput for a cursor of another question."""
    if cursor is None:
        return None
    return _decoded(
        cursor, question, lambda time, id_: ListKey(_aware(time), UUID(id_))
    )
