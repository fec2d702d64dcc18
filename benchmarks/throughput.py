"""Throughput over HTTP: recall with many clients next to a trivial tool of the same server, in alternation.

    python -m benchmarks.throughput            # on an embedded engine in a temporary home
    FOLKLORE_DATABASE_URL=… python -m benchmarks.throughput

One worker, 10,000 memories of benchmarks/latency.py, 32 connections that each ask again as soon as they have an answer.
The clients are one process of its own. It writes requests made beforehand, and reads an answer only until it knows that
the answer is complete and no error. `client_ms` is the processor time of a call in that process. The client, Postgres
and the server share the machine: with two processors the rates are lower than with one for each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import psutil
from mcp import Client

from benchmarks.latency import question, sentences
from folklore.engine import Engine

_MODERN = "2026-07-28"
_ERAS = {"legacy": "2025-11-25", "modern": _MODERN}
_NAMESPACE = "bench"


def request(port: int, era: str, tool: str, arguments: dict[str, Any]) -> bytes:
    """Return the bytes of a tool call."""
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
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    ).encode()
    return (
        "\r\n".join([*headers, f"Content-Length: {len(body)}", "", ""]).encode() + body
    )


class Connected(asyncio.Protocol):
    """Connection that asks, reads the answer, records its seconds and asks the next."""

    def __init__(
        self, requests: Iterator[bytes], until: float, done: Callable[[], None]
    ) -> None:
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
            length = (
                bytes(self._buffer[:end])
                .lower()
                .partition(b"content-length:")[2]
                .split(b"\r\n", 1)[0]
            )
            # an event stream has chunks instead
            self._missing = end + 4 + int(length) if length else 0
        if len(self._buffer) < self._missing or (
            not self._missing and not self._buffer.endswith(b"\r\n0\r\n\r\n")
        ):
            return
        if (
            not self._buffer.startswith(b"HTTP/1.1 200")
            or b'"structuredContent"' not in self._buffer
        ):
            self.problem = bytes(self._buffer[:600]).decode(errors="replace")
            self._transport.close()
            return
        self.seconds.append(time.perf_counter() - self._start)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None or (
            self.problem is None and time.perf_counter() < self._until
        ):
            self.problem = self.problem or f"the server closed the connection ({error})"
        self._done()


async def ask(
    port: int, requests: Sequence[bytes], clients: int, seconds: float
) -> dict[str, Any]:
    """Ask over so many connections; return calls per second, milliseconds per call and the cost of the client."""
    loop = asyncio.get_running_loop()
    left = clients
    over = loop.create_future()

    def done() -> None:
        nonlocal left
        left -= 1
        if not left:
            over.set_result(None)

    begin = time.perf_counter()
    spent = time.process_time()
    source = cycle(requests)
    connections = [Connected(source, begin + seconds, done) for _ in range(clients)]
    for connection in connections:
        await loop.create_connection(
            lambda connection=connection: connection,  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    await over
    took = time.perf_counter() - begin
    spent = time.process_time() - spent
    for connection in connections:
        assert connection.problem is None, connection.problem
    calls = [second for connection in connections for second in connection.seconds]
    return {
        "calls": len(calls),
        "rate": len(calls) / took,
        "p50_ms": statistics.median(calls) * 1e3,
        "p95_ms": statistics.quantiles(calls, n=20)[18] * 1e3,
        "client_ms": spent / len(calls) * 1e3,
    }


def client_process(orders: Connection) -> None:
    """Receive arguments of `ask`, send back its figures, until None arrives."""
    while (order := orders.recv()) is not None:
        orders.send(asyncio.run(ask(*order)))


class Processes:
    """Processor time of the server and of the processes of Postgres."""

    def __init__(self, server: int, home: Path) -> None:
        self._server = psutil.Process(server)
        notes = home / "engine" / "data" / "postmaster.pid"
        self._postmaster = (
            psutil.Process(int(notes.read_text().split()[0]))
            if notes.exists()
            else None
        )

    def seconds(self) -> tuple[float, float]:
        """Return the seconds so far of the server and of the processes of Postgres (0 if it runs elsewhere)."""
        if self._postmaster is None:
            return _spent(self._server), 0.0
        times = self._postmaster.cpu_times()
        # such as workers of parallel plans
        ended = float(times.children_user + times.children_system)
        return _spent(self._server), ended + sum(
            map(_spent, self._postmaster.children(recursive=True))
        )


def _spent(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


@contextmanager
def server(home: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start one worker on a free port; yield the port and the process when it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    environment = {
        "FOLKLORE_NAMESPACE": _NAMESPACE,
        **os.environ,
        "FOLKLORE_HOME": str(home),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers", "http", str(port)], env=environment
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            try:
                if (
                    httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=30).status_code
                    == 200
                ):
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        yield port, process
    finally:
        process.terminate()
        process.wait(20)


async def fill(port: int, texts: Sequence[str]) -> None:
    """Store the texts, unless the home holds them from an earlier run."""
    if not texts:
        return
    async with Client(
        f"http://127.0.0.1:{port}/mcp", read_timeout_seconds=120
    ) as client:
        status = await client.call_tool("memory_status", {})
        there = [
            entry
            for entry in status.structured_content["namespaces"]
            if entry["name"] == _NAMESPACE
        ]
        if there and there[0]["memories"] >= len(texts):
            return
        for start in range(0, len(texts), 500):
            batch = [{"content": text} for text in texts[start : start + 500]]
            answer = await client.call_tool(
                "memory_store", {"memories": batch, "namespace": _NAMESPACE}
            )
            assert not answer.is_error, answer


class Bench:
    """A running server with its memories, and the client process that asks it."""

    def __init__(
        self,
        port: int,
        processes: Processes,
        client: Connection,
        options: argparse.Namespace,
    ) -> None:
        self._port = port
        self._processes = processes
        self._client = client
        self._options = options

    def compare(
        self,
        era: str,
        questions: Sequence[str],
        scopes: Mapping[str, Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Return medians over the rounds of trivial calls and recalls in alternation, and the ratios of their rates.

        `scopes` are the arguments of each kind of recall but the question.
        """
        requests = {
            "trivial": [
                request(self._port, era, "trivial", {"text": question})
                for question in questions
            ]
        }
        for kind, scope in scopes.items():
            requests[kind] = [
                request(self._port, era, "memory_recall", {"query": question, **scope})
                for question in questions
            ]
        for kind in requests:
            self._round(requests[kind], 1.0)  # warms up
        rounds = [
            {
                kind: self._round(requests[kind], self._options.seconds)
                for kind in requests
            }
            for _ in range(self._options.rounds)
        ]
        figures = {kind: _medians([one[kind] for one in rounds]) for kind in requests}
        for kind in scopes:
            ratios = sorted(
                round(one[kind]["rate"] / one["trivial"]["rate"], 3) for one in rounds
            )
            figures[kind] |= {
                "ratio": statistics.median(ratios),
                "lowest": ratios[0],
                "highest": ratios[-1],
            }
        return figures

    def _round(self, requests: Sequence[bytes], seconds: float) -> dict[str, float]:
        before = self._processes.seconds()
        self._client.send((self._port, requests, self._options.clients, seconds))
        found: dict[str, float] = self._client.recv()
        server, postgres = (
            now - then
            for now, then in zip(self._processes.seconds(), before, strict=True)
        )
        return found | {
            "server_ms": server / found["calls"] * 1e3,
            "postgres_ms": postgres / found["calls"] * 1e3,
        }


