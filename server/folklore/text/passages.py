"""Passages of a long text: ranges of characters that end at headings, paragraphs, lines or sentences."""

import re

# Where to divide a text, the best first: before a heading, after a paragraph, a line, a sentence, a word.
_ENDS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\n(?=#{1,6} )",
        r"\n\s*\n",
        r"\n",
        r"[.!?;。！？]['\")\]]*\s|[。！？]",
        r"\s",
    )
)
# A passage has at least this share of the usual size, and at most 1 / this share.
_LEAST = 0.6


def passages(text: str, size: int, longer_than: int) -> list[tuple[int, int]]:
    """Return the ranges (begin, end) of passages of about `size` characters, which cover the text without gap.

    A text of at most `longer_than` characters has none.
    """
    if len(text) <= longer_than:
        return []
    ranges = []
    begin = 0
    while len(text) - begin > size / _LEAST:
        end = _end(text, begin + int(size * _LEAST), begin + size)
        ranges.append((begin, end))
        begin = end
    return [*ranges, (begin, len(text))]


def _end(text: str, least: int, most: int) -> int:
    """Return the last offset in this range to divide the text, of the best kind that there is."""
    for pattern in _ENDS:
        offsets = [match.end() for match in pattern.finditer(text, least, most)]
        if offsets:
            return offsets[-1]
    return most
