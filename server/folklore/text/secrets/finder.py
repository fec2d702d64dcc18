"""Secrets in a text: where they are and of what kind, so that they are not stored. Pure, no network, no entropy alone.

A hash, a UUID or a piece of base64 is not a secret by itself: only a form that an issuer gave its keys
(secret_rules.py) or a word that announces one (secret_words.py) makes it one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from folklore.text.secrets.assignments import find_by_words
from folklore.text.secrets.key_formats import HINTS, PEM_BODY, PEM_END, RULES, Rule
from folklore.text.secrets.values import is_mixed, is_placeholder_key

# Where a key was broken to fit a line: the break, what indents or quotes the next line, what joins two literals.
_BREAK = re.compile(
    r"[\"'`]?[ \t]*(?:[\\+.&]|\|\|)?[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*(?:[>|#*+.]{1,2}[ \t]*|//[ \t]*)?[\"'`]?"
    r"|[\"'`][ \t]*(?:\+|\.\.|\|\||&)?[ \t]*[\"'`]"
)
_ESCAPE = re.compile(r"(?:%[0-9A-Fa-f]{2}|\\[nrt])\Z")
_BREAKS = 8
_BREAKING = ("\n", "\\n", '"', "'", "`")
_REACH = 600  # no key of a known form that is broken over lines is longer; PEM blocks are read to their end
_SHORTEST_PEM = 40


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: its kind in words, and the half-open range it takes."""

    kind: str
    start: int
    end: int


def find(text: str) -> tuple[Secret, ...]:
    """Every secret in a text, in order, none within another. Microseconds for most, linear in the text."""
    lower = _lower(text)
    rules = {place for sign, hints in HINTS.items() if sign in lower for hint, place in hints if hint in lower}
    found = [secret for place in rules for secret in _by_form(RULES[place], text)]
    found += [Secret(kind, start, end) for kind, start, end in find_by_words(text, lower)]
    return _apart(found) if found else ()


def redact(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a marker in the place of each secret, and their kinds. Redacting twice changes nothing more."""
    secrets = find(text)
    pieces, end = [], 0
    for secret in secrets:
        pieces += [text[end : secret.start], f"[redacted: {secret.kind}]"]
        end = secret.end
    return "".join([*pieces, text[end:]]), tuple(secret.kind for secret in secrets)


def _lower(text: str) -> str:
    """Lower case, every character in its place: of those that would become two, the first."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower()[0] for char in text)


def _by_form(rule: Rule, text: str) -> list[Secret]:
    found = []
    read = 0  # what has been read and judged is not read again: time stays linear
    for begin in rule.begin.finditer(text):
        if begin.start() < read or rule.inside != _within_a_word(text, begin.start()):
            continue
        if rule.body.pattern == "(?!)":
            end, is_key = _pem(text, begin.end())
        else:
            end, is_key = _key(rule, text, begin.end())
        read = max(read, end)
        if is_key:
            found.append(Secret(rule.kind, begin.start(), end))
    return found


def _within_a_word(text: str, start: int) -> bool:
    """True after a letter or digit, unless that ends an escape: `%3D` of a URL, `\\n` of JSON."""
    if not start or not (text[start - 1].isascii() and text[start - 1].isalnum()):
        return False
    return _ESCAPE.search(text, max(0, start - 3), start) is None


def _key(rule: Rule, text: str, start: int) -> tuple[int, bool]:
    """How far what follows a beginning could be a key, and whether it is one."""
    whole = rule.body.match(text, start)
    if whole is not None:
        return whole.end(), _is_key(rule, whole.group())
    # The key may go on in the next line, and again in the one after it.
    if any(text.find(mark, start, start + _REACH) >= 0 for mark in _BREAKING):
        for breaks in range(1, _BREAKS + 1):
            tail, places, joined = _joined(text, start, breaks)
            whole = rule.body.match(tail)
            if whole is not None and whole.group():
                return places[whole.end() - 1] + 1, _is_key(rule, whole.group())
            if joined < breaks:
                break
    return start, False


def _is_key(rule: Rule, body: str) -> bool:
    return not is_placeholder_key(body) and (
        not rule.mixed or is_mixed(body) or (body.isupper() and not body.isalpha())
    )


def _joined(text: str, start: int, breaks: int) -> tuple[str, Sequence[int], int]:
    """What follows `start` without its first line breaks, where each character stands, and how many breaks."""
    tail = text[start : start + _REACH]
    kept: list[str] = []
    places: list[int] = []
    end = joined = 0
    for gap in islice(_BREAK.finditer(tail), breaks):
        kept.append(tail[end : gap.start()])
        places += range(start + end, start + gap.start())
        end, joined = gap.end(), joined + 1
    kept.append(tail[end:])
    places += range(start + end, start + len(tail))
    return "".join(kept), places, joined


def _pem(text: str, start: int) -> tuple[int, bool]:
    """Where a PEM block ends, and whether more than its first line is there."""
    body = PEM_BODY.match(text, start)
    end = body.end() if body is not None else start
    if sum(map(str.isalnum, text[start : min(end, start + 400)])) < _SHORTEST_PEM:
        return start, False
    if is_placeholder_key(text[start : min(end, start + 200)]):
        return start, False
    last = PEM_END.match(text, end)
    return last.end() if last is not None else end, True


def _apart(found: list[Secret]) -> tuple[Secret, ...]:
    """Of secrets that overlap the one that begins first, the longest of those, stretched over what it touches."""
    apart: list[Secret] = []
    for secret in sorted(found, key=lambda item: (item.start, -item.end)):
        if apart and secret.start < apart[-1].end:
            if secret.end > apart[-1].end:
                apart[-1] = Secret(apart[-1].kind, apart[-1].start, secret.end)
        else:
            apart.append(secret)
    return tuple(apart)
