"""Who the present call is from, where one process serves many: set by the door that let it in, asked by who acts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from folklore.errors import Refused
from folklore.model import Caller

_CALLER: ContextVar[Caller | None] = ContextVar("folklore_caller", default=None)


def present_caller() -> Caller:
    """Whoever the present call is from. Raises Refused where no door has said: nobody is let in by forgetfulness."""
    caller = _CALLER.get()
    if caller is None:
        raise Refused("Nobody knows whom this call is from.", hint="Tell the maintainers; it is a fault of the server.")
    return caller


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Within the block, and in the tasks it starts, the present call is from this caller."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
