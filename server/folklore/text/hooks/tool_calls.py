"""Calls of tools as assistants pass them to hooks: which moment of a session a call is, and the texts of it.

Assistants name their tools and arguments differently, so that the arguments decide where they can.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from folklore.text.hooks.edits import Edit, edit_of
from folklore.text.hooks.failures import looks_failed, without_exit_code
from folklore.text.hooks.shell import file_shown

_BEFORE = "PreToolUse"
_FAILED = "PostToolUseFailure"
_SUBAGENT_TOOLS = frozenset({"Task", "Agent", "spawn_agent"})
_PATHS = ("file_path", "path", "target_file", "notebook_path")
_NEW_TEXTS = ("new_string", "content", "contents", "new_source", "file_text")
# Arguments with the task of a sub-agent, and with a command.
_TASKS = ("prompt", "message", "task")
_COMMANDS = ("command", "cmd")
# Where a response has what a command printed, or the lines of a file.
_OUTPUTS = ("stderr", "stdout", "output", "content")


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that the assistant reads, and its lines as far as they are known."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, and what it printed."""

    command: str
    output: str


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """Question that the assistant is about to put to the person."""

    text: str


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """The task of a sub-agent, and the argument of the tool that has it."""

    text: str
    argument: str


ToolMoment = Edit | FileRead | Failure | PersonQuestion | SubagentTask


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: the event of the hook, the tool, its arguments, what it returned, and the error of a failure."""

    event: str
    tool: str
    arguments: Mapping[str, Any]
    response: Any = None
    error: str = ""

    @property
    def moment(self) -> ToolMoment | None:
        """The moment that this call is; None if it is none at which notes are given."""
        if self.event == _BEFORE:
            return self._question() or self._task() or self._edit() or self._read()
        return self._edit() or self._read() or self._command()

    def _question(self) -> PersonQuestion | None:
        questions = self.arguments.get("questions")
        if not isinstance(questions, list):
            return None
        texts = []
        for item in questions:
            if isinstance(item, Mapping) and item.get("question"):
                texts.append(str(item["question"]))
        if not texts:
            return None
        return PersonQuestion("\n".join(texts))

    def _task(self) -> SubagentTask | None:
        if self.tool not in _SUBAGENT_TOOLS:
            return None
        for argument in _TASKS:
            if text := _text(self.arguments.get(argument)):
                return SubagentTask(text, argument)
        return None

    def _edit(self) -> Edit | None:
        path = _first(self.arguments, _PATHS)
        if path and not self._failed:
            new_text = _new_text(self.arguments)
            if new_text is None:
                return None
            return Edit(path, new_text)
        return edit_of("", "", _first(self.arguments, _COMMANDS))

    def _read(self) -> FileRead | None:
        path = _first(self.arguments, _PATHS) or file_shown(self._command_line)
        if not path or self._failed:
            return None
        return FileRead(path, _output(self.response))

    def _command(self) -> Failure | None:
        if not self._command_line:
            return None
        output = without_exit_code(self.error or _output(self.response))
        if not output.strip():
            return None
        if not self._failed and not looks_failed(output):
            return None
        return Failure(self._command_line, output)

    @property
    def _failed(self) -> bool:
        return self.event == _FAILED

    @property
    def _command_line(self) -> str:
        return _first(self.arguments, _COMMANDS)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first text among these arguments; empty if there is none."""
    for name in names:
        if text := _text(arguments.get(name)).strip():
            return text
    return ""


def _new_text(arguments: Mapping[str, Any]) -> str | None:
    """Return the text that an edit writes; None if the arguments write nothing."""
    edits = arguments.get("edits")
    if isinstance(edits, list):
        objects = [edit for edit in edits if isinstance(edit, Mapping)]
        return "\n".join(_text(edit.get("new_string")) for edit in objects)
    for name in _NEW_TEXTS:
        text = arguments.get(name)
        if isinstance(text, str):
            return text
    return None


def _output(response: object) -> str:
    """Return what a tool printed, or the lines of the file that it read."""
    if isinstance(response, str):
        return response
    if not isinstance(response, Mapping):
        return ""
    if isinstance(response.get("file"), Mapping):
        return _output(response["file"])
    texts = [_text(response.get(name)) for name in _OUTPUTS]
    return "\n".join(text for text in reversed(texts) if text)
