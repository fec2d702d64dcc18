"""Conversations that Claude and ChatGPT export: each turn that states something lasting becomes a memory.

Its content are the sentences that state it (text/hooks/assertions.py), not the talk around them.

The export is a zip file, the folder in it, or one of its files `conversations.json`, `conversations-000.json`, … Each
has a list of conversations. Those of Claude have {"uuid", "name", "chat_messages": [{"uuid", "sender", "text",
"content": [{"type", "text"}], "created_at", "parent_message_uuid"?}]}. Those of ChatGPT have {"conversation_id",
"title", "current_node", "mapping": {node: {"parent", "message": {"author": {"role"}, "content": {"content_type",
"parts"}, "create_time", "recipient", "metadata"}}}}: a tree, since answers are made again and questions edited. The
branch that the person saw last is imported.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile, is_zipfile

from folklore.contract.lines import IGNORED, Lines, Raw, SourceLine
from folklore.errors import InvalidInput
from folklore.importers.json_values import JsonValues
from folklore.text.hooks.assertions import assertions
from folklore.text.hooks.injected import without_blocks
from folklore.text.words import is_question
from folklore_import.lines import (
    cues_of,
    id_of,
    line_of,
    skipped_line,
)

# Files of an export that are not read, and named.
_OTHERS = (".json", ".md", ".txt")
_FILE = re.compile(r"conversations(?:-\d+)?\.json")
_CHUNK = 1024 * 1024
_CONVERSATION_CHARACTERS = 64 * _CHUNK
_HINT = "Export it again, or leave it out."
# Marks of ChatGPT for what it cites, such as \ue200cite\ue202turn0search1\ue201 and 【4†source】.
_CITATIONS = re.compile(
    "\ue200[^\ue200\ue201]{1,1000}\ue201|【[^【】†]{1,200}†[^【】]{1,200}】"
)
# The types of content that a person writes or reads in ChatGPT. Others are thoughts, calls of tools, and settings.
_VISIBLE_TYPES = ("text", "multimodal_text", None)
_SENTENCE_END = re.compile(r"(?<=[.!?\uff1f\u061f\u3002])\s|\n")
# Reading a zip file that is damaged, has a password (RuntimeError), or another compression.
_UNREADABLE = (BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class _Turn(NamedTuple):
    """A message of a person, or of a `model`: its id, its text, its time, and the names of its parts that are left out."""

    id: str
    text: str
    time: object
    model: str | None
    left_out: tuple[str, ...] = ()


# A message; of one that is left out, the reason.
_Message = _Turn | str


class _Conversation(NamedTuple):
    """A conversation with a system, as its export has it."""

    system: str
    id: object
    title: object
    began: object
    messages: Iterator[_Message]

    @property
    def source(self) -> str:
        """The system and the title."""
        if isinstance(self.title, str) and self.title.strip():
            return f"{self.system}: {' '.join(self.title.split())}"
        return self.system

    @property
    def session(self) -> str:
        """Its id, or one that is the same in the next export."""
        if isinstance(self.id, str) and self.id:
            return self.id[:200]
        return id_of(self.system, self.source, str(self.began))


def is_conversations(path: Path) -> bool:
    """Return True if a path is an export of conversations, by its names and the beginning of its content."""
    if path.is_dir():
        return any(_FILE.fullmatch(child.name) for child in path.iterdir())
    try:
        if is_zipfile(path):
            with ZipFile(path) as archive:
                return bool(_members(archive))
        with path.open("rb") as file:
            head = file.read(_CHUNK)
    except (OSError, BadZipFile):
        return False
    is_json = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")
    is_of_claude = b'"chat_messages"' in head
    is_of_chatgpt = b'"mapping"' in head and b'"parent"' in head
    return is_json and (is_of_claude or is_of_chatgpt)


def conversation_lines(path: Path) -> Lines:
    """Yield the turns of an export, those of each conversation in order. Raises InvalidInput."""
    number = 0
    try:
        for name in _other_files(path):
            number += 1
            yield SourceLine(number, skipped_line(f"file {name}"), name)
        for name, source in _sources(path):
            values = JsonValues(source, "conversation", _CONVERSATION_CHARACTERS)
            for count, value in enumerate(values, start=1):
                for raw in _lines_of(value):
                    number += 1
                    yield SourceLine(number, raw, f"{name}, conversation {count:,}")
    except _UNREADABLE as error:
        raise InvalidInput(
            "FILE", f"{path.name} is not a readable zip file ({error}).", hint=_HINT
        ) from error


def _other_files(path: Path) -> list[str]:
    """Return the names of other files with texts in a zip file, such as projects.json."""
    if not is_zipfile(path):
        return []
    with ZipFile(path) as archive:
        names = [name.rpartition("/")[2] for name in archive.namelist()]
    return sorted(
        name for name in names if name.endswith(_OTHERS) and not _FILE.fullmatch(name)
    )


def _sources(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if is_zipfile(path):
        with ZipFile(path) as archive:
            for name in _members(archive):
                with archive.open(name) as member:
                    yield name, member
        return
    if path.is_dir():
        files = sorted(child for child in path.iterdir() if _FILE.fullmatch(child.name))
    else:
        files = [path]
    for file in files:
        with file.open("rb") as source:
            yield file.name, source


def _members(archive: ZipFile) -> list[str]:
    return sorted(
        name for name in archive.namelist() if _FILE.fullmatch(name.rpartition("/")[2])
    )


def _conversation(value: Any) -> _Conversation | InvalidInput:
    if isinstance(value, InvalidInput):
        return value
    if not isinstance(value, dict):
        return InvalidInput("conversation", "is not a JSON object.")
    if isinstance(value.get("mapping"), dict):
        return _Conversation(
            system="ChatGPT",
            id=value.get("conversation_id") or value.get("id"),
            title=value.get("title"),
            began=value.get("create_time"),
            messages=_chatgpt_messages(value),
        )
    if isinstance(value.get("chat_messages"), list):
        return _Conversation(
            system="Claude",
            id=value.get("uuid"),
            title=value.get("name"),
            began=value.get("created_at"),
            messages=_claude_messages(value),
        )
    return InvalidInput(
        "conversation", "has neither chat_messages (Claude) nor mapping (ChatGPT)."
    )


def _lines_of(value: Any) -> Iterator[Raw]:
    conversation = _conversation(value)
    if isinstance(conversation, InvalidInput):
        yield conversation
        return
    position = 0
    question = ""
    for message in conversation.messages:
        if isinstance(message, str):
            yield skipped_line(message)
            continue
        yield _turn_line(conversation, message, position, question)
        position += 1
        question = ""
        is_answer = message.model is not None
        if not is_answer:
            question = _last_question(message.text)


def _turn_line(
    conversation: _Conversation, turn: _Turn, position: int, question: str
) -> bytes:
    """Return what a turn states as a line; `question` is the one that it answers, if it is an answer."""
    is_answer = turn.model is not None
    stated = assertions(turn.text, of_person=not is_answer)
    if not stated:
        return skipped_line("turn that states nothing", turn.left_out)
    session = conversation.session
    return line_of(
        {
            "source": conversation.source[:1000],
            "tags": ["conversation", conversation.system.lower()],
            "id": id_of("conversation", conversation.system, session, turn.id),
            "content": "\n".join(stated),
            "cues": cues_of(question) if is_answer else [],
            "session": session,
            "author": turn.model,
            "occurred_at": _time(turn.time) or _time(conversation.began),
            "position": position,
            IGNORED: list(turn.left_out),
        }
    )


def _last_question(text: str) -> str:
    """Return the last sentence of a text that is a question, empty without one."""
    sentences = _SENTENCE_END.split(without_blocks(text))
    questions = [sentence for sentence in sentences if is_question(sentence)]
    return questions[-1] if questions else ""


def _claude_messages(conversation: Mapping[str, Any]) -> Iterator[_Message]:
    """Yield the messages of Claude's export, of a tree those of the branch that was seen last."""
    every = [
        message
        for message in conversation["chat_messages"]
        if isinstance(message, dict)
    ]
    messages = _claude_branch(every, conversation.get("current_leaf_message_uuid"))
    yield from repeat("turn of another branch", len(every) - len(messages))
    for index, message in enumerate(messages):
        yield _claude_message(index, message)


