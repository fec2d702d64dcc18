"""The official memory server's file (`memory.jsonl`): entities with observations, and relations between them.

Its lines are {"type": "entity", "name", "entityType", "observations": [...]} and {"type": "relation", "from", "to",
"relationType"}. Each observation becomes a memory; so does each entity, as the end of relations, and each relation, as
a sentence, in addition to the relation itself.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from folklore.errors import InvalidInput
from folklore.memory.transfer.formats.line import (
    Lines,
    Raw,
    SourceLine,
    id_of,
    json_lines,
    line_of,
)

_SYSTEM = "mcp-memory"


def graph_lines(source: BinaryIO) -> Lines:
    """Yield the memories and relations of a `memory.jsonl`, each with the number of its line there."""
    for number, raw, *_ in json_lines(source):
        if isinstance(raw, InvalidInput) or not raw.strip():
            continue
        try:
            record = json.loads(raw)
        except (ValueError, RecursionError):
            yield SourceLine(number, InvalidInput("line", "is not JSON."))
            continue
        yield from (SourceLine(number, line) for line in _lines_of(record))


def _lines_of(record: Any) -> Iterator[Raw]:
    match record:
        case {"type": "entity", "name": str(name), "observations": [*observations]} if (
            name.strip()
        ):
            kind = str(record.get("entityType") or "entity")
            yield _memory(
                id_of(_SYSTEM, name), f"{name} ({kind})", name, [_tag(name, kind)]
            )
            for text in observations:
                if isinstance(text, str) and text.strip():
                    sentence = (
                        text if name.lower() in text.lower() else f"{name}: {text}"
                    )
                    yield _memory(
                        id_of(_SYSTEM, name, text), sentence, name, [_tag(name, kind)]
                    )
                else:
                    yield InvalidInput(
                        "observations",
                        "must be texts, and one is empty or of another type.",
                    )
        case {
            "type": "relation",
            "from": str(source),
            "to": str(target),
            "relationType": str(relation),
        }:
            sentence = f"{source} {relation.replace('_', ' ')} {target}"
            yield _memory(
                id_of(_SYSTEM, source, relation, target), sentence, source, ["relation"]
            )
            type_ = re.sub(r"[^a-z0-9]+", "_", relation.lower()).strip("_")[:40]
            if re.match("[a-z]", type_):
                ends = {"from": id_of(_SYSTEM, source), "to": id_of(_SYSTEM, target)}
                yield line_of({"type": "relation", "relation": type_} | ends)
        case _:
            yield InvalidInput(
                "line", "is neither an entity with observations nor a relation."
            )


def _memory(id_: str, content: str, name: str, tags: list[str]) -> bytes:
    return line_of(
        {
            "id": id_,
            "content": content,
            "kind": "semantic",
            "tags": tags,
            "source": f"{_SYSTEM}:{name}"[:1000],
        }
    )


def _tag(name: str, kind: str) -> str:
    words = [part.replace(":", " ").replace("/", " ") for part in (kind, name)]
    return f"entity:{words[0]}:{words[1]}"[:100]
