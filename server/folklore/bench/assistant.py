"""An assistant that stores and recalls as any client does: through the MCP tools, in memory, with a stopwatch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from mcp import Client
from mcp.types import TextContent

from folklore.app import App
from folklore.errors import FolkloreError
from folklore.mcp.server import build_server
from folklore.memory.validation import MAX_BATCH

Arguments = dict[str, Any]


@dataclass(slots=True)
class Kept:
    """What became of the memories given to `keep`."""

    stored: int = 0
    duplicates: int = 0
    refused: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Memories a second."""
        return (self.stored + self.duplicates) / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to one question: the sources and scores of its results, best first; `seconds` as the client waits."""

    sources: list[str]
    scores: list[float]
    seconds: float
    degraded: bool


@dataclass(slots=True)
class Assistant:
    """One connected client."""

    client: Client
    kept: Kept = field(default_factory=Kept)

    async def keep(self, namespace: str, memories: Sequence[Arguments]) -> None:
        """Store memories in their order, 500 a call. One that is refused is counted and does not stop the others."""
        for start in range(0, len(memories), MAX_BATCH):
            batch = memories[start : start + MAX_BATCH]
            began = perf_counter()
            try:
                await self._keep(namespace, batch)
            except FolkloreError:
                await self._keep_one_by_one(namespace, batch)
            self.kept.seconds += perf_counter() - began

    async def ask(
        self, query: str, namespaces: Sequence[str], limit: int, options: Arguments, tool: str = "memory_recall"
    ) -> Told:
        """Recall, or search. `options` are further arguments of the tool."""
        arguments = {"query": query, "limit": limit, "format": "detailed"} | options
        if namespaces:
            arguments["namespaces"] = list(namespaces)
        began = perf_counter()
        answer = await self.call(tool, arguments)
        seconds = perf_counter() - began
        memories = answer["memories"]
        return Told(
            sources=[memory["source"] for memory in memories],
            scores=[float(memory.get("score", 0.0)) for memory in memories],
            seconds=seconds,
            degraded=bool(answer.get("degraded")),
        )

    async def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        """One call. Raises FolkloreError with the tool's own words."""
        result = await self.client.call_tool(tool, arguments)
        if result.is_error or result.structured_content is None:
            words = " ".join(part.text for part in result.content if isinstance(part, TextContent))
            raise FolkloreError(f"{tool}: {words}")
        answer: dict[str, Any] = result.structured_content
        return answer

    async def _keep(self, namespace: str, batch: Sequence[Arguments]) -> None:
        answer = await self.call("memory_store", {"namespace": namespace, "memories": list(batch)})
        new = sum(item["status"] != "duplicate" for item in answer["stored"])
        self.kept.stored += new
        self.kept.duplicates += len(batch) - new

    async def _keep_one_by_one(self, namespace: str, batch: Sequence[Arguments]) -> None:
        failures = []
        for memory in batch:
            try:
                await self._keep(namespace, [memory])
            except FolkloreError as error:
                failures.append(error)
        if len(failures) == len(batch):  # not the memories are wrong
            raise failures[0]
        self.kept.refused += len(failures)


@asynccontextmanager
async def assistant(app: App) -> AsyncIterator[Assistant]:
    """A client joined to a server over a running application."""
    async with Client(build_server(app.host)) as client:
        yield Assistant(client)
