"""Texts that may make a pattern slow, made of what the pattern itself looks for."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from re import _constants as constants, _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
_OF_CATEGORY = {
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_WORD: "-",
}
# What repeated texts are made of, besides the parts of the pattern.
_SIGNS = ("a", "A", "1", " ", "\n", "-", ".", "a ", "1 ")
_MAX_REPEATS = 40
_MAX_LENGTH = 200
_MAX_ALTERNATIVES = 8
# A character that few patterns expect: what they have matched so far turns out to be in vain.
_NEAR_MISS = "\x01"


class HostileText(NamedTuple):
    """A text of any length: a head, a unit that is repeated, and an end."""

    head: str
    unit: str
    end: str = _NEAR_MISS

    def of_length(self, length: int) -> str:
        """Return the text with about so many characters between its head and its end."""
        repeated = self.unit * (length // len(self.unit) + 1)
        return self.head + repeated[:length] + self.end


class _Repetition(NamedTuple):
    """What a pattern repeats, after a text that leads there."""

    head: str
    body: Sequence[Any]


def hostile_texts(pattern: re.Pattern[Any]) -> list[HostileText]:
    """Return the texts for a pattern, without repetitions and in the same order each time.

    They repeat what each repetition of the pattern repeats, alone and behind what leads there, and its beginnings
    and the whole; at the end is a near miss.
    """
    source = pattern.pattern
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    tree = list(parser.parse(source, pattern.flags & (re.VERBOSE | re.IGNORECASE)))
    choice = random.Random(1)  # the same samples each time

    texts = [HostileText("", sign) for sign in _SIGNS]
    repetitions = list(_repetitions(tree, "", choice))
    for head, body in repetitions:
        for unit in _units(body, choice):
            texts += [HostileText("", unit), HostileText(head, unit)]
            texts += [HostileText(head, unit + ending) for ending in " \n"]
    for before, after in pairwise(repetitions):
        unit = _sample(before.body, choice, 1) + _sample(after.body, choice, 1)
        texts.append(HostileText(before.head, unit))

    beginnings = [
        _sample(tree[:end], choice, 1) for end in range(1, min(len(tree), 12))
    ]
    wholes = [_sample(tree, choice, repeats) for repeats in (0, 1, 2)]
    for unit in (*beginnings, *wholes):
        texts += [HostileText("", unit + ending) for ending in ("", " ", "\n")]
        texts.append(HostileText("", unit[:-1]))
    return [text for text in dict.fromkeys(texts) if _is_fit(text)]


def _is_fit(text: HostileText) -> bool:
    return 0 < len(text.unit) <= _MAX_LENGTH and len(text.head) <= _MAX_LENGTH


def _units(body: Sequence[Any], choice: random.Random) -> Iterator[str]:
    """Yield texts that a repetition repeats: one for each of its alternatives."""
    yield _sample(body, choice, 0)
    yield _sample(body, choice, 1)
    for alternative in _alternatives(body)[:_MAX_ALTERNATIVES]:
        yield _sample(alternative, choice, 1)


def _alternatives(body: Sequence[Any]) -> list[Sequence[Any]]:
    nodes = list(body)
    if len(nodes) != 1:
        return []
    kind, value = nodes[0]
    if kind is constants.SUBPATTERN:
        return _alternatives(value[3])
    if kind is constants.ATOMIC_GROUP:
        return _alternatives(value)
    if kind is constants.BRANCH:
        return list(value[1])
    if kind is constants.IN:
        signs = [item for item in value if item[0] is not constants.NEGATE]
        if len(signs) == len(value):
            return [[(constants.IN, [sign])] for sign in signs]
    return []


def _repetitions(
    nodes: Iterable[Any], head: str, choice: random.Random
) -> Iterator[_Repetition]:
    """Yield the repetitions of a pattern, also those within others."""
    for kind, value in nodes:
        if kind in _REPEATS:
            yield _Repetition(head, value[2])
        for part in _parts(kind, value):
            yield from _repetitions(part, head, choice)
        head += _sample_of(kind, value, choice, 1)


def _parts(kind: object, value: Any) -> list[Sequence[Any]]:
    if kind in _REPEATS:
        return [value[2]]
    if kind is constants.BRANCH:
        return list(value[1])
    if kind is constants.SUBPATTERN:
        return [value[3]]
    if kind is constants.ATOMIC_GROUP:
        return [value]
    if kind in (constants.ASSERT, constants.ASSERT_NOT):
        return [value[1]]
    if kind is constants.GROUPREF_EXISTS:
        return [part for part in value[1:] if part]
    return []


def _sample(nodes: Iterable[Any], choice: random.Random, repeats: int) -> str:
    return "".join(_sample_of(kind, value, choice, repeats) for kind, value in nodes)


def _sample_of(kind: object, value: Any, choice: random.Random, repeats: int) -> str:
    """Return a text that a part of a pattern matches, with so many repetitions where that is allowed."""
    if kind is constants.LITERAL:
        return chr(value)
    if kind is constants.NOT_LITERAL:
        return "b" if value == ord("a") else "a"
    if kind is constants.ANY:
        return "a"
    if kind is constants.IN:
        return _sign_of(value, choice)
    if kind is constants.BRANCH:
        return _sample(choice.choice(value[1]), choice, repeats)
    if kind is constants.SUBPATTERN:
        return _sample(value[3], choice, repeats)
    if kind is constants.ATOMIC_GROUP:
        return _sample(value, choice, repeats)
    if kind in _REPEATS:
        least, most, body = value
        times = min(max(least, repeats), most, _MAX_REPEATS)
        return "".join(_sample(body, choice, repeats) for _ in range(times))
    return ""


def _sign_of(items: Iterable[Any], choice: random.Random) -> str:
    """Return a character of a set."""
    signs = []
    negated = False
    for kind, value in items:
        if kind is constants.NEGATE:
            negated = True
        elif kind is constants.LITERAL:
            signs.append(chr(value))
        elif kind is constants.RANGE:
            low, high = value
            signs.append(chr(choice.randint(low, min(high, low + 25))))
        elif kind is constants.CATEGORY:
            signs.append(_OF_CATEGORY.get(value, "a"))
    if negated:
        return next((sign for sign in "a1 -/.\n(" if sign not in signs), "b")
    return choice.choice(signs)