def _claude_message(index: int, message: Mapping[str, Any]) -> _Message:
    """Return a message of Claude's export, by its index in the conversation if it has no id."""
    sender = message.get("sender")
    if sender not in ("human", "assistant"):
        return "message of the system or a tool"

    text = _claude_text(message).strip()
    if not text:
        return "turn without text"
    id_ = message["uuid"] if _is_text(message, "uuid") else str(index)
    model = "Claude" if sender == "assistant" else None
    left_out = [name for name in ("attachments", "files") if message.get(name)]
    return _Turn(id_, text, message.get("created_at"), model, tuple(left_out))


def _claude_branch(
    messages: list[dict[str, Any]], leaf: object
) -> list[dict[str, Any]]:
    """Return the messages of the branch that ends with `leaf` or the last message; all if none names its parent."""
    by_id = {
        message["uuid"]: message for message in messages if _is_text(message, "uuid")
    }
    parents = {
        id_: message.get("parent_message_uuid") for id_, message in by_id.items()
    }
    names_parents = any(
        isinstance(parent, str) and parent in by_id for parent in parents.values()
    )
    if not names_parents:
        return messages
    return [by_id[id_] for id_ in _branch(parents, leaf)]


def _claude_text(message: Mapping[str, Any]) -> str:
    """Return the text blocks of a message, else its text. Tools, their results and thoughts are other blocks."""
    content = message.get("content")
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
    else:
        blocks = []
    texts = [
        block["text"]
        for block in blocks
        if block.get("type") == "text" and _is_text(block, "text")
    ]
    if blocks or not _is_text(message, "text"):
        return "\n\n".join(texts)
    return str(message["text"])


