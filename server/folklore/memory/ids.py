"""Identifiers are made by the client side, so that no sequence ties the tables to one machine."""

from __future__ import annotations

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then 74 random bits; later ids sort later."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & 0xFFFFFFFFFFFF) << 80
    value |= 0x7 << 76 | (random >> 68 & 0xFFF) << 64
    value |= 0b10 << 62 | random & 0x3FFFFFFFFFFFFFFF
    return UUID(int=value)
