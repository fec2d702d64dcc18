"""Texts that may make a pattern slow, made of what the pattern itself looks for."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as constants, _parser as parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
_OF_CATEGORY = {
    constants.CATEGORY_DIGIT: "1",
    constants.CATEGORY_SPACE: " ",
    constants.CATEGORY_NOT_WORD: "-",
}
_MOST_REPEATS, _LONGEST = 40, 200


def units_of(pattern: re.Pattern[Any]) -> set[str]:
    """Return short texts to be repeated: what each repetition of a pattern repeats, its beginnings, and the whole."""
    source = pattern.pattern
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    tree = list(parser.parse(source, pattern.flags & (re.VERBOSE | re.IGNORECASE)))
    choice = random.Random(1)  # the same samples each time
    units = set()
    for body in _repeated(tree):
        units |= {_sample(body, choice, 0), _sample(body, choice, 1)}
    for repeats in (0, 1, 2):
        units.add(_sample(tree, choice, repeats))
    for end in range(1, min(len(tree), 12)):
        units.add(_sample(tree[:end], choice, 1))
    endings = ("", " ", "\n")
    return {
        unit + ending
        for unit in units
        for ending in endings
        if 0 < len(unit) <= _LONGEST
    }


def _repeated(nodes: Iterable[Any]) -> Iterator[Sequence[Any]]:
    for kind, value in nodes:
        if kind in _REPEATS:
            yield value[2]
            yield from _repeated(value[2])
        elif kind is constants.BRANCH:
            for branch in value[1]:
                yield from _repeated(branch)
        elif kind is constants.SUBPATTERN:
            yield from _repeated(value[3])
        elif kind is constants.ATOMIC_GROUP:
            yield from _repeated(value)
        elif kind in (constants.ASSERT, constants.ASSERT_NOT):
            yield from _repeated(value[1])


def _sample(nodes: Iterable[Any], choice: random.Random, repeats: int) -> str:
    return "".join(_sample_of(kind, value, choice, repeats) for kind, value in nodes)


def _sample_of(kind: object, value: Any, choice: random.Random, repeats: int) -> str:
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
        times = min(max(least, repeats), most, _MOST_REPEATS)
        return "".join(_sample(body, choice, repeats) for _ in range(times))
    return ""


def _sign_of(items: Iterable[Any], choice: random.Random) -> str:
    signs, excluded = [], False
    for kind, value in items:
        if kind is constants.NEGATE:
            excluded = True
        elif kind is constants.LITERAL:
            signs.append(chr(value))
        elif kind is constants.RANGE:
            signs.append(chr(choice.randint(value[0], min(value[1], value[0] + 25))))
        elif kind is constants.CATEGORY:
            signs.append(_OF_CATEGORY.get(value, "a"))
    if excluded:
        return next((sign for sign in "a1 -/.\n(" if sign not in signs), "b")
    return choice.choice(signs)
