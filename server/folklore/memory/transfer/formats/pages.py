"""Pages in Markdown, rules for assistants, and notes of Claude Code: each section of a page becomes a memory.

The id of a section follows from its origin, its page and its headings, so that importing an edited page again changes
only the edited sections. The front matter (YAML) gives all sections tags, kind, summary and time; other fields are
reported.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, Literal
from uuid import UUID

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import (
    Lines,
    SourceLine,
    decoded,
    encoded,
    id_of,
    line_of,
    skipped_line,
    valid_kind,
)

PageFormat = Literal["markdown", "rules", "claude-memory", "decisions", "web"]

PAGE_CHARACTERS = (
    2_000_000  # parsing takes 8 s, of a list with very short items 35 s and 1 GB
)
_IN_MEMORY_BYTES = 1_000_000  # of lines; more are in a file
_SECTION_CHARACTERS = 8_000  # a longer section is split between blocks
_PART_CHARACTERS = (
    16_000  # a longer block is split between lines, a longer line anywhere
)
_HEADING_CHARACTERS = 200
_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_FRONT_MATTER_LINES = 200  # more lines are text between two rules
# Only blocks are needed. A line of - or = makes no heading: often the line above is a paragraph and the - a rule.
_MARKDOWN = MarkdownIt("commonmark").disable(
    ["inline", "text_join", "lheading", "reference"]
)
# The types of Claude Code's own notes, as kinds.
_CLAUDE_KINDS = {
    "user": "identity",
    "feedback": "procedural",
    "project": "semantic",
    "reference": "note",
}
# The fields of front matter that give a field of a memory.
_SOURCES = {
    "kind": ("kind", "type"),
    "tags": ("tags",),
    "occurred_at": ("date", "created"),
}
# Conditions of rules: the files that they apply to.
_CONDITIONS = {"globs", "alwaysApply", "applyTo", "paths"}
# Other fields that are used, or Claude Code's own, and the kind of a page that names none, by format.
_USED = {"claude-memory": {"name", "metadata"}, "rules": _CONDITIONS}
_KINDS = {"rules": "procedural", "decisions": "decision"}
_MOST_TAGS = 64
_FIELD = re.compile(r"[A-Za-z][\w-]*")
# The file of Claude Code that lists the other notes of its folder, and the lines that it does so with.
_INDEX = "memory.md"
_PAGE_LINK = re.compile(r"\]\((?!\w+:)[^)\s]+\.md[^)]*\)")
_LINK_CHARACTERS = 1_000
_PAGE_NAME = re.compile(r"[\w./-]+\.md\b")
# Not a field of a memory: the report counts lines that have it, by name.
_IGNORED = "front matter"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with its name in ids and sources, or, with `skipped`, the reason why it is not read."""

    path: Path
    name: str
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: its name, its front matter, its text, and the number of lines before the text."""

    name: str
    front: dict[str, Any]
    text: str
    lines_before: int = 0


class Pages:
    """The pages of one origin, read once into a temporary file.

    `origin` names what was imported, the same for every import of it: ids follow from it, and each memory has it in its
    metadata with the name of its page. The pages are all of the origin that `below` names, or that are in the folders
    named there (none: all). `ids` are those of all sections; the sections of `unread` pages are not known.
    """

    def __init__(
        self,
        form: PageFormat,
        origin: str,
        files: Iterable[PageFile],
        below: Sequence[str] = (),
    ) -> None:
        self._form = form
        self.origin = origin
        self.below = tuple(below)
        self.count = 0
        self.ids: set[UUID] = set()
        self.unread: set[str] = set()
        self._errors: list[SourceLine] = []
        # A file has no name, so that no other user can read it.
        self._lines = SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        for file in files:
            self._read(file)

    def close(self) -> None:
        """Delete the temporary file."""
        self._lines.close()

    def lines(self) -> Lines:
        """Yield the sections of all pages, after the errors."""
        yield from self._errors
        self._lines.seek(0)
        for number, line in enumerate(
            map(decoded, self._lines), start=len(self._errors) + 1
        ):
            yield line._replace(number=number)

    def _read(self, file: PageFile) -> None:
        if file.skipped:
            self.unread.add(file.name)
            self._write(file.name, 0, skipped_line(file.skipped))
            return
        try:
            page = _page(file, self._form)
        except InvalidInput as error:
            self.unread.add(file.name)
            self._errors.append(SourceLine(len(self._errors) + 1, error, file.name))
            return
        for id_, begins, raw in _page_lines(
            page, self.origin, self._form, file.path.parent
        ):
            if id_ is not None:
                self.count += 1
                self.ids.add(id_)
            self._write(page.name, begins, raw)

    def _write(self, name: str, begins: int, raw: bytes) -> None:
        self._lines.write(encoded([SourceLine(0, raw, name, begins)]))


def _page(file: PageFile, form: PageFormat) -> _Page:
    """Read a page. Raises InvalidInput."""
    name = file.name
    try:
        with file.path.open(encoding="utf-8-sig") as source:
            text = source.read(PAGE_CHARACTERS + 1)
    except OSError as error:
        raise InvalidInput(name, f"cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:  # replacement characters would be a silent loss
        raise InvalidInput(
            name, "is not UTF-8.", hint="Convert it and import it again."
        ) from None
    if len(text) > PAGE_CHARACTERS:
        raise InvalidInput(
            name, f"must be at most {PAGE_CHARACTERS:,} characters.", hint="Split it."
        )
    front, body = _front_matter(text, lenient=form == "rules")
    return _Page(name, front, body, text.count("\n", 0, len(text) - len(body)))


def _front_matter(text: str, *, lenient: bool) -> tuple[dict[str, Any], str]:
    """Return the fields between two lines of --- at the beginning of a page, and the text after them.

    With `lenient`, lines of `name: value` do as well: rules of Cursor have `globs: **/*.ts`, which is not YAML.
    """
    match = _FRONT_MATTER.match(text)
    if match is None or match[1].count("\n") > _FRONT_MATTER_LINES:
        return {}, text
    try:
        fields = yaml.safe_load(match[1]) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        fields = _plain_fields(match[1]) if lenient else None
    return fields if isinstance(fields, dict) else {
        _IGNORED: "not YAML of fields"
    }, text[match.end() :]


def _plain_fields(text: str) -> dict[str, Any] | None:
    """Return lines of `name: value` as fields, None for anything else."""
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if not all(separator and _FIELD.fullmatch(name) for name, separator, _ in pairs):
        return None
    return {name: value.strip() for name, _, value in pairs}


def _page_lines(
    page: _Page, origin: str, form: PageFormat, folder: Path
) -> Iterator[tuple[UUID | None, int, bytes]]:
    """Yield the sections of a page: id, line of the page, and line of the import; without id what is left out."""
    shared = _shared(page, form)
    shared["metadata"] = {
        **shared.get("metadata", {}),
        "document": page.name,
        "import": origin,
    }
    title = _text(page.front.get("title")) or (
        _text(page.front.get("name")) if form == "claude-memory" else ""
    )
    title = title[:_HEADING_CHARACTERS]
    index = form == "claude-memory" and page.name.rpartition("/")[2].lower() == _INDEX
    counts: dict[str, int] = {}
    for headings, line, text in _sections(page.text):
        where = " > ".join(headings)
        counts[where] = (
            counts.get(where, 0) + 1
        )  # equal headings and the parts of a long section differ by their order
        heading = where or title
        begins = page.lines_before + line
        if index and _only_links(text, folder):
            yield None, begins, skipped_line("index of other files")
            continue
        id_ = id_of("page", origin, page.name, where, str(counts[where]))
        last = headings[-1] if headings else ""
        raw = line_of(
            shared
            | {
                "id": id_,
                "content": f"{heading}\n\n{text}" if heading else text,
                "source": (f"{page.name}#{last}" if last else page.name)[:1000],
            }
        )
        yield UUID(id_), begins - (2 if heading else 0), raw


def _only_links(text: str, folder: Path) -> bool:
    """Return True if every line names another page: by a link, or a file of this folder by its name."""

    def links(line: str) -> bool:
        if len(line) > _LINK_CHARACTERS:
            return False
        return bool(_PAGE_LINK.search(line)) or any(
            (folder / name).is_file() for name in _PAGE_NAME.findall(line)
        )

    return all(links(line) for line in text.splitlines() if line.strip())


def _shared(page: _Page, form: PageFormat) -> dict[str, Any]:
    """Return the fields that all lines of a page have, with the unused front matter among them."""
    front = page.front
    values: dict[str, Any] = {
        "kind": _kind(front, form),
        "tags": _tags(front),
        "occurred_at": _time(front),
    }
    used = {"title", "description", *_USED.get(form, ())}
    used.update(
        *(_SOURCES[name] for name, value in values.items() if value is not None)
    )
    values["kind"] = values["kind"] or _KINDS.get(form)
    values["tags"] = [*(values["tags"] or ()), *_tags_of_format(page.name, form)][
        -_MOST_TAGS:
    ]
    values["summary"] = _text(front.get("description"))[:2000]
    if form == "rules":
        values["metadata"] = {
            name: texts for name in _CONDITIONS if (texts := _texts(front.get(name)))
        }
    if form == "decisions":
        values["paths"] = [page.name]
    return values | dict.fromkeys(_unused(front, used), True)


def _tags_of_format(name: str, form: PageFormat) -> list[str]:
    """Return the tags of all pages of a format; notes of Claude Code have that of their project."""
    if form == "claude-memory":
        parts = name.split("/")
        project = (
            [f"project:{parts[1].strip('-')}"[:100]]
            if parts[0] == "projects" and len(parts) > 2
            else []
        )
        return [form, *project]
    return ["rules"] if form == "rules" else []


def _unused(front: dict[str, Any], used: set[str]) -> list[str]:
    """Return the names of other fields with a value, as the report counts them."""
    names = {
        str(name)
        for name, value in front.items()
        if name not in used and value not in (None, "", [], {})
    }
    return [name if name == _IGNORED else f"{_IGNORED}: {name[:60]}" for name in names]


def _kind(front: dict[str, Any], form: PageFormat) -> str | None:
    metadata = front.get("metadata")
    type_ = metadata.get("type") if isinstance(metadata, dict) else None
    kind = valid_kind(_text(front.get("kind") or front.get("type") or type_))
    return (
        _CLAUDE_KINDS.get(kind, kind)
        if form == "claude-memory" and kind is not None
        else kind
    )


def _text(value: object) -> str:
    """Return a plain value of front matter as text: written out, nested ones may be larger than memory."""
    if (
        isinstance(value, int) and value.bit_length() > 64
    ):  # thousands of digits are an error
        return ""
    return (
        str(value)
        if value is not None and isinstance(value, str | int | float | date)
        else ""
    )


def _texts(value: object) -> str | list[str]:
    return [_text(item) for item in value] if isinstance(value, list) else _text(value)


def _tags(front: dict[str, Any]) -> list[str] | None:
    """Return the tags, None if they are neither a list nor words."""
    tags = front.get("tags") or []
    tags = re.split(r"[,\s]+", tags) if isinstance(tags, str) else tags
    if not isinstance(tags, list):
        return None
    return [
        text.strip().lstrip("#")[:100]
        for tag in tags
        if (text := _text(tag)).strip("# ")
    ][:_MOST_TAGS]


def _time(front: dict[str, Any]) -> str | None:
    time = front.get("date") or front.get("created")
    try:
        time = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        return None
    return time.isoformat() if isinstance(time, date | datetime) else None


# A part of a page: its headings, the line of the page on which its text begins, from 1, and its text.
_Section = tuple[list[str], int, str]


def _sections(text: str) -> Iterator[_Section]:
    """Yield every section with a text, a long one in parts."""
    tokens, lines = _MARKDOWN.parse(text), text.split("\n")
    places = _headings(tokens)
    headings: dict[int, str] = {}
    first, body = 0, ""
    starts = sorted({0, *(token.map[0] for token in tokens if token.map)})
    for start, end in pairwise([*starts, len(lines)]):
        if start in places or len(body) > _SECTION_CHARACTERS:
            yield from _parts(headings, first, body)
            first, body = start, ""
        if start in places:
            level, heading = places[start]
            headings = {
                above: words for above, words in headings.items() if above < level
            } | {level: heading}
            start += 1
            first = start
        body += "\n".join(lines[start:end]) + "\n"
    yield from _parts(headings, first, body)


def _headings(tokens: list[Token]) -> dict[int, tuple[int, str]]:
    return {
        token.map[0]: (int(token.tag[1:]), content.content[:_HEADING_CHARACTERS])
        for token, content in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    }


def _parts(headings: dict[int, str], first: int, body: str) -> Iterator[_Section]:
    """Yield a body with its headings, in parts if it is too long: cut between lines, or anywhere in a longer line."""
    start, body = 0, body.rstrip()
    while start < len(body):
        end = start + _PART_CHARACTERS
        if end < len(body):
            end = body.rfind("\n", start, end) + 1 or end
        part = body[start:end]
        if text := part.strip():
            blank = len(part) - len(part.lstrip())
            line = first + body.count("\n", 0, start + blank) + 1
            yield [headings[level] for level in sorted(headings)], line, text
        start = end
