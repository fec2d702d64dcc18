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


def form_fields(values: Mapping[str, str]) -> list[FormField]:
    """Return the inputs of all fields that people state, with these texts."""
    fields = []
    for name in _STATED:
        field = FIELDS[name]
        input_: Input = (
            "textarea"
            if name == "content" or field.limit > _LONG
            else _INPUTS[field.type]
        )
        help_ = " ".join(
            filter(
                None,
                (
                    field.about and f"{field.about.rstrip('.')}.",
                    _HELP.get(field.type, ""),
                ),
            )
        )
        label = name.replace("_", " ").capitalize()
        fields.append(
            FormField(
                name, label, input_, help_, values.get(name, ""), name == "content"
            )
        )
    return fields


def as_texts(memory: Memory) -> dict[str, str]:
    """Return the fields of a memory as texts of inputs."""
    return {
        name: _as_text(getattr(memory, name), FIELDS[name].type) for name in _STATED
    }


def given_texts(form: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a form's fields, as they were typed."""
    return {name: form.get(name, "") for name in _STATED}


def digests(texts: Mapping[str, str]) -> str:
    """Return a short digest of each text, by which the fields that were touched in the form are found."""
    return json.dumps(
        {
            name: blake2s(text.strip().encode(), digest_size=8).hexdigest()
            for name, text in texts.items()
        }
    )


def untouched(form: Mapping[str, str], typed: Mapping[str, str]) -> set[str]:
    """Return the fields of a form whose texts are those that it was filled with."""
    originals = set(_DIGEST.findall(form.get("shown", "")))
    return {
        name
        for name, digest in _DIGEST.findall(digests(typed))
        if (name, digest) in originals
    }


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
    changed = {
        name: text
        for name, text in texts.items()
        if text.strip() != originals[name].strip()
    }
    clear = tuple(
        name
        for name, text in changed.items()
        if not text.strip() and FIELDS[name].clearable
    )
    for name, text in changed.items():
        if not text.strip() and name not in clear and FIELDS[name].type != "language":
            raise InvalidInput(name, "is empty.", hint="Give a value.")
    values = {
        name: _value(name, text) for name, text in changed.items() if text.strip()
    }
    return _checked(values), clear


def _as_text(value: Any, type_: FieldType) -> str:
    if value in (None, (), False):
        return ""
    if type_ in ("tags", "paths", "phrases"):
        return (", " if type_ == "tags" else "\n").join(value)
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
    if type_ == "flag":
        return bool(text.strip())
    if type_ in ("tags", "paths", "phrases"):
        return [
            part.strip()
            for part in text.split("," if type_ == "tags" else "\n")
            if part.strip()
        ]
    if type_ != "json":
        if name == "content":
            return text
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
