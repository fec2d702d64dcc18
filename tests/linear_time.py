"""A check for linear time, for functions that read text of callers."""

from __future__ import annotations

import time
from collections.abc import Callable

_ATTEMPTS = 5


def assert_linear_time(function: Callable[[str], object], unit: str, length: int = 32_000) -> None:
    """Assert that a text of `length` characters takes less than 24 times the work of an eighth of it.

    Linear time would be 8 times, quadratic time 64 times. Work is the processor time of this thread, which other
    processes do not change much; one of several attempts is enough, so that one disturbed measurement fails nothing.
    """

    def work(characters: int) -> float:
        text = (unit * (characters // len(unit) + 1))[:characters]
        started = time.thread_time()
        function(text)
        return time.thread_time() - started

    function(unit)  # a first call may load something
    ratios = []
    for _ in range(_ATTEMPTS):
        part = max(min(work(length // 8) for _ in range(3)), 1e-4)  # below, the clock is too coarse
        ratios.append(work(length) / part)
        if ratios[-1] < 24:
            return
    raise AssertionError(f"{length:,} characters took {ratios} times the work of an eighth of them")
