"""Everything there is to conform to, in one table.

    python -m tests.conformance      (or: make conformance)

Exits with 1 if anything fails that the SDK's own server passes and that Folklore offers, or if any client fails.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.conformance.clients import Clients
from tests.conformance.node import Programs, installed
from tests.conformance.suite import REVISIONS, Suite
from tests.conformance.verdicts import Line, Verdict
from tests.servers import on_http, watched
from tests.temporary_engine import temporary_engine

_COLORS = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.NOT_OFFERED: "yellow"}


async def everything(programs: Programs, folder: Path, database_url: str) -> dict[str, list[Line]]:
    """All lines, by heading."""
    lines: dict[str, list[Line]] = {}
    product, reference, plain = (folder / name for name in ("product", "reference", "plain"))
    for place in (product, reference, plain):
        place.mkdir()
    server = watched(product, database_url=database_url)
    async with (
        on_http(server, module="tests.conformance.product") as ours,
        on_http(watched(reference), module="tests.conformance.reference") as theirs,
    ):
        suite = Suite(programs, folder / "suite")
        for revision in REVISIONS:
            lines[f"Conformance suite, {revision}"] = await suite.lines(
                revision, f"{ours.url}/mcp", f"{theirs.url}/mcp"
            )
    server = watched(plain, database_url=database_url)
    settings = {name: value for name, value in server.environment.items() if name not in ("PATH", "HOME")}
    async with on_http(server) as running:
        lines["Clients"] = await Clients(programs, plain, running.url, settings).lines()
    strayed = [place.name for place in (product, plain) if (place / "attempts").exists()]
    lines["Folklore"] = [
        Line(
            "reaches nothing outside this machine",
            Verdict.FAILED if strayed else Verdict.PASSED,
            "".join((folder / name / "attempts").read_text(encoding="utf-8") for name in strayed),
        )
    ]
    return lines


def show(heading: str, lines: Iterable[Line]) -> None:
    """Print a table and its sum."""
    counted = Counter(line.verdict for line in lines)
    table = Table(title=heading, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        color = _COLORS.get(line.verdict, "dim")
        table.add_row(line.what, f"[{color}]{line.verdict}[/]", line.detail)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table)
    console.print(", ".join(f"{number} {verdict}" for verdict, number in counted.items()) + "\n")


def main() -> int:
    """Run it all; the exit code."""
    programs = installed()
    with tempfile.TemporaryDirectory(prefix="folklore-conformance-") as name, temporary_engine() as database_url:
        found = asyncio.run(everything(programs, Path(name), database_url))
    for heading, lines in found.items():
        show(heading, lines)
    failed = [line for lines in found.values() for line in lines if line.verdict is Verdict.FAILED]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
