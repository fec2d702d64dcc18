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

from folklore.text import lexicon
from folklore.text.identifiers import MAX_TEXT, Identifier, find_identifiers
from folklore.text.tags import MAX_LENGTH, spell

Kind = Literal["person", "organisation", "tool", "project", "file", "symbol", "code", "host"]

MAX_ENTITIES = 32
_CAPITALISED = r"(?:[A-Z]['’])?[A-ZÀ-ÖØ-ÞĀŁŚŠŽΑ-ΩА-Я](?:[^\W\d_]+|(?=\W))(?:['’-][A-ZÀ-ÖØ-Þ][^\W\d_]+)*"
_NAMES = re.compile(
    rf"(?<![\w@/.\\#$-]){_CAPITALISED}(?: (?:(?:van|von|de|der|den|la|da|bin) ){{0,2}}{_CAPITALISED}){{0,3}}(?![\w/\\])"
)
_LOWER_WORDS = re.compile(r"(?<![\w./@-])[a-z][a-z0-9]+(?:[.+#-][a-z0-9+#]+)*")
_NEXT_WORD = re.compile(r"(?:['’]s)?[ ,]+([a-z]+)")
_WORD_BEFORE = re.compile(r"([\w:]+)\s+\Z")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?([\w.-]+)(?::\d+)?(?:/([\w.-]+)/([\w.-]+))?", re.ASCII)
_REPOSITORY = re.compile(
    r"(?<![\w/.@-])(repo:)?([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*[A-Za-z0-9])(#\d+)?(?![\w/])", re.ASCII
)
_TICKET = re.compile(
    r"([A-Z][A-Z0-9]*)(?:-[A-Z0-9]+)*-\d+|[A-Z]{1,8}\d{2,}[A-Z]?|\d\d[A-Z]\d\d|[A-Z0-9_]*ERR(?:OR)?_[A-Z0-9_]+"
)


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
    places: list[tuple[int, Kind, str]] = [*_technical(text), *_repositories(text), *_tools(text), *_names(text)]
    found: dict[str, Entity] = {}
    for _, kind, name in sorted(places):
        entity = Entity(kind, name, spell(name))
        if entity.slug and len(entity.tag) <= MAX_LENGTH:
            found.setdefault(entity.tag, entity)
        if len(found) == limit:
            break
    return tuple(found.values())


def _technical(text: str) -> Iterator[tuple[int, Kind, str]]:
    """Find hosts, files, symbols and codes among the identifiers."""
    for identifier in find_identifiers(text):
        low = identifier.text.lower()
        if low in lexicon.TOOLS:
            yield identifier.start, "tool", lexicon.TOOLS[low]
        elif low in lexicon.ORGANISATIONS:
            yield identifier.start, "organisation", lexicon.ORGANISATIONS[low]
        elif identifier.shape == "url":
            yield from _of_url(identifier)
        elif identifier.shape == "path" and (name := re.sub(r"(?::\d+)+$", "", identifier.text).strip("/.~")):
            yield identifier.start, "file", name
        elif identifier.shape == "symbol" and _is_symbol(identifier.text):
            yield identifier.start, "symbol", identifier.text
        elif identifier.shape == "code" and _is_code(identifier.text):
            yield identifier.start, "code", identifier.text


def _of_url(identifier: Identifier) -> Iterator[tuple[int, Kind, str]]:
    found = _URL.match(unquote(identifier.text))
    if not found or "." not in found[1]:
        return
    host = found[1].lower().removeprefix("www.").strip(".")
    yield identifier.start, "host", host
    if host in lexicon.HOSTS_OF_PROJECTS and found[3]:
        yield identifier.start, "project", f"{found[2]}/{found[3].removesuffix('.git')}"


def _is_symbol(text: str) -> bool:
    return len(text) > 2 and text[0] not in "@$." and not text.endswith("#")


def _is_code(text: str) -> bool:
    found = _TICKET.fullmatch(text)
    return found is not None and (found[1] or "").lower() not in lexicon.NO_CODES


