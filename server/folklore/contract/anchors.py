"""The code that memories are about, as a server sends it to a process that has the caller's working copy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from pydantic import TypeAdapter, ValidationError

from folklore.contract.compact import JsonDict
from folklore.contract.memories import GetResult
from folklore.model import Answer, Memory

# In the `_meta` of an MCP request: the caller asks for the anchors of the memories in the answer, and gets them by id.
ANCHORS = "folklore/anchors"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


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


def anchors_of(result: object) -> dict[str, Anchor]:
    """Return by id the code that the memories of an answer, or of a read by id, are about."""
    if isinstance(result, Answer):
        memories = [item.memory for item in result.memories]
    elif isinstance(result, GetResult):
        memories = [item.memory for item in result.found]
    else:
        memories = []
    return anchors_by_id(memories)


def anchors_by_id(memories: Iterable[Memory]) -> dict[str, Anchor]:
    """Return by id the code that memories are about, but for those about none."""
    return {str(memory.id): Anchor.of(memory) for memory in memories if memory.paths}


def anchors_json(anchors: dict[str, Anchor]) -> JsonDict:
    """Serialize anchors."""
    value: JsonDict = _adapter().dump_python(anchors, mode="json")
    return value


def read_anchors(value: object) -> dict[str, Anchor]:
    """Parse the anchors that a server sent; none of another form."""
    try:
        return _adapter().validate_python(value)
    except ValidationError:
        return {}


@cache
def _adapter() -> TypeAdapter[dict[str, Anchor]]:
    return TypeAdapter(dict[str, Anchor])
