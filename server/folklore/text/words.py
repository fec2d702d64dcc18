"""Words of a text, for comparison with other texts: normal form, quotation, questions."""

import re
import string
from collections.abc import Iterator

from folklore.text.difference import opcodes

# Steps of the comparison of two near-duplicates.
_STEPS = 200_000
_CHUNK = re.compile(r"\S+")
# Only punctuation of prose, and only on the side where it has no other meaning: 5 differs from -5, env from .env.
_OPENING = "\"'`“”‘’„«»([{¿¡—…「『《（"
_CLOSING = "\"'`“”‘’„«»)]}.,;:!?—…。，、；：！？」』》）"
_DASHES = "-–"

# Letters of any script and the underscore of identifiers are no separators. `str.translate` is many times faster than
# a regular expression.
_SEPARATORS = str.maketrans(
    dict.fromkeys(string.punctuation.replace("_", "") + "‘’“”–—…", " ")
)

# A question mark at the end of a sentence, not one within a URL or an expression.
_QUESTION_MARK = re.compile("[?\uff1f\u061f](?=[\\s\"')\\]*\u201d\u2019\u00bb]|$)")

_BULLET = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_QUOTED_LINE = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_QUOTES = (
    ("```", "```"),
    ("**", "**"),
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
)
_MAX_QUOTATION_DEPTH = 6


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, case-folded and without the punctuation around them.

    Two texts with the same words differ only in case, punctuation and white space.
    """
    for chunk in _CHUNK.finditer(text):
        word = chunk.group().lstrip(_OPENING).rstrip(_CLOSING)
        if word.strip(_DASHES):
            yield word.casefold()


def differing_words(text: str, other: str) -> str:
    """Return the words of a text, as they are written, that are not in the same order in another.

    In long texts with many differences the order does not count.
    """
    text_words = text.split()
    other_words = other.split()
    codes, steps = opcodes(text_words, other_words, _STEPS)
    differing: list[str] = []
    for action, begin, end, _, _ in codes:
        if action != "equal":
            differing += text_words[begin:end]
    if steps > _STEPS:
        known = set(other_words)
        differing = [word for word in differing if word not in known]
    return " ".join(differing)


def is_question(text: str) -> bool:
    """Return whether any sentence of a text ends with a question mark, in the scripts that have one."""
    # a tenth of the time of the regular expression
    marked = "?" in text or "\uff1f" in text or "\u061f" in text
    return marked and _QUESTION_MARK.search(text) is not None


def unquoted(text: str) -> Iterator[str]:
    """Yield a text without its bullet, number or quotation marks, removing one layer at a time.

    Yields nothing for a text without such marks. Never removes a word or a mark within the text.
    """
    inner = text.strip()
    for _ in range(_MAX_QUOTATION_DEPTH):
        without = _without_outer_marks(inner)
        if not without or without == inner:
            return
        inner = without
        yield inner


def separated(text: str) -> list[str]:
    """Return the words of a text in order, in lower case and split at punctuation; faster than `words`."""
    return text.lower().translate(_SEPARATORS).split()


def _without_outer_marks(text: str) -> str:
    if all(line.lstrip().startswith(">") for line in text.splitlines()):
        return _QUOTED_LINE.sub("", text).strip()
    if bullet := _BULLET.match(text):
        return text[bullet.end() :].strip()
    for opening, closing in _QUOTES:
        inner = text[len(opening) : -len(closing)]
        is_quoted = text.startswith(opening) and text.endswith(closing)
        if is_quoted and inner and closing not in inner:
            return inner.strip()
    return text
