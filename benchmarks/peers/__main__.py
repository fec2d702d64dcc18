"""Compare Folklore with other memories for assistants: the same texts, the same embedding model, one run.

    python -m benchmarks.peers SET --pythons FOLDER [--sizes 3000 30000 100000] [--minutes 15]

FOLDER has one virtual environment for each system of worker.py, named as its package (`python -m venv FOLDER/engrava`,
then `FOLDER/engrava/bin/pip install engrava httpx`); those that are missing are left out. The memories of SET are
stored as one project, with paragraphs of installed packages up to each size; asked is what the smallest size can
answer. All systems use the model that comes with Folklore, the others through an OpenAI-compatible endpoint on this
machine. Folklore is called over MCP and stdio with its defaults, the others in their process, which is to their
advantage. After the stores of a size Folklore runs its jobs, as a server does in time. A system that has not stored a
size within the minutes is left out of it and of those above.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from mcp import Client

from benchmarks.latency import call
from benchmarks.metrics import recall_at
from benchmarks.peers.worker import SYSTEMS
from benchmarks.scale import of, paragraphs, run
from benchmarks.sets import Question, evenly, read_set
from folklore.embedding.bundled import load_model
from folklore.engine import Engine

_BATCH = 100
_LIMIT = 10
_WARM = 5
_OURS = "folklore"
_NAMESPACE = "bench"


class System(Protocol):
    """A system in its folder; `seconds` to its start."""

    seconds: float

    async def store(self, texts: Sequence[str]) -> int:
        """Store texts and return how many were."""

    async def recall(self, question: str) -> list[str]:
        """Return the texts of the best ten."""

    async def stored(self) -> None:
        """Do what follows a large store."""

    async def __aenter__(self) -> System:
        """Start it, ready to answer."""

    async def __aexit__(self, *_: object) -> None:
        """End it."""


class Endpoint(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint of the bundled model."""

    protocol_version = "HTTP/1.1"  # one packet an answer
    disable_nagle_algorithm = True
    wbufsize = -1
    model = load_model()
    lock = threading.Lock()

    def do_POST(self) -> None:
        """Answer with the vectors of the texts."""
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))[
            "input"
        ]
        texts = [given] if isinstance(given, str) else given
        with self.lock:
            vectors = self.model.embed(texts).tolist()
        data = [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(vectors)
        ]
        body = json.dumps(
            {"object": "list", "model": "bench", "data": data, "usage": {}}
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Worker:
    """Another system in its own Python."""

    def __init__(self, name: str, python: Path, folder: Path, endpoint: str) -> None:
        self._folder = folder
        self.seconds = 0.0
        self._command: list[str | Path] = [
            python,
            Path(__file__).with_name("worker.py"),
            name,
            folder,
            endpoint,
        ]

    async def __aenter__(self) -> Worker:
        started = time.perf_counter()
        environment = {
            **os.environ,
            "HOME": str(self._folder),
            "MEM0_TELEMETRY": "false",
        }
        with (self._folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                text=True,
            )
        self._answer()
        self.seconds = time.perf_counter() - started
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the system ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    async def store(self, texts: Sequence[str]) -> int:
        """Store texts and return how many were."""
        return int(self._ask({"store": texts})["stored"])

    async def recall(self, question: str) -> list[str]:
        """Return the texts of the best ten."""
        return list(self._ask({"recall": question})["texts"])

    async def stored(self) -> None:
        """Nothing follows."""


class Folklore:
    """Folklore over MCP and stdio."""

    seconds = 0.0

    def __init__(self, home: Path) -> None:
        self._home, self._texts, self._stack = home, dict[str, str](), AsyncExitStack()

    async def __aenter__(self) -> Folklore:
        started = time.perf_counter()
        self._client = await self._stack.enter_async_context(
            Client(of(self._home, "-m", "folklore", "serve", "--own"))
        )
        await call(self._client, "memory_recall", query="warm")
        self.seconds = time.perf_counter() - started
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        Engine(self._home).stop()

    async def store(self, texts: Sequence[str]) -> int:
        """Store texts and return how many were."""
        memories = [{"content": text} for text in texts]
        answer, _ = await call(
            self._client, "memory_store", memories=memories, namespace=_NAMESPACE
        )
        assert len(answer["stored"]) == len(texts), answer
        self._texts |= {
            item["id"]: text for item, text in zip(answer["stored"], texts, strict=True)
        }
        return len(texts)

    async def recall(self, question: str) -> list[str]:
        """Return the texts of the best ten."""
        answer, _ = await call(
            self._client, "memory_recall", query=question, namespaces=[_NAMESPACE]
        )
        return [self._texts[memory["id"]] for memory in answer["memories"]]

    async def stored(self) -> None:
        """Run the jobs that a server runs in time."""
        for job in ("postings", "indexes", "statistics"):
            await asyncio.to_thread(run, self._home, "jobs", "run", job)


def evidence_of(question: Question) -> set[str]:
    """Return the keys of the memories that answer a question."""
    return {
        f"{space} {source}"
        for space in question.namespaces
        for source in question.evidence
    }


async def measured(
    name: str, system: System, folder: Path, texts: Sequence[str], sizes: Sequence[int], questions: Sequence[Question],
    key_of: Mapping[str, str], minutes: float,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return the figures of a system at each size that it stored in time."""
    found = dict[str, dict[str, float]]()
    done = 0
    for size in sizes:
        started = time.perf_counter()
        stored = 0
        while done < size and time.perf_counter() - started < 60 * minutes:
            stored += await system.store(texts[done : min(done + _BATCH, size)])
            done = min(done + _BATCH, size)
        seconds = time.perf_counter() - started
        if done < size:
            print(
                f"{name}: {stored:,} of {size:,} stored in {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            break
        await system.stored()
        times = []
        recalls = []
        for place, question in enumerate([*questions[:_WARM], *questions]):
            begun = time.perf_counter()
            answer = await system.recall(question.query)
            if place >= _WARM:
                times.append((time.perf_counter() - begun) * 1e3)
                keys = [key_of.get(text, "") for text in answer]
                recalls.append(recall_at(_LIMIT, keys, evidence_of(question)))
        cuts = statistics.quantiles(times, n=20, method="inclusive")
        size_of = sum(
            path.lstat().st_size for path in folder.rglob("*") if path.is_file()
        )
        found[str(size)] = {
            "recall": statistics.mean(recalls), "p50": cuts[9], "p95": cuts[18], "a second": stored / seconds,
            "megabytes": size_of / 1e6, "start": system.seconds, "stored": stored,
        }  # fmt: skip
        print(f"{name} {size:,}: {found[str(size)]}", file=sys.stderr, flush=True)
    return found


def shown(
    results: Mapping[str, Mapping[str, Mapping[str, float]]], sizes: Sequence[int]
) -> str:
    """Return the table, and a bar for each system and size, as long as its p50 in milliseconds, by powers of two."""
    lines = ["| memories | system | R@10 | recall p50 / p95 ms | stored a second | MB on disk | start s |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    bars = []
    for size in map(str, sizes):
        for name, figures in results.items():
            if (of_size := figures.get(size)) is None:
                lines.append(f"| {int(size):,} | {name} | not stored in time | | | | |")
                continue
            lines.append(
                f"| {int(size):,} | {name} | {of_size['recall']:.3f} | {of_size['p50']:.1f} / {of_size['p95']:.1f} |"
                f" {of_size['a second']:,.0f} | {of_size['megabytes']:,.0f} | {of_size['start']:.1f} |"
            )
            bars.append(
                f"{int(size):>9,} {name:<19} {'#' * max(round(of_size['p50'] ** 0.5 * 2), 1)} {of_size['p50']:.0f} ms"
            )
    return "\n".join([*lines, "", *bars])


async def compared(given: argparse.Namespace) -> dict[str, dict[str, dict[str, float]]]:
    """Return the figures of each system."""
    chosen = read_set(given.set)
    key_of = {
        memory["content"]: f"{space} {memory['source']}"
        for space, memories in chosen.memories.items()
        for memory in memories
    }
    others = [text for text in paragraphs() if text not in key_of]
    texts = [*key_of, *others[: max(given.sizes) - len(key_of)]]
    first = {key_of.get(text) for text in texts[: min(given.sizes)]}
    questions = evenly(
        [
            question
            for question in chosen.questions
            if question.evidence and first >= evidence_of(question)
        ],
        given.questions,
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    results = dict[str, dict[str, dict[str, float]]]()
    for name in (_OURS, *SYSTEMS):
        python = given.pythons / name / "bin" / "python"
        if name != _OURS and not python.exists():
            continue
        with tempfile.TemporaryDirectory(
            prefix=f"peers-{name}-", ignore_cleanup_errors=True
        ) as temporary:
            folder = Path(temporary)
            chosen_system: System = (
                Folklore(folder)
                if name == _OURS
                else Worker(name, python, folder, endpoint)
            )
            async with chosen_system as system:
                results[name] = await measured(
                    name,
                    system,
                    folder,
                    texts,
                    sorted(given.sizes),
                    questions,
                    key_of,
                    given.minutes,
                )
    return results


def main() -> None:
    """Measure each system and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", type=Path)
    parser.add_argument("--pythons", type=Path, required=True)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[3_000, 30_000, 100_000]
    )
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=15)
    given = parser.parse_args()
    print(shown(asyncio.run(compared(given)), sorted(given.sizes)))


if __name__ == "__main__":
    main()
