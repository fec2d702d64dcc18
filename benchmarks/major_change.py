"""A change of the engine's major version: its time, what it keeps, and what a kill at a random moment leaves.

    python -m benchmarks.major_change                       # 20,000 memories, 20 kills
    python -m benchmarks.major_change --memories 2000 --kills 5 --seed 7

The memories are made up (benchmarks/made_up.py), imported into Postgres 16 with vectors; 2,000 of them have relations
and 1,000 a history. Every change begins from a copy of that home; each kill ends all its processes at once. `equal`
says whether an export with vectors has the same lines as before, after the next start has completed the change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from benchmarks.made_up import memories
from folklore.engine import Engine
from folklore.engine.cluster import version_on_disk
from folklore.engine.files import EnginePaths
from folklore.model import Relation
from tests.older_engine import older_engine
from tests.person import Person
from tests.team import library_at

_RELATED = 2_000
_EDITED = 1_000


def main() -> None:
    """Print the results as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="folklore-major-") as folder:
        room = Path(folder)
        before = _original(room / "original", given.memories)
        with _copy(room) as home:
            began = time.monotonic()
            _folklore(home, "db", "start")
            usual = time.monotonic() - began
            result = {
                "memories": given.memories,
                "lines": len(before),
                "seconds": round(usual, 1),
            }
            result["equal"] = _lines(home) == before
        print(json.dumps(result), flush=True)
        rng = random.Random(given.seed)
        for _ in range(given.kills):
            print(json.dumps(_killed(room, rng.uniform(0, usual), before)), flush=True)


def _killed(room: Path, seconds: float, before: Sequence[str]) -> dict[str, object]:
    with _copy(room) as home:
        process = subprocess.Popen(
            [sys.executable, "-m", "folklore", "db", "start"],
            env=_environment(home),
            stdout=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        process.kill()
        process.wait()
        _end_all(home)
        left = version_on_disk(EnginePaths(home))
        return {
            "killed_after": round(seconds, 2),
            "left": left,
            "equal": _lines(home) == before,
        }


def _original(home: Path, count: int) -> list[str]:
    """Fill a home of the older version; return the lines of its export."""
    with older_engine(home) as dsn:
        lines = [
            json.dumps({**memory, "namespace": "notes"}) for memory in memories(count)
        ]
        _folklore(home, "import", "-", "--yes", dsn=dsn, given="\n".join(lines))
        exported = _folklore(home, "export", "-", dsn=dsn).splitlines()[1:]
        asyncio.run(
            _relate_and_edit(dsn, [UUID(json.loads(line)["id"]) for line in exported])
        )
        return _lines(home, dsn=dsn)


async def _relate_and_edit(dsn: str, ids: Sequence[UUID]) -> None:
    async with library_at(dsn, None) as library:
        person = Person(library)
        for start in range(0, min(_RELATED, len(ids) - 1), 100):
            pairs = pairwise(ids[start : start + 101])
            await person.relate(
                *(Relation(one, "relates_to", other) for one, other in pairs)
            )
        for id_ in ids[:_EDITED]:
            await person.update(id_, importance=0.9)


@contextmanager
def _copy(room: Path) -> Iterator[Path]:
    home = room / "copy"
    subprocess.run(["cp", "-a", room / "original", home], check=True)
    try:
        yield home
    finally:
        Engine(home).stop()
        shutil.rmtree(home)


def _end_all(home: Path) -> None:
    """Kill every process whose working directory is in a home: those of Postgres."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            within = (process / "cwd").readlink().is_relative_to(home)
        except OSError:
            continue
        if within:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)


def _environment(home: Path, dsn: str | None = None) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FOLKLORE_")
    }
    own = {
        "FOLKLORE_HOME": str(home),
        "FOLKLORE_AUTHOR": "bench",
        "FOLKLORE_NAMESPACE": "notes",
    }
    return kept | own | ({"FOLKLORE_DATABASE_URL": dsn} if dsn else {})


def _folklore(
    home: Path, *arguments: str, dsn: str | None = None, given: str = ""
) -> str:
    command = [sys.executable, "-m", "folklore", *arguments]
    done = subprocess.run(
        command,
        env=_environment(home, dsn),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{arguments[0]} failed: {done.stderr}")
    return done.stdout


def _lines(home: Path, dsn: str | None = None) -> list[str]:
    """Return the lines of an export but its header, which has the time."""
    return _folklore(home, "export", "-", "--embeddings", dsn=dsn).splitlines()[1:]


if __name__ == "__main__":
    main()
