"""Identifiers: words of code and operations whose exact spelling matters, such as `ERR_CONN_REFUSED` or `v18.2.0`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

Shape = Literal[
    "url",
    "email",
    "flag",
    "hash",
    "version",
    "code",
    "path",
    "host",
    "symbol",
    "quoted",
]

MAX_TEXT = 32_000  # characters of a text that are searched
_MAX_WORD = 200
_WORDS = re.compile(r"`([^`\n]{2,100})`|\S+")
_OPENING = "([{<\"'“”‘’«`*,;:!?|="
_CLOSING = ")]}>\"'“”‘’«»`*,;:!?.|="
_EXTENSIONS = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|cjs|json|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|log|md|rst|txt|csv|tsv|sql|sh|bash|zsh|"
    "ps1|bat|go|rs|java|kts?|scala|cc|cpp|cxx|hpp|hh|[chr]|cs|fs|vb|rb|php|pl|lua|jl|swift|dart|exs?|erl|hs|ml|clj|vue|svelte|"
    "html?|css|scss|sass|less|xml|xsd|svg|png|jpe?g|gif|webp|pdf|docx?|xlsx?|pptx?|zip|tar|gz|tgz|bz2|xz|7z|whl|jar|war|pem|"
    "crt|key|db|sqlite3?|parquet|proto|graphql|tf|tfvars|gradle|patch|diff"
)
_FILE_NAMES = (
    "Dockerfile",
    "Makefile",
    "Jenkinsfile",
    "Procfile",
    "Gemfile",
)  # without an extension
_DOMAINS = (
    "com|org|net|dev|edu|gov|ai|app|cloud|local|internal|localhost|co\\.uk|de|eu|fr|ch"
)
# Tried in this order on a word of at most _MAX_WORD characters; the name of the matching group is the shape.
_SHAPES = re.compile(
    rf"""
      (?P<url>[A-Za-z][A-Za-z0-9+.-]*://.+)
    | (?P<email>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<flag>--[A-Za-z][\w-]*|-[A-Za-z](?:\d\w*)?)
    | (?P<hash>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}|0x[0-9A-Fa-f]+
        |(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{{7,64}})
    | (?P<version>v\d+(?:\.\d+)*(?:[-+][\w.+-]+)?|\d+(?:\.\d+)+(?:[-+]?[A-Za-z][\w.+-]*)?|\d+(?:\.\d+)*\.x)
    | (?P<code>[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-\d+|[A-Z]{{1,8}}\d+[A-Z0-9]*|\d\d[A-Z]\d\d|\#\d+|\d{{4,}}
        |[A-Z0-9]*(?:ERR|ERROR)_[A-Z0-9_]+|[A-Z0-9_]+_(?:ERR|ERROR)|[a-z]+\d+[a-z0-9]*)
    | (?P<path>[A-Za-z]:\\[^:*?"<>|]+
        |(?:~|\.\.?)?/[\w.@+%~-]+(?:/[\w.@+%~-]*)*|(?:[\w.@+~-]+/){{2,}}[\w.@+~-]*|[\w.@+~-]+/
        |(?:[\w.@+~-]+/)*(?:[\w@+~.-]*\.(?:{_EXTENSIONS})|{"|".join(_FILE_NAMES)})|\.[a-z][\w-]+(?:\.[\w-]+)*)(?::\d+)*
    | (?P<host>(?:[\w-]+\.)+(?:{_DOMAINS})(?::\d+)?|[A-Za-z][\w.-]*:\d{{2,5}}|(?:\d+\.){{3}}\d+:\d+)
    | (?P<symbol>[A-Za-z_$][\w$]*(?:(?:\.|::|->|\#)[A-Za-z_~][\w$]*)+|[A-Za-z]\+\+|[CFJ]\#|\.NET
        |@[A-Za-z_][\w./-]*|\$[A-Za-z_]\w*|[\w$]*[A-Za-z0-9]_[A-Za-z0-9][\w$]*|__\w+__|_[A-Za-z]\w*[A-Za-z0-9]
        |[A-Za-z_$][\w$]*[a-z\d][A-Z][\w$]*|[A-Z]{{2,}}[a-z]{{2,}}[\w$]*)
    """,
    re.VERBOSE | re.ASCII,
)
_CALL = re.compile(
    r"(?!(?:if|for|while|switch|return|and|or|not|in)\()([A-Za-z_$][\w$]*(?:(?:\.|::)[\w$]+)*)\((?!e?s\))",
    re.ASCII,
)
_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]|Q[1-4]|(?:19|20)\d\d", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier, its shape and the position where it begins."""

    text: str
    shape: Shape
    start: int


def find_identifiers(text: str) -> Iterator[Identifier]:
    """Yield the identifiers in the first 32,000 characters of a text, in order and in linear time.

    Codes (`E0308`, `PROJ-1234`), paths, files, versions, flags, hashes, URLs, `camelCase`, `snake_case`, dotted names,
    calls and anything in backticks.
    """
    for word in _WORDS.finditer(text, 0, MAX_TEXT):
        if word[1] is not None:
            if inside := word[1].strip():
                name, shape = _shape(inside) or (inside, "quoted")
                yield Identifier(name, shape, word.start(1))
            continue
        raw = word.group()
        if raw.islower() and raw.isalpha():  # a fast path for most words
            continue
        if len(raw) <= _MAX_WORD and not _is_plain(raw):
            core = raw.lstrip(_OPENING)
            if shaped := _shape(_without_closing(core)):
                yield Identifier(*shaped, word.start() + len(raw) - len(core))


def _is_plain(word: str) -> bool:
    """Return whether a word has only letters, no capital but the first, and punctuation only at its end."""
    letters = word.rstrip(",.;:!?)\"'")
    return letters.isalpha() and letters[1:].islower() and letters not in _FILE_NAMES


def _without_closing(word: str) -> str:
    """Remove closing punctuation, except a bracket that is opened within the word."""
    while word and word[-1] in _CLOSING and not (word[-1] == ")" and "(" in word):
        word = word[:-1]
    return word


def _shape(word: str) -> tuple[str, Shape] | None:
    if "](" in word:  # a Markdown link: use its target
        word = word.rpartition("](")[2].rstrip(")")
    if call := _CALL.match(word):
        return call[1], "symbol"
    match = _SHAPES.fullmatch(word)
    if not match and "=" in word:
        match = _SHAPES.fullmatch(word.partition("=")[0])
    if not match or not match.lastgroup or _ABBREVIATION.fullmatch(word):
        return None
    return match[match.lastgroup], cast("Shape", match.lastgroup)
