"""Lexicon for the entity rules (lexicon.txt): tools, organisations, and capitalised words that are no names."""

import re
from pathlib import Path
from typing import Final

_TEXT = Path(__file__).with_name("lexicon.txt").read_text(encoding="utf-8")
_SECTIONS = dict(re.findall(r"^\[(\w+)\]\n((?:[^\[#\n].*\n)+)", _TEXT, re.MULTILINE))


def _words(section: str) -> frozenset[str]:
    return frozenset(_SECTIONS[section].split())


def _aliases(section: str) -> dict[str, str]:
    """Map every spelling to its name, from `name` and `name=alias=alias` entries separated by commas."""
    aliases = {}
    for entry in " ".join(_SECTIONS[section].split()).split(","):
        name, *others = entry.strip().split("=")
        for spelling in (name, *others):
            aliases[spelling] = name
    return aliases


TOOLS: Final = _aliases("TOOLS")
CAPITALISED_TOOLS: Final = _aliases("CAPITALISED_TOOLS")
ORGANISATIONS: Final = _aliases("ORGANISATIONS")
ORGANISATION_ENDINGS: Final = _words("ORGANISATION_ENDINGS")
NO_NAMES: Final = _words("NO_NAMES")
STARTERS: Final = _words("STARTERS")
PERSON_VERBS: Final = _words("PERSON_VERBS")
ARTICLES: Final = _words("ARTICLES")
NOUN_ENDINGS: Final = tuple(_SECTIONS["NOUN_ENDINGS"].split())
NAMES_WITH_NOUN_ENDINGS: Final = _words("NAMES_WITH_NOUN_ENDINGS")
HOSTS_OF_PROJECTS: Final = _words("HOSTS_OF_PROJECTS")
REPOSITORY_WORDS: Final = _words("REPOSITORY_WORDS")
NO_CODES: Final = _words("NO_CODES")
