"""Entities a text names: people, organisations, tools, projects, files, symbols, codes and hosts, found by rules.

No model and no dictionary of the world: capital letters, shapes of code and a short list of tools. The rules would
rather miss a name than invent one, since every entity is offered as a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from folklore.text.entities import lexicon
from folklore.text.entities.proper_nouns import find_proper_nouns
from folklore.text.identifiers import MAX_TEXT, Identifier, find_identifiers
from folklore.text.tags import MAX_LENGTH, spell

Kind = Literal["person", "organisation", "tool", "project", "file", "symbol", "code", "host"]
Sighting = tuple[int, Kind, str]

MAX_ENTITIES = 32
_LOWER_WORDS = re.compile(r"[a-z][a-z0-9]*+(?:[.+#-]+[a-z0-9]++)*+[+#]*+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?([\w.-]+)(?::\d+)?(?:/([\w.-]+)/([\w.-]+))?", re.ASCII)
_REPOSITORY = re.compile(r"(repo:)?([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*)(#\d+)?", re.ASCII)
_TICKET = re.compile(
    r"([A-Z][A-Z0-9]*)(?:-[A-Z0-9]+)*-\d+|[A-Z]{1,8}\d{2,}[A-Z]?|\d\d[A-Z]\d\d|[A-Z0-9_]*ERR(?:OR)?_[A-Z0-9_]+",
    re.ASCII,
)
_STRUCTURED = re.compile(r"[^\W_][._:>#]+[^\W_]|[a-z\d][A-Z]|[A-Z]{2}[a-z]|[+]{2}$")
_SURNAME = re.compile(r"(?:Mc|Mac|Le|La|De|Di|Du|O)[A-Z][a-z]+")
_LINE_NUMBERS = re.compile(r"(?::\d+)+$")


@dataclass(frozen=True, slots=True)
class Entity:
    """Something a text names. `slug` is the name as it stands in a tag."""

    kind: Kind
    name: str
    slug: str

    @property
    def tag(self) -> str:
        """The tag under which memories that name it are found: `entity:person:sarah`."""
        return f"entity:{self.kind}:{self.slug}"


def find_entities(text: str, limit: int = MAX_ENTITIES) -> tuple[Entity, ...]:
    """Find what a text names, each once, in order of appearance.

    Looks at the first 32,000 characters, in time linear in them.
    """
    text = text[:MAX_TEXT]
    lower_words = frozenset(_LOWER_WORDS.findall(text))
    nouns = find_proper_nouns(text, lower_words)
    sightings: list[Sighting] = [(noun.start, noun.kind, noun.name) for noun in nouns]
    sightings += ((text.find(word), "tool", lexicon.TOOLS[word]) for word in lower_words & lexicon.TOOLS.keys())
    within_nouns = frozenset(place for noun in nouns for place in range(noun.start, noun.end))
    sightings += (sighting for sighting in _technical(text) if sighting[0] not in within_nouns)
    sightings += _repositories(text)
    found: dict[str, Entity] = {}
    for kind, name in dict.fromkeys((kind, name) for _, kind, name in sorted(sightings)):
        entity = Entity(kind, name, spell(name))
        if entity.slug and len(entity.tag) <= MAX_LENGTH:
            found.setdefault(entity.tag, entity)
        if len(found) >= limit:
            break
    return tuple(found.values())[:limit]


def _technical(text: str) -> Iterator[Sighting]:
    """Find hosts, files, symbols and codes among the identifiers."""
    for identifier in find_identifiers(text):
        low = identifier.text.lower()
        if low in lexicon.TOOLS:
            yield identifier.start, "tool", lexicon.TOOLS[low]
        elif identifier.shape == "url":
            yield from _of_url(identifier)
        elif identifier.shape == "path" and (name := _file(identifier.text)):
            yield identifier.start, "file", name
        elif identifier.shape == "symbol" and _is_symbol(identifier.text):
            yield identifier.start, "symbol", identifier.text
        elif identifier.shape == "code" and _is_code(identifier.text):
            yield identifier.start, "code", identifier.text


def _of_url(identifier: Identifier) -> Iterator[Sighting]:
    found = _URL.match(unquote(identifier.text))
    if not found or "." not in found[1]:
        return
    host = found[1].lower().removeprefix("www.").strip(".")
    yield identifier.start, "host", host
    if host in lexicon.HOSTS_OF_PROJECTS and found[3]:
        yield identifier.start, "project", f"{found[2]}/{found[3].removesuffix('.git')}"


def _file(path: str) -> str:
    """Give a path without its line numbers and leading marks; a single folder is no file."""
    name = _LINE_NUMBERS.sub("", path).removeprefix("./").removeprefix("~").strip("/")
    return name if "." in name or "/" in name or not path.startswith("/") else ""


def _is_symbol(text: str) -> bool:
    """Say whether a name tells code from prose by itself: `pool.acquire`, `max_size`, `getUser`; not `print`."""
    return (
        text[0] not in "@$."
        and _STRUCTURED.search(text) is not None
        and not _SURNAME.fullmatch(text)
        and text.lower() not in lexicon.ORGANISATIONS
    )


def _is_code(text: str) -> bool:
    found = _TICKET.fullmatch(text)
    return found is not None and (found[1] or "").lower() not in lexicon.NO_CODES


def _repositories(text: str) -> Iterator[Sighting]:
    """Find `owner/name` where something says that it is a repository: a word before it, `repo:` or `#12`."""
    if "/" not in text:
        return
    place, before = 0, ""
    for word in text.split():
        place = text.index(word, place)
        if "/" in word and len(word) <= MAX_LENGTH:
            found = _REPOSITORY.fullmatch(word.strip("()[]{}<>\"'`,;:.!?"))
            if found and (found[1] or found[3] or before.lower() in lexicon.REPOSITORY_WORDS):
                yield place, "project", found[2].removesuffix(".git")
        place, before = place + len(word), word.strip(":,`")
