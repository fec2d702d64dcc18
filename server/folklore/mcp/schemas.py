"""JSON schemas of the tools. Every session pays for them in tokens, so they say only what the server cannot."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from folklore.model import FIELDS, Draft

Schema = dict[str, Any]
# Fields of a memory that only the server or an import sets.
_HIDDEN = {name for name, field in FIELDS.items() if field.imported or not field.stated}
_NOT_STATED = {"id", "author", "created_at", *_HIDDEN}

_TEXT: Schema = {"type": "string"}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_MEMORIES: Schema = {"type": "array", "items": {"type": "object", "required": ["id"]}}
_MARKED: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"stale": {"type": "object"}},
        "required": ["id"],
    },
}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FLAG: Schema = {"type": "boolean"}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


# What a memory carries depends on the format, so its schema only requires an id.
STORE_RESULT = _object(
    ("namespace", "stored"),
    namespace=_TEXT,
    stored={
        "type": "array",
        "items": _object(
            ("id", "status"), id=_TEXT, status=_TEXT, similar={"type": "array"}
        ),
    },
    refused={"type": "array"},
    note=_TEXT,
)
ANSWER = _object(
    ("memories", "searched"),
    memories=_MARKED, searched=_TEXTS, degraded={"type": "array"}, truncated=_FLAG, cursor=_TEXT, note=_TEXT,
)  # fmt: skip
GET_RESULT = _object(("memories",), memories=_MARKED, missing=_TEXTS)
RECORD = _object(
    ("id", "content", "revision"), id=_TEXT, content=_TEXT, revision={"type": "integer"}
)
FORGET_RESULT = _object(
    ("forgotten",), forgotten=_MEMORIES, already_forgotten=_TEXTS, erased=_FLAG, dry_run=_FLAG, more=_FLAG,
    restored=_MEMORIES,
)  # fmt: skip
RELATE_RESULT = _object(
    ("created",),
    created=_OBJECTS,
    updated=_OBJECTS,
    removed=_OBJECTS,
    failed=_OBJECTS,
    superseded=_OBJECTS,
)
STATUS = _object(
    ("version", "engine", "namespaces"),
    version=_TEXT, engine=_TEXT, namespaces=_OBJECTS, model={"type": "object"}, embedding_debt={"type": "integer"},
    degraded=_OBJECTS,
)  # fmt: skip


def input_schema(arguments: type[BaseModel], shared: Mapping[str, str]) -> Schema:
    """Return the schema of a tool's arguments; those in `shared` refer to another tool instead of repeating it."""
    schema = arguments.model_json_schema()
    definitions = schema.get("$defs", {})
    if (draft := definitions.get(Draft.__name__)) is not None:
        draft["properties"] = {
            name: entry
            for name, entry in draft["properties"].items()
            if name not in _NOT_STATED
        }
    short: Schema = _shorten(schema, definitions)
    short.pop("$defs", None)
    short.pop("description", None)
    for name in _HIDDEN:
        short["properties"].pop(name, None)
    for name, reference in shared.items():
        short["properties"][name] = {
            "type": "object",
            "description": f"as in {reference}",
        }
    return short


def _shorten(node: Any, definitions: Schema) -> Any:
    """Drop titles, descriptions of models, formats, null alternatives and empty defaults; inline definitions."""
    if isinstance(node, list):
        return [_shorten(entry, definitions) for entry in node]
    if not isinstance(node, dict):
        return node
    short: Schema = {}
    for key, entry in _inlined(node, definitions).items():
        if key == "properties":
            short[key] = {
                name: _shorten(part, definitions) for name, part in entry.items()
            }
        elif _says_something(key, value := _shorten(entry, definitions)):
            short[key] = value
    return _without_null(short)


def _inlined(node: Schema, definitions: Schema) -> Schema:
    """Replace a reference by its definition without the description; the other keys override it."""
    if (reference := node.get("$ref")) is None:
        return node
    defined = {
        key: entry
        for key, entry in definitions[reference.rpartition("/")[2]].items()
        if key != "description"
    }
    return defined | {key: entry for key, entry in node.items() if key != "$ref"}


def _says_something(key: str, entry: Any) -> bool:
    """Return False for a key that repeats a name, or an entry that means the same as its absence."""
    if key == "default":
        return entry not in (None, [], {}, False)
    if key == "additionalProperties":
        return entry not in (True, {})
    return key not in ("title", "$defs", "format")


def _without_null(schema: Schema) -> Schema:
    alternatives = [
        entry for entry in schema.get("anyOf", ()) if entry != {"type": "null"}
    ]
    if len(alternatives) == 1:
        rest = {key: entry for key, entry in schema.items() if key != "anyOf"}
        return {**alternatives[0], **rest}
    return schema
