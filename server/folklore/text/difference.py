"""Differences of two texts, line by line, and within changed lines word by word, within a number of steps."""

from __future__ import annotations

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
_STEPS, _STEPS_OF_ALL, _STEPS_OF_PAIR = 1_000_000, 2_000_000, 4_000


def opcodes(before: Sequence[str], after: Sequence[str], steps: int = _STEPS) -> tuple[list[Opcode], int]:
    """Return how one sequence becomes another, and the steps that it could take to find that.

    What they have in common at their beginnings and ends is left out first. If the rest could take more than `steps`,
    it is replaced as a whole: for each match that it finds, difflib looks at all items and all pairs of equal ones.
    """
    first = _common(before, after)
    last = _common(before[first:][::-1], after[first:][::-1])
    end, other_end = len(before) - last, len(after) - last
    old, new = before[first:end], after[first:other_end]
    counts = Counter(new)
    most = (len(old) + len(new) + sum(counts[item] for item in old)) * min(len(old), len(new))
    found: list[Opcode] = [("equal", 0, first, 0, first)] if first else []
    if most > steps:
        found.append(("replace", first, end, first, other_end))
    else:
        inner = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        found += [(action, a + first, b + first, c + first, d + first) for action, a, b, c, d in inner]
    return [*found, *([("equal", end, len(before), other_end, len(after))] if last else [])], most


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of items in which the beginnings of two sequences agree."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def changed_lines(old: str, new: str) -> Iterator[tuple[str, Sequence[Part]]]:
    """Yield removed lines ("-"), added lines ("+") and one line (" ") around each change, in parts."""
    before, after = old.splitlines(), new.splitlines()
    found, _ = opcodes(before, after)
    left = _STEPS_OF_ALL
    for place, (action, begin, end, first, last) in enumerate(found):
        if action == "equal":
            around = [begin] * (place > 0) + [end - 1] * (place + 1 < len(found))
            yield from ((" ", [(before[line], False)]) for line in dict.fromkeys(around))
            continue
        removed, added = ([[(line, False)] for line in lines] for lines in (before[begin:end], after[first:last]))
        for line, pair in enumerate(zip(before[begin:end], after[first:last], strict=False)):
            if left <= 0:
                break
            removed[line], added[line], steps = _compared(*pair, min(left, _STEPS))
            left -= steps + _STEPS_OF_PAIR
        yield from (("-", parts) for parts in removed)
        yield from (("+", parts) for parts in added)


def _compared(old: str, new: str, steps: int) -> tuple[list[Part], list[Part], int]:
    """Return two lines in parts, and the steps taken; lines with little in common have one part each."""
    for pieces in _PIECES:
        before, after = pieces.findall(old), pieces.findall(new)
        found, most = opcodes([piece.strip() for piece in before], [piece.strip() for piece in after], steps)
        if most <= steps:
            break
    taken = most if most <= steps else 0
    same = sum(end - begin for action, begin, end, _, _ in found if action == "equal")
    if 2 * same < _SIMILAR * (len(before) + len(after)):
        return [(old, False)], [(new, False)], taken
    removed: list[Part] = []
    added: list[Part] = []
    for action, begin, end, first, last in found:
        changed = action != "equal"
        removed += [("".join(before[begin:end]), changed)] if end > begin else []
        added += [("".join(after[first:last]), changed)] if last > first else []
    return removed, added, taken
