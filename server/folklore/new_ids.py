"""Identifiers, made by the client: a sequence would tie the tables to one node."""

import os
import time
from threading import Lock
from uuid import UUID

_TAIL_BITS = 74
# Milliseconds. After a clock was set back by more, ids follow it; by less, they continue from the last one.
_SET_BACK = 10_000


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
