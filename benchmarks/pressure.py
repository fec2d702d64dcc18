"""Pressure: a caller next to others who try wrong tokens, and on a full disk.

    python -m benchmarks.pressure tokens       # 40 connections of wrong tokens next to one good caller
    python -m benchmarks.pressure disk         # as root on Linux: a small file system in a mount namespace

`tokens` alternates rounds with and without the wrong tokens, which a process of its own sends from the same address;
`kept` is the median share of its rate that the good caller keeps. The processes share the machine.

`disk` stores and recalls, fills the disk to its last byte, recalls again, and frees it. `ratio` compares the medians of
a recall; `lost` counts memories that were acknowledged and cannot be read; `seconds_to_write` is the time from the free
space to the next accepted store. The engine's data, the log and the model's cache are on that disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx

from benchmarks.latency import question, sentences
from benchmarks.throughput import server
from folklore.engine import Engine

_NAMESPACE = "bench"
_BATCH = 500


def _fill(client: httpx.Client, texts: list[str]) -> list[str]:
    """Store the texts, and return the ids."""
    ids = []
    for start in range(0, len(texts), _BATCH):
        drafts = [{"content": text} for text in texts[start : start + _BATCH]]
        answer = client.post(
            "/api/store", json={"memories": drafts, "namespace": _NAMESPACE}
        )
        answer.raise_for_status()
        ids += [item["id"] for item in answer.json()["result"]["stored"]]
    return ids


def _recalls(client: httpx.Client, questions: list[str], seconds: float) -> list[float]:
    """Recall one after the other for so long; return the seconds of each."""
    taken = []
    until = time.perf_counter() + seconds
    place = 0
    while (begin := time.perf_counter()) < until:
        answer = client.post(
            "/api/recall",
            json={
                "query": questions[place % len(questions)],
                "namespaces": [_NAMESPACE],
            },
        )
        answer.raise_for_status()
        taken.append(time.perf_counter() - begin)
        place += 1
    return taken


def _questions(texts: list[str]) -> list[str]:
    rng = random.Random(11)
    return [question(rng, texts) for _ in range(500)]


# Wrong tokens


def _try_tokens(port: int, connections: int, going: Event, over: Event) -> None:
    """Send wrong tokens over so many connections while `going` is set."""

    async def one() -> None:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=60
        ) as client:
            while not over.is_set():
                if not going.is_set():
                    await asyncio.sleep(0.05)
                    continue
                bearer = {"Authorization": f"Bearer folk_{secrets.token_urlsafe(32)}"}
                answer = await client.post("/api/status", json={}, headers=bearer)
                assert answer.status_code in (401, 429), answer.text

    async def all_() -> None:
        await asyncio.gather(*(one() for _ in range(connections)))

    asyncio.run(all_())


def tokens(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the rates of the good caller alone and next to the wrong tokens."""
    texts = sentences(2_000)
    with server(home) as (port, _):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as owner:
            _fill(owner, texts)
            made = owner.post(
                "/api/create_token",
                json={"name": "good", "grants": [f"{_NAMESPACE}:writer"]},
            )
            made.raise_for_status()
        bearer = {"Authorization": f"Bearer {made.json()['result']['secret']}"}
        context = multiprocessing.get_context("spawn")
        going = context.Event()
        over = context.Event()
        others = context.Process(
            target=_try_tokens,
            args=(port, options.connections, going, over),
            daemon=True,
        )
        others.start()
        alone = []
        beside = []
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60, headers=bearer
        ) as good:
            _recalls(good, _questions(texts), 2.0)
            for _ in range(options.rounds):
                going.clear()
                time.sleep(1.0)
                alone.append(
                    len(_recalls(good, _questions(texts), options.seconds))
                    / options.seconds
                )
                going.set()
                time.sleep(1.0)
                beside.append(
                    len(_recalls(good, _questions(texts), options.seconds))
                    / options.seconds
                )
        over.set()
        others.join(10)
        assert others.exitcode == 0, "the wrong tokens were not tried to the end"
    kept = statistics.median(
        with_ / without for without, with_ in zip(alone, beside, strict=True)
    )
    return {
        "alone_per_second": _rounded(alone),
        "beside_per_second": _rounded(beside),
        "kept": round(kept, 2),
    }


