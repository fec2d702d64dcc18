"""Sections of a page in Markdown: a heading, and the text below it up to the next heading."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

HEADING_CHARACTERS = 200
_SECTION_CHARACTERS = 8_000  # a longer section is split between blocks
# A longer block is split between lines, a longer line anywhere.
_PART_CHARACTERS = 16_000
# Only blocks are needed. A line of - or = makes no heading: often the line above is a paragraph and the - a rule.
_MARKDOWN = MarkdownIt("commonmark").disable(
    ["inline", "text_join", "lheading", "reference"]
)


class Section(NamedTuple):
    """A part of a page: the headings above its text, the line on which the text begins, from 1, and the text."""

    headings: list[str]
    line: int
    text: str


class _Heading(NamedTuple):
    level: int
    words: str


def sections(text: str) -> Iterator[Section]:
    """Yield every section with a text, a long one in parts."""
    tokens = _MARKDOWN.parse(text)
    lines = text.split("\n")
    headings_by_line = _headings(tokens)
    blocks = {token.map[0] for token in tokens if token.map}
    starts = sorted({0, *blocks})
    above: dict[int, str] = {}
    first = 0
    body = ""
    for start, end in pairwise([*starts, len(lines)]):
        heading = headings_by_line.get(start)
        if heading is not None or len(body) > _SECTION_CHARACTERS:
            yield from _parts(above, first, body)
            first = start
            body = ""
        if heading is not None:
            above = _below(above, heading)
            start += 1
            first = start
        body += "\n".join(lines[start:end]) + "\n"
    yield from _parts(above, first, body)


def _headings(tokens: list[Token]) -> dict[int, _Heading]:
    """Return the headings by their lines, from 0. Those in lists and quotations are none of the page."""
    found = {}
    for token, content in pairwise(tokens):
        is_heading = token.type == "heading_open" and token.level == 0
        if is_heading and token.map:
            level = int(token.tag.removeprefix("h"))
            words = content.content[:HEADING_CHARACTERS]
            found[token.map[0]] = _Heading(level, words)
    return found


def _below(above: Mapping[int, str], heading: _Heading) -> dict[int, str]:
    """Return the headings, by level, that are above the text of a heading."""
    higher = {level: words for level, words in above.items() if level < heading.level}
    return {**higher, heading.level: heading.words}


def _parts(above: Mapping[int, str], first: int, body: str) -> Iterator[Section]:
    """Yield a body with its headings, in parts if it is too long: cut between lines, or anywhere in a longer line."""
    headings = [above[level] for level in sorted(above)]
    body = body.rstrip()
    start = 0
    while start < len(body):
        end = start + _PART_CHARACTERS
        if end < len(body):
            end_of_line = body.rfind("\n", start, end) + 1
            end = end_of_line or end
        part = body[start:end]
        text = part.strip()
        if text:
            blank = len(part) - len(part.lstrip())
            lines_before = body.count("\n", 0, start + blank)
            yield Section(headings, first + lines_before + 1, text)
        start = end
