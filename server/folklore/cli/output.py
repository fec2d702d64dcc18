"""Output of commands: JSON for programs, short wrapped text for people, colour and progress on a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from folklore.cli import screen
from folklore.cli.screen import paint as paint, print_line as print_line
from folklore.contract.compact import Format, beginning
from folklore.contract.ids import short
from folklore.contract.memories import record_json
from folklore.contract.recall import answer_json
from folklore.model import DEFAULT_KIND, FIELDS, VISIBLE
from folklore.text.dates.byline import byline
from folklore.text.dates.distance import absolute_time, distance
from folklore.text.dates.zones import in_zone
from folklore.text.difference import Part, changed_lines

if TYPE_CHECKING:
    from folklore.contract.health import Check
    from folklore.contract.memories import MemoryDetails
    from folklore.model import Answer, Memory, Recalled, Revision, Stale

_LINES_SHOWN = 8
_INDENT = "    "
_COMMIT = 12  # digits by which a commit is recognised
_FIELD_WIDTH = 20
_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "yellow"}
_CHECK_INDENT = 19
# Columns of a revision that follow from the other revisions, or that only programs read.
_UNPRINTED = {*FIELDS, "changed_by", "changed_at"}
_UNBOUNDED = 10_000  # columns, to measure a table without the width of the terminal
_QUESTION = re.compile(r"queries\[(\d+)\]")


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=_json_time))


def _json_time(value: object) -> str:
    assert isinstance(value, datetime), f"{type(value).__name__} is no JSON"
    return value.isoformat(timespec="seconds")


def wants_json() -> bool:
    """Return True if the present command was called with `--json`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().obj.get("json"))


def print_either(value: object, text: str | Callable[[], None]) -> None:
    """Print a value as JSON, or without `--json` a text about it, which a function may print."""
    if wants_json():
        print_json(value)
    elif callable(text):
        text()
    elif text:
        print_line(text)


def print_answer(
    answer: Answer, form: Format, *, zone: tzinfo, question: str | None = None
) -> None:
    """Print the answer of recall, search or list.

    The results of a question are grouped by their namespaces, if these are several, with numbers in order of rank; on a
    terminal its words are highlighted.
    """
    if wants_json():
        print_json(answer_json(answer, form))
        return
    if question is not None and screen.has_styles():
        from folklore.text.query.highlight import highlight_pattern

        words = highlight_pattern(question)
    else:
        words = None
    groups = _groups(answer, by_namespace=form != "ids" and question is not None)
    for namespace, results in groups.items():
        if len(groups) > 1:
            if all(result.elsewhere for _, result in results):
                suffix = " · elsewhere"
            else:
                suffix = ""
            print_line(namespace + suffix, fg="cyan", bold=True)
        for place, result in results:
            _print_result(
                place, result, form, zone, words, under_heading=len(groups) > 1
            )
    _print_remarks(answer)


def _print_remarks(answer: Answer) -> None:
    for item in answer.degraded:
        click.echo(f"Without the {item.branch} branch: {item.reason}", err=True)
    if answer.note:  # several questions are named as they were given
        print_line(
            _QUESTION.sub(
                lambda of: "QUERY" if of[1] == "0" else f"--also {of[1]}", answer.note
            )
        )
    if answer.cursor:
        print_line(f"There is more: --cursor {answer.cursor}", dim=True)


def _groups(
    answer: Answer, *, by_namespace: bool
) -> dict[str, list[tuple[int, Recalled]]]:
    """Return the results with their places, by namespace or all under one name."""
    groups: dict[str, list[tuple[int, Recalled]]] = {}
    for place, result in enumerate(answer.memories, start=1):
        groups.setdefault(result.memory.namespace if by_namespace else "", []).append(
            (place, result)
        )
    return groups


_TERMS = ("rrf", "relevance", "redundancy", "confidence")
_EXPLAINED = (
    *("#", "score", "dense", "cosine", "keyword", "idf held"),
    *("RRF", "relevance", "repeats", "confidence"),
)


def print_explanation(answer: Answer) -> None:
    """Print every term of every score as a table, then the counts of the branches and the weights of the words.

    Of several questions, one after the other.
    """
    numbers: Sequence[int | None] = sorted(
        {number for result in answer.memories for number in result.queries}
    )
    for number in numbers or [None]:
        results = [
            (place, result, _of_question(result.explain, number))
            for place, result in enumerate(answer.memories, start=1)
            if number is None or number in result.queries
        ]
        if number is not None:
            print_line(f"question {number + 1}", bold=True)
        _print_terms(results, _of_question(answer.explain, number))


