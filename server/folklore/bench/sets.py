"""Retrieval sets: JSON Lines with memories, as import takes them, and questions that name their evidence by source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folklore.errors import InvalidInput
from folklore.mcp.schemas import MemoryIn

# What memory_store takes of a line; the order within a session follows from the order of storing.
_FIELDS = tuple(MemoryIn.model_fields)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the sources of the memories that answer it."""

    query: str
    namespaces: tuple[str, ...]
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Memories by namespace, as arguments of memory_store, and the questions to them."""

    name: str
    memories: dict[str, list[dict[str, Any]]]
    questions: list[Question]

    @property
    def size(self) -> int:
        """How many memories there are."""
        return sum(map(len, self.memories.values()))

    def some(self, count: int | None) -> list[Question]:
        """`count` questions, evenly spread over the set; all without one."""
        if count is None or count >= len(self.questions):
            return self.questions
        return [self.questions[place * len(self.questions) // count] for place in range(count)]


def read_set(path: Path, *, prefix: str = "") -> RetrievalSet:
    """Read a set whole; `prefix` is put before every namespace. Raises InvalidInput naming the line."""
    try:
        with path.open(encoding="utf-8") as lines:
            return _set(path.stem, lines, prefix)
    except OSError as error:
        raise InvalidInput("SET", f"{path} cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise InvalidInput("SET", f"{path} is not UTF-8.") from error


def _set(name: str, lines: Iterable[str], prefix: str) -> RetrievalSet:
    memories: dict[str, list[dict[str, Any]]] = {}
    questions: list[Question] = []
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text) if text.strip() else {"type": "blank"}
            if line.get("type", "memory") == "memory" and "content" in line:
                memories.setdefault(prefix + line.get("namespace", "bench"), []).append(line)
            elif line.get("type") == "question":
                questions.append(_question(line, prefix))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                "SET", f"line {number} is not one of a retrieval set ({type(error).__name__}: {error})."
            ) from error
    if not memories or not questions:
        raise InvalidInput("SET", f"has {len(memories)} namespaces with memories and {len(questions)} questions.")
    return RetrievalSet(name, {name: _in_session_order(held) for name, held in memories.items()}, questions)


def _question(line: dict[str, Any], prefix: str) -> Question:
    return Question(
        query=line["query"],
        namespaces=tuple(prefix + name for name in line.get("namespaces", ())),
        evidence=frozenset(map(str, line["evidence"])),
        category=str(line.get("category", "all")),
    )


def _in_session_order(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines as arguments; those of a session that say their positions stand in that order."""
    slots: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        if line.get("session") is not None and line.get("position") is not None:
            slots.setdefault(line["session"], []).append(place)
    ordered = list(lines)
    for places in slots.values():
        for place, line in zip(places, sorted((lines[place] for place in places), key=_position), strict=True):
            ordered[place] = line
    return [{name: line[name] for name in _FIELDS if line.get(name) is not None} for line in ordered]


def _position(line: dict[str, Any]) -> int:
    return int(line["position"])
