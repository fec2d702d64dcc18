"""The same thing said again in nearly the same words: pure rules, no chance, so that a set is always reworded alike.

As colleagues and assistants note one fact several times: function words change, contractions open and close, a clause
moves, something stands before it. Names, numbers and the words that carry the fact stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

COPIES = 5  # of each text: its own wording and four others

_SPEAKER = re.compile(r"[^\W\d_][^:\n(){}\[\]]{0,29}:\s+")
_CONTRACTIONS = {
    "i'm": "I am",
    "i've": "I have",
    "i'll": "I will",
    "it's": "it is",
    "that's": "that is",
    "don't": "do not",
    "doesn't": "does not",
    "didn't": "did not",
    "can't": "cannot",
    "isn't": "is not",
    "we're": "we are",
    "we've": "we have",
    "you're": "you are",
    "you've": "you have",
    "there's": "there is",
    "won't": "will not",
}
_EXPANDED = {long.casefold(): short for short, long in _CONTRACTIONS.items()}
_SYNONYMS = {
    "also": "too",
    "because": "since",
    "but": "yet",
    "however": "though",
    "really": "truly",
    "very": "quite",
    "maybe": "perhaps",
    "about": "around",
    "often": "frequently",
    "must": "has to",
    "get": "obtain",
    "got": "obtained",
    "big": "large",
    "start": "begin",
    "started": "began",
    "lots of": "many",
    "a lot of": "plenty of",
    "in order to": "to",
    "for example": "for instance",
    "such as": "like",
    "wanted to": "wished to",
    "want to": "wish to",
}
_LOWERED = frozenset(
    [
        "a",
        "an",
        "he",
        "it",
        "its",
        "my",
        "our",
        "she",
        "that",
        "the",
        "there",
        "these",
        "they",
        "this",
        "those",
        "we",
        "what",
        "when",
        "you",
        "your",
    ]
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CLAUSES = re.compile(r"^(\S.*?\S),?\s+(because|since|when|if|while|although)\s+(\S.*?\S)([.!?]*)$", re.I | re.S)


def rewordings(text: str, count: int = COPIES - 1) -> list[str]:
    """`count` rewordings; after `normalised`, none is the text or another of them. The first four follow one rule
    each and are then led in; more repeat the rules behind a further lead.
    """
    speaker = _SPEAKER.match(text)
    start = speaker.end() if speaker else 0
    head, said = text[:start], text[start:]
    seen, found = {normalised(text)}, []
    for place in range(count):
        lead, rule = _RULES[place % len(_RULES)]
        worded = _led(lead, rule(said))
        while normalised(head + worded) in seen:  # every lead adds words, so this ends
            worded = _led("Once more:", worded)
        seen.add(normalised(head + worded))
        found.append(head + worded)
    return found


def normalised(text: str) -> str:
    """Only the words: lower case, composed, without punctuation and white space."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _with_synonyms(text: str) -> str:
    return _replaced(text, _SYNONYMS)


def _with_contractions(text: str) -> str:
    """Open those that are there; close what could be one where there is none."""
    opened = _replaced(text.replace("\u2019", "'"), _CONTRACTIONS)
    return _replaced(text, _EXPANDED) if opened == text else opened


def _with_clauses_moved(text: str) -> str:
    """The second sentence before the first; of a single sentence the part after because, when, if … first."""
    if "\n" in text.strip():
        return text  # code and lists have an order
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) > 1:
        return " ".join([sentences[1], sentences[0], *sentences[2:]])
    clauses = _CLAUSES.match(text.strip())
    if clauses is None:
        return text
    first, word, second, end = clauses.groups()
    return f"{word[:1].upper()}{word[1:]} {second}, {_lowered(first)}{end}"


def _with_other_punctuation(text: str) -> str:
    return re.sub(r"\s+[-\u2013\u2014]+\s+", ", ", re.sub(r"[!?]+(?=\s|$)", ".", text.replace(";", ",")))


_RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("So,", _with_synonyms),
    ("Just to note:", _with_contractions),
    ("As I said,", _with_clauses_moved),
    ("By the way,", _with_other_punctuation),
)


def _led(lead: str, text: str) -> str:
    return f"{lead} {_lowered(text)}".rstrip()


def _lowered(text: str) -> str:
    first = re.match(r"\w+", text)
    return text[:1].lower() + text[1:] if first and first.group().casefold() in _LOWERED else text


def _replaced(text: str, words: Mapping[str, str]) -> str:
    choices = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))

    def other(match: re.Match[str]) -> str:
        word = words[match.group().casefold()]
        return word[:1].upper() + word[1:] if match.group()[:1].isupper() else word

    return re.sub(rf"(?<![\w'])(?:{choices})(?![\w'])", other, text, flags=re.IGNORECASE | re.ASCII)
