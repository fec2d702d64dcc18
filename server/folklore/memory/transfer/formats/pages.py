"""Markdown pages, and those that Claude Code keeps as memory: each section of a page becomes a memory.

The id of a section follows from its page and its headings, so that importing an edited page again changes only the
edited sections. The front matter (YAML) gives all sections tags, kind, summary and time; other fields are reported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import Lines, SourceLine, id_of, line_of, valid_kind

_SUFFIXES = (".md", ".markdown", ".mdx")
_SKIPPED_FOLDERS = frozenset({"node_modules", "venv", "__pycache__", "vendor", "dist", "build", "target"})
_PAGE_CHARACTERS = 2_000_000  # parsing takes 8 s, of a list with very short items 35 s and 1 GB
_SECTION_CHARACTERS = 8_000  # a longer section is split between blocks
_PART_CHARACTERS = 16_000  # a longer block is split between lines, a longer line anywhere
_HEADING_CHARACTERS = 200
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FRONT_MATTER_LINES = 200  # more lines are text between two rules
# Only blocks are needed. A line of - or = makes no heading: often the line above is a paragraph and the - a rule.
_MARKDOWN = MarkdownIt("commonmark").disable(["inline", "text_join", "lheading", "reference"])
# The types of Claude Code's own notes, as kinds.
_CLAUDE_KINDS = {"user": "identity", "feedback": "procedural", "project": "semantic", "reference": "note"}
# The fields of front matter that give a field of a memory.
_SOURCES = {"kind": ("kind", "type"), "tags": ("tags",), "occurred_at": ("date", "created")}
# Not a field of a memory: the report counts lines that have it, by name.
_IGNORED = "front matter"


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: its name in ids and sources, its front matter and its text; `claude` if it is Claude Code's."""

    name: str
    front: dict[str, Any]
    text: str
    claude: bool


def markdown_lines(path: str) -> Lines:
    """Yield the sections of a page, or of all pages below a folder in the order of their paths."""
    root = Path(path)
    return _lines(root, _files(root), claude=False)


def claude_lines(path: str) -> Lines:
    """Yield the sections of CLAUDE.md, CLAUDE.local.md, rules/ and projects/*/memory/ below a folder.

    The folder is a project, `~/.claude`, or a memory folder itself. Files named by `@path` are not read.
    """
    root = Path(path)
    whole = root.is_file() or root.name == "memory"
    files = (file for file in _files(root) if whole or _is_claude_memory(file.relative_to(root)))
    return _lines(root, files, claude=True)


def _is_claude_memory(file: Path) -> bool:
    return file.name in ("CLAUDE.md", "CLAUDE.local.md") or bool({"rules", "memory"} & set(file.parts[:-1]))


def _files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED_FOLDERS and (not name.startswith(".") or name == ".claude")
        )
        for name in sorted(files):
            if name.lower().endswith(_SUFFIXES):
                yield Path(folder) / name


def _lines(root: Path, files: Iterator[Path], *, claude: bool) -> Lines:
    names = ((file, file.relative_to(root).as_posix() if root.is_dir() else file.name) for file in files)
    return enumerate((line for file, name in names for line in _file_lines(file, name, claude=claude)), start=1)


def _file_lines(file: Path, name: str, *, claude: bool) -> Iterator[SourceLine]:
    try:
        with file.open(encoding="utf-8-sig") as source:
            text = source.read(_PAGE_CHARACTERS + 1)
    except OSError as error:
        yield InvalidInput(name, f"cannot be read ({error.strerror}).")
        return
    except UnicodeDecodeError:  # replacement characters would be a silent loss
        yield InvalidInput(name, "is not UTF-8.", hint="Convert it and import it again.")
        return
    if len(text) > _PAGE_CHARACTERS:
        yield InvalidInput(name, f"must be at most {_PAGE_CHARACTERS:,} characters.", hint="Split it.")
        return
    yield from _page_lines(_Page(name, *_front_matter(text), claude))


