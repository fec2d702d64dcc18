"""JSON schemas of the tools. Every session pays for them in tokens, so they say only what the server cannot."""

from collections.abc import Mapping
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

from folklore.contract.compact import NOT_LISTED
from folklore.model import FIELDS, Draft

Schema = dict[str, Any]
# Fields of a memory that only the server or an import sets.
_HIDDEN = {name for name, field in FIELDS.items() if field.imported or not field.stated}
_NOT_STATED = {"id", "author", "created_at", *_HIDDEN}

# The types of JSON, by those of the values.
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def result_schema(kind: Any) -> Schema:
    """Return the schema of a tool's result from its type: a typed dictionary, or what one holds.

    `dict` is any object. A list of `Any` says nothing of its entries, since the core tools are paid for in every session.
    """
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if get_origin(kind) is list:
        [entry] = get_args(kind)
        if entry is Any:
            return {"type": "array"}
        return {"type": "array", "items": result_schema(entry)}
    if is_typeddict(kind):
        return _object_schema(kind)
    return {"type": "object"}


def _object_schema(kind: Any) -> Schema:
    """Return the schema of a typed dictionary; fields that are not listed are named if they are required."""
    properties: Schema = {}
    required: list[str] = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        declared = hint
        if get_origin(hint) is NotRequired:
            [declared] = get_args(hint)
        else:
            required.append(name)
        if NOT_LISTED not in getattr(declared, "__metadata__", ()):
            properties[name] = result_schema(declared)
    shown = {"properties": properties} if properties else {}
    return {"type": "object", **shown, "required": required}


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
