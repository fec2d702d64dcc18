"""A check for linear time, for functions that read text of callers."""

import gc
import time
from collections.abc import Callable

_ATTEMPTS = 15
# Seconds below which the clock is too coarse, and the most work of a text in that of an eighth of it.
_COARSE = 1e-4
_MOST = 24
# With less, one measurement of the eighth is enough: it would have to be five times too long to hide quadratic time.
_PLAIN = 12


def assert_linear_time(
    function: Callable[[str], object],
    unit: str,
    length: int = 16_000,
    end: str = "",
    head: str = "",
) -> None:
    """Assert that a text of `head`, `length` characters and `end` takes less than 24 times the work of an eighth of it.

    Linear time would be 8 times, quadratic time 64 times. Work is the processor time of this thread, which other
    processes do not change much; one of several attempts is enough, so that one disturbed measurement fails nothing.
    """

    def work(characters: int) -> float:
        text = head + (unit * (characters // len(unit) + 1))[:characters] + end
        gc.disable()  # it would look through the objects of all tests
        try:
            started = time.thread_time()
            function(text)
            return time.thread_time() - started
        finally:
            gc.enable()

    function(unit)  # a first call may load something
    ratios = []
    for _ in range(_ATTEMPTS):
        whole = work(length)
        if whole <= _COARSE * _MOST:
            return
        eighth = max(work(length // 8), _COARSE)
        if whole < _PLAIN * eighth:
            return
        eighth = max(min(eighth, work(length // 8), work(length // 8)), _COARSE)
        if whole < _MOST * eighth:
            return
        ratios.append(whole / eighth)
    raise AssertionError(
        f"{length:,} characters of {unit!r} after {head!r} took {ratios} times the work of an eighth of them"
    )
