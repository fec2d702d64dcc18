"""The code that memories are about, as a server sends it to a process that has the caller's working copy.

Imports the standard library and small modules alone, as that process does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from folklore.contract.compact import JsonDict, fields_of, without_unset
from folklore.stale import Stale

if TYPE_CHECKING:  # what a session imports is small
    from folklore.model import Memory

# In the `_meta` of an MCP request: the caller asks for the anchors of the memories in the answer, and gets them by id.
ANCHORS = "folklore/anchors"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COMMIT_DIGITS = 12  # that are shown


@dataclass(frozen=True, slots=True)
class Anchor:
    """The code that a memory is about: its paths, commit, and contents; `at` counts without the other two."""

    namespace: str
    paths: tuple[str, ...]
    commit: str | None
    blobs: tuple[str, ...]
    at: datetime

    @classmethod
    def of(cls, memory: Memory) -> Anchor:
        """Return the code that a memory is about."""
        return cls(
            memory.namespace,
            memory.paths,
            memory.commit,
            memory.blobs,
            memory.updated_at,
        )

    @property
    def revision(self) -> str:
        """The commit if it is a hash, else an empty text, which names no object."""
        if self.commit is None or not _COMMIT.fullmatch(self.commit):
            return ""
        return self.commit

    @property
    def contents(self) -> dict[str, str]:
        """The ids of the contents by path."""
        contents = {}
        for blob in self.blobs:
            id_, _, path = blob.partition(" ")
            contents[path] = id_
        return contents


def anchors_by_id(memories: Iterable[Memory]) -> dict[str, Anchor]:
    """Return by id the code that memories are about, but for those about none."""
    return {str(memory.id): Anchor.of(memory) for memory in memories if memory.paths}


def anchors_json(anchors: Mapping[str, Anchor]) -> JsonDict:
    """Serialize anchors."""
    return {id_: _anchor_json(anchor) for id_, anchor in anchors.items()}


def _anchor_json(anchor: Anchor) -> JsonDict:
    return {
        "namespace": anchor.namespace,
        "paths": list(anchor.paths),
        "commit": anchor.commit,
        "blobs": list(anchor.blobs),
        "at": anchor.at.isoformat().replace("+00:00", "Z"),
    }


def read_anchors(value: object) -> dict[str, Anchor]:
    """Parse the anchors that a server sent; none of another form."""
    if not isinstance(value, dict):
        return {}
    try:
        return {str(id_): _read_anchor(entry) for id_, entry in value.items()}
    except (KeyError, TypeError, ValueError):
        return {}


def _read_anchor(value: Mapping[str, object]) -> Anchor:
    """Parse one anchor. Raises KeyError, TypeError or ValueError for another form."""
    commit = value["commit"]
    return Anchor(
        _text(value["namespace"]),
        _texts(value["paths"]),
        None if commit is None else _text(commit),
        _texts(value["blobs"]),
        datetime.fromisoformat(_text(value["at"])),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return tuple(_text(entry) for entry in value)


def stale_json(files: Sequence[Stale]) -> JsonDict | None:
    """Serialize the first of the files that changed after a memory about them; `more` counts the others."""
    if not files:
        return None
    value = fields_of(files[0], "path since commit vanished moved_to")
    return without_unset(
        **value | {"commit": files[0].commit[:_COMMIT_DIGITS]},
        more=len(files) - 1 or None,
    )
