"""Search: the memories that answer a question, or the newest ones, with filters as chips.

The whole state is in the address. A script asks for the same answer while a person types, as HTML of the same template.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup, escape
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response

from folklore.contract.filters import ALL, FiltersRequest
from folklore.contract.memories import ListRequest
from folklore.contract.recall import RecallRequest, SearchRequest
from folklore.contract.requests import Returns
from folklore.model import Answer, Memory, Recalled
from folklore.server.console.visit import Visit, is_from_script, number_of
from folklore.text.amounts import amount
from folklore.text.query.highlight import highlight_pattern, highlighted, words_of
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import line, snippet

# Results that are shown at first, and those of one ranking, which chips count and "show more" shows.
_PAGE = 20
_MOST = 100
# Characters of a result: a text up to so many is shown whole, a longer one by a line and a snippet.
_WHOLE = 320
_LINE = 120
_SNIPPET = 480
# Chips of a group, without those that are on.
_CHIPS = 8
_TIMES: Mapping[str, timedelta] = {
    "last 24 hours": timedelta(hours=24),
    "last 7 days": timedelta(days=7),
    "last 30 days": timedelta(days=30),
    "last 365 days": timedelta(days=365),
}
# Conditions that chips set, by their names in the address; those that may have several values.
_CHIP_FILTERS = ("project", "kind", "tag", "author", "time")
_SEVERAL = ("kind", "tag")
# Conditions that the form sets.
_FORM_FILTERS = ("file", "source", "as_of", "superseded", "pinned")


@dataclass(frozen=True, slots=True)
class Question:
    """The question of an address: its text, its conditions by their names in the address, the number of results."""

    text: str = ""
    exact: bool = False
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int = _PAGE
    cursor: str | None = None

    @classmethod
    def of(cls, query: QueryParams) -> Question:
        """Read an address. Raises InvalidInput."""
        filters: dict[str, tuple[str, ...]] = {}
        for name in (*_CHIP_FILTERS, *_FORM_FILTERS):
            values = [value for value in query.getlist(name) if value.strip()]
            if values and name in _SEVERAL:
                filters[name] = tuple(dict.fromkeys(values))
            elif values:
                filters[name] = (values[-1],)
        return cls(
            text=query.get("q", ""),
            exact=bool(query.get("exact")),
            filters=filters,
            limit=number_of(query.get("limit") or str(_PAGE), "limit", 1, _MOST),
            cursor=query.get("cursor") or None,
        )

    @property
    def literal(self) -> bool:
        """True if exact words are asked for: by the switch, or by quotation marks around the text."""
        text = self.text.strip()
        return self.exact or (len(text) > 2 and text[0] == text[-1] == '"')

    @property
    def has_question(self) -> bool:
        """True with a text; else the newest memories are listed."""
        return self.text.strip() not in ("", "*")

    def first(self, name: str) -> str | None:
        """Return the value of a condition, or None."""
        values = self.filters.get(name)
        return values[0] if values else None

    @property
    def has_form_filters(self) -> bool:
        """True with a condition that the form has among its further ones."""
        return any(name in self.filters for name in ("time", *_FORM_FILTERS))

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of this question, without the number of its results."""
        parameters: dict[str, Any] = {
            "q": self.text,
            "exact": "1" if self.exact else None,
        }
        for name in (*_CHIP_FILTERS, *_FORM_FILTERS):
            parameters[name] = self.filters.get(name)
        return parameters

    def toggled(self, name: str, value: str) -> dict[str, Any]:
        """Return the parameters with a condition added, or removed if it is on."""
        values = self.filters.get(name, ())
        if value in values:
            values = tuple(other for other in values if other != value)
        elif name in _SEVERAL:
            values = (*values, value)
        else:
            values = (value,)
        return {**self.parameters(), name: values}

    def request(self) -> Returns[Answer]:
        """Return the request, always for as many results as a page can show. Raises InvalidInput."""
        where = {
            "namespaces": (self.first("project") or ALL,),
            "filters": self._filters(),
            "limit": _MOST,
        }
        if not self.has_question:
            return ListRequest(cursor=self.cursor, **where)
        if self.literal:
            return SearchRequest(query=self.text, counted=False, **where)
        return RecallRequest(query=self.text, counted=False, **where)

    def _filters(self) -> FiltersRequest:
        tags = self.filters.get("tag", ())
        values: dict[str, Any] = {
            "kinds": self.filters.get("kind", ()),
            "tags": tags,
            # Without a tag the default: a recall without any condition takes a quarter of the time.
            "tag_mode": "all" if tags else "any",
            "author": self.first("author"),
            "time": self.first("time"),
            "paths": self.filters.get("file", ()),
            "source_prefix": self.first("source"),
            "as_of": self.first("as_of"),
            "include_superseded": "superseded" in self.filters,
            "pinned": True if "pinned" in self.filters else None,
        }
        return FiltersRequest.model_validate(values)


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition that a click adds or removes; `count` is the number of the counted results that it has."""

    label: str
    count: int
    address: str
    on: bool


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result: its head, which is the link, and the part of a longer text that matches most."""

    result: Recalled
    head: Markup
    body: Markup | None