def _of_question(explain: Any, number: int | None) -> Mapping[str, Any]:
    """Return the part of an explanation that is about one of several questions, or all of it."""
    return (explain if number is None else (explain or {}).get(str(number))) or {}


def _print_terms(
    results: Sequence[tuple[int, Recalled, Mapping[str, Any]]],
    explain: Mapping[str, Any],
) -> None:
    rows = []
    for place, result, terms in results:
        score = "" if result.score is None else result.score
        branches = _branch_cells(terms.get("branches", {}))
        rows.append(
            [place, score, *branches, *(terms.get(name, "") for name in _TERMS)]
        )
    print_table(_EXPLAINED, rows)
    for place, _, terms in results:
        print_line(
            f"{place}. relevance: {_joined((name, f'{n:.4f}') for name, n in terms.get('parts', {}).items())}"
        )
    for name, value in explain.items():
        if isinstance(value, dict):
            print_line(
                f"words: {_weights(value)}"
                if name == "lexemes"
                else f"{name}: {_joined(value.items())}"
            )


def _weights(lexemes: Mapping[str, Any]) -> str:
    weighed = sorted(lexemes.items(), key=lambda entry: -entry[1]["weight"])
    return _joined(
        (word, f"{of['weight']:g} (in {of['documents']:,})") for word, of in weighed
    )


