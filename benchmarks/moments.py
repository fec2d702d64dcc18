"""Sets of moments: JSON Lines of memories, and of moments of a session (`type`), each of a namespace.

Moments are typed prompts, edits and assertions (`statement`), and those at which nobody asks: failures of commands, reads of files,
questions to the person, and tasks of sub-agents. A set of these may have its memories in another file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sets import RetrievalSet, evenly
from folklore.contract.hooks import HookRequest
from folklore.contract.memories import CHANGEABLE

_FIELDS = (*CHANGEABLE, "idempotency_key")
# The calls of tools as Claude Code passes them on.
_CALLS: Mapping[str, Callable[[Moment], dict[str, Any]]] = {
    "edit": lambda moment: {
        "event": "PreToolUse",
        "tool": "Edit",
        "tool_input": {"file_path": moment.path, "new_string": moment.text},
    },
    "read": lambda moment: {
        "event": "PostToolUse",
        "tool": "Read",
        "tool_input": {"file_path": moment.path},
        "tool_response": {"type": "text", "file": {"content": moment.text}},
    },
    "failure": lambda moment: {
        "event": "PostToolUseFailure",
        "tool": "Bash",
        "tool_input": {"command": moment.command},
        "error": f"Exit code 1\n{moment.text}",
    },
    "ask": lambda moment: {
        "event": "PreToolUse",
        "tool": "AskUserQuestion",
        "tool_input": {"questions": [{"question": moment.text}]},
    },
    "subagent": lambda moment: {
        "event": "PreToolUse",
        "tool": "Agent",
        "tool_input": {"prompt": moment.text},
    },
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Moment in a project; `evidence` are the sources that help, `outdated` those they replace.

    `text` is what is typed, written, read, asked or printed, by a `command` if it failed.
    """

    type: str
    namespace: str
    text: str
    evidence: frozenset[str] = frozenset()
    outdated: frozenset[str] = frozenset()
    category: str = ""
    path: str = ""
    command: str = ""
    store: bool = False

    def request(self, session: str) -> HookRequest:
        """Return what the hook of a client asks at this moment of a session."""
        call = _CALLS.get(self.type)
        if call is None:
            return HookRequest(prompt=self.text, session=session)
        return HookRequest(session=session, **call(self))


def read_moments(path: Path) -> tuple[dict[str, list[dict[str, Any]]], list[Moment]]:
    """Return the memories by namespace, as arguments of memory_store, and the moments."""
    memories: dict[str, list[dict[str, Any]]] = {}
    moments = []
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if line["type"] == "memory":
            fields = {
                name: line[name] for name in _FIELDS if line.get(name) is not None
            }
            memories.setdefault(line["namespace"], []).append(fields)
        else:
            moments.append(_moment(line))
    return memories, moments


def _moment(line: Mapping[str, Any]) -> Moment:
    evidence, outdated = (
        frozenset(line.get(name) or ()) for name in ("evidence", "outdated")
    )
    names = ("category", "path", "command", "store")
    more = {name: line[name] for name in names if name in line}
    text = line["output"] if line["type"] == "failure" else line["text"]
    return Moment(line["type"], line["namespace"], text, evidence, outdated, **more)


def read_cues(path: Path) -> dict[tuple[str, str], list[str]]:
    """Return cues by the namespace and the source of their memory, from JSON Lines."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(line["namespace"], line["source"]): line["cues"] for line in lines}


def with_cues(
    memories: Mapping[str, Sequence[Mapping[str, Any]]],
    cues: Mapping[tuple[str, str], list[str]],
) -> dict[str, list[dict[str, Any]]]:
    """Return memories by namespace with the cues of their sources."""
    return {
        namespace: [
            {**memory, "cues": cues.get((namespace, memory["source"]), [])}
            for memory in held
        ]
        for namespace, held in memories.items()
    }


def others(given: RetrievalSet, count: int) -> Sequence[dict[str, Any]]:
    """Return memories of another set, evenly spread, to be added to those of a project."""
    return evenly(
        [memory for memories in given.memories.values() for memory in memories], count
    )
