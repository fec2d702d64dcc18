"""Output of commands: JSON for programs, short wrapped text for people, colour and progress on a terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from difflib import unified_diff
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from folklore.cli.ids import short
from folklore.memory import serializers
from folklore.memory.serializers import Format
from folklore.model import DEFAULT_KIND, FIELDS, SHOWN

if TYPE_CHECKING:
    from folklore.memory.results import MemoryDetails
    from folklore.model import Answer, Memory, Recalled, Revision, Stale

# Receives the number of steps done and a text for the user.
Report = Callable[[int, str], None]

_LINES_SHOWN = 8
_INDENT = "    "
_COMMIT = 12  # digits by which a commit is recognised
_MINUTE, _HOUR = 60, 3_600  # seconds
_YEAR = 365  # days
_UNBOUNDED = 10_000  # columns, to measure a table without the width of the terminal


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_json_time))


def _json_time(value: object) -> str:
    assert isinstance(value, datetime), f"{type(value).__name__} is no JSON"
    return value.isoformat(timespec="seconds")


def print_either(value: object, text: str, *, as_json: bool) -> None:
    """Print a value as JSON, or else a text about it."""
    if as_json:
        print_json(value)
    else:
        print_line(text)


def print_line(text: str = "", **style: bool | str) -> None:
    """Print a line on stdout in a style of click, if stdout is a terminal."""
    click.echo(paint(text, **style))


def paint(text: str, **style: bool | str) -> str:
    """Return text in a style of click, if stdout is a terminal and NO_COLOR is not set."""
    if not style or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return click.style(text, **style)  # type: ignore[arg-type]


def print_answer(answer: Answer, form: Format, *, as_json: bool, zone: tzinfo) -> None:
    """Print the answer of recall, search or list."""
    if as_json:
        print_json(serializers.answer(answer, form))
        return
    for place, result in enumerate(answer.memories, start=1):
        _print_result(place, result, form, zone)
    for item in answer.degraded:
        click.echo(f"Without the {item.branch} branch: {item.reason}", err=True)
    if answer.note:
        print_line(answer.note)
    if answer.cursor:
        print_line(f"There is more: --cursor {answer.cursor}", dim=True)


_TERMS = ("rrf", "own", "signals", "neighbours", "nearness", "relevance", "redundancy", "confidence")
_EXPLAINED = (
    *("#", "score", "dense", "cosine", "evid.", "keyword", "idf held", "evid."),
    *("RRF", "own", "signals", "nbrs", "nearness", "relevance", "repeats", "confidence"),
)


def print_explanation(answer: Answer) -> None:
    """Print every term of every score as a table, then the counts of the branches and the weights of the words.

    Of several questions, one after the other.
    """
    places = list(enumerate(answer.memories, start=1))
    numbers = sorted({number for result in answer.memories for number in result.queries})
    if not numbers:
        _print_terms([(place, result, result.explain) for place, result in places], answer.explain)
    for number in numbers:
        print_line(f"question {number + 1}", bold=True)
        results = [(place, result, result.explain) for place, result in places if number in result.queries]
        of_question = [(place, result, (terms or {}).get(str(number))) for place, result, terms in results]
        _print_terms(of_question, (answer.explain or {}).get(str(number)))


def _print_terms(results: Sequence[tuple[int, Recalled, Any]], explain: Any) -> None:
    rows = []
    for place, result, explained in results:
        terms: Mapping[str, Any] = explained or {}
        score = "" if result.score is None else result.score
        branches = _branch_cells(terms.get("branches", {}))
        rows.append([place, score, *branches, *(terms.get(name, "") for name in _TERMS)])
    print_table(_EXPLAINED, rows)
    for name, value in (explain or {}).items():
        if isinstance(value, dict) and name == "lexemes":
            weighed = sorted(value.items(), key=lambda entry: -entry[1]["weight"])
            words = [f"{lexeme} {of['weight']:g} (in {of['documents']:,})" for lexeme, of in weighed]
            print_line(f"words: {', '.join(words)}")
        elif isinstance(value, dict):
            print_line(f"{name}: " + ", ".join(f"{key} {entry}" for key, entry in value.items()))


def _branch_cells(found: Mapping[str, Any]) -> Iterator[object]:
    for branch in ("dense", "keyword"):
        of = found.get(branch)
        yield from (of["rank"], of["raw"], of["evidence"]) if isinstance(of, dict) else ("", "", "")


def one_line(place: int, memory: Memory, zone: tzinfo | None) -> str:
    """Return number, end of the id, in a zone the time, and the beginning of a memory, as wide as the terminal."""
    when = "" if zone is None else f"{time_text(memory.when, zone):<14}  "
    head = f"{place:>2}. {short(memory.id)}  {when}"
    text = " ".join(memory.content.split())
    room = max(shutil.get_terminal_size((100, 24)).columns - len(head), 20)
    return paint(head, dim=True) + (text if len(text) <= room else f"{text[: room - 1]}…")


def print_memory(memory: Memory, zone: tzinfo) -> None:
    """Print a whole memory: its text, then every field that is set."""
    print_line(memory.content)
    print_line()
    for name, value in serializers.record(memory).items():
        if name not in ("content", "when") and value != "":
            shown = getattr(memory, name, value)
            text = _both_times(shown, zone) if isinstance(shown, datetime) else _plain(value)
            _print_field(name, text)


def print_details(item: MemoryDetails, zone: tzinfo) -> None:
    """Print a whole memory, its relations and the number of its revisions."""
    print_memory(item.memory, zone)
    for relation in item.relations:
        out = relation.from_id == item.memory.id
        other = relation.to_id if out else relation.from_id
        text = f"{relation.type} {other}" if out else f"{other} {relation.type} this"
        _print_field("relation", f"{text} ({relation.strength:g})")
    if item.revisions:
        _print_field("revisions", f"{item.revisions} (`folklore history {item.memory.id}`)")
    print_stale(item.stale, zone)


def print_revision(item: Revision, after: Mapping[str, Any], zone: tzinfo) -> None:
    """Print a change: time, action, author, and how the changed fields differ from the values `after` it."""
    reason = f": {item.reason}" if item.reason else ""
    undoes = "" if item.undoes is None else f" of the change of revision {item.undoes}"
    change = f"{item.action}{undoes} by {item.author}, from revision {item.revision}{reason}"
    print_line(f"{time_text(item.changed_at, zone)}  {change}")
    for name, value in item.before.items():
        if name not in SHOWN and (value is None or name in FIELDS):  # the action says when it was forgotten
            continue
        old, new = (_plain("" if side is None else side) for side in (value, after.get(name)))
        if name == "content" or "\n" in old + new:
            _print_difference(name, old, new)
        else:
            _print_field(name, f"{old or '(none)'} → {new or '(none)'}")


def _print_difference(name: str, old: str, new: str) -> None:
    """Print the removed and added lines of a text, each change with one line around it."""
    lines = unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]  # after the two lines of file names
    for place, line in enumerate(changed):
        colour = {"-": "red", "+": "green"}.get(line[:1])
        sign, text = line[:1], line[1:]
        _print_field("" if place else name, paint(f"{sign} {text}", **({"fg": colour} if colour else {})))


def _print_field(name: str, text: str) -> None:
    print_line(f"{_INDENT}{paint(f'{name:<16}', dim=True)}{text}")


def print_rows(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> None:
    """Print rows as a table of these columns, or of those that have a value in any row."""
    shown = columns or [name for name in rows[0] if any(row[name] not in (None, "", []) for row in rows)]
    print_table(shown, [["" if row.get(name) in (None, {}) else row[name] for name in shown] for row in rows])


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers are aligned right, and only a terminal limits the width.

    If the longest words are wider than the terminal, each row is printed field by field: a folded number misleads.
    """
    from rich import box, console, measure, table, text  # 80 ms

    grid = table.Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        number = any(isinstance(row[place], int | float) for row in rows)
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        # As Text: rich reads brackets in a string as markup, hides them, and fails on markup that it does not know.
        grid.add_row(*(text.Text(_cell(value)) for value in row))
    terminal = sys.stdout.isatty()
    out = console.Console(width=None if terminal else 200, highlight=False)
    unfolded = measure.Measurement.get(out, out.options.update(width=_UNBOUNDED), grid).minimum
    if unfolded <= out.width or not terminal:
        out.print(grid)
    else:
        _print_fields(columns, rows)


