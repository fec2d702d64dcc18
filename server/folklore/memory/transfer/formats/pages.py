"""Markdown, and the Markdown files Claude Code keeps as memory: each section of a page becomes a memory.

A section is known by its page and its headings, so that importing an edited page again changes only what was edited. A
page's front matter (YAML) gives tags, kind and time to all its sections; what of it has no use is named beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, TextIO

import yaml

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import Line, Lines, id_of, line_of

_SUFFIXES = (".md", ".markdown", ".mdx")
_LEFT_OUT = frozenset({"node_modules", "venv", "__pycache__", "vendor", "dist", "build", "target"})
_SECTION_CHARACTERS = 8_000  # a longer section is split between paragraphs
_LINE_CHARACTERS = 16_000
_FRONT_LINES = 200
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*$")
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# What Claude Code calls the memories it writes itself, as our kinds.
_CLAUDE_KINDS = {"user": "identity", "feedback": "procedural", "project": "semantic", "reference": "note"}
# No field of a memory is called so: a line that has one is counted, with the name, among those left out in part.
_FRONT = "front matter"


def markdown_lines(path: str) -> Lines:
    """The sections of a page, or of every page in a folder and the folders in it, in the order of their paths."""
    root = Path(path)
    return _lines(root, _pages(root), claude=False)


def claude_lines(path: str) -> Lines:
    """The sections of Claude Code's memory: CLAUDE.md, CLAUDE.local.md, rules/ and projects/*/memory/ below a folder.

    The folder is a project, `~/.claude`, or a memory folder itself. Files that an `@path` names are not followed.
    """
    root = Path(path)
    alone = root.is_file() or root.name == "memory"
    pages = (page for page in _pages(root) if alone or _is_claudes(page.relative_to(root)))
    return _lines(root, pages, claude=True)


def _is_claudes(page: Path) -> bool:
    return page.name in ("CLAUDE.md", "CLAUDE.local.md") or bool({"rules", "memory"} & set(page.parts[:-1]))


def _pages(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(
            name for name in folders if name not in _LEFT_OUT and (not name.startswith(".") or name == ".claude")
        )
        for name in sorted(files):
            if name.lower().endswith(_SUFFIXES):
                yield Path(folder) / name


def _lines(root: Path, pages: Iterator[Path], *, claude: bool) -> Lines:
    number = 0
    for page in pages:
        name = page.relative_to(root).as_posix() if root.is_dir() else page.name
        for line in _page_lines(page, name, claude=claude):
            number += 1
            yield number, line


def _page_lines(page: Path, name: str, *, claude: bool) -> Iterator[Line]:
    try:
        with page.open(encoding="utf-8-sig") as text:
            front, first = _front_matter(text)
            shared = _shared(front, name, claude=claude) | _unused(front, claude=claude)
            title = front.get("title") or (front.get("name") if claude else None)
            seen: dict[str, int] = {}
            for headings, body in _sections(text, first):
                where = " > ".join(headings)
                seen[where] = seen.get(where, 0) + 1  # equal headings, and the parts of a long section, by their order
                heading = where or (str(title) if title else "")
                yield line_of(
                    shared
                    | {
                        "id": id_of("page", "claude" if claude else "markdown", name, where, str(seen[where])),
                        "content": f"{heading}\n\n{body}" if heading else body,
                        "source": (f"{name}#{headings[-1]}" if headings else name)[:1000],
                    }
                )
    except OSError as error:
        yield InvalidInput(name, f"cannot be read ({error.strerror}).")
    except UnicodeDecodeError:  # what stands before was taken; a text of replacement characters would be a silent loss
        yield InvalidInput(name, "is not UTF-8.", hint="Convert it and import it again.")


def _front_matter(text: TextIO) -> tuple[dict[str, Any], str]:
    """What stands between two lines of `---` at the beginning of a page, and what else was read on the way."""
    first = text.readline(_LINE_CHARACTERS)
    if first.rstrip() != "---":
        return {}, first
    lines: list[str] = []
    while (line := text.readline(_LINE_CHARACTERS)) and len(lines) < _FRONT_LINES:
        if line.rstrip() in ("---", "..."):
            try:
                loaded = yaml.safe_load("".join(lines)) or {}
            except (yaml.YAMLError, ValueError, RecursionError):
                loaded = None
            return loaded if isinstance(loaded, dict) else {_FRONT: "not YAML of fields"}, ""
        lines.append(line)
    return {}, first + "".join(lines) + line


def _shared(front: dict[str, Any], name: str, *, claude: bool) -> dict[str, Any]:
    """What the front matter says of every section of its page."""
    kind, tags, when = _kind(front, claude=claude), _tags(front), _time(front)
    parts = name.split("/")
    if claude:
        tags = [
            *(tags or []),
            "claude-memory",
            *([f"project:{parts[1].strip('-')}"[:100]] if parts[0] == "projects" and len(parts) > 2 else []),
        ][:64]
    return {
        "kind": kind if _KIND.fullmatch(kind) else None,
        "tags": tags,
        "summary": str(front["description"])[:2000] if front.get("description") else None,
        "occurred_at": when,
    }


def _unused(front: dict[str, Any], *, claude: bool) -> dict[str, bool]:
    """The front matter's fields that no memory has a place for, or whose values have none there, as a line's fields."""
    used = {"title", "description"} | ({"name"} if claude else set())
    if _KIND.fullmatch(_kind(front, claude=claude)):
        used |= {"kind", "type"}
    if _tags(front) is not None:
        used.add("tags")
    if _time(front) is not None:
        used |= {"date", "created"}
    if claude and isinstance(front.get("metadata"), dict):
        used.add("metadata")  # what Claude Code notes for itself
    left = [str(name) for name, value in front.items() if name not in used and value not in (None, "", [], {})]
    return {name if name == _FRONT else f"{_FRONT}: {name[:60]}": True for name in left}


def _kind(front: dict[str, Any], *, claude: bool) -> str:
    """The kind as it stands there, usable or not."""
    told = front.get("metadata") if isinstance(front.get("metadata"), dict) else {}
    kind = str(front.get("kind") or front.get("type") or (told or {}).get("type") or "").strip().lower()
    return _CLAUDE_KINDS.get(kind, kind) if claude else kind


def _tags(front: dict[str, Any]) -> list[str] | None:
    """The tags; None if they are no list and no words."""
    tags = front.get("tags") or []
    tags = re.split(r"[,\s]+", tags) if isinstance(tags, str) else tags
    if not isinstance(tags, list):
        return None
    return [str(tag).strip().lstrip("#")[:100] for tag in tags if str(tag).strip("# ")][:64]


def _time(front: dict[str, Any]) -> str | None:
    when = front.get("date") or front.get("created")
    try:
        when = datetime.fromisoformat(when) if isinstance(when, str) else when
    except ValueError:
        return None
    return when.isoformat() if isinstance(when, date | datetime) else None


@dataclass(slots=True)
class _Section:
    """Text under headings, as far as it has been read."""

    headings: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    characters: int = 0

    def take(self) -> tuple[tuple[str, ...], str] | None:
        """What is there so far; None if that is nothing."""
        body = "".join(self.lines).strip()
        self.lines, self.characters = [], 0
        return (tuple(self.headings[level] for level in sorted(self.headings)), body) if body else None


def _sections(text: TextIO, first: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The headings and the body of every section that has one; code between fences has no headings."""
    section = _Section()
    fence = ""
    lines = iter([*first.splitlines(keepends=True)]) if first else iter(())
    for line in _chained(lines, text):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        heading = None if fence else _HEADING.match(line)
        full = section.characters > _SECTION_CHARACTERS and (
            not line.strip() or section.characters > 2 * _SECTION_CHARACTERS
        )
        if (heading or full) and (done := section.take()):
            yield done
        if heading:
            level = len(heading[1])
            section.headings = {above: words for above, words in section.headings.items() if above < level}
            section.headings[level] = heading[2][:200]
        else:
            section.lines.append(line)
            section.characters += len(line)
    if done := section.take():
        yield done


def _chained(lines: Iterator[str], text: TextIO) -> Iterator[str]:
    yield from lines
    while line := text.readline(_LINE_CHARACTERS):
        yield line
