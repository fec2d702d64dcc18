"""Arguments as programs and models write them: texts that stand for no value, and lists in one text."""

import re

from folklore.text.clean import clean

_NULL_WORDS = frozenset({"null", "none", "undefined"})
# A longer text is a value; invisible characters may surround a word.
_LONGEST = 100
_SEPARATORS = re.compile("[,;\n]")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_AROUND_ENTRIES = " \t\r\n\"'`“”‘’"


def is_nothing(text: str) -> bool:
    """Return True for a blank text, and for null, None and undefined in any case."""
    if len(text) > _LONGEST:
        return not text.strip()
    visible = clean(text).text
    return not visible.strip() or is_null_word(visible)


def is_null_word(text: str) -> bool:
    """Return True for null, None and undefined in any case, with blanks around."""
    return len(text) <= _LONGEST and text.strip().lower() in _NULL_WORDS


def entries_of(text: str, *, blanks: bool = True) -> list[str]:
    """Return the entries of a list in one text, without quotes around them: "a, b" and "[a, b]" have two.

    A text without commas, semicolons and line breaks is divided at its blanks, if `blanks` says so.
    """
    inner = text.strip()
    if _BRACKETS.get(inner[:1]) == inner[-1:]:
        inner = inner[1:-1]
    parts = _SEPARATORS.split(inner)
    if blanks and len(parts) == 1:
        parts = inner.split()
    entries = [part.strip(_AROUND_ENTRIES) for part in parts]
    return [entry for entry in entries if entry]
