"""Key formats: the forms that issuers give their keys and tokens (key_formats.tsv), and the search for them.

Prefixes and lengths are published by the issuers and collected by secret scanners (docs/explanation/security.md names
them). Lengths are lower bounds, because issuers lengthen their keys. Secrets without a form of their own, such as
passwords, are found by their context.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from folklore.text.secrets.values import (
    Secret,
    is_mixed,
    is_placeholder_key,
    is_sample_token,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A key format.

    `hints`: lower-case texts; every text with such a key contains at least one of them. `prefix` begins with literal
    text where possible, which `re` finds fast. `body` must follow the prefix; None for a PEM block. `mixed`: the body
    must have letters and digits, for prefixes that are words too. A key begins at the beginning of a word, or inside a
    word if `within_word`.
    """

    kind: str
    hints: tuple[str, ...]
    prefix: re.Pattern[str]
    body: re.Pattern[str] | None
    mixed: bool = False
    within_word: bool = False


def _rule(kind: str, hints: str, prefix: str, body: str = "", flags: str = "") -> Rule:
    pattern = re.compile(body) if body else None
    return Rule(
        kind,
        tuple(hints.split()),
        re.compile(prefix),
        pattern,
        "mixed" in flags,
        "within_word" in flags,
    )


_TABLE = (
    Path(__file__).with_name("key_formats.tsv").read_text(encoding="utf-8").splitlines()
)
RULES = tuple(_rule(*row.split("\t")) for row in _TABLE if not row.startswith("#"))

# Hints with the positions of their rules, grouped by a sign that they contain. Most sentences lack most of the signs:
# skipping their groups takes 8 instead of 15 microseconds for 130 characters.
_HINTS: dict[str, tuple[tuple[str, int], ...]] = {
    sign: tuple(
        (hint, position)
        for position, rule in enumerate(RULES)
        for hint in rule.hints
        if next((mark for mark in "_-." if mark in hint), "") == sign
    )
    for sign in ("_", "-", ".", "")
}

# A line break within a key: the break, the indentation or quotation of the next line, an operator between two literals.
_BREAK = re.compile(
    r"(?:[\"'`][ \t]*(?:[\\+.&]|\|\|)?|[ \t]*\\)?[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*"
    r"(?:[>|#*+.]{1,2}[ \t]*|//[ \t]*)?[\"'`]?"
    r"|[\"'`][ \t]*(?:\+|\.\.|\|\||&)?[ \t]*[\"'`]"
)
_BREAK_SIGN = re.compile(r"[\n\"'`]|\\n")
_MAX_BREAKS = 8
_MAX_BROKEN_LENGTH = (
    600  # of a key that continues in other lines; a PEM block has no limit
)
# A letter or digit precedes that is not the end of an escape: `%3D` in a URL, `\n` in JSON.
_WITHIN_WORD = re.compile(r"(?<=[A-Za-z0-9])(?<!%[0-9A-Fa-f]{2})(?<!\\[nrt])")

# The headers and the body of a PEM block, with real or escaped line breaks, and its last line.
_PEM_BODY = re.compile(
    r"(?:[A-Za-z0-9+/=]|\s|\\+[nrt]|[\"'`,+>|#*]|[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200})*",
    re.ASCII,
)
_PEM_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,60}-{4,5}")
# A block is judged by its beginning: if its last line is missing, the prose behind it is matched as body.
_MIN_PEM_LENGTH, _BEGINNING = 40, 200


def find_keys(text: str, lower: str) -> Iterator[Secret]:
    """Yield every key that has a form of its own; `lower` is the text in lower case. Linear in the text."""
    positions = {
        position
        for sign, hints in _HINTS.items()
        if sign in lower
        for hint, position in hints
        if hint in lower
    }
    for position in positions:
        yield from _keys_of(RULES[position], text)


def _keys_of(rule: Rule, text: str) -> Iterator[Secret]:
    read = 0  # text before this position is not read again, which keeps the time linear
    for prefix in rule.prefix.finditer(text):
        if prefix.start() >= read and rule.within_word == bool(
            _WITHIN_WORD.match(text, prefix.start())
        ):
            end, is_key = (
                _pem_block(text, prefix.end())
                if rule.body is None
                else _key(rule, text, prefix.end())
            )
            read = max(read, end)
            if is_key:
                yield Secret(rule.kind, prefix.start(), end)


def _key(rule: Rule, text: str, start: int) -> tuple[int, bool]:
    """Return the end of the possible key that follows a prefix, and whether it is a key.

    A key may be broken over several lines or string literals.
    """
    assert rule.body is not None
    if body := rule.body.match(text, start):
        return body.end(), _is_key(rule, body.group())
    if not _BREAK_SIGN.search(text, start, start + _MAX_BROKEN_LENGTH):
        return start, False
    for breaks in range(1, _MAX_BREAKS + 1):
        content, positions, removed = _without_breaks(text, start, breaks)
        body = rule.body.match(content)
        if body and body.group():
            return positions[body.end() - 1] + 1, _is_key(rule, body.group())
        if removed < breaks:
            break
    return start, False


def _is_key(rule: Rule, body: str) -> bool:
    if is_placeholder_key(body) or (
        rule.kind == "JSON Web Token" and is_sample_token(body)
    ):
        return False
    return not rule.mixed or is_mixed(body)


def _without_breaks(
    text: str, start: int, breaks: int
) -> tuple[str, Sequence[int], int]:
    """Return the text after `start` without its first breaks, the position of each character, the number of breaks."""
    rest = text[start : start + _MAX_BROKEN_LENGTH]
    parts: list[str] = []
    positions: list[int] = []
    end = removed = 0
    for gap in islice(_BREAK.finditer(rest), breaks):
        parts.append(rest[end : gap.start()])
        positions += range(start + end, start + gap.start())
        end, removed = gap.end(), removed + 1
    parts.append(rest[end:])
    positions += range(start + end, start + len(rest))
    return "".join(parts), positions, removed


def _pem_block(text: str, start: int) -> tuple[int, bool]:
    """Return the end of a PEM block, and whether it has more than its first line."""
    body = _PEM_BODY.match(text, start)
    assert body is not None
    beginning = body.group()[:_BEGINNING]
    if sum(map(str.isalnum, beginning)) < _MIN_PEM_LENGTH or is_placeholder_key(
        beginning
    ):
        return start, False
    last = _PEM_END.match(text, body.end())
    return last.end() if last else body.end(), True
