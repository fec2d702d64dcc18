"""Progress on long work: a bar on stderr if that is a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int, str], None]


@contextmanager
def progress(work: str, total: int | None) -> Iterator[Tell]:
    """For the length of a block: `tell(done, words)`, with `done` out of `total` (None: nobody knows how much)."""
    if not sys.stderr.isatty():
        yield lambda _done, _words: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[words]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=total, words="")

        def tell(done: int, words: str) -> None:
            bar.update(task, completed=done, words=words)

        yield tell
