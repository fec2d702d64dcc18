"""Sets of moments: JSON Lines of memories, and of typed prompts, edits and statements (`type`), each of a namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sets import RetrievalSet, evenly
from folklore.memory.requests import CHANGEABLE

_FIELDS = (*CHANGEABLE, "idempotency_key")


@dataclass(frozen=True, slots=True)
class Moment:
    """Prompt, edit or statement in a project; `evidence` are the sources that help, `outdated` those they replace."""

    type: str
    namespace: str
    text: str
    evidence: frozenset[str] = frozenset()
    outdated: frozenset[str] = frozenset()
    category: str = ""
    path: str = ""
    store: bool = False


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
    more = {name: line[name] for name in ("category", "path", "store") if name in line}
    return Moment(
        line["type"], line["namespace"], line["text"], evidence, outdated, **more
    )


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
