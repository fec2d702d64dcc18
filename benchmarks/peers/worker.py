"""Store texts and answer questions as another system does, in its Python: a request a line on stdin.

    python worker.py SYSTEM FOLDER ENDPOINT

ENDPOINT is the base address of an OpenAI-compatible embedding service. Requests are `{"store": [text, …]}`, answered by
`{"stored": number}`, and `{"recall": question}`, answered by `{"texts": [text, …]}`, the best ten in order. Each system
is called in process through the calls that its documentation names, with its defaults; what it prints goes to stderr.
This file imports nothing of Folklore, since the Python of a system does not have it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

Store = Callable[[Sequence[str]], Awaitable[int]]
Recall = Callable[[str], Awaitable[list[str]]]

_LIMIT = 10
_DIMENSIONS = 256
_MODEL = "bench"


async def engrava(folder: Path, endpoint: str) -> tuple[Store, Recall]:
    """Engrava: SQLite, full-text and vector search."""
    import aiosqlite
    from engrava import SqliteEngravaCore
    from engrava.embeddings.openai_compatible import OpenAICompatibleProvider

    connection = await aiosqlite.connect(folder / "engrava.db")
    connection.row_factory = aiosqlite.Row
    provider = OpenAICompatibleProvider(
        _MODEL, base_url=endpoint, api_key="none", dimension=_DIMENSIONS
    )
    core = SqliteEngravaCore(connection, embedding_provider=provider, auto_embed=True)
    await core.ensure_schema()

    async def store(texts: Sequence[str]) -> int:
        for text in texts:
            await core.remember(text)
        return len(texts)

    async def recall(question: str) -> list[str]:
        thoughts = [
            await core.get_thought(name)
            for name, _ in (await core.recall(question, top_k=_LIMIT)).results
        ]
        return [thought.content for thought in thoughts if thought is not None]

    return store, recall


async def mem0(folder: Path, endpoint: str) -> tuple[Store, Recall]:
    """mem0 without a language model (`infer=False`), with its default store, Qdrant in process."""
    from mem0 import Memory

    embedder = {"model": _MODEL, "openai_base_url": endpoint, "api_key": "none"}
    vectors = {
        "path": str(folder / "qdrant"),
        "embedding_model_dims": _DIMENSIONS,
        "on_disk": True,
    }
    memory = Memory.from_config(
        {
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "llm": {
                "provider": "openai",
                "config": {"api_key": "none", "openai_base_url": endpoint},
            },
            "history_db_path": str(folder / "history.db"),
        }
    )

    async def store(texts: Sequence[str]) -> int:
        for text in texts:
            memory.add(
                [{"role": "user", "content": text}], user_id="bench", infer=False
            )
        return len(texts)

    async def recall(question: str) -> list[str]:
        answer = memory.search(question, top_k=_LIMIT, filters={"user_id": "bench"})
        return [result["memory"] for result in answer["results"]]

    return store, recall


async def mcp_memory_service(folder: Path, endpoint: str) -> tuple[Store, Recall]:
    """mcp-memory-service: SQLite with sqlite-vec."""
    os.environ |= {
        "MCP_EXTERNAL_EMBEDDING_URL": f"{endpoint}/embeddings",
        "MCP_EXTERNAL_EMBEDDING_MODEL": _MODEL,
    }
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    storage = SqliteVecMemoryStorage(str(folder / "memory.db"))
    await storage.initialize()

    async def store(texts: Sequence[str]) -> int:
        memories = [
            Memory(content=text, content_hash=generate_content_hash(text))
            for text in texts
        ]
        return sum(stored for stored, _ in await storage.store_batch(memories))

    async def recall(question: str) -> list[str]:
        return [
            result.memory.content
            for result in await storage.retrieve(question, n_results=_LIMIT)
        ]

    return store, recall


async def mempalace(folder: Path, endpoint: str) -> tuple[Store, Recall]:
    """MemPalace: Chroma in process."""
    os.environ |= {
        "MEMPALACE_PALACE_PATH": str(folder / "palace"),
        "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
        "MEMPALACE_EMBEDDING_API_URL": endpoint,
        "MEMPALACE_EMBEDDING_API_MODEL": _MODEL,
    }
    from mempalace.mcp_server import tool_add_drawer, tool_search

    async def store(texts: Sequence[str]) -> int:
        answers = [tool_add_drawer("bench", "notes", text) for text in texts]
        return sum(bool(answer.get("success")) for answer in answers)

    async def recall(question: str) -> list[str]:
        return [
            result["text"] for result in tool_search(question, limit=_LIMIT)["results"]
        ]

    return store, recall


SYSTEMS = {
    "engrava": engrava,
    "mem0ai": mem0,
    "mcp-memory-service": mcp_memory_service,
    "mempalace": mempalace,
}


async def _serve(system: str, folder: Path, endpoint: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a system prints is no answer
    store, recall = await SYSTEMS[system](folder, endpoint)

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        if "store" in request:
            answer({"stored": await store(request["store"])})
        else:
            answer({"texts": await recall(request["recall"])})


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