def _chatgpt_messages(conversation: Mapping[str, Any]) -> Iterator[_Message]:
    """Yield the messages of ChatGPT's export on the branch that ends with the current node."""
    mapping: dict[str, Any] = {
        id_: node
        for id_, node in conversation["mapping"].items()
        if isinstance(node, dict)
    }
    parents = {id_: node.get("parent") for id_, node in mapping.items()}
    branch = dict.fromkeys(_branch(parents, conversation.get("current_node")))
    messages = {
        id_: node["message"]
        for id_, node in mapping.items()
        if isinstance(node.get("message"), dict)
    }
    for id_ in branch:
        if id_ in messages:  # the root has none
            yield _chatgpt_message(id_, messages[id_])
    yield from repeat("turn of another branch", len(messages.keys() - branch.keys()))


def _chatgpt_message(id_: str, message: Mapping[str, Any]) -> _Message:
    content = _object(message, "content")
    metadata = _object(message, "metadata")
    role = _object(message, "author").get("role")
    is_of_turn = role in ("user", "assistant")
    is_for_all = message.get("recipient") in (None, "all")
    if not (is_of_turn and is_for_all):
        return "message of the system or a tool"

    is_hidden = metadata.get("is_visually_hidden_from_conversation")
    if is_hidden or content.get("content_type") not in _VISIBLE_TYPES:
        return "message that is not shown"

    text = _chatgpt_text(content)
    if not text.strip():
        return "turn without text"
    left_out = []
    if metadata.get("attachments"):
        left_out.append("attachments")
    if _has_images(content):
        left_out.append("images")
    model = "ChatGPT" if role == "assistant" else None
    return _Turn(id_, text, message.get("create_time"), model, tuple(left_out))


def _object(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _has_images(content: Mapping[str, Any]) -> bool:
    parts = content.get("parts")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and "text" not in part for part in parts
    )


def _chatgpt_text(content: Mapping[str, Any]) -> str:
    """Return the text of a message that was written, or spoken and transcribed; images and sounds have none."""
    parts = content.get("parts")
    pieces = parts if isinstance(parts, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in pieces]
    return _CITATIONS.sub(
        "",
        "\n\n".join(part for part in texts if isinstance(part, str) and part.strip()),
    )


def _branch(parents: dict[str, Any], leaf: object) -> list[str]:
    """Return the ids from the root to `leaf`; without such an id, to the last one of `parents`, by id.

    A circle ends where it would begin again.
    """
    id_: Any = leaf
    if not isinstance(leaf, str) or leaf not in parents:
        id_ = next(reversed(parents), None)
    path: dict[str, None] = {}
    while isinstance(id_, str) and id_ in parents and id_ not in path:
        path[id_] = None
        id_ = parents[id_]
    return list(reversed(path))


def _time(value: Any) -> str | None:
    """Return a time of either export (ISO 8601, or seconds since 1970), None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        if is_number and value > 0:
            return datetime.fromtimestamp(value, UTC).isoformat()
        if not isinstance(value, str):
            return None
        time = datetime.fromisoformat(value)
    except (ValueError, OverflowError, OSError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return time.isoformat()


def _is_text(record: Mapping[str, Any], name: str) -> bool:
    return isinstance(record.get(name), str)
