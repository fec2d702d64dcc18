"""Output of commands: JSON for programs, tables and fields for people, times as each of them reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

import click

from folklore.cli import screen
from folklore.cli.screen import paint as paint, print_line as print_line
from folklore.contract.compact import beginning
from folklore.contract.health import Check
from folklore.contract.ids import short
from folklore.model import Memory
from folklore.text.dates.distance import absolute_time, distance
from folklore.text.dates.zones import in_zone

INDENT = "    "
FIELD_WIDTH = 20
UNBOUNDED = 10_000  # columns, in place of the width of the terminal
_PIPE_WIDTH = 200  # columns of a table that no terminal shows
_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "yellow"}
_CHECK_INDENT = 19


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_json_time))


def _json_time(value: object) -> str:
    assert isinstance(value, datetime), f"{type(value).__name__} is no JSON"
    return value.isoformat(timespec="seconds")


def wants_json() -> bool:
    """Return True if the present command was called with `--json`."""
    return _is_set("json")


def _is_set(option: str) -> bool:
    """Return True if the present command was called with `json` or `utc`, which each command knows."""
    context = click.get_current_context(silent=True)
    if context is None:
        return False
    options = context.find_root().obj or {}
    return bool(options.get(option))


def print_either(value: object, text: str | Callable[[], None]) -> None:
    """Print a value as JSON, or without `--json` a text about it, which a function may print."""
    if wants_json():
        print_json(value)
    elif callable(text):
        text()
    elif text:
        print_line(text)


def in_one_line(text: str) -> str:
    """Return the beginning of a text, without line breaks."""
    return beginning(text).replace("\n", " ")


def one_line(number: int, memory: Memory, zone: tzinfo | None) -> str:
    """Return number, end of the id, in a zone the time, and the beginning of a memory, as wide as the terminal."""
    head = f"{number:>2}. {short(memory.id)}  "
    if zone is not None:
        head += f"{time_text(memory.when, zone):<14}  "
    text = screen.visible(" ".join(memory.content.split()))
    width = max(screen.columns() - len(head), 20)
    return paint(head, dim=True) + screen.cut(text, width)


def lines_of(text: str, indent: int) -> list[str]:
    """Return a text in lines that leave `indent` columns of a terminal; a pipe gets it as it is."""
    if screen.is_terminal():
        return list(screen.wrapped(text, screen.columns() - indent))
    return [text]


def print_field(name: str, text: str) -> None:
    """Print a field with its name; a text with styles is not folded."""
    head = INDENT + paint(f"{name:<{FIELD_WIDTH - len(INDENT)}}", dim=True)
    for line in [text] if "\x1b" in text else lines_of(text, FIELD_WIDTH):
        screen.echo(head + line)
        head = " " * FIELD_WIDTH


# Tables


def print_rows(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()
) -> None:
    """Print rows as a table of these columns, or of those that have a value in any row."""
    if not columns:
        columns = [name for name in rows[0] if _has_values(rows, name)]
    cells = []
    for row in rows:
        values = [row.get(name) for name in columns]
        cells.append(["" if value in (None, {}) else value for value in values])
    print_table(columns, cells)


def _has_values(rows: Sequence[Mapping[str, object]], column: str) -> bool:
    return any(row[column] not in (None, "", []) for row in rows)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers are aligned right, and only a terminal limits the width.

    If the longest words are wider than the terminal, each row is printed field by field: a folded number misleads.
    """
    # 80 ms, and only for tables
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        is_number = any(isinstance(row[index], int | float) for row in rows)
        grid.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        # As Text: rich reads brackets in a string as markup, hides them, and fails on markup that it does not know.
        grid.add_row(*[Text(screen.visible(_cell(value))) for value in row])

    width = None if screen.is_terminal() else _PIPE_WIDTH
    out = Console(width=width, highlight=False)
    unbounded = out.options.update(width=UNBOUNDED)
    least_width = Measurement.get(out, unbounded, grid).minimum
    if screen.is_terminal() and least_width > out.width:
        _print_fields(columns, rows)
        return
    with out.capture() as printed:
        out.print(grid)
    screen.echo(printed.get().removesuffix("\n"))


def _print_fields(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for row in rows:
        print_line()
        for name, value in zip(columns, row, strict=True):
            if value != "":
                print_field(name, _cell(value))
    print_line()


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return time_text(value, value.tzinfo or UTC)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        counts = [f"{name.replace('_', ' ')} {n:,}" for name, n in value.items()]
        return ", ".join(counts)
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


def row_of(record: object, names: str, zone: tzinfo) -> dict[str, Any]:
    """Return attributes of a record by their names in the output: `names` has blanks between `name` or `name=attribute`.

    Ids and tuples are as JSON has them, times in a zone, which `print_json` and `print_rows` write each in its form.
    """
    row = {}
    for pair in names.split():
        name, _, attribute = pair.partition("=")
        row[name] = _json_value(getattr(record, attribute or name), zone)
    return row


def _json_value(value: object, zone: tzinfo) -> object:
    if isinstance(value, datetime):
        return in_zone(value, zone)
    if isinstance(value, tuple):
        return [_json_value(entry, zone) for entry in value]
    if isinstance(value, UUID):
        return str(value)
    return value


def time_text(moment: datetime, zone: tzinfo) -> str:
    """Return a time for people: as a distance from now, or with --utc, and beyond a year, as date and time."""
    if _is_set("utc"):
        return absolute_time(moment, zone)
    near = distance(in_zone(moment, zone), datetime.now(zone))
    return near or absolute_time(moment, zone)


def print_checks(checks: Sequence[Check]) -> None:
    """Print each check in one line, with its hint below."""
    indent = " " * _CHECK_INDENT
    for check in checks:
        status = paint(f"{check.status:<8}", fg=_COLOURS[check.status])
        first, *others = lines_of(check.detail, _CHECK_INDENT)
        print_line(f"{status}{check.name:<10} {first}")
        for line in others:
            print_line(indent + line)
        if check.hint:
            print_line(f"{indent}→ {check.hint}")
