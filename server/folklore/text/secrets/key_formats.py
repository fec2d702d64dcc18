"""Key formats: the forms that issuers give their keys and tokens (key_formats.tsv), and the search for them.

Prefixes and lengths are published by the issuers and collected by secret scanners (docs/explanation/security.md names
them). Lengths are lower bounds, because issuers lengthen their keys. Secrets without a form of their own, such as
passwords, are found by their context.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from folklore.text.secrets.values import (
    SearchEnded,
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
    word if `within_word`. No body is shorter than `shortest`.
    """

    kind: str
    hints: tuple[str, ...]
    prefix: re.Pattern[str]
    body: re.Pattern[str] | None
    mixed: bool = False
    within_word: bool = False
    shortest: int = 0


# The least number of the first repetition, as in [a-z]{20,}.
_FEWEST = re.compile(r"\{([0-9]+)")


def _rule(kind: str, hints: str, prefix: str, body: str = "", flags: str = "") -> Rule:
    fewest = _FEWEST.search(body)
    return Rule(
        kind=kind,
        hints=tuple(hints.split()),
        prefix=re.compile(prefix),
        body=re.compile(body) if body else None,
        mixed="mixed" in flags,
        within_word="within_word" in flags,
        shortest=int(fewest[1]) if fewest else 0,
    )


_TABLE = (
    Path(__file__).with_name("key_formats.tsv").read_text(encoding="utf-8").splitlines()
)
RULES = tuple(_rule(*row.split("\t")) for row in _TABLE if not row.startswith("#"))

# Hints with the positions of their rules, by their first sign and at most two characters before it; those without a sign
# by no character. Few of these are in a text: looking for the others too takes three times as long.
_SIGN = re.compile(r"[-_.]")
_BEFORE_SIGN = 2


def _grouped_hints() -> dict[str, list[tuple[str, int]]]:
    groups: dict[str, list[tuple[str, int]]] = {}
    for position, rule in enumerate(RULES):
        for hint in rule.hints:
            sign = _SIGN.search(hint)
            group = ""
            if sign is not None:
                group = hint[max(sign.start() - _BEFORE_SIGN, 0) : sign.end()]
            groups.setdefault(group, []).append((hint, position))
    return groups


_HINTS = _grouped_hints()

# A line break within a key: the break, the indentation or quotation of the next line, an operator between two literals.
_BREAK = re.compile(
    r"(?:[\"'`](?:[ \t]*(?:[\\+.&]|\|\|))?|[ \t]*\\)?[ \t]*(?:\r?\n|(?:\\r)?\\n)[ \t]*"
    r"(?:[>|#*+.]{1,2}[ \t]*|//[ \t]*)?[\"'`]?"
    r"|[\"'`](?:[ \t]*(?:\+|\.\.|\|\||&))?[ \t]*[\"'`]"
)
# What a rule may have between its prefix and the key, and a line of a key up to where a break can be.
_BEFORE_KEY = re.compile(r"(?:\s{0,20}[=:][ \t]{0,20}[\"'`]?)?")
_UNBROKEN = re.compile(r"(?:[^\s\"'`\\]|\\(?![nr \t\r\n]))*")
_MAX_BREAKS = 8
_MAX_BROKEN_LENGTH = (
    600  # of a key that continues in other lines; a PEM block has no limit
)
# Tries to join the lines of a key in one text. Documents with hundreds of keys' beginnings need some dozens.
_MAX_TRIES = 1_000
# A letter or digit precedes that is not the end of an escape: `%3D` in a URL, `\n` in JSON.
_WITHIN_WORD = re.compile(r"(?<=[A-Za-z0-9])(?<!%[0-9A-Fa-f]{2})(?<!\\[nrt])")

# The headers and the body of a PEM block, with real or escaped line breaks, and its last line.
_PEM_BODY = re.compile(
    r"(?:[A-Za-z0-9+/=]|\s|\\+[nrt]|[\"'`,+>|#*]|[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200})*",
    re.ASCII,
)
_PEM_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,60}-{4,5}")
# A block is judged by its beginning: if its last line is missing, the prose behind it is matched as body.
_MIN_PEM_LENGTH = 40
_BEGINNING = 200


