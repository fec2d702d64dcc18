"""Scratch store of a benchmark, never the user's memories, and an MCP client that stores and recalls in it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
from mcp import Client
from mcp.types import TextContent
from pydantic import SecretStr

from benchmarks.command_line import track
from benchmarks.sets import RetrievalSet
from folklore.app import App
from folklore.config import Settings, load_settings
from folklore.engine import Engine
from folklore.errors import FolkloreError, InvalidInput
from folklore.mcp.server import build_server
from folklore.memory.context.validation import MAX_BATCH
from tests.doors import own_service

Arguments = dict[str, Any]
_CHARACTERS_PER_TOKEN = 4
_EMBEDDED_WITHIN = 3_600.0


@dataclass(slots=True)
class Counts:
    """Memories stored and known already so far, and the seconds that storing took."""

    stored: int = 0
    duplicates: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Memories per second."""
        return (self.stored + self.duplicates) / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Sources and scores of the results, best first; `seconds` as an MCP client waits.

    `fits` is true if any result is a strong or fair match; `tokens` are those of the answer as JSON.
    """

    sources: list[str]
    scores: list[float]
    seconds: float
    degraded: bool
    fits: bool
    tokens: float


@dataclass(slots=True)
class Store:
    """An application over a scratch store, and a client connected to its MCP server."""

    app: App
    client: Client
    counts: Counts = field(default_factory=Counts)
    # Records which set a home holds; None in a store that ends with the run.
    record: Path | None = None

    async def fill(self, given: RetrievalSet) -> None:
        """Store a set, unless this home holds it from an earlier run. Raises InvalidInput if it holds another one."""
        digest = hashlib.sha256(
            json.dumps(given.memories, sort_keys=True).encode()
        ).hexdigest()
        if self.record is not None and self.record.exists():
            held = json.loads(self.record.read_text())
            if held.pop("digest") != digest:
                raise InvalidInput(
                    "home",
                    f"{self.record.parent} holds another set. Use an empty folder.",
                )
            self.counts = Counts(**held)
            return
        for namespace, memories in given.memories.items():
            await self.add(namespace, memories)
        if self.record is not None:
            self.record.write_text(json.dumps(asdict(self.counts) | {"digest": digest}))

    async def add(self, namespace: str, memories: Sequence[Arguments]) -> None:
        """Store memories in their order, a full batch per call."""
        for start in track(range(0, len(memories), MAX_BATCH), f"Storing {namespace}"):
            batch = list(memories[start : start + MAX_BATCH])
            began = time.perf_counter()
            answer = await self.call(
                "memory_store", {"namespace": namespace, "memories": batch}
            )
            # a slow model's vectors follow the answer
            await (await self.app.ready()).memory.finish(_EMBEDDED_WITHIN)
            self.counts.seconds += time.perf_counter() - began
            new = sum(item["status"] != "duplicate" for item in answer["stored"])
            self.counts.stored += new
            self.counts.duplicates += len(batch) - new

    async def ask(
        self,
        query: str,
        namespaces: Sequence[str],
        limit: int,
        options: Arguments,
        tool: str = "memory_recall",
    ) -> Answer:
        """Call memory_recall, or another tool of the same answer; `options` are further arguments."""
        arguments = {"query": query, "limit": limit, "format": "detailed"} | options
        arguments["namespaces"] = list(namespaces) or ["*"]
        began = time.perf_counter()
        answer = await self.call(tool, arguments)
        seconds = time.perf_counter() - began
        return Answer(
            sources=[memory.get("source", "") for memory in answer["memories"]],
            scores=[float(memory.get("score", 0.0)) for memory in answer["memories"]],
            seconds=seconds,
            degraded=bool(answer.get("degraded")),
            fits=any(
                memory.get("match") in ("strong", "fair")
                for memory in answer["memories"]
            ),
            tokens=len(json.dumps(answer, ensure_ascii=False)) / _CHARACTERS_PER_TOKEN,
        )

    async def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        """Call a tool. Raises FolkloreError with the message of the tool."""
        result = await self.client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            message = " ".join(
                part.text for part in result.content if isinstance(part, TextContent)
            )
            raise FolkloreError(f"{tool}: {message}")
        answer: dict[str, Any] = result.structured_content
        return answer


@asynccontextmanager
async def open_store(
    home: Path | None = None, settings: Settings | None = None
) -> AsyncIterator[Store]:
    """Open a store with the user's settings otherwise: a new database next to a configured one, else a new engine.

    It is removed at the end. With `home` the engine of that folder is used, and its files are kept.
    """
    # The texts of a set are public, and a refused one would leave its question without an answer.
    settings = (settings or load_settings()).model_copy(
        update={"read_only": False, "secrets": "off"}
    )
    if home is None and settings.database_url is not None:
        place = _database(settings, settings.database_url.get_secret_value())
    else:
        place = _engine(settings, home)
    async with place as chosen:
        app = App(chosen)
        try:
            await app.ready()
            async with Client(build_server(own_service(app))) as client:
                yield Store(
                    app, client, record=None if home is None else home / "set.json"
                )
        except (
            BaseExceptionGroup
        ) as group:  # the task group of the client wraps the error of the block
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from group
        finally:
            await app.close()


@asynccontextmanager
async def _database(settings: Settings, dsn: str) -> AsyncIterator[Settings]:
    name = f"folklore_bench_{uuid4().hex[:12]}"
    await _execute(dsn, f"create database {name}")
    try:
        yield settings.model_copy(
            update={"database_url": SecretStr(with_database(dsn, name))}
        )
    finally:
        await _execute(dsn, f"drop database if exists {name} with (force)")


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close(timeout=5)


def with_database(dsn: str, name: str) -> str:
    """Return the same address with another database."""
    parts = urlsplit(dsn)
    query = [
        pair
        for pair in parse_qsl(parts.query, keep_blank_values=True)
        if pair[0] not in ("dbname", "database")
    ]
    return urlunsplit(parts._replace(path=f"/{name}", query=urlencode(query)))


@asynccontextmanager
async def _engine(settings: Settings, home: Path | None) -> AsyncIterator[Settings]:
    folder = home or Path(
        await asyncio.to_thread(tempfile.mkdtemp, prefix="folklore-bench-")
    )
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    engine = Engine(folder, idle_minutes=10)
    try:
        yield settings.model_copy(update={"home": folder, "database_url": None})
    finally:
        await asyncio.to_thread(engine.stop)
        if home is None:
            await asyncio.to_thread(_remove, folder)


def _remove(folder: Path) -> None:
    # the watcher of the engine ends shortly after the engine, and may write a file meanwhile
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)
