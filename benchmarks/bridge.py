"""Cost of the bridge: a call through it next to the same call over HTTP, its start next to the bare SDK, its memory.

    python -m benchmarks.bridge

On an embedded engine in a temporary home. A call is bytes made beforehand, written to the server and to the bridge in
alternation, so that both answers come from the same state of the machine. The trivial tool is that of the other
benchmarks. The start is the time to the answer of the first tools/list, with the SDK's client.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.latency import command, first_list, question, sentences
from benchmarks.throughput import fill, request, server
from folklore.engine import Engine

_MEMORIES = 3_000
_NAMESPACE = "bench"
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
Ask = Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def direct(port: int) -> AsyncIterator[Ask]:
    """Yield what sends a request over one connection and returns the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(sent: bytes) -> bytes:
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        if length:
            return await reader.readexactly(int(length))
        body = await reader.readuntil(b"\r\n0\r\n\r\n")  # an event stream has chunks
        return bytes(body)

    yield ask
    writer.close()


@asynccontextmanager
async def bridged(home: str, port: int) -> AsyncIterator[tuple[Ask, int]]:
    """Yield what writes a line to a bridge and returns the answer, and the process id of the bridge."""
    started = command(home, *_serve(port))
    process = await asyncio.create_subprocess_exec(
        *(started.command, *started.args),
        env=started.env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    writer = process.stdin
    reader = process.stdout

    async def ask(sent: bytes) -> bytes:
        writer.write(sent + b"\n")
        return await reader.readline()

    await ask(json.dumps(_INITIALIZE).encode())
    yield ask, process.pid
    writer.close()
    await process.wait()


def _serve(port: int) -> list[str]:
    return ["-m", "folklore", "--server", f"http://127.0.0.1:{port}", "serve"]


async def timed(ask: Ask, sent: bytes) -> float:
    """Return the milliseconds of a call that must succeed."""
    start = time.perf_counter()
    answer = await ask(sent)
    took = (time.perf_counter() - start) * 1e3
    assert b'"structuredContent"' in answer, answer[:400]
    return took


async def calls(home: str, port: int, rounds: int) -> dict[str, Any]:
    """Compare calls over HTTP and through the bridge, for each version of the protocol and each tool."""
    texts = sentences(_MEMORIES)
    await fill(port, texts)
    rng = random.Random(11)
    figures: dict[str, Any] = {}
    async with direct(port) as over_http, bridged(home, port) as (through, pid):
        for era in ("legacy", "modern"):
            for tool in ("trivial", "memory_recall"):
                pairs = []
                for _ in range(rounds + 20):
                    text = question(rng, texts)
                    arguments = (
                        {"text": text}
                        if tool == "trivial"
                        else {"query": text, "namespaces": [_NAMESPACE]}
                    )
                    sent = request(port, era, tool, arguments)
                    body = sent.partition(b"\r\n\r\n")[2]
                    pairs.append(
                        (await timed(over_http, sent), await timed(through, body))
                    )
                del pairs[:20]  # warm up
                added = [ours - theirs for theirs, ours in pairs]
                figures[f"{era} {tool}"] = {
                    "http_p50_ms": statistics.median(pair[0] for pair in pairs),
                    "bridge_p50_ms": statistics.median(pair[1] for pair in pairs),
                    "added_p50_ms": statistics.median(added),
                    "added_p95_ms": statistics.quantiles(added, n=20)[18],
                }
        figures["rss_mb"] = psutil.Process(pid).memory_info().rss / 2**20
    return figures


async def start(home: str, port: int) -> dict[str, float]:
    """Compare the start with that of the bare SDK, in alternation; and the memory of both."""
    bare = command(home, "-m", "benchmarks.servers", "bare")
    ours = command(home, *_serve(port))
    pairs = [(await first_list(bare), await first_list(ours)) for _ in range(9)]
    return {
        "bare_ms": statistics.median(pair[0] for pair in pairs),
        "bridge_ms": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[1] / pair[0] for pair in pairs),
    }


async def bare_memory() -> float:
    """Return the megabytes of the bare SDK on stdio after its handshake."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.servers", "bare"),
        env=dict(os.environ),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
    await process.stdout.readline()
    used = float(psutil.Process(process.pid).memory_info().rss / 2**20)
    process.stdin.close()
    await process.wait()
    return used


async def measure(home: str, port: int, rounds: int) -> dict[str, Any]:
    """Return the figures of a run."""
    figures = await calls(home, port, rounds)
    return figures | {
        "start": await start(home, port),
        "bare_rss_mb": await bare_memory(),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rounds", type=int, default=400, help="pairs of calls of each kind"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as home:
        try:
            with server(Path(home)) as (port, _):
                figures = asyncio.run(measure(home, port, options.rounds))
        finally:
            Engine(Path(home)).stop()
    rounded = json.loads(
        json.dumps(figures), parse_float=lambda text: round(float(text), 2)
    )
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
