"""Differences of two texts, line by line, and within changed lines word by word, within a number of steps."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# Part of a line, and True if only one of the two texts has it.
Part = tuple[str, bool]
# Action (equal, replace, delete, insert), and the begin and end in either sequence, as difflib names them.
Opcode = tuple[str, int, int, int, int]
# With the white space around them, which does not count as a change.
_WORDS = re.compile(r"\s+|\w+\s*|[^\w\s]\s*")
_SENTENCES = re.compile(r"[^.!?]+[.!?]*|[.!?]+")
# Least share of two lines that must agree for their words to be compared; below, nothing is gained.
_SIMILAR = 0.4
# Steps of one comparison and of all in a difference, and those that each pair of lines counts for besides.
_STEPS = 1_000_000
_STEPS_OF_ALL = 2_000_000
_STEPS_OF_PAIR = 4_000


def opcodes(
    old: Sequence[str], new: Sequence[str], steps: int = _STEPS
) -> tuple[list[Opcode], int]:
    """Return how one sequence becomes another, and the steps that it could take to find that.

    What they have in common at their beginnings and ends is left out first. If the rest could take more than `steps`,
    it is replaced as a whole.
    """
    first = _common_beginning(old, new)
    common_end = _common_beginning(old[first:][::-1], new[first:][::-1])
    old_end = len(old) - common_end
    new_end = len(new) - common_end
    old_rest = old[first:old_end]
    new_rest = new[first:new_end]
    most = _most_steps(old_rest, new_rest)

    codes: list[Opcode] = []
    if first:
        codes.append(("equal", 0, first, 0, first))
    if most > steps:
        codes.append(("replace", first, old_end, first, new_end))
    else:
        matcher = SequenceMatcher(None, old_rest, new_rest, autojunk=False)
        for action, a, b, c, d in matcher.get_opcodes():
            codes.append((action, a + first, b + first, c + first, d + first))
    if common_end:
        codes.append(("equal", old_end, len(old), new_end, len(new)))
    return codes, most


def _common_beginning(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of items in which the beginnings of two sequences agree."""
    count = 0
    for item, counterpart in zip(one, other, strict=False):
        if item != counterpart:
            break
        count += 1
    return count


def _most_steps(old: Sequence[str], new: Sequence[str]) -> int:
    """Return an upper bound: for each match that it finds, difflib looks at all items and all pairs of equal ones."""
    counts = Counter(new)
    equal_pairs = sum(counts[item] for item in old)
    return (len(old) + len(new) + equal_pairs) * min(len(old), len(new))


def changed_lines(old: str, new: str) -> Iterator[tuple[str, Sequence[Part]]]:
    """Yield removed lines ("-"), added lines ("+") and one line (" ") around each change, in parts."""
    old_lines = old.splitlines()
    new_lines = new.splitlines()
    codes, _ = opcodes(old_lines, new_lines)
    budget = _STEPS_OF_ALL
    for index, (action, begin, end, first, last) in enumerate(codes):
        if action == "equal":
            yield from _around_changes(
                old_lines[begin:end],
                follows_change=index > 0,
                precedes_change=index + 1 < len(codes),
            )
            continue

        removed, added, budget = _compared_lines(
            old_lines[begin:end], new_lines[first:last], budget
        )
        for parts in removed:
            yield "-", parts
        for parts in added:
            yield "+", parts


def _around_changes(
    lines: Sequence[str], *, follows_change: bool, precedes_change: bool
) -> Iterator[tuple[str, Sequence[Part]]]:
    """Yield of equal lines the first one after a change, and the last one before another, a single line once."""
    if follows_change:
        yield " ", [(lines[0], False)]
    if precedes_change and not (follows_change and len(lines) == 1):
        yield " ", [(lines[-1], False)]


def _compared_lines(
    old: Sequence[str], new: Sequence[str], budget: int
) -> tuple[list[list[Part]], list[list[Part]], int]:
    """Return removed and added lines in parts, and what is left of the steps; further lines have one part each."""
    removed = [[(line, False)] for line in old]
    added = [[(line, False)] for line in new]
    for index in range(min(len(old), len(new))):
        if budget <= 0:
            break
        removed[index], added[index], steps = _compared(
            old[index], new[index], min(budget, _STEPS)
        )
        budget -= steps + _STEPS_OF_PAIR
    return removed, added, budget


def _compared(old: str, new: str, steps: int) -> tuple[list[Part], list[Part], int]:
    """Return two lines in parts, and the steps taken; lines with little in common have one part each.

    Words are compared, or whole sentences where words would take too many steps.
    """
    for unit in (_WORDS, _SENTENCES):
        old_units = unit.findall(old)
        new_units = unit.findall(new)
        codes, most = opcodes(_stripped(old_units), _stripped(new_units), steps)
        if most <= steps:
            break
    taken = most if most <= steps else 0

    same = sum(end - begin for action, begin, end, _, _ in codes if action == "equal")
    if 2 * same < _SIMILAR * (len(old_units) + len(new_units)):
        return [(old, False)], [(new, False)], taken

    removed: list[Part] = []
    added: list[Part] = []
    for action, begin, end, first, last in codes:
        is_changed = action != "equal"
        if end > begin:
            removed.append(("".join(old_units[begin:end]), is_changed))
        if last > first:
            added.append(("".join(new_units[first:last]), is_changed))
    return removed, added, taken


def _stripped(units: Sequence[str]) -> list[str]:
    return [unit.strip() for unit in units]
