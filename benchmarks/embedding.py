"""Processor time of embedding with MiniLM, next to a trivial call over stdio in the same run.

    python -m benchmarks.embedding

A trivial call is that of the bare SDK's server, its client included. The parts alternate, so that they meet the same
state of the machine; the medians of the rounds are printed, and the ratios of the medians.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
from mcp import Client

from benchmarks.latency import command
from folklore.config import EmbeddingSettings
from folklore.embedding.factory import configured_embedder

_ROUNDS = 25
_QUESTION = "which formatter do we use for the backend of the label service"
_TEXT = (
    "We lint and format with ruff; run make check before you push. The label service calls the carrier through a "
    "queue, retries three times with a backoff, and keeps each answer for thirty days so that support can look it up."
)


async def measure() -> dict[str, float]:
    """Return milliseconds of processor time, and the ratios."""
    embedder = configured_embedder(
        EmbeddingSettings(provider="minilm"), Path(os.environ.get("FOLKLORE_HOME", ""))
    )
    assert embedder is not None
    found: dict[str, list[float]] = {
        "trivial": [],
        "question": [],
        "text": [],
        "load": [],
    }

    async def timed(
        name: str,
        times: int,
        work: Callable[[], Awaitable[object]],
        *others: psutil.Process,
    ) -> None:
        def taken() -> float:
            return time.process_time() + sum(
                sum(other.cpu_times()[:2]) for other in others
            )

        began = taken()
        for _ in range(times):
            await work()
        found[name].append((taken() - began) / times * 1e3)

    await timed("load", 1, embedder.probe)
    with tempfile.TemporaryDirectory(prefix="folklore bench ") as home:
        async with Client(command(home, "-m", "benchmarks.servers", "bare")) as client:
            [server] = psutil.Process().children()
            for _ in range(_ROUNDS):
                await timed(
                    "trivial",
                    40,
                    lambda: client.call_tool("trivial", {"text": _QUESTION}),
                    server,
                )
                await timed(
                    "question",
                    8,
                    lambda: embedder.embed_question(_QUESTION.split(), []),
                )
                await timed("text", 4, lambda: embedder.embed([_TEXT]))
    await embedder.close()
    medians = {
        f"{name}_ms": statistics.median(values) for name, values in found.items()
    }
    return medians | {
        f"{name}_over_trivial": medians[f"{name}_ms"] / medians["trivial_ms"]
        for name in ("question", "text")
    }


if __name__ == "__main__":
    print(
        json.dumps(
            {name: round(value, 2) for name, value in asyncio.run(measure()).items()},
            indent=2,
        )
    )