async def show(visit: Visit) -> Response:
    """Show the page, or to the script its answer alone: HTML of the same template, in JSON."""
    question = Question.of(visit.query)
    answer = await visit.call(question.request())
    values: dict[str, Any] = {
        "question": question,
        "groups": _groups(visit, question, answer),
        "results": _shown(question, answer.memories[: question.limit]),
        "counted": len(answer.memories),
        "more": _more(visit, question, answer),
        "degraded": answer.degraded,
        "note": answer.note or "",
        "summary": _summary(question, answer),
    }
    if not is_from_script(visit.request):
        return await visit.render("search.html", **values)
    html = await visit.fragment("search_answer.html", **values)
    return JSONResponse({"html": html, "summary": values["summary"]})


def _more(visit: Visit, question: Question, answer: Answer) -> tuple[str, str] | None:
    """Return the words and the address of a link to more: the rest of the ranking, then older ones of a list."""
    parameters = question.parameters() | {"limit": _MOST}
    if len(answer.memories) > question.limit:
        url = visit.url("search", **parameters, cursor=question.cursor)
        return "Show more", url
    if question.has_question or answer.cursor is None:
        return None
    return "Older", visit.url("search", **parameters, cursor=answer.cursor)


def _summary(question: Question, answer: Answer) -> str:
    total = len(answer.memories)
    if not total:
        if question.has_question or question.filters:
            return "No memory matches."
        return "Nothing has been stored yet."

    if question.has_question:
        first = order = "best"
        further = "a narrower question finds others"
    else:
        first = "newest"
        order = "older" if question.cursor else first
        further = "there are older ones"

    count = min(total, question.limit)
    if answer.cursor is not None:
        if count < total:
            further = "there are more"
        return f"The {order} {count} memories; {further}."
    if count < total:
        return f"The {order} {count} of {total} memories."
    return f"{amount(total, 'memory')}, {first} first."


# Results


def _shown(question: Question, results: Iterable[Recalled]) -> Iterator[ResultView]:
    """Yield results with the words of the question marked, when the template reads them."""
    text = question.text if question.has_question else ""
    words = words_of(text)
    pattern = highlight_pattern(text) if question.has_question else None
    return (_shown_result(result, words, pattern) for result in results)


def _shown_result(
    result: Recalled, words: QuestionWords, pattern: re.Pattern[str] | None
) -> ResultView:
    text = result.memory.content
    if len(text) <= _WHOLE:
        return ResultView(result, marked(text, pattern), None)
    head = line(result.memory.summary or text[:_WHOLE], words, _LINE)
    body = snippet(text, words, _SNIPPET)
    return ResultView(result, marked(head, pattern), marked(body, pattern))


def marked(text: str, pattern: re.Pattern[str] | None) -> Markup:
    """Return a text as HTML, in which matches of the pattern are marked."""
    html = Markup("")
    for part, matches in highlighted(text, pattern):
        if matches:
            html += Markup("<mark>{}</mark>").format(part)
        else:
            html += escape(part)
    return html


# Chips


def _groups(
    visit: Visit, question: Question, answer: Answer
) -> list[tuple[str, list[Chip]]]:
    """Return the groups of chips with counts among the results; a searched project may have none of them."""
    now = datetime.now(UTC)
    counts: dict[str, Counter[str]] = {name: Counter() for name in _CHIP_FILTERS}
    counts["project"].update(dict.fromkeys(answer.searched, 0))
    for result in answer.memories:
        memory = result.memory
        counts["project"][memory.namespace] += 1
        counts["kind"][memory.kind] += 1
        counts["tag"].update(memory.tags)
        counts["author"].update(_writers(memory))
        for name, age in _TIMES.items():
            if memory.when >= now - age:
                counts["time"][name] += 1
    return [
        (name, _chips(visit, question, name, counts[name])) for name in _CHIP_FILTERS
    ]


def _writers(memory: Memory) -> set[str]:
    """Return whom the filter `author` finds a memory by."""
    return {memory.author, memory.changed_by or memory.author}


def _chips(
    visit: Visit, question: Question, name: str, counts: Counter[str]
) -> list[Chip]:
    on = question.filters.get(name, ())
    if name == "time":
        candidates = list(_TIMES)
    else:
        candidates = [value for value, _ in counts.most_common(_CHIPS + len(on))]
    off = [value for value in candidates if value not in on]
    chips = []
    for value in (*on, *off[:_CHIPS]):
        url = visit.url("search", **question.toggled(name, value))
        chips.append(Chip(value, counts[value], url, value in on))
    return chips