def _repositories(text: str) -> Iterator[tuple[int, Kind, str]]:
    """Find `owner/name` where something says that it is a repository: a word before it, `repo:` or `#12`."""
    for found in _REPOSITORY.finditer(text):
        before = _WORD_BEFORE.search(text, max(found.start() - 16, 0), found.start())
        if found[1] or found[3] or (before and before[1].lower() in lexicon.REPOSITORY_WORDS):
            yield found.start(), "project", found[2].removesuffix(".git")


def _tools(text: str) -> Iterator[tuple[int, Kind, str]]:
    """Find tools in lower case."""
    tools = lexicon.TOOLS
    for found in _LOWER_WORDS.finditer(text):
        if (tool := tools.get(found.group())) is not None:
            yield found.start(), "tool", tool


def _names(text: str) -> list[tuple[int, Kind, str]]:
    """Find capitalised names. What only begins sentences is taken for a person's if another sentence says so."""
    found: list[tuple[int, Kind, str]] = []
    doubtful: list[tuple[int, str]] = []
    for match in _NAMES.finditer(text):
        words = match.group().split(" ")
        starts = _starts_sentence(text, match.start())
        if starts and _is_starter(words, text, match.end()):
            words = words[1:]
            starts = False
        named = _classified(words, match, text, sure=not starts or len(words) > 1)
        if named:
            found.append((match.start(), *named))
        elif starts and len(words) == 1 and _could_be_person(words):
            doubtful.append((match.start(), words[0]))
    people = {name for _, kind, name in found if kind == "person"}
    return found + [(start, "person", word) for start, word in doubtful if word in people]


def _classified(words: list[str], match: re.Match[str], text: str, *, sure: bool) -> tuple[Kind, str] | None:
    name = " ".join(words)
    low = name.lower()
    if not words:
        return None
    if low in lexicon.TOOLS or (sure and low in lexicon.CAPITALISED_TOOLS):
        return "tool", lexicon.TOOLS.get(low) or lexicon.CAPITALISED_TOOLS[low]
    if low in lexicon.ORGANISATIONS:
        return "organisation", lexicon.ORGANISATIONS[low]
    if len(words) > 1 and words[-1].lower() in lexicon.ORGANISATION_ENDINGS:
        return "organisation", name
    for word in words if len(words) > 1 else ():
        if (known := word.lower()) in lexicon.TOOLS:
            return "tool", lexicon.TOOLS[known]
    if _could_be_person(words) and (sure or _acts(text, match.end())) and not _after_article(text, match):
        return "person", name
    return None


def _could_be_person(words: list[str]) -> bool:
    """Say whether these may be names of a person: first letter large, the rest small, no word that names nobody."""
    return all(
        len(word) > 1
        and (word[1:].islower() or "-" in word or "'" in word or "’" in word or word.startswith("Mc"))
        and word.lower() not in lexicon.NO_NAMES
        and word.lower() not in lexicon.STARTERS
        for word in words
        if word[0].isupper()
    )


def _is_starter(words: list[str], text: str, end: int) -> bool:
    """Say whether a sentence's first word is capitalised only because it is the first."""
    first = words[0].lower()
    if (
        first in lexicon.STARTERS
        or first.partition("’")[0] in lexicon.STARTERS
        or first.partition("'")[0] in lexicon.STARTERS
    ):
        return True
    return len(words) > 1 and (first.endswith(("ing", "ed")) or words[1].lower() in lexicon.TOOLS)


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(start - 3, 0) : start].rstrip(" \t\"'“‘(*_")
    return not before or before[-1] in ".!?:;\n-•>#|"


def _acts(text: str, end: int) -> bool:
    """Say whether what follows a sentence's first word makes it a person: a label, an address, a verb people do."""
    if text.startswith((":", "'s ", "’s "), end):
        return True
    following = _NEXT_WORD.match(text, end)
    return following is not None and following[1] in lexicon.PERSON_VERBS


def _after_article(text: str, match: re.Match[str]) -> bool:
    before = _WORD_BEFORE.search(text, max(match.start() - 12, 0), match.start())
    return before is not None and before[1].lower() in lexicon.ARTICLES
