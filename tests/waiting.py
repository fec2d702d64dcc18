"""Waits for events, with a limit that only a stuck test reaches."""

from __future__ import annotations

import time
from collections.abc import Callable

# For `asyncio.timeout` and `communicate`, in seconds: only a test that is stuck takes so long.
STUCK = 120


def eventually(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + STUCK
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.005)
