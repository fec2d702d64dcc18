"""Output of memories: the results of an answer, whole memories, their changes and how texts differ."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

import click

from folklore.cli import screen
from folklore.cli.output import (
    FIELD_WIDTH,
    INDENT,
    UNBOUNDED,
    lines_of,
    print_field,
    print_json,
    print_table,
    time_text,
    wants_json,
)
from folklore.cli.screen import paint, print_line
from folklore.contract.compact import Format
from folklore.contract.ids import short
from folklore.contract.memories import MemoryDetails, record_json
from folklore.contract.recall import answer_json
from folklore.model import (
    DEFAULT_KIND,
    FIELDS,
    VISIBLE,
    Answer,
    Memory,
    Recalled,
    Revision,
    Stale,
    Variant,
)
from folklore.text.dates.byline import byline
from folklore.text.dates.distance import absolute_time
from folklore.text.dates.zones import in_zone
from folklore.text.difference import Part, changed_lines

_LINES_SHOWN = 8
_TEXT_WIDTH = 120  # columns of a text that are easy to read
_COMMIT = 12  # digits by which a commit is recognised
# Columns of a revision that follow from the other revisions, or that only programs read.
_UNPRINTED = {*FIELDS, "changed_by", "changed_at"}
# Styles of the lines of a difference, by their signs.
_SIGNS: Mapping[str, Mapping[str, str]] = {
    "-": {"fg": "red"},
    "+": {"fg": "green"},
    " ": {},
}
# How a note names one of several questions.
_QUESTION = re.compile(r"queries\[(\d+)\]")
# Terms of a score in the table of an explanation, and the heads of all its columns, the last of which are of these.
_TERMS = ("rrf", "relevance", "redundancy", "confidence")
_EXPLANATION_HEADS = (
    *("#", "score", "dense", "cosine", "keyword", "idf held"),
    *("RRF", "relevance", "repeats", "confidence"),
)
_Numbered = tuple[int, "Recalled"]  # a result with its number in the answer


def print_answer(
    answer: Answer, form: Format, *, zone: tzinfo, question: str | None = None
) -> None:
    """Print the answer of recall, search or list, as JSON with --json; `question` is None for a list.

    The results of a question are grouped by their namespaces, if these are several, with numbers in order of rank; on a
    terminal its words are highlighted.
    """
    if wants_json():
        print_json(answer_json(answer, form))
        return
    words: re.Pattern[str] | None = None
    if question is not None and screen.has_styles():
        from folklore.text.query.highlight import highlight_pattern

        words = highlight_pattern(question)
    groups = defaultdict[str, list[_Numbered]](list)
    for number, result in enumerate(answer.memories, start=1):
        is_grouped = form != "ids" and question is not None
        heading = result.memory.namespace if is_grouped else ""
        groups[heading].append((number, result))

    has_headings = len(groups) > 1
    for heading, results in groups.items():
        if has_headings:
            _print_heading(heading, results)
        for number, result in results:
            if form == "ids":
                _print_id(result)
                continue
            headline = _headline(result, zone, has_heading=has_headings)
            _print_result(number, headline, result, form, zone, words)
    _print_remarks(answer)


def _print_heading(namespace: str, results: Sequence[_Numbered]) -> None:
    if all(result.elsewhere for _, result in results):
        namespace += " · elsewhere"
    print_line(namespace, fg="cyan", bold=True)


def _print_remarks(answer: Answer) -> None:
    for degraded in answer.degraded:
        click.echo(f"Without the {degraded.branch} branch: {degraded.reason}", err=True)
    if answer.note:
        print_line(_QUESTION.sub(_option_of_question, answer.note))
    if answer.cursor:
        print_line(f"There is more: --cursor {answer.cursor}", dim=True)


def _option_of_question(match: re.Match[str]) -> str:
    """Return how one of several questions was given on the command line."""
    if match[1] == "0":
        return "QUERY"
    return f"--also {match[1]}"


# Explanations of scores


def print_explanation(answer: Answer) -> None:
    """Print every term of every score as a table, then the counts of the branches and the weights of the words.

    Of several questions, one after the other.
    """
    questions = set[int]()
    for result in answer.memories:
        questions.update(result.queries)
    if not questions:
        _print_terms(answer, None)
    for question in sorted(questions):
        print_line(f"question {question + 1}", bold=True)
        _print_terms(answer, question)


def _print_terms(answer: Answer, question: int | None) -> None:
    """Print the explanation of an answer, or the part about one of several questions."""
    rows: list[list[object]] = []
    relevances = []
    for number, result in enumerate(answer.memories, start=1):
        if question is not None and question not in result.queries:
            continue
        terms = _of_question(result.explain, question)
        score = "" if result.score is None else result.score
        branches = _branch_cells(terms.get("branches", {}))
        others = [terms.get(name, "") for name in _TERMS]
        rows.append([number, score, *branches, *others])
        parts = terms.get("parts", {}).items()
        shares = _joined((name, f"{share:.4f}") for name, share in parts)
        relevances.append(f"{number}. relevance: {shares}")
    print_table(_EXPLANATION_HEADS, rows)
    for line in relevances:
        print_line(line)
    for name, value in _of_question(answer.explain, question).items():
        if not isinstance(value, dict):
            continue
        if name == "lexemes":
            print_line(f"words: {_weights(value)}")
        else:
            print_line(f"{name}: {_joined(value.items())}")


def _of_question(explain: Any, question: int | None) -> Mapping[str, Any]:
    """Return the part of an explanation that is about one of several questions, or all of it."""
    if explain is not None and question is not None:
        explain = explain.get(str(question))
    return explain or {}


def _branch_cells(ranks: Mapping[str, Any]) -> list[object]:
    """Return rank and value in each branch, as the columns 3 to 6 of an explanation have them."""
    cells: list[object] = []
    for branch in ("dense", "keyword"):
        hit = ranks.get(branch)
        if isinstance(hit, dict):
            cells += [hit["rank"], hit["raw"]]
        else:
            cells += ["", ""]
    return cells


def _weights(lexemes: Mapping[str, Any]) -> str:
    """Return the lexemes with their weights, the heaviest first."""
    weights = []
    for lexeme, entry in lexemes.items():
        text = f"{entry['weight']:g} (in {entry['documents']:,})"
        weights.append((-entry["weight"], lexeme, text))
    weights.sort(key=lambda entry: entry[0])
    return _joined((lexeme, text) for _, lexeme, text in weights)


def _joined(pairs: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


# Results


def _print_id(result: Recalled) -> None:
    line = f"{result.memory.id}  {_score(result)}".rstrip()
    if result.memory.superseded_by:
        line += f", superseded by {result.memory.superseded_by}"
    if result.stale:
        line += ", stale"
    print_line(line)


def _score(result: Recalled) -> str:
    parts = [result.match, result.score]
    return " ".join(str(part) for part in parts if part is not None)


def _headline(result: Recalled, zone: tzinfo, *, has_heading: bool) -> str:
    """Return the first line of a result; under a heading its namespace is printed already."""
    memory = result.memory
    parts = [time_text(memory.when, zone), memory.source]
    if memory.kind != DEFAULT_KIND:
        parts.append(memory.kind)
    parts.append(" ".join(f"#{tag}" for tag in memory.tags))
    if not has_heading:
        parts.insert(0, memory.namespace)
        if result.elsewhere:
            parts.append("elsewhere")
    headline = " · ".join(part for part in parts if part)
    if result.queries:
        questions = ", ".join(str(index + 1) for index in result.queries)
        headline += f"  (question {questions})"
    return headline


def _print_result(
    number: int,
    headline: str,
    result: Recalled,
    form: Format,
    zone: tzinfo,
    words: re.Pattern[str] | None,
) -> None:
    score = _score(result)
    head = f"{number:>2}. {score}  " if score else f"{number:>2}. "
    first, *others = lines_of(screen.visible(headline), len(head))
    print_line(head[:4] + paint(head[4:], fg="green") + paint(first, bold=True))
    for line in others:
        print_line(INDENT + line, bold=True)

    if form == "detailed":
        print_memory(result.memory, zone, words)
    else:
        _print_text(result.memory, words, zone)
    for older in result.replaces:
        day = in_zone(older.when, zone).date()
        print_line(f"{INDENT}replaces {short(older.id)} of {day}", fg="yellow")
    for id_ in result.contradicts:
        print_line(f"{INDENT}contradicts {short(id_)}", fg="yellow")
    print_stale(result.stale, zone)
    for variant in result.variants:
        print_line(INDENT + _variant_text(variant, zone), dim=True)
    print_line()


def _variant_text(variant: Variant, zone: tzinfo) -> str:
    by = byline(variant.author, variant.changed_by, None, zone)
    when = time_text(variant.when, zone)
    text = f"variant {short(variant.id)} by {by}, {when}"
    if variant.differs:
        text += f": {variant.differs}"
    return text


def _print_text(memory: Memory, words: re.Pattern[str] | None, zone: tzinfo) -> None:
    """Print the beginning of a memory, and who wrote it."""
    width = min(screen.columns(), _TEXT_WIDTH) - len(INDENT)
    lines = list(screen.wrapped(memory.content, max(width, 20)))
    for line in lines[:_LINES_SHOWN]:
        print_line(INDENT + _highlighted(line, words))
    by = byline(memory.author, memory.changed_by, memory.changed_at, zone)
    end = f"{INDENT}{short(memory.id)} by {by}"
    if len(lines) > _LINES_SHOWN:
        end += f", {len(memory.content):,} characters in all"
    if memory.superseded_by:
        end += f", superseded by {short(memory.superseded_by)}"
    print_line(end, dim=True)


def _highlighted(line: str, words: re.Pattern[str] | None) -> str:
    text = screen.visible(line)
    if words is None:
        return text
    from folklore.text.query.highlight import highlighted

    painted = ""
    for part, matches in highlighted(text, words):
        painted += paint(part, fg="red", bold=True) if matches else part
    return painted


def print_stale(files: Sequence[Stale], zone: tzinfo) -> None:
    """Print the files that changed after a memory about them, each with time and commit."""
    for file in files:
        if file.moved_to:
            change = f"moved to {file.moved_to}"
        elif file.vanished:
            change = "vanished"
        else:
            change = "changed"
        when = f"{time_text(file.since, zone)}, commit {file.commit[:_COMMIT]}"
        print_line(f"{INDENT}stale: {file.path} {change} {when}", fg="yellow")


# Whole memories


def print_memory(
    memory: Memory, zone: tzinfo, words: re.Pattern[str] | None = None
) -> None:
    """Print a whole memory: its text, in which what matches `words` is highlighted, then every field that is set."""
    for line in lines_of(memory.content, 0):
        print_line(_highlighted(line, words))
    print_line()
    for name, value in record_json(memory).items():
        if name in ("content", "when") or value == "":
            continue
        raw = getattr(memory, name, value)
        if isinstance(raw, datetime):
            print_field(name, _both_times(raw, zone))
        else:
            print_field(name, _plain(value))


def _both_times(moment: datetime, zone: tzinfo) -> str:
    """Return a time as date and time, and as a distance where people read that."""
    text = time_text(moment, zone)
    exact = absolute_time(moment, zone)
    if text == exact:
        return text
    return f"{exact} ({text})"


def print_details(details: MemoryDetails, zone: tzinfo) -> None:
    """Print a whole memory, its relations and the number of its revisions."""
    memory = details.memory
    print_memory(memory, zone)
    for relation in details.relations:
        if relation.from_id == memory.id:
            text = f"{relation.type} {relation.to_id}"
        else:
            text = f"{relation.from_id} {relation.type} this"
        print_field("relation", f"{text} ({relation.strength:g})")
    if details.revisions:
        hint = f"`folklore history {memory.id}`"
        print_field("revisions", f"{details.revisions} ({hint})")
    print_stale(details.stale, zone)


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


# Changes


def print_revision(
    revision: Revision, following: Mapping[str, Any], zone: tzinfo
) -> None:
    """Print a change: time, action, author, and how the changed fields differ from the values `following` it."""
    action: str = revision.action
    if revision.undoes_store:
        action += " (takes back the store)"
    elif revision.undoes is not None:
        action += f" (takes back revision {revision.undoes})"
    line = f"{time_text(revision.changed_at, zone)}  {action} by {revision.author}"
    line += f", from revision {revision.revision}"
    if revision.reason:
        line += f": {revision.reason}"
    print_line(line)
    for name, value in revision.before.items():
        is_hidden = name not in VISIBLE and (value is None or name in _UNPRINTED)
        if value == following.get(name) or is_hidden:
            continue  # an import states every field; the action says when a memory was forgotten
        _print_change(name, _plain(value), _plain(following.get(name)))


def _print_change(name: str, old: str, new: str) -> None:
    if name == "content" or "\n" in old + new:
        print_difference(old, new, name)
    else:
        print_field(name, f"{old or '(none)'} → {new or '(none)'}")


def print_difference(old: str, new: str, name: str | None = None) -> None:
    """Print the removed and added lines of a text, each change with one line around it; `name` is that of a field."""
    indent = len(INDENT) if name is None else FIELD_WIDTH
    for sign, parts in changed_lines(old, new):
        style = _SIGNS[sign]
        for line in _folded(parts, indent + 2):
            text = f"{paint(sign, **style)} {_painted(line, style)}"
            if name is None:
                screen.echo(INDENT + text)
            else:
                print_field(name, text)
                name = ""


def _painted(parts: Sequence[Part], style: Mapping[str, str]) -> str:
    """Return a line in a style, with what differs in it underlined."""
    text = ""
    for part, differs in parts:
        if differs:
            text += paint(part, **style, bold=True, underline=True)
        else:
            text += paint(part, **style)
    return text


def _folded(parts: Sequence[Part], indent: int) -> Iterator[Sequence[Part]]:
    """Yield the lines of a text in parts, on a terminal folded to what is left of its width `indent` columns on."""
    width = UNBOUNDED
    if screen.is_terminal():
        width = max(screen.columns() - indent, 20)
    line: list[Part] = []
    used = 0
    for text, differs in parts:
        for token in re.findall(r"\s+|\S+", screen.visible(text)):
            size = screen.cells(token)
            if line and used + size > width:
                yield line
                line = []
                used = 0
            if line and line[-1][1] == differs:
                line[-1] = (line[-1][0] + token, differs)
            else:
                line.append((token, differs))
            used += size
    yield line
