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
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from mcp import Client

from benchmarks.latency import ours, sentences
from folklore.db.engine import Engine

_COUNT = 200_000
_BATCH = 500
_ROUNDS = 60
_COMMON = (2, 4, 8, 12)


async def measure(home: str, count: int) -> dict[str, float]:
    """Milliseconds of a median question, and of questions made of the commonest words alone."""
    texts = sentences(count)
    rng = random.Random(5)
    commonest = [word for word, _ in Counter(word for text in texts for word in text.split()).most_common(40)]
    async with Client(ours(home, "-m", "folklore", "serve")) as client:
        begin = time.perf_counter()
        for start in range(0, count, _BATCH):
            batch = [{"content": text} for text in texts[start : start + _BATCH]]
            answer = await client.call_tool("memory_store", {"memories": batch, "namespace": "bench"})
            assert not answer.is_error, answer
        figures = {"memories": float(count), "stored_per_second": count / (time.perf_counter() - begin)}

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
    figures["median_question_ms"] = statistics.median(usual)
    figures["slowest_question_ms"] = max(usual)
    for size, times in common.items():
        figures[f"commonest_{size}_words_ms"] = statistics.median(times)
        figures[f"commonest_{size}_words_times_median"] = statistics.median(times) / statistics.median(usual)
    return figures


async def main() -> None:
    """Print the figures as JSON."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _COUNT
    with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as home:
        try:
            figures = await measure(home, count)
            print(json.dumps({name: round(value, 2) for name, value in figures.items()}, indent=2))
        finally:
            if "FOLKLORE_DATABASE_URL" not in os.environ:
                Engine(Path(home)).stop()


if __name__ == "__main__":
    asyncio.run(main())
