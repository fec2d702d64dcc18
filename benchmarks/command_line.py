"""Command line of the benchmarks: shared options, progress, tables and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.table import Table

from folklore import log
from folklore.errors import FolkloreError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of every retrieval benchmark. `ranking` is the argument `ranking` of memory_recall."""

    limit: int = 10
    questions: int | None = None
    ranking: Mapping[str, Any] = field(default_factory=dict)
    home: Path | None = None
    as_json: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Further arguments of memory_recall."""
        return {"ranking": dict(self.ranking)} if self.ranking else {}


def _ranking(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError as error:
        raise click.BadParameter(f"is not JSON ({error}).") from error
    if not isinstance(value, dict):
        raise click.BadParameter("must be a JSON object.")
    return value


class Benchmark(click.Command):
    """A command with the options that every retrieval benchmark has. They arrive as one value, `options`."""

    def __init__(
        self, name: str, *, params: list[click.Parameter], **values: Any
    ) -> None:
        shared = [
            click.Option(
                ["--limit"],
                type=click.IntRange(1, 100),
                default=10,
                show_default=True,
                help="Of an answer.",
            ),
            click.Option(
                ["--questions"],
                type=click.IntRange(min=1),
                help="Ask this many questions, evenly spread.",
            ),
            click.Option(
                ["--ranking"],
                callback=_ranking,
                help='As memory_recall takes it, in JSON: {"mmr_lambda": 0.5}.',
            ),
            click.Option(
                ["--home"],
                type=click.Path(path_type=Path, file_okay=False),
                help="Keep the stored sets in this folder, and use them again in the next run.",
            ),
            click.Option(
                ["--json", "as_json"], is_flag=True, help="Print one JSON document."
            ),
        ]
        self._shared = [option.name for option in shared]
        super().__init__(name, params=[*params, *shared], **values)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with the shared options as one value."""
        ctx.params["options"] = Options(
            **{str(name): ctx.params.pop(str(name)) for name in self._shared}
        )
        return super().invoke(ctx)


SETS = click.argument(
    "sets",
    metavar="SET.jsonl…",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
)


def main(command: click.Command) -> None:
    """Run a command; end the process with its exit code, or with the message of a FolkloreError."""
    log.configure("warning", "console")
    try:
        command.main(prog_name=f"python -m benchmarks.{command.name}")
    except FolkloreError as error:
        click.echo(f"{error.message} {error.hint or ''}".rstrip(), err=True)
        sys.exit(error.exit_code)


def track(items: Sequence[Item], label: str) -> Iterator[Item]:
    """Yield the items, with a progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, label=label, file=sys.stderr) as bar:
        yield from bar


def print_json(value: object) -> None:
    """Print one JSON document, its numbers rounded to four decimals."""
    click.echo(json.dumps(_rounded(value), ensure_ascii=False, indent=2))


def _rounded(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def print_table(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table; columns of numbers are aligned right, None is an empty cell."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in rows[0] if rows else ():
        number = any(isinstance(row[name], int | float) for row in rows)
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(
        width=None if sys.stdout.isatty() else 200, highlight=False, markup=False
    ).print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return (
        f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
    )
