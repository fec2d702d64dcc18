"""Conformance of Folklore to the official suite and to clients of others, in one table.

    python -m tests.conformance      (or: make conformance)

Exits with 1 if Folklore fails a check of an offered feature that the SDK's server passes, or if a client fails.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.conformance.clients import Clients
from tests.conformance.node import Programs, installed
from tests.conformance.suite import REVISIONS, Suite
from tests.conformance.verdicts import Line, Verdict
from tests.servers import on_http, watched
from tests.temporary_engine import temporary_engine

_COLORS = {
    Verdict.PASSED: "green",
    Verdict.FAILED: "bold red",
    Verdict.NOT_OFFERED: "yellow",
}


async def everything(
    programs: Programs, folder: Path, database_url: str
) -> AsyncIterator[tuple[str, list[Line]]]:
    """Yield each heading with its lines."""
    product, reference, plain = (
        folder / name for name in ("product", "reference", "plain")
    )
    for place in (product, reference, plain):
        place.mkdir()
    suite = Suite(programs, folder / "suite")
    async with (
        on_http(
            watched(product, database_url=database_url),
            module="tests.conformance.product",
        ) as ours,
        on_http(watched(reference), module="tests.conformance.reference") as theirs,
    ):
        for revision in REVISIONS:
            lines = await suite.lines(revision, f"{ours.url}/mcp", f"{theirs.url}/mcp")
            yield f"Conformance suite, {revision}", lines

    server = watched(plain, database_url=database_url)
    settings = {
        name: value
        for name, value in server.environment.items()
        if name not in ("PATH", "HOME")
    }
    settings["FOLKLORE_OWN"] = "1"  # else a server outlives the run
    async with on_http(server, alone=True) as running:
        yield "Clients", await Clients(programs, plain, running.url, settings).lines()

    strayed = [
        notes.read_text(encoding="utf-8") for notes in folder.glob("p*/attempts")
    ]
    verdict = Verdict.FAILED if strayed else Verdict.PASSED
    yield (
        "Folklore",
        [Line("reaches nothing outside this machine", verdict, "".join(strayed))],
    )


def show(heading: str, lines: Iterable[Line]) -> None:
    """Print a table and the number of lines of each verdict."""
    counted = Counter(line.verdict for line in lines)
    table = Table(
        title=heading, title_justify="left", show_header=False, box=None, pad_edge=False
    )
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        color = _COLORS.get(line.verdict, "dim")
        table.add_row(line.what, f"[{color}]{line.verdict}[/]", line.detail)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    console.print(table)
    console.print(
        ", ".join(f"{number} {verdict}" for verdict, number in counted.items()) + "\n"
    )


async def report(programs: Programs) -> int:
    """Run and print everything; return the number of failed lines."""
    failed = 0
    with (
        tempfile.TemporaryDirectory(prefix="folklore-conformance-") as name,
        temporary_engine() as database_url,
    ):
        async for heading, lines in everything(programs, Path(name), database_url):
            show(heading, lines)
            failed += sum(line.verdict is Verdict.FAILED for line in lines)
    return failed


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(report(installed())) else 0)
