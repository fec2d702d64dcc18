"""Search: the memories that answer a question, or the newest ones, with filters as chips.

The whole state is in the address. A script asks for the same answer while a person types, as HTML of the same template.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response

from folklore.errors import InvalidInput
from folklore.http.console.page_routes import get
from folklore.http.console.visit import Visit, is_from_script
from folklore.memory.context import ALL
from folklore.memory.requests import FiltersRequest, ListRequest, RecallRequest, Returns, SearchRequest
from folklore.model import Answer, Memory, Recalled
from folklore.text.query.highlight import highlight_pattern, highlighted, words_of
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import line, snippet

if TYPE_CHECKING:
    from markupsafe import Markup

# Results that are shown at first, and those of one ranking, which chips count and "show more" shows.
_PAGE, _MOST = 20, 100
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
            _limit(query.get("limit") or str(_PAGE)),
            query.get("cursor") or None,
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

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of this question, without the number of its results."""
        given = {name: self.given.get(name) for name in (*_CHIP_FILTERS, *_FORM_FILTERS)}
        return {"q": self.text, "exact": "1" if self.exact else None, **given}

    def toggled(self, name: str, value: str) -> dict[str, Any]:
        """Return the parameters with a condition added, or removed if it is on."""
        values = self.given.get(name, ())
        if value in values:
            values = tuple(other for other in values if other != value)
        else:
            values = (*values, value) if name in _SEVERAL else (value,)
        return {**self.parameters(), name: values}

    def request(self) -> Returns[Answer]:
        """Return the request, always for as many results as a page can show. Raises InvalidInput."""
        project = self.first("project")
        where = {"namespaces": (ALL,) if project is None else (project,), "filters": self._filters(), "limit": _MOST}
        if not self.has_question:
            return ListRequest(cursor=self.cursor, **where)
        request = SearchRequest if self.literal else RecallRequest
        return request(query=self.text, counted=False, **where)

    def _filters(self) -> FiltersRequest:
        as_of = self.first("as_of")
        try:
            moment = None if as_of is None else datetime.fromisoformat(as_of.strip())
        except ValueError:
            raise InvalidInput("as_of", "must be a date such as 2025-06-30.") from None
        tags = self.given.get("tag", ())
        values: dict[str, Any] = {
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


def _limit(given: str) -> int:
    if given.isascii() and given.isdecimal() and len(given) <= 9 and 1 <= int(given) <= _MOST:
        return int(given)
    raise InvalidInput("limit", f"must be between 1 and {_MOST}, got {given[:20]!r}.")


async def show(visit: Visit) -> Response:
    """Show the page, or to the script its answer alone: HTML of the same template, in JSON."""
    asked = Asked.of(visit.query)
    answer = await visit.call(asked.request())
    values: dict[str, Any] = {
        "asked": asked,
        "groups": _groups(visit, asked, [item.memory for item in answer.memories], answer.searched),
        "results": _shown(asked, answer.memories[: asked.limit]),
        "counted": len(answer.memories),
        "more": _more(visit, asked, answer),
        "degraded": answer.degraded,
        "note": answer.note or "",
        "summary": _summary(asked, answer),
    }
    if not is_from_script(visit.request):
        return await visit.render("search.html", **values)
    return JSONResponse({"html": await visit.fragment("search_answer.html", **values), "summary": values["summary"]})


def _more(visit: Visit, asked: Asked, answer: Answer) -> tuple[str, str] | None:
    """Return the words and the address of a link to more: the rest of the ranking, then older ones of a list."""
    if len(answer.memories) > asked.limit:
        return "Show more", visit.url("search", **asked.parameters(), limit=_MOST, cursor=asked.cursor)
    if asked.has_question or answer.cursor is None:
        return None
    return "Older", visit.url("search", **asked.parameters(), limit=_MOST, cursor=answer.cursor)


def _summary(asked: Asked, answer: Answer) -> str:
    """Return the number of results as a sentence."""
    total, shown = len(answer.memories), min(len(answer.memories), asked.limit)
    if not total:
        return "No memory matches." if asked.has_question or asked.given else "Nothing has been stored yet."
    order = "best" if asked.has_question else "older" if asked.cursor else "newest"
    if answer.cursor is not None:
        further = "a narrower question finds others" if asked.has_question else "there are older ones"
        return f"The {order} {shown} memories; {further if shown == total else 'there are more'}."
    if shown < total:
        return f"The {order} {shown} of {total} memories."
    return f"{total} {'memory' if total == 1 else 'memories'}, {'best' if asked.has_question else 'newest'} first."


# Results


def _shown(asked: Asked, results: Iterable[Recalled]) -> Iterator[Shown]:
    """Yield results with the words of the question marked, when the template reads them."""
    words = words_of(asked.text if asked.has_question else "")
    pattern = highlight_pattern(asked.text) if asked.has_question else None
    return (_shown_result(item, words, pattern) for item in results)


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