def _print_fields(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for row in rows:
        print_line()
        for name, value in zip(columns, row, strict=True):
            if value != "":
                _print_field(name, _cell(value))
    print_line()


@contextmanager
def progress(work: str, total: int | None) -> Iterator[Report]:
    """Show a bar on stderr for the length of a block: yield the function that moves it.

    `total` is the number of steps, None if it is unknown. Nothing is shown if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _text: None
        return
    from rich import console, progress  # 80 ms, and only for a terminal

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[text]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(work, total=total, text="")

        yield lambda done, text: bar.update(task, completed=done, text=text)


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return time_text(value, value.tzinfo or UTC)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in value.items())
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _print_result(place: int, result: Recalled, form: Format, zone: tzinfo) -> None:
    memory = result.memory
    score = " ".join(f"{part}" for part in (result.match, result.score) if part is not None)
    by = memory.superseded_by
    if form == "ids":
        replaced = f", superseded by {by}" if by else ""
        print_line(f"{memory.id}  {score}".rstrip() + replaced + (", stale" if result.stale else ""))
        return
    replaced = f", superseded by {short(by)}" if by else ""
    head = f"{place:>2}. {paint(score, fg='green')}{'  ' if score else ''}"
    answers = f"  (question {', '.join(str(number + 1) for number in result.queries)})" if result.queries else ""
    elsewhere = " · elsewhere" if result.elsewhere else ""
    print_line(head + paint(_headline(memory, zone) + elsewhere, bold=True) + answers)
    if form == "detailed":
        print_memory(memory, zone)
    else:
        lines = list(_wrapped(memory.content))
        for line in lines[:_LINES_SHOWN]:
            print_line(_INDENT + line)
        rest = f", {len(memory.content):,} characters in all" if len(lines) > _LINES_SHOWN else ""
        print_line(f"{_INDENT}{short(memory.id)} by {memory.author}{rest}{replaced}", dim=True)
    for id_ in result.contradicts:
        print_line(f"{_INDENT}contradicts {short(id_)}", fg="yellow")
    print_stale(result.stale, zone)
    for item in result.variants:
        differs = f": {item.differs}" if item.differs else ""
        print_line(
            f"{_INDENT}variant {short(item.id)} by {item.author}, {time_text(item.when, zone)}{differs}", dim=True
        )
    print_line()


def print_stale(files: Sequence[Stale], zone: tzinfo) -> None:
    """Print the files that changed after a memory about them, each with time and commit."""
    for file in files:
        what = f"moved to {file.moved_to}" if file.moved_to else "vanished" if file.vanished else "changed"
        commit = file.commit[:_COMMIT]
        print_line(f"{_INDENT}stale: {file.path} {what} {time_text(file.since, zone)}, commit {commit}", fg="yellow")


def _headline(memory: Memory, zone: tzinfo) -> str:
    kind = memory.kind if memory.kind != DEFAULT_KIND else None
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    parts = (memory.namespace, time_text(memory.when, zone), memory.source, kind, tags)
    return " · ".join(part for part in parts if part)


def _wrapped(text: str) -> Iterator[str]:
    width = max(min(shutil.get_terminal_size((100, 24)).columns, 120) - len(_INDENT), 20)
    for line in text.splitlines():
        # A long word (a path, a URL) stays whole, so that it can be copied; white space at the start belongs to code.
        yield from textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]


def row_of(item: object, attributes: Mapping[str, str], zone: tzinfo) -> dict[str, Any]:
    """Return attributes of an item by their names in the output, ids and sequences as JSON has them; times in a zone,
    which `print_json` and `print_rows` write each in its form.
    """
    return {name: _shown(getattr(item, attribute), zone) for name, attribute in attributes.items()}


def _shown(value: object, zone: tzinfo) -> object:
    if isinstance(value, datetime):
        return value.astimezone(zone)
    if isinstance(value, tuple):
        return [_shown(entry, zone) for entry in value]
    return str(value) if isinstance(value, UUID) else value


def time_text(moment: datetime, zone: tzinfo, now: datetime | None = None) -> str:
    """Return a time for people: as a distance from now, or with --utc, and beyond a year, as date and time."""
    if shows_utc():
        return absolute_time(moment, zone)
    return _distance(moment.astimezone(zone), now or datetime.now(zone)) or absolute_time(moment, zone)


def shows_utc() -> bool:
    """Return True if the command was given --utc."""
    context = click.get_current_context(silent=True)
    return context is not None and bool((context.find_root().obj or {}).get("utc"))


def _both_times(moment: datetime, zone: tzinfo) -> str:
    """Return date and time, and the distance from now if it is shown."""
    absolute, text = absolute_time(moment, zone), time_text(moment, zone)
    return absolute if text == absolute else f"{absolute} ({text})"


def absolute_time(moment: datetime, zone: tzinfo) -> str:
    """Return date and time in a zone, to the minute."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")


def _distance(moment: datetime, now: datetime) -> str | None:
    """Return the distance from now in the largest unit that fits, in days of the calendar; None beyond a year."""
    seconds = abs((now - moment).total_seconds())
    days = abs((now.astimezone(moment.tzinfo).date() - moment.date()).days)
    if days > _YEAR:
        return None
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        count, unit = int(seconds // _MINUTE), "minute"
    elif days == 0 or seconds < 12 * _HOUR:
        count, unit = int(seconds // _HOUR), "hour"
    elif days == 1:
        return "tomorrow" if moment > now else "yesterday"
    elif days <= 30:
        count, unit = days, "day"
    else:
        count, unit = round(days / (_YEAR / 12)), "month"
    counted = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"in {counted}" if moment > now else f"{counted} ago"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
