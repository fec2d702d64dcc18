"""Progress bar on stderr, shown if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Receives the number of steps done and a text for the user.
Report = Callable[[int, str], None]


@contextmanager
def progress(work: str, total: int | None) -> Iterator[Report]:
    """Show a bar for the length of a block: yield the function that moves it, with `total` steps (None: unknown)."""
    if not sys.stderr.isatty():
        yield lambda _done, _text: None
        return
    # rich takes 80 ms to import, and only a terminal needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=total, text="")

        def move(done: int, text: str) -> None:
            bar.update(task, completed=done, text=text)

        yield move