def _medians(figures: Sequence[dict[str, float]]) -> dict[str, float]:
    return {
        name: round(statistics.median(one[name] for one in figures), 3)
        for name in figures[0]
    }


@contextmanager
def bench(
    home: Path, options: argparse.Namespace, texts: Sequence[str] = ()
) -> Iterator[Bench]:
    """Start a server with these memories, and the process of the clients."""
    ours, theirs = multiprocessing.Pipe()
    with server(home) as (port, process):
        asyncio.run(fill(port, texts))
        client = multiprocessing.get_context("spawn").Process(
            target=client_process, args=(theirs,), daemon=True
        )
        client.start()
        yield Bench(port, Processes(process.pid, home), ours, options)
        ours.send(None)
        client.join(10)


def measure(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each protocol version."""
    texts = sentences(options.memories)
    rng = random.Random(11)
    questions = [question(rng, texts) for _ in range(2_000)]
    scopes = {"recall": {"namespaces": [_NAMESPACE]}}
    with bench(home, options, texts) as running:
        return {era: running.compare(era, questions, scopes) for era in options.eras}


def arguments() -> argparse.ArgumentParser:
    """Return the options of a measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--eras", nargs="+", choices=list(_ERAS), default=list(_ERAS))
    parser.add_argument(
        "--home",
        type=Path,
        help="keep the engine and its memories there for the next run",
    )
    return parser


def main() -> None:
    """Print the figures as JSON."""
    options = arguments().parse_args()
    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as temporary:
        home = options.home or Path(temporary)
        try:
            print(json.dumps(measure(home, options), indent=2))
        finally:
            if options.home is None:
                Engine(home).stop()


if __name__ == "__main__":
    main()
