"""Latency over stdio: cold start, recall and batch store next to a reference in the same run.

    python -m benchmarks.latency                  # on an embedded engine in a temporary home
    python -m benchmarks.latency --large 200000   # common and usual questions in one large namespace

With FOLKLORE_DATABASE_URL that database is used. The memories are sentences of a Zipf vocabulary, made here.
"""

from __future__ import annotations

import argparse
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
from typing import Any

from mcp import Client, StdioServerParameters

from folklore.engine import Engine

_COUNT = 3_000
_BATCH = 500
_ROUNDS = 300
_ROUNDS_OF_LARGE = 60
_COMMON = (2, 4, 8, 12)
_NAMESPACE = "bench"


def sentences(count: int, seed: int = 7) -> list[str]:
    """Return texts of 8 to 40 words, each from a Zipf vocabulary of 20,000."""
    rng = random.Random(seed)
    words = [
        f"{rng.choice('bcdfgklmnprst')}{rng.choice('aeiou')}{place:x}"
        for place in range(20_000)
    ]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    lengths = [rng.randint(8, 40) for _ in range(count)]
    drawn = rng.choices(words, weights, k=sum(lengths))
    texts = []
    start = 0
    for length in lengths:
        texts.append(" ".join(drawn[start : start + length]))
        start += length
    return texts


def question(rng: random.Random, texts: list[str]) -> str:
    """Return six words of one of the texts."""
    return " ".join(rng.sample(rng.choice(texts).split(), 6))


def command(home: str, *arguments: str) -> StdioServerParameters:
    """Return how to start Python with these arguments and this home of Folklore."""
    environment = {
        "FOLKLORE_HOME": home,
        "FOLKLORE_NAMESPACE": _NAMESPACE,
        "FOLKLORE_LOG_LEVEL": "error",
    }
    return StdioServerParameters(
        command=sys.executable, args=list(arguments), env={**os.environ, **environment}
    )


def served(home: str) -> StdioServerParameters:
    """Return how to start `folklore serve` with this home."""
    return command(home, "-m", "folklore", "serve")


async def call(
    client: Client, tool: str, **arguments: Any
) -> tuple[dict[str, Any], float]:
    """Call a tool that must succeed; return its answer and the seconds it took."""
    start = time.perf_counter()
    answer = await client.call_tool(tool, arguments)
    seconds = time.perf_counter() - start
    assert not answer.is_error, answer
    return answer.structured_content or {}, seconds


async def recall(client: Client, query: str) -> float:
    """Return the milliseconds of a recall that must bring ten results."""
    answer, seconds = await call(
        client, "memory_recall", query=query, namespaces=[_NAMESPACE]
    )
    assert len(answer["memories"]) == 10, answer
    return seconds * 1e3


async def store(client: Client, texts: list[str]) -> list[float]:
    """Store the texts in batches of 500; return the seconds of each batch."""
    batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
    return [
        (
            await call(
                client,
                "memory_store",
                memories=[{"content": text} for text in batch],
                namespace=_NAMESPACE,
            )
        )[1]
        for batch in batches
    ]


async def first_list(parameters: StdioServerParameters) -> float:
    """Return the milliseconds from the start of a process to the answer of its first tools/list."""
    start = time.perf_counter()
    async with Client(parameters) as client:
        await client.list_tools()
        return (time.perf_counter() - start) * 1e3


async def cold_start(home: str) -> dict[str, float]:
    """Compare the start with that of the bare SDK, in alternation."""
    bare = command(home, "-m", "benchmarks.servers", "bare")
    pairs = [(await first_list(bare), await first_list(served(home))) for _ in range(9)]
    return {
        "bare_ms": statistics.median(pair[0] for pair in pairs),
        "ours_ms": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[1] / pair[0] for pair in pairs),
    }


