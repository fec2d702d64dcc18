"""A check for linear time, for functions that read text of callers."""

from __future__ import annotations

import time
from collections.abc import Callable


def assert_linear_time(function: Callable[[str], object], unit: str, length: int = 32_000) -> None:
    """Assert that a text of `length` characters takes less than 24 times the processor time of an eighth of it.

    Linear time would be 8 times, quadratic time 64 times. Below half a second, noise decides, and any ratio passes.
    """

    def seconds(characters: int) -> float:
        text = (unit * (characters // len(unit) + 1))[:characters]
        times = []
        for _ in range(3):
            started = time.process_time()
            function(text)
            times.append(time.process_time() - started)
        return min(times)

    assert seconds(length) < max(24 * seconds(length // 8), 0.5)
