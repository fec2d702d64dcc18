"""The caller of the current request, where one process serves many: set by authentication, read by the service."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from folklore.callers import Caller
from folklore.errors import Refused

_CALLER: ContextVar[Caller | None] = ContextVar("folklore_caller", default=None)


def current_caller() -> Caller:
    """Return the caller of the current request. Raises Refused without one: a missing check grants nothing."""
    caller = _CALLER.get()
    if caller is None:
        raise Refused(
            "This request was not authenticated.",
            hint="Report it: this is a fault of the server.",
        )
    return caller


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Set the current caller for a block, and for the tasks that it starts."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
