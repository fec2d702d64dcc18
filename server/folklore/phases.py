"""Phases of work that may take long: named by the parts that do it, shown by the command line to who waits."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Receives the number of steps done, and of all: 0 if that is unknown.
Advance = Callable[[int, int], None]
Show = Callable[[str, float | None], AbstractContextManager[Advance]]

_show: Show | None = None


def show_phases(show: Show | None) -> None:
    """Show the phases of this process by a function that is given a text and the usual number of seconds, if known."""
    global _show
    _show = show


@contextmanager
def phase(text: str, seconds: float | None = None) -> Iterator[Advance]:
    """Name the work of a block, and how long it usually takes; yield a function that takes the steps done, and all."""
    if _show is None:
        yield lambda _done, _all: None
        return
    with _show(text, seconds) as advance:
        yield advance
