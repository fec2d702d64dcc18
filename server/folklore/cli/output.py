"""How commands print: JSON for programs, short wrapped text for people, colour only for a terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import click

from folklore.memory import serializers
from folklore.memory.serializers import Format

if TYPE_CHECKING:
    from folklore.memory.results import MemoryDetails
    from folklore.model import Answer, Memory, Recalled, Revision

_LINES_SHOWN = 8
_INDENT = "    "
_UNBOUNDED = 10_000  # columns, to measure a table as if there were no terminal


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def say(text: str = "", **style: bool | str) -> None:
    """A line on stdout; `style` as click's, dropped where it would not be seen."""
    click.echo(paint(text, **style))


def paint(text: str, **style: bool | str) -> str:
    """Text in a style, if stdout is a terminal that wants it."""
    if not style or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return click.style(text, **style)  # type: ignore[arg-type]


def print_answer(answer: Answer, form: Format, *, as_json: bool, zone: tzinfo) -> None:
    """The answer of recall, search or list."""
    if as_json:
        print_json(serializers.answer(answer, form))
        return
    for place, result in enumerate(answer.memories, start=1):
        _print_result(place, result, form, zone)
    for item in answer.degraded:
        click.echo(f"Without the {item.branch} branch: {item.reason}", err=True)
    if answer.note:
        say(answer.note)
    if answer.cursor:
        say(f"There is more: --cursor {answer.cursor}", dim=True)


_TERMS = ("rrf", "own", "signals", "neighbours", "nearness", "relevance", "redundancy")


def print_explanation(answer: Answer) -> None:
    """Every term of every result as a table, then what each branch did and how the question's words weigh."""
    rows = []
    for place, result in enumerate(answer.memories, start=1):
        terms = dict(result.explain or {})
        branches = terms.get("branches")
        found = branches if isinstance(branches, dict) else {}
        cells: list[object] = [place, "" if result.score is None else result.score]
        for branch in ("dense", "keyword"):
            of = found.get(branch)
            cells += [of["rank"], of["raw"], of["evidence"]] if isinstance(of, dict) else ["", "", ""]
        rows.append([*cells, *(terms.get(name, "") for name in _TERMS)])
    columns = [
        "#",
        "score",
        "dense",
        "cosine",
        "evid.",
        "keyword",
        "idf held",
        "evid.",
        "RRF",
        "own",
        "signals",
        "nbrs",
        "nearness",
        "relevance",
        "repeats",
    ]
    print_table(columns, rows)
    for name, value in (answer.explain or {}).items():
        if isinstance(value, dict) and name == "lexemes":
            weighed = sorted(value.items(), key=lambda entry: -entry[1]["weight"])
            words = [f"{lexeme} {of['weight']:g} (in {of['documents']:,})" for lexeme, of in weighed]
            say(f"words: {', '.join(words)}")
        elif isinstance(value, dict):
            say(f"{name}: " + ", ".join(f"{key} {entry}" for key, entry in value.items()))


def print_memory(memory: Memory, zone: tzinfo) -> None:
    """A memory whole: its text, then every field that is set."""
    say(memory.content)
    say()
    for name, value in serializers.record(memory).items():
        if name not in ("content", "when") and value != "":
            shown = getattr(memory, name, value)
            text = _when(shown, zone) if isinstance(shown, datetime) else _plain(value)
            _say_field(name, text)


def print_details(item: MemoryDetails, zone: tzinfo) -> None:
    """A memory whole, then what it has to do with others and how often it was changed."""
    print_memory(item.memory, zone)
    for relation in item.relations:
        out = relation.from_id == item.memory.id
        other = relation.to_id if out else relation.from_id
        said = f"{relation.type} {other}" if out else f"{other} {relation.type} this"
        _say_field("relation", f"{said} ({relation.strength:g})")
    if item.revisions:
        _say_field("revisions", f"{item.revisions} (`folklore history {item.memory.id}`)")


def print_revision(item: Revision, zone: tzinfo) -> None:
    """A change: when, what, by whom, and what the fields it touched said before."""
    shown = serializers.revision(item)
    reason = f": {item.reason}" if item.reason else ""
    undoes = "" if item.undoes is None else f" of the change of revision {item.undoes}"
    what = f"{item.action}{undoes} by {item.author}, from revision {item.revision}{reason}"
    say(f"{_when(item.changed_at, zone)}  {what}")
    for name, value in shown["before"].items():
        for place, line in enumerate(_plain(value).splitlines() or [""]):
            _say_field("" if place else name, line)


def _say_field(name: str, text: str) -> None:
    say(f"{_INDENT}{paint(f'{name:<16}', dim=True)}{text}")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table; numbers are set right. Not cut when nobody watches its width.

    On a terminal too narrow for its longest words each row is told field by field: a folded number misleads.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        number = any(isinstance(row[place], int | float) for row in rows)
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        # As Text: rich takes brackets in what somebody wrote for markup, hides them, and fails on what it cannot read.
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    unfolded = Measurement.get(console, console.options.update(width=_UNBOUNDED), table).minimum
    if unfolded <= console.width or not sys.stdout.isatty():
        console.print(table)
        return
    for row in rows:
        say()
        for name, value in zip(columns, row, strict=True):
            if value != "":
                _say_field(name, _cell(value))
    say()


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _print_result(place: int, result: Recalled, form: Format, zone: tzinfo) -> None:
    memory = result.memory
    score = "" if result.score is None else f"{result.score:.4f}"
    if form == "ids":
        say(f"{memory.id}  {score}".rstrip())
        return
    kind = memory.kind if memory.kind != "note" else None
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    about = [memory.namespace, _when(memory.when, zone), memory.source, kind, tags]
    head = f"{place:>2}. {paint(score, fg='green')}{'  ' if score else ''}"
    say(head + paint(" · ".join(part for part in about if part), bold=True))
    if form == "detailed":
        print_memory(memory, zone)
    else:
        lines = list(_wrapped(memory.content))
        for line in lines[:_LINES_SHOWN]:
            say(_INDENT + line)
        rest = f", {len(memory.content):,} characters in all" if len(lines) > _LINES_SHOWN else ""
        say(f"{_INDENT}{memory.id} by {memory.author}{rest}", dim=True)
    say()


def _wrapped(text: str) -> Iterator[str]:
    width = max(min(shutil.get_terminal_size((100, 24)).columns, 120) - len(_INDENT), 20)
    for line in text.splitlines():
        # A long word (a path, a URL) stays whole, to be copied; white space at the start is code's.
        yield from textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]


def _when(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
