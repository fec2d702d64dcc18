"""Start of an application, and of its engine, that something holds up."""

import asyncio
import importlib
import threading

import pytest

from folklore.app import App
from folklore.config import EmbeddingSettings, Settings
from folklore.contract.recall import RecallRequest
from folklore.db.database import Database, PoolLimits
from folklore.errors import DatabaseUnavailable
from tests.doors import own_service
from tests.servers import free_port
from tests.waiting import STUCK


async def test_an_application_starts_while_its_embedding_service_never_answers(
    settings: Settings,
) -> None:
    asked = asyncio.Event()
    over = asyncio.Event()

    async def silent(
        _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    embedding = EmbeddingSettings(
        provider="openai", url=f"http://127.0.0.1:{port}/v1", model="m"
    )
    app = App(settings.model_copy(update={"embedding": embedding}))
    try:
        async with asyncio.timeout(STUCK):
            running = await app.ready()
            await asked.wait()

        assert running.memory.embedder is not None
    finally:
        async with asyncio.timeout(STUCK):
            await app.close()
        over.set()
        server.close()


async def test_a_request_waits_for_a_start_no_longer_than_its_client(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def held_up(module: str) -> object:
        over.wait(STUCK)
        return importlib.import_module(module)

    app = App(settings)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("folklore.app.import_module", held_up)
            patched.setattr("folklore.app.REQUEST_SECONDS", 0.01)
            with pytest.raises(DatabaseUnavailable, match="still being started"):
                await own_service(app).call(RecallRequest(query="quay"))
        over.set()

        assert (await own_service(app).call(RecallRequest(query="quay"))).memories == ()
    finally:
        over.set()
        await app.close()


async def test_requests_wait_for_one_start_of_the_engine_and_no_longer_than_their_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("folklore.db.pools._REVIVE_SECONDS", 0.01)
    begun = []
    over = asyncio.Event()

    async def revive() -> None:
        begun.append(True)
        await over.wait()

    database = Database(
        f"postgresql://nobody@127.0.0.1:{free_port()}/none",
        PoolLimits(minimum=0),
        revive=revive,
    )
    await database.open()
    answers = await asyncio.gather(
        *(database.rows("server/info") for _ in range(3)), return_exceptions=True
    )
    over.set()

    assert all("still being started" in str(answer) for answer in answers)
    assert len(begun) == 1
    await database.close()
