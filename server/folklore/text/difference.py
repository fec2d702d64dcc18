"""Differences of two texts, line by line, and within changed lines word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# Piece of a line, and True if only one of the two texts has it.
Part = tuple[str, bool]
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
# Least share of two lines that must agree for their words to be compared; below, nothing is gained.
_SIMILAR = 0.4


def changed_lines(old: str, new: str) -> Iterator[tuple[str, Sequence[Part]]]:
    """Yield removed lines ("-"), added lines ("+") and one line (" ") around each change, in parts."""
    before, after = old.splitlines(), new.splitlines()
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(1):
        for action, begin, end, first, last in group:
            if action == "equal":
                yield from ((" ", [(line, False)]) for line in before[begin:end])
                continue
            removed, added = before[begin:end], after[first:last]
            pairs = [_compared(*pair) for pair in zip(removed, added, strict=False)]
            for place, line in enumerate(removed):
                yield "-", pairs[place][0] if place < len(pairs) else [(line, False)]
            for place, line in enumerate(added):
                yield "+", pairs[place][1] if place < len(pairs) else [(line, False)]


def _compared(old: str, new: str) -> tuple[list[Part], list[Part]]:
    """Return two lines in parts; lines with little in common have one part each."""
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _SIMILAR:
        return [(old, False)], [(new, False)]
    removed: list[Part] = []
    added: list[Part] = []
    for action, begin, end, first, last in matcher.get_opcodes():
        changed = action != "equal"
        removed += [("".join(before[begin:end]), changed)] if end > begin else []
        added += [("".join(after[first:last]), changed)] if last > first else []
    return removed, added
