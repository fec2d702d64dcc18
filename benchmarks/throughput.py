"""Recall over HTTP with many clients against a trivial tool of the same server, turn by turn in the same run.

    python -m benchmarks.throughput            # on an embedded engine in a temporary home
    FOLKLORE_DATABASE_URL=… python -m benchmarks.throughput

One worker, 10,000 memories made here (benchmarks/latency.py), 32 connections that each ask again as soon as they are
answered. The clients are one process of their own that writes requests made beforehand and reads answers no further
than it must to know that they are whole and no errors; what that costs is measured and told (`client_ms`, processor
time a call). It takes a processor's time all the same, and so do Postgres and the server: on a machine of two
processors the rates are lower than where each has its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import psutil
from mcp import Client

from benchmarks.latency import sentences
from folklore.engine import Engine

_MODERN = "2026-07-28"
_ERAS = {"legacy": "2025-11-25", "modern": _MODERN}
_NAMESPACE = "bench"


def request(port: int, era: str, tool: str, arguments: dict[str, Any]) -> bytes:
    """A tool call as it goes over the wire."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {_ERAS[era]}",
    ]
    if era == "modern":
        headers += ["Mcp-Method: tools/call", f"Mcp-Name: {tool}"]
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": _MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return "\r\n".join([*headers, f"Content-Length: {len(body)}", "", ""]).encode() + body


class Asker(asyncio.Protocol):
    """One connection: asks, reads the answer, notes how long it took, asks the next."""

    def __init__(self, requests: Iterator[bytes], until: float, done: Callable[[], None]) -> None:
        self._requests = requests
        self._until = until
        self._done = done
        self._buffer = bytearray()
        self._missing: int | None = None
        self._start = 0.0
        self.seconds: list[float] = []
        self.problem: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._start = time.perf_counter()
        if self._start >= self._until:
            self._transport.close()
            return
        self._buffer.clear()
        self._missing = None
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._missing is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            length = bytes(self._buffer[:end]).lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self._missing = end + 4 + int(length) if length else 0  # an event stream comes in chunks
        if len(self._buffer) < self._missing or (not self._missing and not self._buffer.endswith(b"\r\n0\r\n\r\n")):
            return
        if not self._buffer.startswith(b"HTTP/1.1 200") or b'"structuredContent"' not in self._buffer:
            self.problem = bytes(self._buffer[:600]).decode(errors="replace")
            self._transport.close()
            return
        self.seconds.append(time.perf_counter() - self._start)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None or (self.problem is None and time.perf_counter() < self._until):
            self.problem = self.problem or f"the server closed the connection ({error})"
        self._done()


async def asked(port: int, requests: Sequence[bytes], clients: int, seconds: float) -> dict[str, Any]:
    """Calls a second, milliseconds a call, and what the asking cost, over so many connections."""
    loop = asyncio.get_running_loop()
    left, over = clients, loop.create_future()

    def done() -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set_result(None)

    begin, spent = time.perf_counter(), time.process_time()
    source = cycle(requests)
    askers = [Asker(source, begin + seconds, done) for _ in range(clients)]
    for asker in askers:
        await loop.create_connection(lambda asker=asker: asker, "127.0.0.1", port)  # type: ignore[misc]
    await over
    took, spent = time.perf_counter() - begin, time.process_time() - spent
    for asker in askers:
        assert asker.problem is None, asker.problem
    calls = [second for asker in askers for second in asker.seconds]
    return {
        "calls": len(calls),
        "rate": len(calls) / took,
        "p50_ms": statistics.median(calls) * 1e3,
        "p95_ms": statistics.quantiles(calls, n=20)[18] * 1e3,
        "client_ms": spent / len(calls) * 1e3,
    }


def ask_on(orders: Connection) -> None:
    """A client process: takes what to ask, gives back how it went, until it is told to end."""
    while (order := orders.recv()) is not None:
        orders.send(asyncio.run(asked(*order)))


