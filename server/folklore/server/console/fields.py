"""Fields of a memory in a form: each as one input by its declared type, and read back from the input's text."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2s
from typing import Any, Literal

from pydantic import ValidationError

from folklore.contract.memories import CHANGEABLE, Changes
from folklore.errors import InvalidInput, field_errors
from folklore.model import FIELDS, FieldType, Memory

Input = Literal["textarea", "text", "number", "checkbox"]
_INPUTS: Mapping[FieldType, Input] = {
    "text": "text", "kind": "text", "language": "text", "tags": "text", "paths": "textarea", "phrases": "textarea",
    "share": "number",
    "integer": "number", "time": "text", "json": "textarea", "flag": "checkbox",
}  # fmt: skip
_HELP: Mapping[FieldType, str] = {
    "tags": "Separated by commas.",
    "paths": "One in a line.",
    "phrases": "One in a line.",
    "time": "For example 2026-03-01 or 2026-03-01T09:30:00+01:00.",
    "json": "A JSON object.",
}
# What is between the values of a field with several; in the form also a blank after a comma.
_SEPARATORS: Mapping[FieldType, str] = {"tags": ",", "paths": "\n", "phrases": "\n"}
_JOINED_BY: Mapping[FieldType, str] = {**_SEPARATORS, "tags": ", "}
_LONG = 1_000
_STATED = [name for name in CHANGEABLE if FIELDS[name].stated]
_DIGEST = re.compile(r'"(\w+)": "([0-9a-f]{16})"')


@dataclass(frozen=True, slots=True)
class FormField:
    """Input of a form: the text in it, or for a flag if it is checked."""

    name: str
    label: str
    input: Input
    help: str
    text: str
    required: bool


def form_fields(texts: Mapping[str, str]) -> list[FormField]:
    """Return the inputs of all fields that people state, with these texts."""
    return [_form_field(name, texts.get(name, "")) for name in _STATED]


def _form_field(name: str, text: str) -> FormField:
    field = FIELDS[name]
    is_long = name == "content" or field.limit > _LONG
    sentences = []
    if field.about:
        sentences.append(f"{field.about.rstrip('.')}.")
    if field.type in _HELP:
        sentences.append(_HELP[field.type])
    return FormField(
        name=name,
        label=name.replace("_", " ").capitalize(),
        input="textarea" if is_long else _INPUTS[field.type],
        help=" ".join(sentences),
        text=text,
        required=name == "content",
    )


def as_texts(memory: Memory) -> dict[str, str]:
    """Return the fields of a memory as texts of inputs."""
    return {
        name: _as_text(getattr(memory, name), FIELDS[name].type) for name in _STATED
    }


def given_texts(form: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a form's fields, as they were typed."""
    return {name: form.get(name, "") for name in _STATED}


def digests(texts: Mapping[str, str]) -> str:
    """Return a short digest of each text as JSON, by which the fields that were touched in the form are found."""
    by_field = {}
    for name, text in texts.items():
        by_field[name] = blake2s(text.strip().encode(), digest_size=8).hexdigest()
    return json.dumps(by_field)


def untouched(form: Mapping[str, str], texts: Mapping[str, str]) -> set[str]:
    """Return the fields of a form whose texts are those that it was filled with."""
    originals = set(_DIGEST.findall(form.get("shown", "")))
    unchanged = originals.intersection(_DIGEST.findall(digests(texts)))
    return {name for name, _digest in unchanged}


def stated_values(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of all fields that are not empty. Raises InvalidInput that names the field."""
    values = {name: _value(name, text) for name, text in texts.items() if text.strip()}
    checked = _checked(values)
    return {name: getattr(checked, name) for name in values}


def changed_values(
    originals: Mapping[str, str], texts: Mapping[str, str]
) -> tuple[Changes, tuple[str, ...]]:
    """Return the changes from the texts of a memory to those of a form, and the fields to be emptied.

    Raises InvalidInput that names the field.
    """
    values = {}
    emptied = []
    for name, text in texts.items():
        field = FIELDS[name]
        if text.strip() == originals[name].strip():
            continue
        if text.strip():
            values[name] = text
        elif field.clearable:
            emptied.append(name)
        elif field.type != "language":
            raise InvalidInput(name, "is empty.", hint="Give a value.")
    changes = {name: _value(name, text) for name, text in values.items()}
    return _checked(changes), tuple(emptied)


def _as_text(value: Any, type_: FieldType) -> str:
    if value in (None, (), False):
        return ""
    if type_ in _SEPARATORS:
        return _JOINED_BY[type_].join(value)
    if type_ == "json":
        return json.dumps(value, ensure_ascii=False, indent=1)
    if isinstance(value, datetime):
        return value.isoformat()
    if value is True:
        return "yes"
    return str(value)


def _value(name: str, text: str) -> Any:
    """Return the value that an input's text means; wrong numbers and times stay texts, which the check refuses."""
    type_ = FIELDS[name].type
    if name == "content":
        return text
    if type_ == "flag":
        return bool(text.strip())
    if type_ in _SEPARATORS:
        parts = [part.strip() for part in text.split(_SEPARATORS[type_])]
        return [part for part in parts if part]
    if type_ != "json":
        return text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(
            name, "must be a JSON object.", hint='For example {"ticket": 42}.'
        ) from None


def _checked(values: dict[str, Any]) -> Changes:
    """Return the values in the types of the fields. Raises InvalidInput."""
    try:
        return Changes.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)[0]) from None
