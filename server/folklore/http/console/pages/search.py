"""Search: the memories that answer a question, or the newest ones, with filters as chips.

The whole state is in the address. A script asks for the same answer while a person types, as HTML of the same template.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams
from starlette.responses import Response

from folklore.errors import InvalidInput
from folklore.http.console.page_routes import get
from folklore.http.console.visit import Visit, is_from_script
from folklore.memory.context import ALL
from folklore.memory.requests import FiltersRequest, ListRequest, RecallRequest, Returns, SearchRequest
from folklore.model import Answer, Memory, Recalled
from folklore.text.highlight import highlight_pattern, highlighted, words_of
from folklore.text.question import QuestionWords
from folklore.text.snippet import line, snippet

if TYPE_CHECKING:
    from markupsafe import Markup

# Results of a page, of one step of "show more", and at most.
_PAGE, _STEP, _MOST = 20, 100, 1_000
# Characters of a result: a text up to so many is shown whole, a longer one by a line and a snippet.
_WHOLE, _LINE, _SNIPPET = 320, 120, 480
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
class Asked:
    """The question of an address: its text, its conditions by their names in the address, the number of results."""

    text: str = ""
    exact: bool = False
    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int = _PAGE
    cursor: str | None = None
    before: int = 0

    @classmethod
    def of(cls, query: QueryParams) -> Asked:
        """Read an address. Raises InvalidInput."""
        given: dict[str, tuple[str, ...]] = {}
        for name in (*_CHIP_FILTERS, *_FORM_FILTERS):
            values = tuple(dict.fromkeys(value for value in query.getlist(name) if value.strip()))
            if values:
                given[name] = values if name in _SEVERAL else values[-1:]
        return cls(
            query.get("q", ""),
            bool(query.get("exact")),
            given,
            _number(query, "limit", 1, _PAGE),
            query.get("cursor") or None,
            _number(query, "before", 0, 0),
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
        return self.given[name][0] if name in self.given else None

    @property
    def has_form_filters(self) -> bool:
        """True with a condition that the form has among its further ones."""
        return any(name in self.given for name in ("time", *_FORM_FILTERS))

    def parameters(self) -> dict[str, object]:
        """Return the parameters of this question, without the number of its results."""
        given = {name: self.given.get(name) for name in (*_CHIP_FILTERS, *_FORM_FILTERS)}
        return {"q": self.text, "exact": "1" if self.exact else None, **given}

    def toggled(self, name: str, value: str) -> dict[str, object]:
        """Return the parameters with a condition added, or removed if it is on."""
        values = self.given.get(name, ())
        if value in values:
            values = tuple(other for other in values if other != value)
        else:
            values = (*values, value) if name in _SEVERAL else (value,)
        return {**self.parameters(), name: values}

    def request(self, limit: int, cursor: str | None) -> Returns[Answer]:
        """Return the request for one page. Raises InvalidInput."""
        project = self.first("project")
        names = (ALL,) if project is None else (project,)
        filters = self._filters()
        if not self.has_question:
            return ListRequest(namespaces=names, filters=filters, limit=limit, cursor=cursor)
        if self.literal:
            return SearchRequest(
                query=self.text, namespaces=names, filters=filters, limit=limit, cursor=cursor, counted=False
            )
        return RecallRequest(
            query=self.text, namespaces=names, filters=filters, limit=limit, cursor=cursor, counted=False
        )

    def _filters(self) -> FiltersRequest:
        as_of = self.first("as_of")
        try:
            moment = None if as_of is None else datetime.fromisoformat(as_of.strip())
        except ValueError:
            raise InvalidInput("as_of", "must be a date such as 2025-06-30.") from None
        tags = self.given.get("tag", ())
        values: dict[str, object] = {
            "kinds": self.given.get("kind", ()),
            "tags": tags,
            # Without a tag the default: a recall without any condition takes a quarter of the time.
            "tag_mode": "all" if tags else "any",
            "author": self.first("author"),
            "time": self.first("time"),
            "paths": self.given.get("file", ()),
            "source_prefix": self.first("source"),
            "as_of": moment,
            "include_superseded": "superseded" in self.given,
            "pinned": True if "pinned" in self.given else None,
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
class Shown:
    """A result: its head, which is the link, and the part of a longer text that matches most."""

    result: Recalled
    head: Markup
    body: Markup | None


def _number(query: QueryParams, name: str, least: int, default: int) -> int:
    given = query.get(name, "") or str(default)
    if given.isascii() and given.isdecimal() and len(given) <= 9 and least <= int(given) <= _MOST:
        return int(given)
    raise InvalidInput(name, f"must be between {least} and {_MOST:,}, got {given[:20]!r}.")


async def show(visit: Visit) -> Response:
    """Show the page, or to the script its answer alone: HTML of the same template, in JSON."""
    asked = Asked.of(visit.query)
    values = await _values(visit, asked)
    if not is_from_script(visit.request):
        return visit.render("search.html", **values)
    template = "search_results.html" if asked.cursor else "search_answer.html"
    return visit.json({"html": visit.fragment(template, **values), "summary": values["summary"]})


async def _values(visit: Visit, asked: Asked) -> dict[str, object]:
    results, last = await _results(visit, asked)
    shown = asked.before + len(results)
    return {
        "asked": asked,
        "groups": _groups(visit, asked, [item.memory for item in results], last.searched),
        "results": _shown(asked, results),
        "first": asked.before + 1,
        "more": _more(visit, asked, shown, last.cursor),
        "degraded": last.degraded,
        "note": last.note or "",
        "summary": _summary(asked, shown, more=last.cursor is not None),
    }


async def _results(visit: Visit, asked: Asked) -> tuple[list[Recalled], Answer]:
    """Return the results up to the limit of the address, page by page, and the last page."""
    results: list[Recalled] = []
    cursor = asked.cursor
    while True:
        left = asked.limit - len(results)
        page = await visit.call(asked.request(min(left, _STEP) if asked.has_question else left, cursor))
        results += page.memories
        cursor = page.cursor
        if cursor is None or len(results) >= asked.limit:
            return results, page


def _more(visit: Visit, asked: Asked, shown: int, cursor: str | None) -> Mapping[str, str] | None:
    """Return the address of a longer page, and that of the further results alone, for the script."""
    if cursor is None or shown >= _MOST:
        return None
    limit = min(shown + _STEP, _MOST)
    further = {**asked.parameters(), "limit": limit - shown, "cursor": cursor, "before": shown}
    return {
        "page": visit.url("search", **{**asked.parameters(), "limit": limit}),
        "answer": visit.url("search", **further),
    }


def _summary(asked: Asked, shown: int, *, more: bool) -> str:
    """Return the number of results as a sentence."""
    if not shown:
        return "No memory matches." if asked.has_question or asked.given else "Nothing has been stored yet."
    noun = "memory" if shown == 1 else "memories"
    if not asked.has_question:
        return f"The newest {shown:,} {noun}; there are more." if more else f"{shown:,} {noun}, newest first."
    return f"The best {shown:,} {noun}; there are more." if more else f"{shown:,} {noun}, best first."


# Results


def _shown(asked: Asked, results: Iterable[Recalled]) -> list[Shown]:
    """Return results with the words of the question marked."""
    words = words_of(asked.text if asked.has_question else "")
    pattern = highlight_pattern(asked.text) if asked.has_question else None
    return [_shown_result(item, words, pattern) for item in results]


def _shown_result(result: Recalled, words: QuestionWords, pattern: re.Pattern[str] | None) -> Shown:
    text = result.memory.content
    if len(text) <= _WHOLE:
        return Shown(result, marked(text, pattern), None)
    head = line(result.memory.summary or text[:_WHOLE], words, _LINE)
    return Shown(result, marked(head, pattern), marked(snippet(text, words, _SNIPPET), pattern))


def marked(text: str, pattern: re.Pattern[str] | None) -> Markup:
    """Return a text as HTML, in which matches of the pattern are marked."""
    from markupsafe import Markup, escape

    parts = highlighted(text, pattern)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if matches else escape(part) for part, matches in parts
    )


# Chips


def _groups(
    visit: Visit, asked: Asked, memories: Sequence[Memory], searched: Sequence[str]
) -> list[tuple[str, list[Chip]]]:
    """Return the groups of chips with counts among these memories; a searched project may have none of them."""
    now = datetime.now(UTC)
    counts: Mapping[str, Counter[str]] = {
        "project": Counter({**dict.fromkeys(searched, 0), **Counter(memory.namespace for memory in memories)}),
        "kind": Counter(memory.kind for memory in memories),
        "tag": Counter(tag for memory in memories for tag in memory.tags),
        "author": Counter(memory.author for memory in memories),
        "time": Counter(name for memory in memories for name, age in _TIMES.items() if memory.when >= now - age),
    }
    return [(name, _chips(visit, asked, name, counts[name])) for name in _CHIP_FILTERS]


def _chips(visit: Visit, asked: Asked, name: str, counts: Counter[str]) -> list[Chip]:
    on = asked.given.get(name, ())
    off = [value for value, _ in counts.most_common(_CHIPS + len(on)) if value not in on][:_CHIPS]
    if name == "time":
        off = [value for value in _TIMES if value not in on]
    return [
        Chip(value, counts.get(value, 0), visit.url("search", **asked.toggled(name, value)), value in on)
        for value in (*on, *off)
    ]


ROUTES = [get("/search", show)]
