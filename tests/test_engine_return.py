"""The engine stops while a server runs: the next call starts it again."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from folklore.app import running
from folklore.config import load_settings
from folklore.engine import Engine
from folklore.memory.requests import RecallRequest, StoreRequest
from folklore.model import Draft


async def test_a_call_starts_an_engine_that_was_stopped() -> None:
    with tempfile.TemporaryDirectory(prefix="folklore-engine-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        async with running(load_settings(home=home, author="tester", namespace="notes")) as app:
            try:
                await app.service.call(StoreRequest(memories=(Draft("the quay is closed"),)))
                assert await asyncio.to_thread(Engine(home).stop)

                answer = await app.service.call(RecallRequest(query="quay"))
                await asyncio.to_thread(Engine(home).stop)
                again = await app.service.call(StoreRequest(memories=(Draft("and open again"),)))
            finally:
                await asyncio.to_thread(Engine(home).stop)

    assert [result.memory.content for result in answer.memories] == ["the quay is closed"]
    assert [item.status for item in again.stored] == ["stored"]
