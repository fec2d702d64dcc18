"""Work at the same time, work on long texts, and work that outlives the request that starts it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextvars import Context, ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")

# Characters from which work on texts would delay other calls too much: it takes some milliseconds at most below.
LONG_TEXTS = 10_000


class Abandoned(Exception):
    """The work has no waiter any more. This is raised and caught in the thread that does the work."""


_abandoned: ContextVar[threading.Event | None] = ContextVar("abandoned", default=None)


def in_background(work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
    """Start a task in an empty context: its log lines carry no request's id, its spans have no parent."""
    return asyncio.create_task(work, name=name, context=Context())


async def all_of(*works: Coroutine[Any, Any, Result]) -> list[Result]:
    """Return the results of work done at the same time. If one fails, the others are cancelled and its error raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def in_thread(work: Callable[[], Result], name: str) -> asyncio.Future[Result]:
    """Start a function in a thread that does not keep the process alive; return a future of its result or error."""
    outcome: Future[Result] = Future()
    outcome.set_running_or_notify_cancel()  # it goes on when its caller is cancelled

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised again by the task that waits
            outcome.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return asyncio.wrap_future(outcome)


async def on_texts(work: Callable[[], Result], characters: int) -> Result:
    """Return the result of work on texts of so many characters in all; long ones are read in a thread.

    The work calls `stop_if_abandoned` between its texts, and so ends soon after its caller was cancelled.
    """
    if characters < LONG_TEXTS:
        return work()
    abandoned = threading.Event()

    def run() -> Result:
        _abandoned.set(abandoned)
        return work()

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        abandoned.set()
        raise


def characters_in(values: Iterable[object]) -> int:
    """Count the characters of texts at any depth, a value of another type as one; ends at LONG_TEXTS or soon after."""
    characters = 0
    pending = list(values)
    while pending and characters < LONG_TEXTS:
        value = pending.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, Mapping):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            pending += value
        characters += 1
    return characters


def stop_if_abandoned() -> None:
    """End the work of this thread if its caller was cancelled."""
    abandoned = _abandoned.get()
    if abandoned is not None and abandoned.is_set():
        raise Abandoned