class Processes:
    """The processor time of the server and of Postgres' backends."""

    def __init__(self, server: int, home: Path) -> None:
        self._server = psutil.Process(server)
        notes = home / "engine" / "data" / "postmaster.pid"
        self._postmaster = psutil.Process(int(notes.read_text().split()[0])) if notes.exists() else None

    def seconds(self) -> tuple[float, float]:
        """So far: the server, and all of Postgres' processes that live (0 if it runs elsewhere)."""
        backends = [] if self._postmaster is None else self._postmaster.children(recursive=True)
        return _spent(self._server), sum(map(_spent, backends))


def _spent(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


@contextmanager
def server(home: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """One worker of ours on a port of its own, answering."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {**os.environ, "FOLKLORE_HOME": str(home), "FOLKLORE_NAMESPACE": _NAMESPACE}
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.servers", "http", str(port)], env=environment)
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=30).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield port, process
    finally:
        process.terminate()
        process.wait(20)


async def fill(port: int, texts: Sequence[str]) -> None:
    """Store the texts, unless they are there (a home that was used before)."""
    async with Client(f"http://127.0.0.1:{port}/mcp", read_timeout_seconds=120) as client:
        status = await client.call_tool("memory_status", {})
        there = [entry for entry in status.structured_content["namespaces"] if entry["name"] == _NAMESPACE]
        if there and there[0]["memories"] >= len(texts):
            return
        for start in range(0, len(texts), 500):
            batch = [{"content": text} for text in texts[start : start + 500]]
            answer = await client.call_tool("memory_store", {"memories": batch, "namespace": _NAMESPACE})
            assert not answer.is_error, answer


def measure(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Trivial and recall in turn, for each era; medians over the rounds, the ratio round by round."""
    texts = sentences(options.memories)
    rng = random.Random(11)
    questions = [" ".join(rng.sample(rng.choice(texts).split(), 6)) for _ in range(2_000)]
    figures: dict[str, Any] = {}
    ours, theirs = multiprocessing.Pipe()
    with server(home) as (port, process):
        asyncio.run(fill(port, texts))
        client = multiprocessing.get_context("spawn").Process(target=ask_on, args=(theirs,), daemon=True)
        client.start()
        processes = Processes(process.pid, home)
        for era in options.eras:
            asks = {
                "trivial": [request(port, era, "trivial", {"text": question}) for question in questions],
                "recall": [
                    request(port, era, "memory_recall", {"query": question, "namespaces": [_NAMESPACE]})
                    for question in questions
                ],
            }
            rounds: dict[str, list[dict[str, float]]] = {"trivial": [], "recall": []}
            for place in range(options.rounds + 1):
                for kind, requests in asks.items():
                    before = processes.seconds()
                    ours.send((port, requests, options.clients, 1.0 if place == 0 else options.seconds))
                    found = ours.recv()
                    spent = [now - then for now, then in zip(processes.seconds(), before, strict=True)]
                    found["server_ms"], found["postgres_ms"] = (each / found["calls"] * 1e3 for each in spent)
                    if place > 0:  # the first round warms up
                        rounds[kind].append(found)
            figures[era] = {
                kind: {name: round(statistics.median(one[name] for one in found), 3) for name in found[0]}
                for kind, found in rounds.items()
            }
            ratios = [
                one["rate"] / other["rate"] for one, other in zip(rounds["recall"], rounds["trivial"], strict=True)
            ]
            figures[era]["ratio"] = round(statistics.median(ratios), 3)
            figures[era]["ratios"] = [round(ratio, 3) for ratio in sorted(ratios)]
        ours.send(None)
        client.join(10)
    return figures


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--eras", nargs="+", choices=list(_ERAS), default=list(_ERAS))
    parser.add_argument("--home", type=Path, help="keep the engine and its memories there for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="folklore bench ", ignore_cleanup_errors=True) as temporary:
        home = options.home or Path(temporary)
        try:
            print(json.dumps(measure(home, options), indent=2))
        finally:
            if options.home is None:
                Engine(home).stop()


if __name__ == "__main__":
    main()
