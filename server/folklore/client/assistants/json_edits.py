"""Edits of JSON with comments and trailing commas, by position: every other byte stays."""

import json
import re
from dataclasses import dataclass
from typing import Any

from folklore.client.assistants.entry import (
    BOM,
    NAME,
    EditError,
    Entry,
    invalid,
    newline_of,
)

# or a string, which may look like one
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{,]\s*)?,(?=\s*[}\]])', re.DOTALL)
_COMMENTS_OF_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_END_OF_LINE_OR_OBJECT = re.compile(r"[ \t]*(?:\r?\n|$)|\s*[}\]]")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """Member of an object: where its key begins, its value begins and ends, and the comma after it ends.

    An element of a list has an empty key, and begins where its value begins.
    """

    key: str
    start: int
    value: int
    end: int
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Object:
    """Object or list: the index after its opening brace, that of its closing one, and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        """Return the member of this name; of several the last, which is the one that counts."""
        for member in reversed(self.members):
            if member.key == key:
                return member
        return None


class Document:
    """Document of JSON: its text, the same without comments, and the same as strict JSON, all of one length."""

    def __init__(self, text: str) -> None:
        self.text = text
        start = f" {text[1:]}" if text.startswith(BOM) else text
        self._bare = _COMMENT.sub(_blanks_for_comment, start)
        self.strict = _TRAILING_COMMA.sub(_blank_for_comma, self._bare)

    def root(self) -> _Object | None:
        """Return the outermost object, if the document has any content."""
        start = self._skip(self.strict, 0)
        if start == len(self.strict):
            return None
        return self._object(start)

    def outermost(self) -> _Object:
        """Return the outermost object of a document that has content."""
        root = self.root()
        assert root is not None
        return root

    def section(self, key: str) -> _Object | None:
        """Return the object at a key of the outermost one, if it is there."""
        root = self.root()
        member = None if root is None else root.member(key)
        if member is None:
            return None
        return self._object(member.value)

    def list_of(self, section: str, key: str) -> _Object | None:
        """Return the list at a key of a section, if it is there."""
        around = self.section(section)
        member = None if around is None else around.member(key)
        if member is None:
            return None
        return self._list(member.value)

    def _object(self, start: int) -> _Object:
        """Return the object whose opening brace is at `start`."""
        members = []
        index = self._skip(self.strict, start + 1)
        while self.strict[index] != "}":
            key, end_of_key = _DECODER.raw_decode(self.strict, index)
            colon = self._skip(self.strict, end_of_key)
            value = self._skip(self.strict, colon + 1)
            member = self._member(key, index, value)
            members.append(member)
            index = self._skip(self.strict, member.comma or member.end)
        return _Object(start + 1, index, tuple(members))

    def _list(self, start: int) -> _Object:
        """Return the list whose opening bracket is at `start`."""
        elements = []
        index = self._skip(self.strict, start + 1)
        while self.strict[index] != "]":
            element = self._member("", index, index)
            elements.append(element)
            index = self._skip(self.strict, element.comma or element.end)
        return _Object(start + 1, index, tuple(elements))

    def _member(self, key: str, start: int, value: int) -> _Member:
        """Return the member that begins at `start`, and its value at `value`."""
        _, end = _DECODER.raw_decode(self.strict, value)
        end_of_space = self._skip(self._bare, end)
        comma = None
        if self._bare[end_of_space] == ",":
            comma = end_of_space + 1
        return _Member(key, start, value, end, comma)

    @staticmethod
    def _skip(text: str, index: int) -> int:
        """Return the index of the next character that is no space."""
        match = _SPACE.match(text, index)
        assert match is not None  # of any length
        return match.end()


def _blanks_for_comment(match: re.Match[str]) -> str:
    """Return a string as it is, and blanks for a comment, but for its line ends."""
    if match[0].startswith('"'):
        return match[0]
    return re.sub(r"[^\r\n]", " ", match[0])


def _blank_for_comma(match: re.Match[str]) -> str:
    """Return a blank for a trailing comma, everything else as it is."""
    if match[0] == ",":
        return " "
    return match[0]


def read_json(text: str) -> dict[str, Any]:
    """Return the values of a document; an empty one, or one of comments alone, is an empty object."""
    strict = Document(text).strict
    if not strict.strip():
        return {}
    try:
        value = json.loads(
            strict, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise invalid("JSON", "it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise invalid(
            "JSON", f"line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    if not isinstance(value, dict):
        raise invalid("JSON", "it is not an object")
    return value


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in members]
    if keys.count(NAME) > 1:  # which of them a client takes is not known
        raise EditError(
            f"has `{NAME}` twice in one object; nothing was changed.",
            "Remove one, then run this again.",
        )
    return dict(members)


def _refuse_constant(word: str) -> None:
    raise invalid("JSON", f"{word} is no value")


def whole_json(text: str, values: Entry) -> str:
    """Return a text without any object, with one of these values after it."""
    newline = newline_of(text)
    document = _write_json(values, "", newline, _unit(text))
    if text.strip(BOM) and not text.endswith(newline):
        text += newline
    return f"{text}{document}{newline}"


def put_json(text: str, section: str, entry: Entry) -> str:
    """Return the text with this entry in a section, in place of the present one, if any."""
    document = Document(text)
    root = document.root()
    servers = document.section(section)
    if root is None:
        return whole_json(text, {section: {NAME: entry}})
    if servers is None:
        return insert(text, root, section, {NAME: entry})
    present = servers.member(NAME)
    if present is None:
        return insert(text, servers, NAME, entry)
    if "\n" in text[present.value : present.end]:
        indent = _indent(text, present.start)
        member = _write_json(entry, indent, newline_of(text), _unit(text))
    else:
        member = json.dumps(entry, ensure_ascii=False)
    return text[: present.value] + member + text[present.end :]


def insert(text: str, around: _Object, key: str | None, value: object) -> str:
    """Return the text with a new first member, or with a new first element of a list.

    The first position needs no change of what is there: the last one would need a comma after the present last member,
    which may have a comment behind it.
    """
    first = around.members[0].start if around.members else around.end
    name = "" if key is None else f"{json.dumps(key)}: "
    is_inline = "\n" not in text[around.start : first]
    if around.members and is_inline:
        member = f"{name}{json.dumps(value, ensure_ascii=False)}, "
        return text[:first] + member + text[first:]
    if is_inline and "\n" not in text.strip():
        member = f"{name}{json.dumps(value, ensure_ascii=False)}"
        return text[:first] + member + text[first:]

    newline = newline_of(text)
    outer = _indent(text, around.start)
    indent = _indent(text, first) if around.members else outer + _unit(text)
    member = (
        f"{newline}{indent}{name}{_write_json(value, indent, newline, _unit(text))}"
    )
    comments = _COMMENTS_OF_LINE.match(text, around.start)
    assert comments is not None  # or none, of no length
    index = comments.end()
    if around.members:
        member += ","
    elif "\n" not in text[index : around.end]:
        member += newline + outer
    return text[:index] + member + text[index:]


def drop_json(text: str, section: str, keep_section: bool) -> tuple[str, bool]:
    """Return the text without the entry, and whether the section was removed with it."""
    document = Document(text)
    servers = document.section(section)
    assert servers is not None
    entry = servers.member(NAME)
    assert entry is not None
    before = text[servers.start : entry.start]
    after = text[entry.comma or entry.end : servers.end]
    if keep_section or before.strip() or after.strip():
        return cut(text, servers, entry), False
    root = document.outermost()
    return cut(text, root, root.member(section)), True


def cut(text: str, around: _Object, member: _Member | None) -> str:
    """Return the text without one member, and without the comma that only separated it."""
    assert member is not None
    start = member.start
    end = member.comma or member.end
    before = text[:start].rstrip(" \t\r\n")
    is_last_of_line = _END_OF_LINE_OR_OBJECT.match(text, end) is not None
    if is_last_of_line or before.endswith(","):
        start = len(before)
    else:  # more follows on this line
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    if not text[around.start : start].strip() and not text[end : around.end].strip():
        return text[: around.start] + text[around.end :]

    index = around.members.index(member)
    former = around.members[index - 1] if index else None
    if former is not None and former.comma is not None and member.comma is None:
        # the former member is the last one now
        head = text[: former.comma - 1] + text[former.comma : start]
        return head + text[end:]
    return text[:start] + text[end:]


def _write_json(value: object, indent: str, newline: str, unit: str) -> str:
    """Return a value in lines that begin with this indentation, the first one excepted."""
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", newline + indent)


def _unit(text: str) -> str:
    """Return the indentation of the first line that has one: a tab or some spaces."""
    match = re.search(r"^[ \t]+(?=[\"\[])", text, re.MULTILINE)
    return match.group() if match else "  "


def _indent(text: str, index: int) -> str:
    """Return the indentation of the line around an index, of what is before the index."""
    line = text[text.rfind("\n", 0, index) + 1 : index].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