async def first_recall(home: str) -> dict[str, float]:
    """Return the seconds from the start of a server to its first answer: on a stopped engine, and in a new home."""

    async def timed(place: str) -> float:
        start = time.perf_counter()
        async with Client(served(place)) as client:
            await call(client, "memory_recall", query="warm")
            return time.perf_counter() - start

    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as empty:
        try:
            new = await timed(empty)
        finally:
            Engine(Path(empty)).stop()
    await timed(home)
    if "FOLKLORE_DATABASE_URL" not in os.environ:
        Engine(Path(home)).stop()
    return {"first_recall_s": await timed(home), "first_recall_in_new_home_s": new}


async def calls(home: str) -> dict[str, float]:
    """Compare a recall of ten among 3,000 with a trivial tool of the same server in alternation; time stores of 500."""
    texts = sentences(_COUNT + _BATCH)
    rng = random.Random(11)
    async with Client(command(home, "-m", "benchmarks.servers", "stdio")) as client:
        stores = await store(client, texts)
        trivial = []
        recalls = []
        for _ in range(_ROUNDS):
            query = question(rng, texts)
            trivial.append((await call(client, "trivial", text=query))[1] * 1e3)
            recalls.append(await recall(client, query))
    return {
        "trivial_p50_ms": statistics.median(trivial),
        "recall_p50_ms": statistics.median(recalls),
        "recall_p95_ms": statistics.quantiles(recalls, n=20)[18],
        "over_trivial_ms": statistics.median(recalls) - statistics.median(trivial),
        "store_500_s": statistics.median(stores[1:]),
        "store_500_worst_s": max(stores),
    }


async def questions_of_common_words(
    home: str, texts: list[str], path: str
) -> dict[str, float]:
    """Return the milliseconds of a median question, and of questions of the commonest words as multiples of it."""
    rng = random.Random(5)
    commonest = [
        word
        for word, _ in Counter(
            word for text in texts for word in text.split()
        ).most_common(40)
    ]
    usual: list[float] = []
    common: dict[int, list[float]] = {size: [] for size in _COMMON}
    async with Client(served(home)) as client:
        await recall(client, "warm")
        for _ in range(_ROUNDS_OF_LARGE):
            usual.append(await recall(client, question(rng, texts)))
            for size, times in common.items():
                times.append(
                    await recall(
                        client, " ".join(rng.sample(commonest[: size + 4], size))
                    )
                )
    middle = statistics.median(usual)
    figures = {
        f"{path}_median_question_ms": middle,
        f"{path}_slowest_question_ms": max(usual),
    }
    for size, times in common.items():
        figures[f"{path}_commonest_{size}_words_times_median"] = (
            statistics.median(times) / middle
        )
    return figures


def build_index(home: str) -> dict[str, float]:
    """Return the seconds that the index job takes."""
    start = time.perf_counter()
    arguments = [sys.executable, "-m", "folklore", "jobs", "run", "indexes", "--json"]
    done = subprocess.run(
        arguments, env=command(home).env, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["jobs"][0]["done"]["built"] == 1, done.stdout
    return {"index_built_s": time.perf_counter() - start}


async def large(home: str, count: int) -> dict[str, float]:
    """Compare questions in one large namespace, searched exactly, then through the index."""
    # Storing takes so long that the server would build the index meanwhile.
    os.environ["FOLKLORE_JOBS__ENABLED"] = "false"
    texts = sentences(count)
    async with Client(served(home)) as client:
        figures = {
            "memories": float(count),
            "stored_per_second": count / sum(await store(client, texts)),
        }
    figures |= await questions_of_common_words(home, texts, "exact")
    return (
        figures
        | await asyncio.to_thread(build_index, home)
        | await questions_of_common_words(home, texts, "hnsw")
    )


async def measure(home: str, count: int | None) -> dict[str, float]:
    """Return the figures of a run."""
    if count is not None:
        return await large(home, count)
    return await cold_start(home) | await first_recall(home) | await calls(home)


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--large",
        type=int,
        metavar="MEMORIES",
        help="measure one namespace of so many memories",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as home:
        try:
            figures = asyncio.run(measure(home, options.large))
            print(
                json.dumps(
                    {name: round(value, 3) for name, value in figures.items()}, indent=2
                )
            )
        finally:
            Engine(Path(home)).stop()


if __name__ == "__main__":
    main()
