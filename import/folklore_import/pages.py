"""Pages in Markdown, rules for assistants, and notes of Claude Code: each section of a page becomes a memory.

The id of a section follows from its origin, its page and its headings, so that importing an edited page again changes
only the edited sections. The front matter (YAML) gives all sections tags, kind, summary and time; other fields are
reported.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, Literal
from uuid import UUID

from folklore.contract.lines import Lines, SourceLine, decoded, encoded
from folklore.errors import InvalidInput
from folklore.importers.encodings import encoding_of
from folklore_import.front_matter import (
    is_empty,
    read_front_matter,
)
from folklore_import.lines import (
    cues_of,
    id_of,
    line_of,
    skipped_line,
    valid_kind,
)
from folklore_import.sections import HEADING_CHARACTERS, sections

PageFormat = Literal["markdown", "rules", "claude-memory", "decisions", "web"]

PAGE_CHARACTERS = (
    2_000_000  # parsing takes 8 s, of a list with very short items 35 s and 1 GB
)
_IN_MEMORY_BYTES = 1_000_000  # of lines; more are in a file
_MOST_BYTES = 4 * PAGE_CHARACTERS + 4  # of a page in any encoding
# The types of Claude Code's own notes, as kinds.
_CLAUDE_KINDS = {
    "user": "identity",
    "feedback": "procedural",
    "project": "semantic",
    "reference": "note",
}
# The fields of front matter that give the kind and the time of a memory: the first that can be used.
_KIND_FIELDS = ("kind", "type")
_TIME_FIELDS = ("date", "created")
# Conditions of rules: the files that they apply to.
_CONDITIONS = ("globs", "alwaysApply", "applyTo", "paths")
# The kind of a page that names none, by format.
_KINDS = {"rules": "procedural", "decisions": "decision"}
_MOST_TAGS = 64
_TAG_CHARACTERS = 100
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}
# The blank before an offset, as YAML has it and ISO 8601 does not.
_BLANK_BEFORE_OFFSET = re.compile(r"(?<!\s)\s+(?=[+-]\d|Z$)")
# The file of Claude Code that lists the other notes of its folder, and the lines that it does so with.
_INDEX = "memory.md"
_PAGE_LINK = re.compile(r"\]\((?!\w+:)(?>[^()\s]+?\.md)[^()]*\)")
_LINK_CHARACTERS = 1_000
_PAGE_NAME = re.compile(r"(?<![\w./-])[\w./-]+\.md\b")
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
            page = _page(file)
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


def _page(file: PageFile) -> _Page:
    """Read a page. Raises InvalidInput."""
    name = file.name
    try:
        with file.path.open("rb") as source:
            raw = source.read(_MOST_BYTES)
    except OSError as error:
        raise InvalidInput(name, f"cannot be read ({error.strerror}).") from None
    try:
        text = raw.decode(encoding_of(raw))
    except UnicodeDecodeError:  # replacement characters would be a silent loss
        raise InvalidInput(
            name, "is not UTF-8.", hint="Convert it and import it again."
        ) from None
    if len(text) > PAGE_CHARACTERS:
        raise InvalidInput(
            name, f"must be at most {PAGE_CHARACTERS:,} characters.", hint="Split it."
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = read_front_matter(text)
    fields = dict(front.fields)
    if front.is_partial:
        fields[_IGNORED] = "a part is no field"
    lines_before = text.count("\n", 0, len(text) - len(front.text))
    return _Page(name, fields, front.text, lines_before)


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
    title = _title(page, form)
    rule = ""
    if form == "rules":
        # A rule says in its description when it applies; other pages what they are about.
        rule = _text(page.front.get("description"))
    is_index = form == "claude-memory" and _file_name(page).lower() == _INDEX
    counts: dict[str, int] = {}
    for headings, line, text in sections(page.text):
        where = " > ".join(headings)
        # equal headings and the parts of a long section differ by their order
        counts[where] = counts.get(where, 0) + 1
        begins = page.lines_before + line
        if is_index and _only_links(text, folder):
            yield None, begins, skipped_line("index of other files")
            continue
        id_ = id_of("page", origin, page.name, where, str(counts[where]))
        last = headings[-1] if headings else ""
        source = page.name
        if last:
            source = f"{page.name}#{last}"
        content = text
        heading = where or title
        if heading:
            content = f"{heading}\n\n{text}"
            begins -= 2  # of the content, whose text begins on that line
        fields = {
            "id": id_,
            "content": content,
            "cues": cues_of(last or title, rule),
            "source": source[:1000],
        }
        yield UUID(id_), begins, line_of(shared | fields)


def _title(page: _Page, form: PageFormat) -> str:
    title = _text(page.front.get("title"))
    if not title and form == "claude-memory":
        title = _text(page.front.get("name"))
    return title[:HEADING_CHARACTERS]


def _file_name(page: _Page) -> str:
    return page.name.rpartition("/")[2]


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
    """Return the fields that all lines of a page have.

    With them True by the name of each field of the front matter that nothing uses, which the report counts.
    """
    front = page.front
    text_fields = ["title", "description"]
    if form == "claude-memory":
        text_fields.append("name")
    used = {name for name in text_fields if isinstance(front.get(name), str)}
    kind, kind_field = _first_of(front, _KIND_FIELDS, lambda text: _kind(text, form))
    time, time_field = _first_of(front, _TIME_FIELDS, _time)
    used |= {kind_field, time_field}
    tags, all_tags_fit = _tags(front.get("tags"))
    if all_tags_fit:
        used.add("tags")
    note = front.get("metadata")
    if form == "claude-memory" and isinstance(note, dict):
        used.add("metadata")  # Claude Code's own, but for the type
        kind = kind or _kind(_text(note.get("type")), form)
    values: dict[str, Any] = {
        "kind": kind or _KINDS.get(form),
        "tags": [*tags, *_tags_of_format(page.name, form)][-_MOST_TAGS:],
        "occurred_at": time,
        "summary": _text(front.get("description"))[:2000],
    }
    if form == "rules":
        conditions = _conditions(front)
        values["metadata"] = conditions
        used |= conditions.keys()
    if form == "decisions":
        values["paths"] = [page.name]
    return values | dict.fromkeys(_unused(front, used), True)


def _conditions(front: dict[str, Any]) -> dict[str, str | bool | list[str]]:
    """Return the conditions of a rule that it states."""
    stated = {}
    for name in _CONDITIONS:
        condition = _condition(front.get(name))
        if condition is not None:
            stated[name] = condition
    return stated


def _first_of(
    front: dict[str, Any], names: Iterable[str], read: Callable[[str], str | None]
) -> tuple[str | None, str]:
    """Return the first value of these fields that can be used, and the field's name; None and an empty name without one."""
    for name in names:
        value = read(_text(front.get(name)))
        if value is not None:
            return value, name
    return None, ""


