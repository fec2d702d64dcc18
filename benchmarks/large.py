"""Bounded work: among 200,000 memories of one namespace, a question of the commonest words against the median question.

    python -m benchmarks.large [COUNT]      # on an embedded engine in a temporary home
    FOLKLORE_DATABASE_URL=… python -m benchmarks.large

The memories are sentences of a Zipf vocabulary (benchmarks/latency.py); questions go through memory_recall over stdio.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mcp import Client

from benchmarks.latency import ours, sentences
from folklore.engine import Engine

_COUNT = 200_000
_BATCH = 500
_ROUNDS = 60
_COMMON = (2, 4, 8, 12)


async def store(home: str, texts: list[str]) -> dict[str, float]:
    """Memories stored a second, in batches of 500."""
    async with Client(ours(home, "-m", "folklore", "serve")) as client:
        begin = time.perf_counter()
        for start in range(0, len(texts), _BATCH):
            batch = [{"content": text} for text in texts[start : start + _BATCH]]
            answer = await client.call_tool("memory_store", {"memories": batch, "namespace": "bench"})
            assert not answer.is_error, answer
        return {"memories": float(len(texts)), "stored_per_second": len(texts) / (time.perf_counter() - begin)}


async def ask(home: str, texts: list[str], name: str) -> dict[str, float]:
    """Milliseconds of a median question, and of questions made of the commonest words alone, as shares of it."""
    rng = random.Random(5)
    commonest = [word for word, _ in Counter(word for text in texts for word in text.split()).most_common(40)]
    async with Client(ours(home, "-m", "folklore", "serve")) as client:

        async def asked(question: str) -> float:
            start = time.perf_counter()
            answer = await client.call_tool("memory_recall", {"query": question, "namespaces": ["bench"]})
            assert len(answer.structured_content["memories"]) == 10, answer
            return (time.perf_counter() - start) * 1e3

        await asked("warm")
        usual: list[float] = []
        common: dict[int, list[float]] = {size: [] for size in _COMMON}
        for _ in range(_ROUNDS):
            usual.append(await asked(" ".join(rng.sample(rng.choice(texts).split(), 6))))
            for size, times in common.items():
                times.append(await asked(" ".join(rng.sample(commonest[: size + 4], size))))
    middle = statistics.median(usual)
    figures = {f"{name}_median_question_ms": middle, f"{name}_slowest_question_ms": max(usual)}
    for size, times in common.items():
        figures[f"{name}_commonest_{size}_words_times_median"] = statistics.median(times) / middle
    return figures


def build(home: str) -> dict[str, float]:
    """Return the seconds that the job `indexes` takes."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "folklore", "jobs", "run", "indexes", "--json"]
    done = subprocess.run(command, env=ours(home).env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["jobs"][0]["done"]["built"] == 1, done.stdout
    return {"index_built_s": time.perf_counter() - start}


async def measure(home: str, count: int) -> dict[str, float]:
    """Stored, asked exactly, then through the index."""
    texts = sentences(count)
    figures = await store(home, texts) | await ask(home, texts, "exact")
    return figures | await asyncio.to_thread(build, home) | await ask(home, texts, "hnsw")


async def main() -> None:
    """Print the figures as JSON."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _COUNT
    # Storing takes long enough that the servers would build the index beside it, and nothing be searched exactly.
    os.environ["FOLKLORE_UPKEEP__ENABLED"] = "false"
    with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as home:
        try:
            figures = await measure(home, count)
            print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=2))
        finally:
            if "FOLKLORE_DATABASE_URL" not in os.environ:
                Engine(Path(home)).stop()


if __name__ == "__main__":
    asyncio.run(main())
