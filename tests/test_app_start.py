"""Start of an application whose embedding service never answers."""

from __future__ import annotations

import asyncio

from folklore.app import App
from folklore.config import EmbeddingSettings, Settings
from tests.waiting import STUCK


async def test_an_application_starts_while_its_embedding_service_never_answers(settings: Settings) -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await over.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    embedding = EmbeddingSettings(provider="openai", url=f"http://127.0.0.1:{port}/v1", model="m")
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
