"""Cost of calls against the number of memories, in one large namespace and over 5,000, next to their floors.

    python -m benchmarks.scale                                   # tiers of 1,000, 10,000 and 100,000
    python -m benchmarks.scale --tiers 1000 1000000 --home DIR   # resumable: DIR keeps what was imported and measured

The memories are paragraphs of the documentation and the code of the installed packages. Half of them are in one
namespace, the others in 5,000 whose sizes follow Zipf's law. Calls go over stdio, in alternation with a trivial tool of
the same server, then over HTTP by one client and by 32 that each ask again at once; `default` names no namespace and
asks in a project, then all others. `floor` is the bare SQL of the slower branch of such a recall, repeated on a warm
connection, and a trivial call; for an import it is COPY of the same rows into the same tables with their indexes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch
from uuid import uuid4

import asyncpg
import psutil
from mcp import Client, StdioServerParameters

from benchmarks import throughput
from benchmarks.latency import call, command
from folklore.app import App
from folklore.config import load_settings
from folklore.contract.recall import RecallRequest
from folklore.db.session import Row, Session
from folklore.engine import Engine
from tests.doors import own_service

Figures = dict[str, dict[str, float]]

_NAMESPACES = 5_000
_LARGE = "large"
_SMALL = "space-20"
_SEED = 5
_SUFFIXES = (".py", ".pyi", ".md", ".rst", ".txt", ".h")
_SHORTEST = 60  # characters of a paragraph
_LONGEST = 900
_ROUNDS = 60
_COUNTED = 20
_IMPORTED = 2_000
_TABLES = ("memories", "embeddings", "postings", "packed_memories", "fresh_words")
_SCOPES: Mapping[str, tuple[str, ...]] = {
    "large": (_LARGE,),
    "small": (_SMALL,),
    "default": (),
}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{3,}")


def paragraphs() -> list[str]:
    """Return the paragraphs of the installed packages and of Python's own library, in an order by chance."""
    found: dict[str, None] = {}
    for root in dict.fromkeys(
        sysconfig.get_paths()[name] for name in ("purelib", "platlib", "stdlib")
    ):
        for path in sorted(Path(root).rglob("*")):
            if (
                path.suffix in _SUFFIXES
                and path.is_file()
                and path.stat().st_size < 2_000_000
            ):
                for text in re.split(
                    r"\n\s*\n", path.read_text(encoding="utf-8", errors="ignore")
                ):
                    text = text.strip()
                    if (
                        _SHORTEST <= len(text) <= _LONGEST
                        and len(_WORD.findall(text)) >= 6
                    ):
                        found[text] = None
    texts = list(found)
    random.Random(_SEED).shuffle(texts)
    return texts


def memories(first: int, last: int, texts: Sequence[str]) -> Iterator[str]:
    """Return memories by number as lines of JSON; beyond the paragraphs there are, two make one."""
    sizes = list(accumulate(1 / rank for rank in range(1, _NAMESPACES + 1)))
    for number in range(first, last):
        rng = random.Random(number)
        text = (
            texts[number]
            if number < len(texts)
            else f"{rng.choice(texts)}\n\n{rng.choice(texts)}"
        )
        space = rng.choices(range(_NAMESPACES), cum_weights=sizes)[0]
        yield json.dumps(
            {
                "content": text,
                "namespace": _LARGE if number % 2 == 0 else f"space-{space}",
            }
        )


def question(rng: random.Random, texts: Sequence[str]) -> str:
    """Return six words of a paragraph."""
    words = _WORD.findall(rng.choice(texts))
    return " ".join(rng.sample(words, min(6, len(words))))


def of(home: Path, *arguments: str) -> StdioServerParameters:
    """Return how to start Python with this home, in a project of average size, without background jobs."""
    started = command(str(home), *arguments)
    more = {
        "FOLKLORE_NAMESPACE": _SMALL,
        "FOLKLORE_SECRETS": "off",
        "FOLKLORE_JOBS__ENABLED": "false",
    }
    more["FOLKLORE_EMBEDDING__PROVIDER"] = "bundled"
    return started.model_copy(update={"env": {**(started.env or {}), **more}})


