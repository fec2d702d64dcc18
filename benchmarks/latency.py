"""Cold start, recall and batch store over stdio, each beside a reference in the same run.

    python -m benchmarks.latency            # on an embedded engine in a temporary home
    FOLKLORE_DATABASE_URL=… python -m benchmarks.latency

The memories are made here: sentences of a Zipf vocabulary, so that nothing needs to be downloaded or copied.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client, StdioServerParameters

from folklore.engine import Engine

_COUNT = 3_000
_ROUNDS = 300


def sentences(count: int, seed: int = 7) -> list[str]:
    """Texts of 8 to 40 words, each from a Zipf vocabulary of 20,000."""
    rng = random.Random(seed)
    words = [f"{rng.choice('bcdfgklmnprst')}{rng.choice('aeiou')}{place:x}" for place in range(20_000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    lengths = [rng.randint(8, 40) for _ in range(count)]
    drawn = rng.choices(words, weights, k=sum(lengths))
    texts, start = [], 0
    for length in lengths:
        texts.append(" ".join(drawn[start : start + length]))
        start += length
    return texts


def ours(home: str, *command: str) -> StdioServerParameters:
    """A server of ours with this home."""
    environment = {**os.environ, "FOLKLORE_HOME": home, "FOLKLORE_NAMESPACE": "bench", "FOLKLORE_LOG_LEVEL": "error"}
    return StdioServerParameters(command=sys.executable, args=list(command), env=environment)


async def first_list(parameters: StdioServerParameters) -> float:
    """Milliseconds from starting the process to the answer of its first tools/list."""
    start = time.perf_counter()
    async with Client(parameters) as client:
        await client.list_tools()
        return (time.perf_counter() - start) * 1e3


async def cold_start(home: str) -> dict[str, float]:
    """Our start against the bare SDK's, turn by turn."""
    bare = StdioServerParameters(command=sys.executable, args=["-m", "benchmarks.servers", "bare"])
    real = ours(home, "-m", "folklore", "serve")
    pairs = [(await first_list(bare), await first_list(real)) for _ in range(9)]
    return {
        "bare_ms": statistics.median(pair[0] for pair in pairs),
        "ours_ms": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[1] / pair[0] for pair in pairs),
    }


async def first_recall(home: str) -> dict[str, float]:
    """Seconds from starting a server to its first answer: on a stopped engine, and where there was none before."""
    with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as empty:
        try:
            new = await _first_recall(empty)
        finally:
            Engine(Path(empty)).stop()
    await _first_recall(home)
    if "FOLKLORE_DATABASE_URL" not in os.environ:
        Engine(Path(home)).stop()
    return {"first_recall_s": await _first_recall(home), "first_recall_of_all_s": new}


async def _first_recall(home: str) -> float:
    start = time.perf_counter()
    async with Client(ours(home, "-m", "folklore", "serve")) as client:
        answer = await client.call_tool("memory_recall", {"query": "warm"})
        assert not answer.is_error, answer
        return time.perf_counter() - start


async def calls(home: str) -> dict[str, float]:
    """Recall of ten among 3,000 against a trivial tool of the same server, alternating; and stores of 500."""
    texts = sentences(_COUNT + 500)
    rng = random.Random(11)
    async with Client(ours(home, "-m", "benchmarks.servers", "ours")) as client:
        stores = []
        for start in range(0, _COUNT + 500, 500):
            batch = [{"content": text} for text in texts[start : start + 500]]
            begin = time.perf_counter()
            answer = await client.call_tool("memory_store", {"memories": batch, "namespace": "bench"})
            stores.append(time.perf_counter() - begin)
            assert not answer.is_error, answer
        trivial, recall = [], []
        for _ in range(_ROUNDS):
            question = " ".join(rng.sample(rng.choice(texts).split(), 6))
            begin = time.perf_counter()
            await client.call_tool("trivial", {"text": question})
            between = time.perf_counter()
            answer = await client.call_tool("memory_recall", {"query": question, "namespaces": ["bench"]})
            recall.append((time.perf_counter() - between) * 1e3)
            trivial.append((between - begin) * 1e3)
            assert len(answer.structured_content["memories"]) == 10, answer
    return {
        "trivial_p50_ms": statistics.median(trivial),
        "recall_p50_ms": statistics.median(recall),
        "recall_p95_ms": statistics.quantiles(recall, n=20)[18],
        "over_trivial_ms": statistics.median(recall) - statistics.median(trivial),
        "store_500_s": statistics.median(stores[1:]),
        "store_500_worst_s": max(stores),
    }


async def main() -> None:
    """Print the figures as JSON."""
    with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as home:
        try:
            figures = await cold_start(home) | await first_recall(home) | await calls(home)
            print(json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=2))
        finally:
            Engine(Path(home)).stop()


if __name__ == "__main__":
    asyncio.run(main())
