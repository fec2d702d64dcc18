"""Seconds that commands take, next to a Python that only imports asyncio, and the processor time of their processes.

    python -m benchmarks.commands                           # on an embedded engine in a temporary home
    python -m benchmarks.commands --against ../other/server # and next to another version, in turns

The server runs already; the memories are sentences of a Zipf vocabulary. Processor time of the server and of its forks
is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.latency import sentences
from folklore.engine import Engine

_HERE = Path(__file__).parents[1] / "server"
_COUNT = 1_000
_COMMANDS = (
    "list",
    "show 1",
    "history 1",
    "log",
    "status",
    "search {word}",
    "recall {word}",
    "--version",
    "--help",
)


def seconds(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[float, float]:
    """Return how long a process takes, and the processor time of it and its children."""
    began = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=True,
        env={**os.environ, **environment},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.monotonic() - began,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def measure(home: Path, versions: Sequence[Path], rounds: int) -> None:
    """Print the median of each command for each version, and its ratio to the reference and to the first version."""
    texts = sentences(_COUNT)
    word = texts[0].split()[0]
    settings = {"FOLKLORE_HOME": str(home), "FOLKLORE_NAMESPACE": "bench"}
    environments = [
        {**settings, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": ""}
        for path in versions
    ]
    file = home / "memories.jsonl"
    file.write_text(
        "".join(json.dumps({"content": text}) + "\n" for text in texts),
        encoding="utf-8",
    )
    seconds(["-m", "folklore", "import", str(file)], environments[0])
    for (
        environment
    ) in environments:  # compiles the modules, and keeps a list for its numbers
        seconds(["-m", "folklore", "list"], environment)
    for command in _COMMANDS:
        arguments = ["-m", "folklore", *command.format(word=word).split()]
        taken: list[list[tuple[float, float]]] = [[] for _ in environments]
        reference = []
        for _ in range(rounds):
            for environment, version in zip(environments, taken, strict=True):
                version.append(seconds(arguments, environment))
            reference.append(seconds(["-c", "import asyncio"], {})[0])
        least = statistics.median(reference)
        medians = [
            [statistics.median(part) for part in zip(*version, strict=True)]
            for version in taken
        ]
        shown = ", ".join(
            f"{whole:.3f} s ({whole / least:.1f} x asyncio; processor {own:.3f})"
            for whole, own in medians
        )
        others = "".join(
            f", ratio {medians[0][0] / whole:.2f}" for whole, _ in medians[1:]
        )
        print(f"{command.split()[0]:<10} {shown}{others}", flush=True)


def main() -> None:
    """Measure on an engine of its own, and stop it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--against", type=Path, help="the folder `server` of another version"
    )
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="folklore-bench-") as folder:
        home = Path(folder)
        try:
            measure(
                home,
                [_HERE, *([given.against.resolve()] if given.against else [])],
                given.rounds,
            )
        finally:
            Engine(home).stop()


if __name__ == "__main__":
    main()
