"""The official memory server's file (`memory.jsonl`): entities with observations, and relations between them.

Its lines are {"type": "entity", "name", "entityType", "observations": [...]} and {"type": "relation", "from", "to",
"relationType"}. Each observation becomes a memory; so does each entity, as the end of relations, and each relation, as
a sentence, in addition to the relation itself. A list of these objects is read too, and what `read_graph` returns:
{"entities": [...], "relations": [...]}.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from folklore.contract.lines import IGNORED, Lines, Raw
from folklore.errors import InvalidInput
from folklore.importers.json_values import json_records, listed
from folklore_import.lines import id_of, line_of, record_lines
from folklore_import.records import ForeignFields, decoded_json

_SYSTEM = "mcp-memory"
_LISTS = ("entities", "relations")


def graph_lines(source: BinaryIO) -> Lines:
    """Yield the memories and relations of a `memory.jsonl`, each with the number of its line there."""
    return record_lines(json_records(source, _records_of), _lines_of)


def _records_of(document: Any) -> list[Any]:
    return listed(document, _LISTS)


def _lines_of(record: dict[str, Any]) -> Iterator[Raw]:
    type_ = record.get("type")
    if type_ == "entity" or (type_ is None and "observations" in record):
        yield from _entity(record)
    elif type_ == "relation" or (type_ is None and "relationType" in record):
        yield from _relation(record)
    else:
        yield InvalidInput(
            "line", "is neither an entity with observations nor a relation."
        )


def _entity(record: dict[str, Any]) -> Iterator[Raw]:
    fields = ForeignFields(record)
    fields.text("type")
    name = fields.text("name")
    if not name:
        yield InvalidInput("name", "is missing.")
        return
    kind = fields.text("entityType") or "entity"
    tag = _tag(name, kind)
    observations = decoded_json(record.get("observations"))
    if observations is None:
        observations = []
    elif isinstance(observations, str):
        observations = [observations]
    elif not isinstance(observations, list):
        yield InvalidInput("observations", "must be a list of texts.")
        return
    left_out = [field for field in fields.unused() if field != "observations"]
    yield _memory(id_of(_SYSTEM, name), f"{name} ({kind})", name, [tag], left_out)
    for observation in observations:
        yield _observation(observation, name, tag)


def _observation(observation: Any, name: str, tag: str) -> Raw:
    """Return an observation as a memory: a text, or an object that has one."""
    record = observation if isinstance(observation, dict) else {"text": observation}
    fields = ForeignFields(record)
    text = fields.text("text", "content")
    if not text or not isinstance(observation, str | dict):
        return InvalidInput(
            "observations", "must be texts, and one is empty or of another type."
        )
    sentence = text if name.lower() in text.lower() else f"{name}: {text}"
    return _memory(id_of(_SYSTEM, name, text), sentence, name, [tag], fields.unused())


def _relation(record: dict[str, Any]) -> Iterator[Raw]:
    fields = ForeignFields(record)
    fields.text("type")
    source = fields.text("from")
    target = fields.text("to")
    relation = fields.text("relationType")
    if not (source and target and relation):
        yield InvalidInput("line", "is a relation without from, to or relationType.")
        return
    type_ = re.sub(r"[^a-z0-9]+", "_", relation.lower()).strip("_")[:40]
    is_name = re.match("[a-z]", type_) is not None
    left_out = [*fields.unused(), *([] if is_name else ["relationType"])]
    sentence = f"{source} {relation.replace('_', ' ')} {target}"
    id_ = id_of(_SYSTEM, source, relation, target)
    yield _memory(id_, sentence, source, ["relation"], left_out)
    if is_name:
        ends = {"from": id_of(_SYSTEM, source), "to": id_of(_SYSTEM, target)}
        yield line_of({"type": "relation", "relation": type_} | ends)


def _memory(
    id_: str, content: str, name: str, tags: list[str], left_out: list[str]
) -> bytes:
    return line_of(
        {
            "id": id_,
            "content": content,
            "kind": "semantic",
            "tags": tags,
            "source": f"{_SYSTEM}:{name}"[:1000],
            IGNORED: left_out,
        }
    )


def _tag(name: str, kind: str) -> str:
    words = [part.replace(":", " ").replace("/", " ") for part in (kind, name)]
    return f"entity:{words[0]}:{words[1]}"[:100]