def _joined(pairs: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _branch_cells(ranks: Mapping[str, Any]) -> Iterator[object]:
    for branch in ("dense", "keyword"):
        of = ranks.get(branch)
        yield from (of["rank"], of["raw"]) if isinstance(of, dict) else ("", "")


def in_one_line(text: str) -> str:
    """Return the beginning of a text, without line breaks."""
    return beginning(text).replace("\n", " ")


def one_line(place: int, memory: Memory, zone: tzinfo | None) -> str:
    """Return number, end of the id, in a zone the time, and the beginning of a memory, as wide as the terminal."""
    when = "" if zone is None else f"{time_text(memory.when, zone):<14}  "
    head = f"{place:>2}. {short(memory.id)}  {when}"
    text = screen.visible(" ".join(memory.content.split()))
    return paint(head, dim=True) + screen.cut(
        text, max(screen.columns() - len(head), 20)
    )


def print_memory(
    memory: Memory, zone: tzinfo, words: re.Pattern[str] | None = None
) -> None:
    """Print a whole memory: its text, in which what matches `words` is highlighted, then every field that is set."""
    lines = (
        screen.wrapped(memory.content, screen.columns())
        if screen.is_terminal()
        else [memory.content]
    )
    for line in lines:
        print_line(_highlighted(line, words))
    print_line()
    for name, value in record_json(memory).items():
        if name not in ("content", "when") and value != "":
            raw = getattr(memory, name, value)
            if isinstance(raw, datetime):
                text = time_text(raw, zone)
            else:
                text = _plain(value)
            if isinstance(raw, datetime) and text != (
                absolute := absolute_time(raw, zone)
            ):
                text = f"{absolute} ({text})"
            _print_field(name, text)


def print_details(item: MemoryDetails, zone: tzinfo) -> None:
    """Print a whole memory, its relations and the number of its revisions."""
    print_memory(item.memory, zone)
    for relation in item.relations:
        out = relation.from_id == item.memory.id
        if out:
            other = relation.to_id
        else:
            other = relation.from_id
        if out:
            text = f"{relation.type} {other}"
        else:
            text = f"{other} {relation.type} this"
        _print_field("relation", f"{text} ({relation.strength:g})")
    if item.revisions:
        _print_field(
            "revisions", f"{item.revisions} (`folklore history {item.memory.id}`)"
        )
    print_stale(item.stale, zone)


def print_revision(item: Revision, following: Mapping[str, Any], zone: tzinfo) -> None:
    """Print a change: time, action, author, and how the changed fields differ from the values `following` it."""
    reason = f": {item.reason}" if item.reason else ""
    if item.undoes is None:
        undoes = ""
    else:
        undoes = (
            f" (takes back {f'revision {item.undoes}' if item.undoes else 'the store'})"
        )
    change = (
        f"{item.action}{undoes} by {item.author}, from revision {item.revision}{reason}"
    )
    print_line(f"{time_text(item.changed_at, zone)}  {change}")
    for name, value in item.before.items():
        hidden = name not in VISIBLE and (value is None or name in _UNPRINTED)
        if value == following.get(name) or hidden:
            continue  # an import states every field; the action says when a memory was forgotten
        _print_change(name, _plain(value), _plain(following.get(name)))


def _print_change(name: str, old: str, new: str) -> None:
    if name == "content" or "\n" in old + new:
        print_difference(old, new, name)
    else:
        _print_field(name, f"{old or '(none)'} → {new or '(none)'}")


def print_difference(old: str, new: str, name: str | None = None) -> None:
    """Print the removed and added lines of a text, each change with one line around it; `name` is that of a field."""
    indent = len(_INDENT) if name is None else _FIELD_WIDTH
    for sign, parts in changed_lines(old, new):
        colour = {"-": "red", "+": "green"}.get(sign)
        style: dict[str, bool | str] = {"fg": colour} if colour else {}
        strong: dict[str, bool | str] = {**style, "bold": True, "underline": True}
        for line in _folded(parts, indent + 2):
            text = "".join(
                paint(part, **(strong if changed else style)) for part, changed in line
            )
            signed = f"{paint(sign, **style)} {text}"
            if name is None:
                screen.echo(_INDENT + signed)
            else:
                _print_field(name, signed)
                name = ""


def _folded(parts: Sequence[Part], indent: int) -> Iterator[Sequence[Part]]:
    """Yield the lines of a text in parts, on a terminal folded to what is left of its width `indent` columns on."""
    width = max(screen.columns() - indent, 20) if screen.is_terminal() else _UNBOUNDED
    line: list[Part] = []
    used = 0
    for text, changed in parts:
        for token in re.findall(r"\s+|\S+", screen.visible(text)):
            if line and used + screen.cells(token) > width:
                yield line
                line = []
                used = 0
            if line and line[-1][1] == changed:
                line[-1] = (line[-1][0] + token, changed)
            else:
                line.append((token, changed))
            used += screen.cells(token)
    yield line


def _print_field(name: str, text: str) -> None:
    head = f"{_INDENT}{paint(f'{name:<{_FIELD_WIDTH - len(_INDENT)}}', dim=True)}"
    folds = screen.is_terminal() and "\x1b" not in text
    for line in (
        screen.wrapped(text, screen.columns() - _FIELD_WIDTH) if folds else [text]
    ):
        screen.echo(f"{head}{line}")
        head = " " * _FIELD_WIDTH


def print_rows(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()
) -> None:
    """Print rows as a table of these columns, or of those that have a value in any row."""
    header = columns or [
        name for name in rows[0] if any(row[name] not in (None, "", []) for row in rows)
    ]
    print_table(
        header,
        [
            ["" if row.get(name) in (None, {}) else row[name] for name in header]
            for row in rows
        ],
    )


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
    for place, name in enumerate(columns):
        number = any(isinstance(row[place], int | float) for row in rows)
        grid.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        # As Text: rich reads brackets in a string as markup, hides them, and fails on markup that it does not know.
        grid.add_row(*(Text(screen.visible(_cell(value))) for value in row))
    terminal = screen.is_terminal()
    out = Console(width=None if terminal else 200, highlight=False)
    unfolded = Measurement.get(out, out.options.update(width=_UNBOUNDED), grid).minimum
    if unfolded <= out.width or not terminal:
        with out.capture() as printed:
            out.print(grid)
        screen.echo(printed.get().removesuffix("\n"))
    else:
        _print_fields(columns, rows)


def _print_fields(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for row in rows:
        print_line()
        for name, value in zip(columns, row, strict=True):
            if value != "":
                _print_field(name, _cell(value))
    print_line()


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return time_text(value, value.tzinfo or UTC)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(
            f"{name.replace('_', ' ')} {number:,}" for name, number in value.items()
        )
    if isinstance(value, float):
        return f"{value:.4f}"
    return str(value)


def _print_result(
    place: int,
    result: Recalled,
    form: Format,
    zone: tzinfo,
    words: re.Pattern[str] | None,
    *,
    under_heading: bool,
) -> None:
    """Print a result; `under_heading`: its namespace is printed above it."""
    memory = result.memory
    score = " ".join(
        f"{part}" for part in (result.match, result.score) if part is not None
    )
    if form == "ids":
        if memory.superseded_by:
            replaced = f", superseded by {memory.superseded_by}"
        else:
            replaced = ""
        print_line(
            f"{memory.id}  {score}".rstrip()
            + replaced
            + (", stale" if result.stale else "")
        )
        return
    head = f"{place:>2}. {score}{'  ' if score else ''}"
    _print_title(
        head, screen.visible(_headline(result, zone, under_heading=under_heading))
    )
    if form == "detailed":
        print_memory(memory, zone, words)
    else:
        _print_text(memory, words, zone)
    for older in result.replaces:
        day = in_zone(older.when, zone).date()
        print_line(f"{_INDENT}replaces {short(older.id)} of {day}", fg="yellow")
    for id_ in result.contradicts:
        print_line(f"{_INDENT}contradicts {short(id_)}", fg="yellow")
    print_stale(result.stale, zone)
    for item in result.variants:
        variant = f"variant {short(item.id)} by {byline(item.author, item.changed_by, None, zone)}, {time_text(item.when, zone)}"
        print_line(_INDENT + ": ".join(filter(None, (variant, item.differs))), dim=True)
    print_line()


def print_stale(files: Sequence[Stale], zone: tzinfo) -> None:
    """Print the files that changed after a memory about them, each with time and commit."""
    for file in files:
        if file.moved_to:
            what = f"moved to {file.moved_to}"
        else:
            what = "vanished" if file.vanished else "changed"
        commit = file.commit[:_COMMIT]
        print_line(
            f"{_INDENT}stale: {file.path} {what} {time_text(file.since, zone)}, commit {commit}",
            fg="yellow",
        )


def _print_title(head: str, title: str) -> None:
    lines = (
        list(screen.wrapped(title, screen.columns() - len(head)))
        if screen.is_terminal()
        else [title]
    )
    print_line(f"{head[:4]}{paint(head[4:], fg='green')}{paint(lines[0], bold=True)}")
    for line in lines[1:]:
        print_line(_INDENT + line, bold=True)


def _print_text(memory: Memory, words: re.Pattern[str] | None, zone: tzinfo) -> None:
    lines = list(
        screen.wrapped(
            memory.content, max(min(screen.columns(), 120) - len(_INDENT), 20)
        )
    )  # easy to read
    for line in lines[:_LINES_SHOWN]:
        print_line(_INDENT + _highlighted(line, words))
    if len(lines) > _LINES_SHOWN:
        rest = f", {len(memory.content):,} characters in all"
    else:
        rest = ""
    if memory.superseded_by:
        replaced = f", superseded by {short(memory.superseded_by)}"
    else:
        replaced = ""
    by = byline(memory.author, memory.changed_by, memory.changed_at, zone)
    print_line(f"{_INDENT}{short(memory.id)} by {by}{rest}{replaced}", dim=True)


def _highlighted(line: str, words: re.Pattern[str] | None) -> str:
    text = screen.visible(line)
    if words is None:
        return text
    from folklore.text.query.highlight import highlighted

    parts = highlighted(text, words)
    return "".join(
        paint(part, fg="red", bold=True) if matches else part for part, matches in parts
    )


def _headline(result: Recalled, zone: tzinfo, *, under_heading: bool) -> str:
    memory = result.memory
    kind = memory.kind if memory.kind != DEFAULT_KIND else None
    tags = " ".join(f"#{tag}" for tag in memory.tags)
    parts = [time_text(memory.when, zone), memory.source, kind, tags]
    if not under_heading:
        parts = [memory.namespace, *parts, "elsewhere" if result.elsewhere else None]
    if result.queries:
        answers = (
            f"  (question {', '.join(str(number + 1) for number in result.queries)})"
        )
    else:
        answers = ""
    return " · ".join(part for part in parts if part) + answers


def row_of(item: object, names: str, zone: tzinfo) -> dict[str, Any]:
    """Return attributes of an item by their names in the output, `name` or `name=attribute`: ids and sequences as JSON
    has them, times in a zone, which `print_json` and `print_rows` write each in its form.
    """
    pairs = [name.partition("=") for name in names.split()]
    return {
        name: _shown(getattr(item, attribute or name), zone)
        for name, _, attribute in pairs
    }


def _shown(value: object, zone: tzinfo) -> object:
    if isinstance(value, datetime):
        return in_zone(value, zone)
    if isinstance(value, tuple):
        return [_shown(entry, zone) for entry in value]
    return str(value) if isinstance(value, UUID) else value


def time_text(moment: datetime, zone: tzinfo, now: datetime | None = None) -> str:
    """Return a time for people: as a distance from now, or with --utc, and beyond a year, as date and time."""
    context = click.get_current_context(silent=True)
    if context is not None and (context.find_root().obj or {}).get("utc"):
        return absolute_time(moment, zone)
    near = distance(in_zone(moment, zone), now or datetime.now(zone))
    return near or absolute_time(moment, zone)


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def print_checks(checks: Sequence[Check]) -> None:
    """Print each check in one line, with its hint below."""
    for check in checks:
        status = paint(f"{check.status:<8}", fg=_COLOURS[check.status])
        first, *rest = (
            screen.wrapped(check.detail, screen.columns() - _CHECK_INDENT)
            if screen.is_terminal()
            else [check.detail]
        )
        print_line(f"{status}{check.name:<10} {first}")
        for line in rest:
            print_line(f"{'':<{_CHECK_INDENT}}{line}")
        if check.hint:
            print_line(f"{'':<{_CHECK_INDENT}}→ {check.hint}")
