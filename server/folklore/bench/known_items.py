"""Questions that exactly one memory answers, by construction: pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folklore.bench.sources import Noted, some

# A word, or a part of an identifier: camelCase, snake_case and digits come apart.
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_BEGINNING = 5  # letters in which two forms of a word agree: "connect", "connection"
_SHORTEST = 4
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A question, and the place of the one memory that answers it."""

    category: str
    query: str
    answer: int


class Uniqueness:
    """Which memories hold a text."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._starts: list[int] = []
        length = 0
        for text in contents:
            self._starts.append(length)
            length += len(_plain(text)) + 1
        self._all = "\0".join(map(_plain, contents))
        self._holding: dict[str, set[int]] = {}
        for place, text in enumerate(contents):
            for part in parts(text):
                self._holding.setdefault(_begin(part), set()).add(place)

    def is_only_in(self, text: str, place: int) -> bool:
        """Whether the text stands in that memory and in no other, whatever its case and white space."""
        sought = _plain(text)
        first = self._all.find(sought)
        if first < 0 or bisect_right(self._starts, first) - 1 != place:
            return False
        end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._all)
        return self._all.find(sought, end) < 0

    def are_only_in(self, words: Sequence[str], place: int) -> bool:
        """Whether no other memory holds all these words, as words or as parts of identifiers, in any form."""
        holding = [self._holding.get(_begin(word), set()) for word in words]
        return bool(holding) and set.intersection(*holding) == {place}


def parts(text: str) -> list[str]:
    """The words of a text, identifiers taken apart, in lower case."""
    return [part.casefold() for part in _PARTS.findall(text)]


def known_items(notes: Sequence[Noted], most: int | None) -> list[KnownItem]:
    """At most `most` questions of each category, evenly spread."""
    unique = Uniqueness([note.content for note in notes])
    found: dict[str, dict[str, KnownItem]] = {}
    for place, note in enumerate(notes):
        for category, query in _questions(note, place, unique):
            found.setdefault(category, {}).setdefault(query.casefold(), KnownItem(category, query, place))
    return [item for _, items in sorted(found.items()) for item in some(list(items.values()), most)]


def _questions(note: Noted, place: int, unique: Uniqueness) -> Iterator[tuple[str, str]]:
    known = note.known_by[:_LONGEST]
    if note.kind == "version":
        name = note.content.partition(" ")[0]
        yield from _if_only("version", [f"{name} {known}", known], place, unique)
    elif note.kind == "requirement":
        yield from _if_only("version", [known], place, unique)
    elif note.kind == "file":
        name = known.rpartition("/")[2]
        yield from _if_only("path", [known], place, unique)
        yield from _if_only("file name", [name], place, unique)
    elif note.kind == "message":
        yield from _if_only("error message", [known], place, unique)
    elif note.kind == "sqlstate":
        yield from _if_only("error code", [known, f"SQLSTATE {known}"], place, unique)
    else:
        is_code = note.kind == "constant" and re.search(r"ERR|CODE|STATUS|HTTP_[0-9]", known)
        yield from _if_only("error code" if is_code else "identifier", [known], place, unique)
        own = parts(known)
        # The end of a name, and its middle where there is one: what somebody remembers of it.
        for asked in {tuple(own[1:]), tuple(own[1:-1])} if len(own) > 2 else set():
            if len(asked) > 1 and len("".join(asked)) >= _SHORTEST and unique.are_only_in(asked, place):
                yield "part of an identifier", " ".join(asked)


def _if_only(category: str, texts: Sequence[str], place: int, unique: Uniqueness) -> Iterator[tuple[str, str]]:
    for text in texts:
        if len(text) >= _SHORTEST and unique.is_only_in(text, place):
            yield category, text


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _begin(part: str) -> str:
    return part[:_BEGINNING]