def _rounded(figures: list[float]) -> float:
    return round(statistics.median(figures), 1)


# A full disk


def in_small_disk(options: argparse.Namespace) -> int:
    """Run `disk` in a mount namespace whose home is a file system of its own."""
    with tempfile.TemporaryDirectory(
        prefix="folklore-bench-", ignore_cleanup_errors=True
    ) as home:
        script = f'mount -t tmpfs -o size={options.megabytes}m none "$1" && chmod 755 "$1" && shift && exec "$@"'
        command = [sys.executable, "-m", "benchmarks.pressure", "disk", "--home", home]
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", home, *command],
            check=False,
        ).returncode


def disk(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return what a caller notices of a disk that becomes full and is freed again."""
    texts = sentences(2_000)
    with (
        server(home) as (port, _),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        ids = _fill(client, texts)
        questions = _questions(texts)
        _recalls(client, questions, 2.0)
        before = _recalls(client, questions, options.seconds)
        ballast = home / "ballast"
        acknowledged, refused = _store_until_full(client, ballast)
        full = _recalls(client, questions, options.seconds)
        left = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
        ballast.unlink()
        begin = time.perf_counter()
        while not client.post(
            "/api/store", json=_one(f"There is space again {time.time()}.")
        ).is_success:
            time.sleep(0.05)
        writable = time.perf_counter() - begin
        lost = [
            id_
            for id_ in ids + acknowledged
            if client.post("/api/get", json={"ids": [id_]}).status_code != 200
        ]
    before_ms = statistics.median(before) * 1e3
    full_ms = statistics.median(full) * 1e3
    return {
        "recall_ms": round(before_ms, 1),
        "recall_ms_when_full": round(full_ms, 1),
        "ratio": round(full_ms / before_ms, 2),
        "bytes_left": left,
        "acknowledged_while_filling": len(acknowledged),
        "refusal": refused,
        "lost": len(lost),
        "seconds_to_write": round(writable, 2),
    }


def _store_until_full(client: httpx.Client, ballast: Path) -> tuple[list[str], str]:
    """Fill the disk while memories are stored; return their ids, and the error of the refused ones."""
    acknowledged = []
    refused = ""
    with ballast.open("wb", buffering=0) as file:
        full = False
        while not full:
            answer = client.post(
                "/api/store", json=_one(f"While the disk fills: {time.time()}.")
            )
            if answer.is_success:
                acknowledged.append(answer.json()["result"]["stored"][0]["id"])
            else:
                refused = answer.json()["error"]["message"]
            try:
                full = file.write(bytes(4 << 20)) < 4 << 20
            except OSError:
                full = True
    return acknowledged, refused


def _one(text: str) -> dict[str, Any]:
    return {"memories": [{"content": text}], "namespace": _NAMESPACE}


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("what", choices=["tokens", "disk"])
    parser.add_argument("--connections", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each round")
    parser.add_argument("--megabytes", type=int, default=700, help="of the disk")
    parser.add_argument(
        "--home", type=Path, help="keep the engine and its memories there"
    )
    options = parser.parse_args()
    if options.what == "disk" and options.home is None:
        return in_small_disk(options)
    with tempfile.TemporaryDirectory(
        prefix="folklore bench ", ignore_cleanup_errors=True
    ) as temporary:
        home = options.home or Path(temporary)
        try:
            print(
                json.dumps(
                    {"tokens": tokens, "disk": disk}[options.what](home, options),
                    indent=2,
                )
            )
        finally:
            Engine(home).stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