def run(home: Path, *arguments: str, lines: Iterator[str] | None = None) -> float:
    """Run a command and return its seconds; an import may leave out lines that it refuses."""
    started = time.perf_counter()
    text = None if lines is None else "\n".join(lines)
    options: Mapping[str, Any] = {
        "input": text,
        "text": True,
        "stdout": subprocess.PIPE,
        "check": False,
    }
    subprocess.run(
        [sys.executable, "-m", "folklore", *arguments], env=of(home).env, **options
    )
    return time.perf_counter() - started


def fill(home: Path, size: int, texts: Sequence[str]) -> None:
    """Import what is lacking up to a size, in batches, and let the jobs pack and index it."""
    mark = home / "memories"
    begun = done = int(mark.read_text()) if mark.exists() else 0
    started = time.perf_counter()
    while done < size:
        until = min(size, done + 20_000)
        run(
            home,
            "import",
            "-",
            "--yes",
            "--format",
            "jsonl",
            lines=memories(done, until, texts),
        )
        done = until
        mark.write_text(str(done))
        rate = (done - begun) / (time.perf_counter() - started)
        print(
            f"imported {done:,} of {size:,}, {rate:,.0f} a second",
            file=sys.stderr,
            flush=True,
        )
    for job in ("postings", "indexes", "statistics"):
        print(
            f"job {job}: {run(home, 'jobs', 'run', job):.1f} s",
            file=sys.stderr,
            flush=True,
        )


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p95 and p99."""
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


async def floors(home: Path, texts: Sequence[str]) -> Figures:
    """Return the milliseconds of the statements of the slower branch, by scope, each the quickest of three runs."""
    app = App(load_settings(log_level="error"))
    seen = list[tuple[str, dict[str, object]]]()
    rows = Session.rows

    async def recorded(session: Session, name: str, /, **values: object) -> list[Row]:
        seen.append((name, values))
        return await rows(session, name, **values)

    found = Figures()
    rng = random.Random(_SEED)
    try:
        database = (await app.ready()).database
        for scope, names in _SCOPES.items():
            slower = []
            for _ in range(_COUNTED):
                seen.clear()
                with patch.object(Session, "rows", recorded):
                    asked = {"namespaces": names} if names else {}
                    await own_service(app).call(
                        RecallRequest(
                            query=question(rng, texts), counted=False, **asked
                        )
                    )
                branches = {"keyword": 0.0, "dense": 0.0}
                for name, values in seen:
                    branch = (
                        "keyword"
                        if re.match("recall/(lexemes|keyword)", name)
                        else "dense"
                    )
                    if branch == "dense" and not re.match(
                        "recall/(dense|nearest)", name
                    ):
                        continue
                    async with database.session(
                        "scan" if branch == "dense" else "kept"
                    ) as session:
                        times = []
                        for _ in range(3):
                            started = time.perf_counter()
                            await rows(session, name, **values)
                            times.append((time.perf_counter() - started) * 1e3)
                    branches[branch] += min(times)
                slower.append(max(branches.values()))
            found[f"sql {scope}"] = spread(slower)
    finally:
        await app.close()
    return found


async def calls(
    home: Path, texts: Sequence[str], connection: asyncpg.Connection
) -> Figures:
    """Return milliseconds, and processor milliseconds and transactions a call, of each kind of call over stdio."""
    rng = random.Random(_SEED + 1)
    new = iter(range(1 << 30))

    def stored(count: int) -> list[dict[str, str]]:
        return [
            {"content": f"{question(rng, texts)} {next(new)} {uuid4()}"}
            for _ in range(count)
        ]

    kinds: dict[str, tuple[str, Any]] = {
        "trivial": ("trivial", lambda: {"text": question(rng, texts)}),
        "recall large": (
            "memory_recall",
            lambda: {"query": question(rng, texts), "namespaces": [_LARGE]},
        ),
        "recall small": (
            "memory_recall",
            lambda: {"query": question(rng, texts), "namespaces": [_SMALL]},
        ),
        "recall default": ("memory_recall", lambda: {"query": question(rng, texts)}),
        "search": (
            "search_keywords",
            lambda: {"query": question(rng, texts), "namespaces": [_LARGE]},
        ),
        "list": ("memory_list", lambda: {"namespaces": [_LARGE]}),
        "store": ("memory_store", lambda: {"memories": stored(1)}),
        "store 20": ("memory_store", lambda: {"memories": stored(20)}),
        "hook": (
            "client_hook",
            lambda: {"prompt": question(rng, texts), "session": str(next(new))},
        ),
    }
    counted = "select sum(xact_commit + xact_rollback)::float8 from pg_stat_database where datname = current_database()"
    found = Figures()
    async with Client(of(home, "-m", "benchmarks.servers", "stdio")) as client:
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for place in range(_ROUNDS + 5):
            for kind, (tool, arguments) in kinds.items():
                _, seconds = await call(client, tool, **arguments())
                if place >= 5:
                    times[kind].append(seconds * 1e3)
        [server] = [
            item
            for item in psutil.Process().children(recursive=True)
            if "benchmarks.servers" in item.cmdline()
        ]
        for kind, (tool, arguments) in kinds.items():
            await asyncio.sleep(1.2)  # a backend reports its transactions once a second
            before = sum(server.cpu_times()[:2])
            committed = await connection.fetchval(counted)
            for _ in range(_COUNTED):
                await call(client, tool, **arguments())
            processor = (sum(server.cpu_times()[:2]) - before) * 1e3 / _COUNTED
            await asyncio.sleep(1.2)
            transactions = (await connection.fetchval(counted) - committed) / _COUNTED
            found[kind] = {
                **spread(times[kind]),
                "processor": processor,
                "transactions": transactions,
            }
        found["server"] = {"megabytes": server.memory_info().rss / 1e6}
    return found


def crowded(home: Path, texts: Sequence[str]) -> Figures:
    """Return milliseconds and rates of one client and of 32 over HTTP, next to trivial calls of the same server."""
    rng = random.Random(_SEED + 2)
    found = Figures()
    questions = [question(rng, texts) for _ in range(1_000)]
    scopes = {
        scope: {"namespaces": names} if names else {}
        for scope, names in _SCOPES.items()
    }
    for clients in (1, 32):
        options = throughput.arguments().parse_args(
            ["--clients", str(clients), "--seconds", "3", "--rounds", "3"]
        )
        with throughput.bench(home, options) as running:
            for scope, figures in running.compare("modern", questions, scopes).items():
                found[f"http {clients} {scope}"] = figures
    return found


async def copied(connection: asyncpg.Connection) -> float:
    """Return the seconds that COPY takes for the rows of as many memories as are imported, rolled back."""
    space = uuid4()
    rows = {}
    seconds = 0.0
    for table in ("memories", "embeddings", "fresh_words"):
        names = [
            row["attname"]
            for row in await connection.fetch(
                "select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 and attgenerated = ''"
                " and not attisdropped order by attnum", table)
        ]  # fmt: skip
        listed = ", ".join(
            f"'{space}'::uuid" if name == "namespace_id" else name for name in names
        )
        one = "select id from namespaces where name = 'large'"
        column = "id" if table == "memories" else "memory_id"
        first = f"(select id from memories where namespace_id = ({one}) order by id desc limit 1 offset {_IMPORTED - 1})"
        query = f"select {listed} from {table} where namespace_id = ({one}) and {column} >= {first}"
        path = Path(tempfile.gettempdir()) / f"folklore-{space}-{table}"
        await connection.copy_from_query(query, output=path, format="binary")
        rows[table] = path, names
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(
            "insert into namespaces (id, name, language, languages, shared, created_at, created_by)"
            f" select '{space}', 'copied', language, languages, shared, created_at, created_by from namespaces limit 1"
        )
        started = time.perf_counter()
        for table, (path, names) in rows.items():
            await connection.copy_to_table(
                table, source=path, columns=names, format="binary"
            )
        seconds = time.perf_counter() - started
    finally:
        await transaction.rollback()
        for path, _ in rows.values():
            path.unlink()
    return seconds


async def measured(home: Path, size: int, texts: Sequence[str]) -> Figures:
    """Return the figures of a tier that was filled."""
    connection = await asyncpg.connect(Engine(home).start())
    try:
        sizes = "select pg_total_relation_size($1::regclass)::float8"
        found = {
            "bytes": {
                table: await connection.fetchval(sizes, table) / size
                for table in _TABLES
            }
        }
        asked = texts[:size]
        found |= await floors(home, asked)
        found |= await calls(home, asked, connection)
        found |= await asyncio.to_thread(crowded, home, asked)
        lines = [
            json.dumps({"content": f"{texts[-1 - place]} ({uuid4()})"})
            for place in range(_IMPORTED)
        ]
        seconds = run(
            home,
            "import",
            "-",
            "--yes",
            "--namespace",
            _LARGE,
            "--format",
            "jsonl",
            lines=iter(lines),
        )
        alone = run(
            home,
            "import",
            "-",
            "--yes",
            "--namespace",
            _LARGE,
            "--format",
            "jsonl",
            lines=iter(lines[:1]),
        )
        found["import"] = {
            "a second": _IMPORTED / (seconds - alone),
            "copy": _IMPORTED / await copied(connection),
        }
    finally:
        await connection.close()
    return found


def shown(results: Mapping[str, Figures]) -> str:
    """Return the table, and a plot of each kind of call: a bar for each tier, as long as its p50 in trivial calls."""
    timed = ("recall", "search", "list", "store", "hook")
    kinds = [kind for kind in next(iter(results.values())) if kind.startswith(timed)]
    lines = ["| memories | | p50 / p95 / p99 ms | trivial calls | × floor | processor ms | transactions |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    bars = []
    for size, found in results.items():
        trivial = found["trivial"]["p50"]
        for kind in kinds:
            of_kind = found[kind]
            sql = found.get(f"sql {kind.removeprefix('recall ')}")
            floor = (
                "" if sql is None else f"{of_kind['p50'] / (sql['p50'] + trivial):.1f}"
            )
            times = " / ".join(f"{of_kind[name]:.1f}" for name in ("p50", "p95", "p99"))
            lines.append(
                f"| {int(size):,} | {kind} | {times} | {of_kind['p50'] / trivial:.1f} | {floor} |"
                f" {of_kind['processor']:.1f} | {of_kind['transactions']:.1f} |"
            )
            bars.append(
                (
                    kind,
                    f"{kind:<15} {int(size):>9,} {'#' * round(4 * of_kind['p50'] / trivial)}",
                )
            )
        parts = ", ".join(
            f"{table} {value:,.0f}" for table, value in found["bytes"].items()
        )
        for kind, one in found.items():
            if "ratio" in one:
                rate = (
                    f"{one['rate']:.0f} a second, {one['ratio']:.2f} of trivial calls"
                )
                lines.append(
                    f"| {int(size):,} | {kind} | {one['p50_ms']:.1f} / {one['p95_ms']:.1f} | {rate} | |"
                    f" {one['server_ms']:.1f} | |"
                )
        lines.append(f"\n{int(size):,}: {sum(found['bytes'].values()):,.0f} bytes a memory ({parts}); trivial call"
                     f" {trivial:.1f} ms; import {found['import']['a second']:,.0f} a second, COPY"
                     f" {found['import']['copy']:,.0f}; server {found['server']['megabytes']:,.0f} MB\n")  # fmt: skip
    return "\n".join(
        [*lines, "", *(bar for _, bar in sorted(bars, key=lambda item: item[0]))]
    )


def main() -> None:
    """Measure each tier that was not measured yet, and print all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tiers", type=int, nargs="+", default=[1_000, 10_000, 100_000]
    )
    parser.add_argument(
        "--home", type=Path, help="keep the engine and the figures here"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="folklore-bench-", ignore_cleanup_errors=True
    ) as folder:
        home = cast("Path", given.home or Path(folder)).resolve()
        home.mkdir(parents=True, exist_ok=True)
        os.environ |= {
            name: value
            for name, value in (of(home).env or {}).items()
            if name.startswith("FOLKLORE_")
        }
        file = home / "results.json"
        texts = paragraphs()
        results: dict[str, Figures] = (
            json.loads(file.read_text()) if file.exists() else {}
        )
        try:
            for size in sorted(given.tiers):
                if str(size) not in results:
                    fill(home, size, texts)
                    results[str(size)] = asyncio.run(measured(home, size, texts))
                    file.write_text(json.dumps(results, indent=2))
            print(shown(results))
        finally:
            Engine(home).stop()


if __name__ == "__main__":
    main()
