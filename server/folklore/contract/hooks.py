"""Hooks of an assistant's session: their answers, pauses, and what they injected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, JsonValue

from folklore.contract.anchors import Anchor
from folklore.contract.argument_types import LongText, NamespaceNames, UpTo1000, between
from folklore.contract.requests import Request, Returns
from folklore.model import Whole


def _from_json(value: object) -> object:
    """Return what a text of JSON means: clients pass objects on as such, or as texts."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _arguments_of_tool(value: object) -> object:
    parsed = _from_json(value)
    return parsed if isinstance(parsed, Mapping) else {}


# Arguments of a tool, empty if they are none, and what it returned.
ToolArguments = Annotated[dict[str, JsonValue], BeforeValidator(_arguments_of_tool)]
ToolResponse = Annotated[JsonValue, BeforeValidator(_from_json)]


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """Text for the assistant, empty for silence; with `asks` it is to do something before its turn ends.

    With `holds` it is to read the text before it puts a question to the person. `arguments` take the place of those of
    the tool that it is about to call. `anchors` are the code that the memories of the notes are about, by id.
    """

    text: str = ""
    asks: bool = False
    holds: bool = False
    arguments: Mapping[str, Any] | None = None
    anchors: Mapping[str, Anchor] = field(default_factory=dict)


class HookRequest(Request, Returns[HookAnswer]):
    """Answer an event of an assistant's session, such as UserPromptSubmit, PreToolUse or Stop.

    `directory` is the one that the assistant works in; `message` its last words, `source` what started the session. A
    call of a tool has the `tool`, its arguments as `tool_input`, and afterwards what it returned or the `error`; an
    edit may have a `path` with the new `text`, or the `content` of a new file, or a patch as `command` instead. With
    `client_session`, a question of that session may become a cue of a memory that the prompt or the message quotes.
    """

    event: str = "UserPromptSubmit"
    prompt: LongText = ""
    session: str = ""
    directory: str = ""
    message: LongText = ""
    source: str = ""
    path: str = ""
    text: LongText = ""
    content: LongText = ""
    command: LongText = ""
    tool: str = ""
    tool_input: ToolArguments = Field({})
    tool_response: ToolResponse = None
    error: LongText = ""
    client_session: str | None = None


@dataclass(frozen=True, slots=True)
class Assertion:
    """Sentence that a person said in a session of a project, and that was not stored."""

    sentence: str
    said_at: datetime
    session: str
    project: str


class StatementsRequest(Request, Returns[tuple[Assertion, ...]]):
    """List what the caller said in a project, or everywhere, and was not stored; sentences to `drop` are forgotten."""

    namespace: str | None = None
    everywhere: bool = False
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paused:
    """Until when hooks are silent, and the session if it is not all."""

    until: datetime
    session: str | None = None


class PauseRequest(Request, Returns[Paused]):
    """Silence the caller's hooks for some minutes, with `session` in the last session of the project alone."""

    minutes: Annotated[Whole, between(0, 10_080)] = 60
    session: bool = False


@dataclass(frozen=True, slots=True)
class InjectedMemory:
    """A memory in an injected text, the tokens of its note, and its first use by the caller afterwards."""

    id: UUID
    namespace: str
    tokens: int
    used: str | None = None
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InjectedText:
    """Text that a hook injected into a session, as it was given; notes of erased memories are missing."""

    id: UUID
    at: datetime
    session: str
    author: str
    event: str
    text: str
    tokens: int
    memories: tuple[InjectedMemory, ...]


class InjectedRequest(Request, Returns[tuple[InjectedText, ...]]):
    """Read what hooks injected, newest first: the caller's own, or with `everyone`, as the owner, of every author.

    `session` is the name of a session, or the beginning of it.
    """

    namespaces: NamespaceNames = ()
    session: str | None = None
    everyone: bool = False
    limit: UpTo1000 = 20