@dataclass(slots=True)
class _BrokenLines:
    """The lines of one text as keys may continue in them, and how many more tries to join them a search has."""

    text: str
    tries: int = _MAX_TRIES
    # The characters without a break that were read last, and the offset after each break by that of its beginning.
    _unbroken: tuple[int, int] = (0, -1)
    _breaks: dict[int, int | None] = field(default_factory=dict)

    def line(self, start: int) -> tuple[int, int | None]:
        """Return the end of the line that begins there, and where the next one begins; None if no break follows."""
        begin, end = self._unbroken
        if not begin <= start <= end:
            end = _UNBROKEN.match(self.text, start).end()  # type: ignore[union-attr]
            self._unbroken = (start, end)
        if end not in self._breaks:
            gap = _BREAK.match(self.text, end)
            self._breaks[end] = gap.end() if gap else None
        return end, self._breaks[end]

    def spend_try(self) -> None:
        """Count a try to join lines. Raises SearchEnded."""
        self.tries -= 1
        if self.tries < 0:
            raise SearchEnded


def find_keys(text: str, lower: str) -> Iterator[Secret]:
    """Yield every key that has a form of its own; `lower` is the text in lower case. Linear in the text.

    Raises SearchEnded.
    """
    lines = _BrokenLines(text)
    for position in _positions(lower):
        yield from _keys_of(RULES[position], lines)


def _positions(lower: str) -> set[int]:
    """Return the positions of the rules of which a text holds a hint."""
    groups = {""}
    for sign in _SIGN.finditer(lower):
        end = sign.end()
        for length in range(1, _BEFORE_SIGN + 2):
            groups.add(lower[max(end - length, 0) : end])
    positions = set()
    for group in groups & _HINTS.keys():
        for hint, position in _HINTS[group]:
            if hint in lower:
                positions.add(position)
    return positions


def _keys_of(rule: Rule, lines: _BrokenLines) -> Iterator[Secret]:
    text = lines.text
    read = 0  # text before this position is not read again, which keeps the time linear
    for prefix in rule.prefix.finditer(text):
        is_within_word = _WITHIN_WORD.match(text, prefix.start()) is not None
        if prefix.start() < read or is_within_word != rule.within_word:
            continue
        if rule.body is None:
            end, is_key = _pem_block(text, prefix.end())
        else:
            end, is_key = _key(rule, lines, prefix.end())
        read = max(read, end)
        if is_key:
            yield Secret(rule.kind, prefix.start(), end)


def _key(rule: Rule, lines: _BrokenLines, start: int) -> tuple[int, bool]:
    """Return the end of the possible key that follows a prefix, and whether it is a key.

    A key may be broken over several lines or string literals.
    """
    assert rule.body is not None
    if body := rule.body.match(lines.text, start):
        return body.end(), _is_key(rule, body.group())
    limit = start + _MAX_BROKEN_LENGTH
    begin = _BEFORE_KEY.match(lines.text, start).end()  # type: ignore[union-attr]
    end, following = lines.line(begin)
    parts = [(start, end)]
    length = end - start
    while following is not None and following < limit and len(parts) <= _MAX_BREAKS:
        begin = following
        end, following = lines.line(begin)
        end = min(end, limit)
        parts.append((begin, end))
        length += end - begin
        if length < rule.shortest:
            continue
        lines.spend_try()
        content = "".join(lines.text[first:last] for first, last in parts)
        body = rule.body.match(content)
        if body and body.group():
            return _offset(parts, body.end()), _is_key(rule, body.group())
    return start, False


def _offset(parts: Sequence[tuple[int, int]], length: int) -> int:
    """Return the offset in a text where so many characters of its parts end."""
    for begin, end in parts:
        if length <= end - begin:
            return begin + length
        length -= end - begin
    return parts[-1][1]


def _is_key(rule: Rule, body: str) -> bool:
    if is_placeholder_key(body):
        return False
    if rule.kind == "JSON Web Token" and is_sample_token(body):
        return False
    return not rule.mixed or is_mixed(body)


def _pem_block(text: str, start: int) -> tuple[int, bool]:
    """Return the end of a PEM block, and whether it has more than its first line."""
    body = _PEM_BODY.match(text, start)
    assert body is not None
    beginning = body.group()[:_BEGINNING]
    is_short = sum(map(str.isalnum, beginning)) < _MIN_PEM_LENGTH
    if is_short or is_placeholder_key(beginning):
        return start, False
    last_line = _PEM_END.match(text, body.end())
    end = last_line.end() if last_line else body.end()
    return end, True
