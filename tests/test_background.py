"""Work on long texts: other calls go on meanwhile, and nobody's work ends soon."""

import asyncio
import threading

import pytest

from folklore.background import (
    LONG_TEXTS,
    characters_in,
    on_texts,
    stop_if_abandoned,
)


async def test_long_texts_are_read_in_another_thread() -> None:
    here = threading.get_ident()

    assert await on_texts(threading.get_ident, LONG_TEXTS - 1) == here
    assert await on_texts(threading.get_ident, LONG_TEXTS) != here


async def test_work_ends_between_two_texts_when_its_caller_is_cancelled() -> None:
    began = threading.Event()
    cancelled = threading.Event()
    ended = threading.Event()
    read = []

    def work() -> None:
        try:
            for text in range(2):
                stop_if_abandoned()
                read.append(text)
                began.set()
                cancelled.wait()
        finally:
            ended.set()

    task = asyncio.create_task(on_texts(work, LONG_TEXTS))
    await asyncio.to_thread(began.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cancelled.set()
    await asyncio.to_thread(ended.wait)

    assert read == [0]


def test_work_that_somebody_waits_for_goes_on() -> None:
    stop_if_abandoned()


def test_the_texts_of_every_field_count_and_the_count_ends_early() -> None:
    nested: dict[str, object] = {}
    for _ in range(2_000):
        nested = {"deeper": nested}

    assert characters_in(["text", None, ("tag",), {"key": ["value"]}]) < 30
    assert characters_in(["", {"key": ["v" * LONG_TEXTS]}]) >= LONG_TEXTS
    assert characters_in([nested]) >= LONG_TEXTS
    assert characters_in([[0] * LONG_TEXTS]) >= LONG_TEXTS