def _tags_of_format(name: str, form: PageFormat) -> list[str]:
    """Return the tags of all pages of a format; notes of Claude Code have that of their project."""
    if form == "rules":
        return ["rules"]
    if form != "claude-memory":
        return []
    tags: list[str] = [form]
    folders = name.split("/")
    if folders[0] == "projects" and len(folders) > 2:
        tags.append(f"project:{folders[1].strip('-')}"[:100])
    return tags


def _unused(front: dict[str, Any], used: set[str]) -> list[str]:
    """Return the names of other fields with a value, as the report counts them."""
    names = {
        name
        for name, value in front.items()
        if name not in used and not is_empty(value)
    }
    return [_reported(name) for name in names]


def _reported(name: str) -> str:
    if name == _IGNORED:
        return name
    return f"{_IGNORED}: {name[:60]}"


def _kind(text: str, form: PageFormat) -> str | None:
    kind = valid_kind(text)
    if form == "claude-memory" and kind is not None:
        return _CLAUDE_KINDS.get(kind, kind)
    return kind


def _text(value: object) -> str:
    """Return a value of front matter as text, empty for a list, an object and none."""
    if isinstance(value, str) and not is_empty(value):
        return value.strip()
    return ""


def _condition(value: object) -> str | bool | list[str] | None:
    """Return a condition of a rule: a text, texts, true or false; None for none and for another value."""
    if isinstance(value, list):
        are_texts = bool(value) and all(isinstance(entry, str) for entry in value)
        return value if are_texts else None
    text = _text(value)
    return _TRUTH.get(text.lower(), text or None)


def _tags(value: object) -> tuple[list[str], bool]:
    """Return tags of a list or of words, and whether all of the value are tags."""
    if value is None:
        return [], True
    if isinstance(value, str):
        entries = re.split(r"[,\s]+", _text(value))
    elif isinstance(value, list):
        entries = value
    else:
        return [], False
    texts = [entry for entry in entries if isinstance(entry, str)]
    tags = [text.strip().strip("[]").lstrip("# ") for text in texts]
    tags = [tag for tag in tags if tag]
    are_short = all(len(tag) <= _TAG_CHARACTERS for tag in tags)
    all_fit = len(texts) == len(entries) and len(tags) <= _MOST_TAGS and are_short
    return [tag[:_TAG_CHARACTERS] for tag in tags[:_MOST_TAGS]], all_fit


def _time(text: str) -> str | None:
    try:
        return datetime.fromisoformat(_BLANK_BEFORE_OFFSET.sub("", text)).isoformat()
    except ValueError:
        return None
