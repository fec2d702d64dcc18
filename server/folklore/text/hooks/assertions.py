"""Assertions: sentences that say what holds from now on, found by their form in ten languages, without a model.

A form is a turn of phrase that marks something as lasting: a note, a decision, a rule, a correction, a found cause, a
preference. A question, or a sentence that says "for now", states nothing.
"""

import re
from itertools import pairwise
from pathlib import Path

from folklore.text.words import is_question

# Characters of a text that are read, of a sentence that is quoted, and sentences of one text: what is longer is pasted.
_READ = 8_000
_LONGEST = 400
_MOST = 5
_FENCED = re.compile(
    r"^(```|~~~)[^\n]*\n(?:(?!\1)[^\n]*\n)*(?:\1)?|^[ \t]*>[^\n]*$", re.MULTILINE
)
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”»)]*\s+|(?<=[。！？])|\n+")
# A few characters say much in Chinese, and nothing in English.
_LEAST = 5
_LEAST_ASCII = 10
# Words of a fact.
_LEAST_OF_FACT = 5
_TEXT = Path(__file__).with_name("assertions.txt").read_text(encoding="utf-8")
_SECTIONS = dict(re.findall(r"^== (.+)\n((?:.+\n)+)", _TEXT, re.MULTILINE))


def alternatives(section: str) -> str:
    """Return the alternatives of a section as one."""
    rows = _SECTIONS[section].rstrip("\n").replace("\n", "|")
    return re.sub(r"<<(\w+)>>", lambda match: alternatives(match[1]), rows)


def _joined(section: str) -> re.Pattern[str]:
    spaced = alternatives(section)
    unspaced = alternatives(f"{section}_UNSPACED")
    return re.compile(rf"(?:(?<!\w)|(?=\W))(?:{spaced})|{unspaced}", re.IGNORECASE)


_NOTES, _FINDINGS, _RULES, _NO_ASSERTIONS = map(
    _joined, ("NOTE", "FOUND", "RULE", "NEVER")
)
# How a sentence about a thing begins that says what it is or does, and what is passing in such a sentence.
_FACTS = [
    (
        re.compile(alternatives(name), re.IGNORECASE),
        re.compile(alternatives(name.replace("FACT", "PASSING")), re.IGNORECASE),
    )
    for name in _SECTIONS
    if name.startswith("FACT ")
]


def assertions(text: str, *, of_person: bool = True) -> tuple[str, ...]:
    """Return the sentences of a text that state something lasting, at most five, in order.

    Of the words of an assistant only decisions and causes count: it explains rules all the time.
    """
    prose = _FENCED.sub("\n", text[:_READ].replace("\u2019", "'") + "\n")
    parts = [part.strip(" \t-*•") for part in _SENTENCE.split(prose)]
    sentences = dict.fromkeys(parts)
    stated: dict[str, None] = {}
    for previous, sentence in pairwise(["", *sentences]):
        if not _states(sentence, of_person):
            continue
        if _is_long(_NOTES.sub("", sentence)):
            stated[sentence] = None
        else:  # "Write that down." is about the sentence before it
            stated[previous] = None
    quotable = [sentence for sentence in stated if 0 < len(sentence) <= _LONGEST]
    return tuple(quotable[:_MOST])


def _is_long(text: str) -> bool:
    least = _LEAST_ASCII if text.isascii() else _LEAST
    return len(text) >= least


def _states(sentence: str, of_person: bool) -> bool:
    """Return whether a sentence states something lasting."""
    if not _is_long(sentence) or len(sentence) > _LONGEST or is_question(sentence):
        return False
    if of_person and _NOTES.search(sentence):
        return True
    if _NO_ASSERTIONS.search(sentence):
        return False
    if _FINDINGS.search(sentence):
        return True
    if not of_person:
        return False
    return _RULES.search(sentence) is not None or _is_fact(sentence)


def _is_fact(sentence: str) -> bool:
    """Return whether a sentence has the form of a fact in some language."""
    if len(sentence.split()) < _LEAST_OF_FACT:
        return False
    return any(
        fact.match(sentence) and not passing.search(sentence)
        for fact, passing in _FACTS
    )
