"""Differences of two texts, line by line, and within changed lines word by word, within a number of steps."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# Piece of a line, and True if only one of the two texts has it.
Part = tuple[str, bool]
# Action (equal, replace, delete, insert), and the begin and end in either sequence, as difflib names them.
Opcode = tuple[str, int, int, int, int]
# Words and sentences with the white space around them, which does not count as a change.
_PIECES = (re.compile(r"\s+|\w+\s*|[^\w\s]\s*"), re.compile(r"[^.!?]+[.!?]*|[.!?]+"))
# Least share of two lines that must agree for their words to be compared; below, nothing is gained.
_SIMILAR = 0.4
# Steps of one comparison and of all in a difference, and those that each pair of lines counts for besides.
_STEPS = 1_000_000
_STEPS_OF_ALL = 2_000_000
_STEPS_OF_PAIR = 4_000


def opcodes(
    one: Sequence[str], other: Sequence[str], steps: int = _STEPS
) -> tuple[list[Opcode], int]:
    """Return how one sequence becomes another, and the steps that it could take to find that.

    What they have in common at their beginnings and ends is left out first. If the rest could take more than `steps`,
    it is replaced as a whole: for each match that it finds, difflib looks at all items and all pairs of equal ones.
    """
    first = _common(one, other)
    last = _common(one[first:][::-1], other[first:][::-1])
    end = len(one) - last
    other_end = len(other) - last
    old = one[first:end]
    new = other[first:other_end]
    counts = Counter(new)
    equal_pairs = sum(counts[item] for item in old)
    most = (len(old) + len(new) + equal_pairs) * min(len(old), len(new))

    codes: list[Opcode] = []
    if first:
        codes.append(("equal", 0, first, 0, first))
    if most > steps:
        codes.append(("replace", first, end, first, other_end))
    else:
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for action, a, b, c, d in matcher.get_opcodes():
            codes.append((action, a + first, b + first, c + first, d + first))
    if last:
        codes.append(("equal", end, len(one), other_end, len(other)))
    return codes, most


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of items in which the beginnings of two sequences agree."""
    pairs = enumerate(zip(one, other, strict=False))
    return next(
        (place for place, (item, counterpart) in pairs if item != counterpart),
        min(len(one), len(other)),
    )


def changed_lines(old: str, new: str) -> Iterator[tuple[str, Sequence[Part]]]:
    """Yield removed lines ("-"), added lines ("+") and one line (" ") around each change, in parts."""
    one = old.splitlines()
    other = new.splitlines()
    codes, _ = opcodes(one, other)
    budget = _STEPS_OF_ALL
    for index, (action, begin, end, first, last) in enumerate(codes):
        if action == "equal":
            follows_change = index > 0
            precedes_change = index + 1 < len(codes)
            if follows_change:
                yield " ", [(one[begin], False)]
            if precedes_change and not (follows_change and end - begin == 1):
                yield " ", [(one[end - 1], False)]
            continue

        removed = [[(line, False)] for line in one[begin:end]]
        added = [[(line, False)] for line in other[first:last]]
        pairs = zip(one[begin:end], other[first:last], strict=False)
        for line, (before, after) in enumerate(pairs):
            if budget <= 0:
                break
            most = min(budget, _STEPS)
            removed[line], added[line], steps = _compared(before, after, most)
            budget -= steps + _STEPS_OF_PAIR
        yield from (("-", parts) for parts in removed)
        yield from (("+", parts) for parts in added)


def _compared(old: str, new: str, steps: int) -> tuple[list[Part], list[Part], int]:
    """Return two lines in parts, and the steps taken; lines with little in common have one part each."""
    for pieces in _PIECES:
        old_pieces = pieces.findall(old)
        new_pieces = pieces.findall(new)
        codes, most = opcodes(_stripped(old_pieces), _stripped(new_pieces), steps)
        if most <= steps:
            break
    cost = most if most <= steps else 0

    same = sum(end - begin for action, begin, end, _, _ in codes if action == "equal")
    if 2 * same < _SIMILAR * (len(old_pieces) + len(new_pieces)):
        return [(old, False)], [(new, False)], cost

    removed: list[Part] = []
    added: list[Part] = []
    for action, begin, end, first, last in codes:
        changed = action != "equal"
        if end > begin:
            removed.append(("".join(old_pieces[begin:end]), changed))
        if last > first:
            added.append(("".join(new_pieces[first:last]), changed))
    return removed, added, cost


def _stripped(pieces: Sequence[str]) -> list[str]:
    return [piece.strip() for piece in pieces]
