"""Cost of marks on memories of changed files: recalls of ten results with paths, in a repository of many commits.

    python -m benchmarks.stale --commits 5000

Each memory is about another file, as of another commit, from the last but one to the middle of the history; all files
but one changed since. Rounds of recalls alternate between a caller with the working copy and one without; "first" is
the first answer of a process, which reads the history.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, cast

import click

from benchmarks.store import open_store
from folklore.app import App
from folklore.client.code.results import marked_result
from folklore.client.code.working_copy import WorkingCopy
from folklore.contract.memories import StoreRequest
from folklore.contract.recall import RankingRequest, RecallRequest
from folklore.contract.requests import (
    Operations,
    Result,
    Returns,
    read_result,
    result_json,
)
from folklore.memory import Facts, Memory, Service
from folklore.model import Draft

_FILES = 200
_NAMES = (
    "Ancona",
    "Bremen",
    "Calais",
    "Dover",
    "Emden",
    "Faro",
    "Genoa",
    "Harwich",
    "Izmir",
    "Jaffa",
)
_START = 1_700_000_000


@click.command()
@click.option("--commits", type=click.IntRange(100), default=5_000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=50, show_default=True)
def stale(commits: int, rounds: int) -> None:
    """Measure recalls with and without marks."""
    with tempfile.TemporaryDirectory(prefix="folklore bench ") as folder:
        root = Path(folder) / "repository"
        _make(root, commits)
        asyncio.run(_measure(root, commits, rounds))


def _make(root: Path, commits: int) -> None:
    """Make a repository in which each commit changes one of 200 files in twenty folders."""
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    subprocess.run(
        ["git", "-C", str(root), "fast-import", "--quiet"],
        check=True,
        input="".join(_stream(commits)).encode(),
    )
    subprocess.run(
        ["git", "-C", str(root), "reset", "--quiet", "--hard", "refs/heads/bench"],
        check=True,
    )


def _stream(commits: int) -> Iterator[str]:
    for number in range(commits):
        yield f"commit refs/heads/bench\ncommitter b <b@b> {_START + 3_600 * number} +0000\ndata 1\nc\n"
        for file in range(_FILES) if number == 0 else [number % _FILES]:
            text = f"{file} {number}\n" * 50
            yield f"M 100644 inline {_path(file)}\ndata {len(text)}\n{text}\n"


def _path(file: int) -> str:
    return f"package{file % 20}/module{file}.py"


async def _measure(root: Path, commits: int, rounds: int) -> None:
    copy = WorkingCopy(lambda: root, lambda: "bench")
    async with open_store() as store:
        app = store.app
        marked = _service(app, copy)
        plain = _service(app, None)
        drafts = [
            Draft(
                f"The pier of {name} is closed.",
                paths=(_path(place),),
                commit=f"HEAD~{place * commits // 20 + 1}",
            )
            for place, name in enumerate(_NAMES)
        ]
        await marked.call(StoreRequest(memories=tuple(drafts), namespace="bench"))
        request = RecallRequest(
            query="which pier is closed",
            namespaces=("bench",),
            ranking=RankingRequest(min_score=0),
        )
        times: dict[str, list[float]] = {"without": [], "first": [], "marked": []}
        for _ in range(rounds):
            fresh = _service(app, WorkingCopy(lambda: root, lambda: "bench"))
            await asyncio.to_thread(lambda: copy.found)
            for name, service in (
                ("without", plain),
                ("first", fresh),
                ("marked", marked),
            ):
                began = perf_counter()
                answer = await service.call(request)
                times[name].append((perf_counter() - began) * 1_000)
                assert len(answer.memories) == len(_NAMES)
        stale = sum(bool(result.stale) for result in answer.memories)
    click.echo(
        f"{len(_NAMES)} results, {stale} of them stale, {commits:,} commits; median and least milliseconds:"
    )
    for name, values in times.items():
        click.echo(f"  {name:8} {median(values):6.1f} {min(values):6.1f}")


@dataclass(frozen=True, slots=True)
class _Marked:
    """Operations whose results get marks, as a client puts them on the JSON of an answer."""

    service: Service
    copy: WorkingCopy

    async def call(self, request: Returns[Result]) -> Result:
        result = await self.service.call(request)
        value = result_json(cast("Any", request), result)
        marked = await marked_result(self.copy, request, value)
        return cast("Result", read_result(cast("Any", request), marked))


def _service(app: App, copy: WorkingCopy | None) -> Operations:
    service = Service(
        Memory(app.open, lambda: app.usage),
        lambda: Facts(
            app.caller, app.now(), app.zone, lambda: "bench", lambda: "bench"
        ),
        lambda: app.caller,
        lambda: "bench",
    )
    if copy is None:
        return service
    return _Marked(service, copy)


if __name__ == "__main__":
    stale()
