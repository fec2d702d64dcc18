"""A server starts a stopped engine again."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from folklore.app import running
from folklore.config import load_settings
from folklore.engine import Engine
from folklore.memory.recall.pipeline import RecallRequest, recall
from folklore.memory.records.store import store
from folklore.model import Draft


async def test_the_next_call_of_a_server_starts_a_stopped_engine() -> None:
    with tempfile.TemporaryDirectory(prefix="folklore-engine-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        async with running(load_settings(home=home, author="tester")) as app:
            try:
                library = (await app.ready()).memory
                await store(library, "notes", [Draft("the quay is closed")], caller=app.caller, now=app.now())
                assert await asyncio.to_thread(Engine(home).stop)

                answer = await recall(library, RecallRequest("quay"), now=app.now())
                await asyncio.to_thread(Engine(home).stop)
                again = await store(library, "notes", [Draft("and open again")], caller=app.caller, now=app.now())
            finally:
                await asyncio.to_thread(Engine(home).stop)

    assert [result.memory.content for result in answer.memories] == ["the quay is closed"]
    assert [item.status for item in again.stored] == ["stored"]