def _front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields between two lines of --- at the beginning of a page, and the text after them."""
    match = _FRONT_MATTER.match(text)
    if match is None or match[1].count("\n") > _FRONT_MATTER_LINES:
        return {}, text
    try:
        fields = yaml.safe_load(match[1]) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        fields = None
    return fields if isinstance(fields, dict) else {_IGNORED: "not YAML of fields"}, text[match.end() :]


def _page_lines(page: _Page) -> Iterator[SourceLine]:
    shared = _shared(page)
    title = page.front.get("title") or (page.front.get("name") if page.claude else None)
    seen: dict[str, int] = {}
    for headings, body in _sections(page.text):
        where = " > ".join(headings)
        seen[where] = seen.get(where, 0) + 1  # equal headings and the parts of a long section differ by their order
        heading = where or (str(title) if title else "")
        yield line_of(
            shared
            | {
                "id": id_of("page", "claude" if page.claude else "markdown", page.name, where, str(seen[where])),
                "content": f"{heading}\n\n{body}" if heading else body,
                "source": (f"{page.name}#{headings[-1]}" if headings else page.name)[:1000],
            }
        )


def _shared(page: _Page) -> dict[str, Any]:
    """Return the fields that all lines of a page have, with the unused front matter among them."""
    front = page.front
    values: dict[str, Any] = {"kind": _kind(page), "tags": _tags(front), "occurred_at": _time(front)}
    used = {"title", "description"}
    used.update(*(_SOURCES[name] for name, value in values.items() if value is not None))
    if page.claude:
        used |= {"name", "metadata"}  # metadata is Claude Code's own
        values["tags"] = [*(values["tags"] or []), "claude-memory", *_project_tags(page)][:64]
    if front.get("description"):
        values["summary"] = str(front["description"])[:2000]
    unused = {str(name) for name, value in front.items() if name not in used and value not in (None, "", [], {})}
    return values | dict.fromkeys(map(_ignored_field, unused), True)


def _ignored_field(name: str) -> str:
    return name if name == _IGNORED else f"{_IGNORED}: {name[:60]}"


def _project_tags(page: _Page) -> list[str]:
    parts = page.name.split("/")
    return [f"project:{parts[1].strip('-')}"[:100]] if parts[0] == "projects" and len(parts) > 2 else []


def _kind(page: _Page) -> str | None:
    front, metadata = page.front, page.front.get("metadata")
    own = metadata.get("type") if isinstance(metadata, dict) else None
    kind = valid_kind(str(front.get("kind") or front.get("type") or own or ""))
    return _CLAUDE_KINDS.get(kind, kind) if page.claude and kind is not None else kind


def _tags(front: dict[str, Any]) -> list[str] | None:
    """Return the tags, None if they are neither a list nor words."""
    tags = front.get("tags") or []
    tags = re.split(r"[,\s]+", tags) if isinstance(tags, str) else tags
    if not isinstance(tags, list):
        return None
    return [str(tag).strip().lstrip("#")[:100] for tag in tags if str(tag).strip("# ")][:64]


def _time(front: dict[str, Any]) -> str | None:
    time = front.get("date") or front.get("created")
    try:
        time = datetime.fromisoformat(time) if isinstance(time, str) else time
    except ValueError:
        return None
    return time.isoformat() if isinstance(time, date | datetime) else None


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the headings and the body of every section with a body, a long one in parts."""
    tokens, lines = _MARKDOWN.parse(text), text.split("\n")
    found = _headings(tokens)
    headings: dict[int, str] = {}
    body = ""
    starts = sorted({token.map[0] for token in tokens if token.map})
    for start, end in pairwise([*starts, len(lines)]):
        if start in found or len(body) > _SECTION_CHARACTERS:
            yield from _parts(headings, body)
            body = ""
        if start in found:
            level, heading = found[start]
            headings = {above: words for above, words in headings.items() if above < level} | {level: heading}
            start += 1
        body += "\n".join(lines[start:end]) + "\n"
    yield from _parts(headings, body)


def _headings(tokens: list[Token]) -> dict[int, tuple[int, str]]:
    """Return the level and the text of each heading by its line."""
    return {
        token.map[0]: (int(token.tag[1:]), content.content[:_HEADING_CHARACTERS])
        for token, content in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    }


def _parts(headings: dict[int, str], body: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield a body with its headings, in parts if it is too long: cut between lines, or anywhere in a longer line."""
    start, body = 0, body.strip()
    while start < len(body):
        end = start + _PART_CHARACTERS
        if end < len(body):
            end = body.rfind("\n", start, end) + 1 or end
        if part := body[start:end].strip():
            yield tuple(headings[level] for level in sorted(headings)), part
        start = end
