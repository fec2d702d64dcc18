"""Identifiers are made by the client side, so that no sequence ties the tables to one machine."""

from __future__ import annotations

import os
import time
from threading import Lock
from uuid import UUID

_TAIL_BITS = 74
# A clock that was set back by more than this, in milliseconds, is followed; by less, ids go on from the last.
_SET_BACK = 10_000


class Ids:
    """UUIDv7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then 74 bits that begin at random and grow by random steps
    within a millisecond (6.2, method 2).

    So ids of one process stand in the order they were made in, and whatever goes by id, such as the order of equal
    results, is the same in every store that the same memories were put into.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._milliseconds = 0
        self._tail = 0

    def next(self, milliseconds: int) -> UUID:
        """A new id for this time."""
        with self._lock:
            if self._milliseconds >= milliseconds > self._milliseconds - _SET_BACK:
                self._tail += 1 + int.from_bytes(os.urandom(5), "big")
            else:
                # The highest bit is left free, for as many more as a millisecond can take.
                self._milliseconds, self._tail = (
                    milliseconds,
                    int.from_bytes(os.urandom(10), "big") >> 80 - _TAIL_BITS + 1,
                )
            value = (self._milliseconds & 0xFFFFFFFFFFFF) << 80
            value |= 0x7 << 76 | (self._tail >> 62 & 0xFFF) << 64
            value |= 0b10 << 62 | self._tail & 0x3FFFFFFFFFFFFFFF
            return UUID(int=value)


_ids = Ids()


def new_id() -> UUID:
    """A UUIDv7; those that one process makes sort in the order they were made in."""
    return _ids.next(time.time_ns() // 1_000_000)
