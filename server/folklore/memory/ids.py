"""Identifiers, made by the client: a sequence would tie the tables to one node."""

import os
import re
import time
from threading import Lock
from uuid import UUID

from folklore.errors import InvalidInput

_TAIL_BITS = 74
# An id ends at random; its beginning is a time, which memories stored on one day share.
_DIGITS = 8
# Milliseconds. After a clock was set back by more, ids follow it; by less, they continue from the last one.
_SET_BACK = 10_000

# Of a text that names one memory, with what surrounds the id.
_LONGEST = 300
_HYPHENS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_WHOLE = re.compile(
    "(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-z])"
)
_DIGITS_OF_ID = re.compile("[0-9a-f]{32}")
_ENDING = re.compile("[0-9a-f]{4,31}")
_NAMED = re.compile(
    r"^(?:urn:uuid:|uuid:|(?:memory)?[\s_-]*ids?\s*[:=]?|memory\s*[:/=#]?|#)\s*"
)
_AROUND = " \t\r\n\"'`“”‘’«»()[]{}<>,;:.|*"


class Ids:
    """UUIDv7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then 74 bits that begin at random and grow by random steps
    within a millisecond (6.2, method 2).

    The ids of one process sort in the order of their creation, and so do equal results, which are ordered by id.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._milliseconds = 0
        self._tail = 0

    def next(self, milliseconds: int) -> UUID:
        """Return a new id for this time."""
        with self._lock:
            if self._milliseconds >= milliseconds > self._milliseconds - _SET_BACK:
                self._tail += 1 + int.from_bytes(os.urandom(5), "big")
            else:
                # The highest bit stays free for further ids of the same millisecond.
                self._milliseconds = milliseconds
                self._tail = (
                    int.from_bytes(os.urandom(10), "big") >> 80 - _TAIL_BITS + 1
                )
            value = (self._milliseconds & 0xFFFFFFFFFFFF) << 80
            value |= 0x7 << 76 | (self._tail >> 62 & 0xFFF) << 64
            value |= 0b10 << 62 | self._tail & 0x3FFFFFFFFFFFFFFF
            return UUID(int=value)


_ids = Ids()


def new_id() -> UUID:
    """Return a UUIDv7; those of one process sort in the order of their creation."""
    return _ids.next(time.time_ns() // 1_000_000)


def id_of(text: str, field: str, hint: str) -> UUID:
    """Parse a whole id in any spelling. Raises InvalidInput that names the field."""
    id_ = id_in(text)
    if isinstance(id_, UUID):
        return id_
    raise InvalidInput(field, f"{text[:60]!r} is not an id.", hint=hint)


def id_or_ending(text: str, field: str, hint: str) -> UUID | str:
    """Return an id, or the end of one as it is looked up. Raises InvalidInput."""
    if (id_ := id_in(text)) is not None:
        return id_
    if _is_beginning(text):
        problem = f"{text[:60]!r} is the beginning of an id, which others share."
        raise InvalidInput(field, problem, hint=hint)
    raise InvalidInput(field, f"{text[:60]!r} is not an id.", hint=hint)


def id_in(text: str) -> UUID | str | None:
    """Return the id that a text spells, or the end of one in lower case without hyphens; None for another text.

    People and models copy an id with quotes, brackets, a name, an ellipsis for what they leave out, or `urn:uuid:`.
    """
    if len(text) > _LONGEST:
        return None
    lower = text.lower().translate(_HYPHENS).replace("...", "…")
    if whole := set(_WHOLE.findall(lower)):
        return UUID(whole.pop()) if len(whole) == 1 else None
    _, _, ending = lower.strip(_AROUND).rpartition("…")
    digits = _NAMED.sub("", ending).strip(_AROUND).replace("-", "")
    if _DIGITS_OF_ID.fullmatch(digits):
        return UUID(digits)
    return digits if _ENDING.fullmatch(digits) else None


def _is_beginning(text: str) -> bool:
    return text.replace("...", "…").strip(_AROUND).endswith("…")


def short(id_: UUID) -> str:
    """Return the end of an id, which commands and the console show, and commands take in place of the whole."""
    return id_.hex[-_DIGITS:]
