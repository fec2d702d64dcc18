"""Entities of a text: people, organisations, tools, projects, files, symbols, codes and hosts, found by rules.

The rules use capital letters, the shapes of identifiers and a short lexicon; no model. They prefer precision to recall,
because every entity is offered as a tag.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from folklore.text.entities import lexicon
from folklore.text.entities.identifiers import MAX_TEXT, Identifier, find_identifiers
from folklore.text.entities.proper_nouns import find_proper_nouns
from folklore.text.tags import MAX_LENGTH, spell

Kind = Literal[
    "person", "organisation", "tool", "project", "file", "symbol", "code", "host"
]
Mention = tuple[int, Kind, str]  # position, kind, name

MAX_ENTITIES = 32
# The group is not possessive: before 3.11.5, Python then loses what it has matched. What follows it never fails.
_LOWER_WORDS = re.compile(r"[a-z][a-z0-9]*+(?:[.+#-]+[a-z0-9]++)*[+#]*+")
_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?([\w.-]+)(?::\d+)?(?:/([\w.-]+)/([\w.-]+))?",
    re.ASCII,
)
_REPOSITORY = re.compile(
    r"(repo:)?([A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*)(#\d+)?", re.ASCII
)
_CODE = re.compile(
    r"([A-Z][A-Z0-9]*)(?:-[A-Z0-9]+)*-\d+|[A-Z]{1,8}\d{2,}[A-Z]?|\d\d[A-Z]\d\d"
    # The first ERR_ alone: what follows it may hold others, each of which would be tried to the end of the text.
    r"|(?>[A-Z0-9_]*?ERR(?:OR)?_)[A-Z0-9_]+",
    re.ASCII,
)
_STRUCTURED = re.compile(r"[^\W_][._:>#]+[^\W_]|[a-z\d][A-Z]|[A-Z]{2}[a-z]|[+]{2}$")
_SURNAME = re.compile(r"(?:Mc|Mac|Le|La|De|Di|Du|O)[A-Z][a-z]+")
_LINE_NUMBERS = re.compile(r"(?::\d+)+$")


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity that a text mentions. `slug` is its name in the normal form of tags."""

    kind: Kind
    name: str
    slug: str

    @property
    def tag(self) -> str:
        """The tag of memories that mention the entity: `entity:person:sarah`."""
        return f"entity:{self.kind}:{self.slug}"


def find_entities(text: str) -> tuple[Entity, ...]:
    """Return at most 32 different entities of a text in order of appearance.

    Searches the first 32,000 characters in linear time.
    """
    entities: dict[str, Entity] = {}
    mentions = sorted(_mentions(text[:MAX_TEXT]))
    for kind, name in dict.fromkeys((kind, name) for _, kind, name in mentions):
        entity = Entity(kind, name, spell(name))
        if entity.slug and len(entity.tag) <= MAX_LENGTH:
            entities.setdefault(entity.tag, entity)
        if len(entities) >= MAX_ENTITIES:
            break
    return tuple(entities.values())


def _mentions(text: str) -> Iterator[Mention]:
    lower_words = frozenset(_LOWER_WORDS.findall(text))
    nouns = find_proper_nouns(text, lower_words)
    for noun in nouns:
        yield noun.start, noun.kind, noun.name
    for word in lower_words & lexicon.TOOLS.keys():
        yield text.find(word), "tool", lexicon.TOOLS[word]
    within_nouns: set[int] = set()
    for noun in nouns:
        within_nouns.update(range(noun.start, noun.end))
    for position, kind, name in _identifiers(text):
        if position not in within_nouns:
            yield position, kind, name
    yield from _repositories(text)


def _identifiers(text: str) -> Iterator[Mention]:
    """Yield the tools, hosts, projects, files, symbols and codes among the identifiers of a text."""
    for identifier in find_identifiers(text):
        low = identifier.text.lower()
        if low in lexicon.TOOLS:
            yield identifier.start, "tool", lexicon.TOOLS[low]
        elif identifier.shape == "url":
            yield from _host_and_project(identifier)
        elif identifier.shape == "path" and (name := _file(identifier.text)):
            yield identifier.start, "file", name
        elif identifier.shape == "symbol" and _is_symbol(identifier.text):
            yield identifier.start, "symbol", identifier.text
        elif identifier.shape == "code" and _is_code(identifier.text):
            yield identifier.start, "code", identifier.text


def _host_and_project(url: Identifier) -> Iterator[Mention]:
    match = _URL.match(unquote(url.text))
    if not match or "." not in match[1]:
        return
    host = match[1].lower().removeprefix("www.").strip(".")
    yield url.start, "host", host
    if host in lexicon.HOSTS_OF_PROJECTS and match[3]:
        yield url.start, "project", f"{match[2]}/{match[3].removesuffix('.git')}"


def _file(path: str) -> str:
    """Return a path without line numbers and leading `./` or `~`; "" for a top-level folder."""
    name = _LINE_NUMBERS.sub("", path).removeprefix("./").removeprefix("~").strip("/")
    is_top_level_folder = path.startswith("/") and "." not in name and "/" not in name
    return "" if is_top_level_folder else name


def _is_symbol(text: str) -> bool:
    """Return whether a name is recognisably code by itself: `pool.acquire`, `max_size`, `getUser`; not `print`."""
    if text[0] in "@$." or not _STRUCTURED.search(text):
        return False
    is_name = _SURNAME.fullmatch(text) or text.lower() in lexicon.ORGANISATIONS
    return not is_name


def _is_code(text: str) -> bool:
    match = _CODE.fullmatch(text)
    return match is not None and (match[1] or "").lower() not in lexicon.NO_CODES


def _repositories(text: str) -> Iterator[Mention]:
    """Yield each `owner/name` that is marked as a repository by the word before it, by `repo:` or by `#12`."""
    if "/" not in text:
        return
    position = 0
    previous = ""
    for word in text.split():
        position = text.index(word, position)
        if "/" in word and len(word) <= MAX_LENGTH:
            match = _REPOSITORY.fullmatch(word.strip("()[]{}<>\"'`,;:.!?"))
            follows_word = previous.lower() in lexicon.REPOSITORY_WORDS
            if match and (match[1] or match[3] or follows_word):
                yield position, "project", match[2].removesuffix(".git")
        position += len(word)
        previous = word.strip(":,`")
