"""Retrieval sets: JSON Lines of memories, as import takes them, and of questions that name their evidence by source."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folklore.contract.memories import CHANGEABLE
from folklore.errors import InvalidInput

# memory_store knows no position: the order within a session follows from the order of storing.
_FIELDS = (*CHANGEABLE, "idempotency_key", "supersedes", "supersede_reason", "related")
_DEFAULT_NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the sources of the memories that answer it."""

    query: str
    namespaces: tuple[str, ...]
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Memories by namespace, as arguments of memory_store, and the questions about them."""

    name: str
    memories: dict[str, list[dict[str, Any]]]
    questions: list[Question]

    @property
    def size(self) -> int:
        """The number of memories."""
        return sum(map(len, self.memories.values()))

    def sample(self, count: int | None) -> list[Question]:
        """Return the questions that name evidence: `count` of them, evenly spread, or all."""
        return evenly(
            [question for question in self.questions if question.evidence], count
        )

    def groups(self, questions: Sequence[Question]) -> list[Hashable]:
        """Return the group of each question: its namespaces if the set has several, else the question itself."""
        several = len(self.memories) > 1
        return [
            question.namespaces if several else place
            for place, question in enumerate(questions)
        ]

    def asked(self, question: Question) -> tuple[str, ...]:
        """Return the namespaces that a question searches: all if it names none."""
        return question.namespaces or tuple(self.memories)


def evenly(items: Sequence[Any], count: int | None) -> list[Any]:
    """Return `count` of the items, evenly spread; all if count is None."""
    if count is None or count >= len(items):
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]


def read_set(path: Path) -> RetrievalSet:
    """Read a set. Raises InvalidInput that names the line."""
    try:
        with path.open(encoding="utf-8") as lines:
            return _parse(path.stem, lines)
    except OSError as error:
        raise InvalidInput(
            "SET", f"{path} cannot be read ({error.strerror})."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidInput("SET", f"{path} is not UTF-8.") from error


def _parse(name: str, lines: Iterable[str]) -> RetrievalSet:
    memories: dict[str, list[dict[str, Any]]] = {}
    questions: list[Question] = []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
            if line.get("type", "memory") == "memory" and "content" in line:
                memories.setdefault(
                    line.get("namespace", _DEFAULT_NAMESPACE), []
                ).append(line)
            elif line.get("type") in ("question", "prompt"):
                questions.append(_question(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise InvalidInput(
                "SET", f"line {number} is not a memory or question ({reason})."
            ) from error
    if not memories or not questions:
        raise InvalidInput(
            "SET",
            f"needs memories and questions, has {len(memories)} namespaces and {len(questions)} questions.",
        )
    return RetrievalSet(
        name,
        {name: _in_session_order(held) for name, held in memories.items()},
        questions,
    )


def _question(line: dict[str, Any]) -> Question:
    return Question(
        query=line["query"] if "query" in line else line["text"],
        namespaces=tuple(
            line["namespaces"]
            if "namespaces" in line
            else [line["namespace"]]
            if "text" in line
            else ()
        ),
        evidence=frozenset(map(str, line["evidence"])),
        category=str(line.get("category", "all")),
    )


def _in_session_order(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines as arguments of memory_store, the memories of each session in the order of their positions."""
    slots: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        if line.get("session") is not None and line.get("position") is not None:
            slots.setdefault(line["session"], []).append(place)
    ordered = list(lines)
    for places in slots.values():
        by_position = sorted(
            (lines[place] for place in places), key=lambda line: int(line["position"])
        )
        for place, line in zip(places, by_position, strict=True):
            ordered[place] = line
    return [
        {name: line[name] for name in _FIELDS if line.get(name) is not None}
        for line in ordered
    ]
