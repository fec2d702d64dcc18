"""Conditions on the metadata of memories, as one predicate of the SQL/JSON path language.

The predicate is a parameter of the statements, and every key and value in it is quoted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite

from folklore.errors import InvalidInput
from folklore.text.clean import clean

MAX_CONDITIONS = 16
MAX_VALUES = 64
MAX_PATH = 200
_FIELD = "filters.metadata"
_FORMS = 'Write {"team": "x"}, {"ticket.id": {"in": [1, 2]}} or {"draft": {"exists": false}}.'


def metadata_predicate(conditions: Mapping[str, object]) -> str | None:
    """Return the predicate that all conditions make; None without one. Raises InvalidInput.

    A condition is a value, `{"in": [values]}` or `{"exists": true}`. The path `a.b` names the key b of the object a, or
    a key "a.b". A list matches by any of its elements.
    """
    if len(conditions) > MAX_CONDITIONS:
        problem = f"must hold at most {MAX_CONDITIONS} conditions, got {len(conditions)}."
        raise InvalidInput(_FIELD, problem, hint="Leave the least important ones out.")
    return " && ".join(_condition(clean(path).text, conditions[path]) for path in sorted(conditions)) or None


def _condition(path: str, condition: object) -> str:
    places, field = _places(path), f"{_FIELD}.{path[:60]}"
    match condition:
        case {"exists": bool(exists), **rest} if not rest:
            return ("" if exists else "!") + _any(f"exists({place})" for place in places)
        case {"in": [_, *_] as values, **rest} if not rest and len(values) <= MAX_VALUES:
            return _any(f"{place} == {_value(value, field)}" for value in values for place in places)
        case {"in": _, **rest} if not rest:
            raise InvalidInput(f"{field}.in", f"must be a list of 1 to {MAX_VALUES} values.")
    return _any(f"{place} == {_value(condition, field)}" for place in places)


def _any(alternatives: Iterable[str]) -> str:
    return f"({' || '.join(alternatives)})"


def _places(path: str) -> list[str]:
    """Return the expressions for a path: each key in the object of the key before, and the whole path as one key."""
    keys = path.split(".")
    if len(path) > MAX_PATH or not all(keys):
        hint = f"Write names of keys with dots between them, such as ticket.id, at most {MAX_PATH} characters."
        raise InvalidInput(_FIELD, f"{path[:60]!r} is not a path.", hint=hint)
    nested = "$" + "".join(f".{_text(key)}" for key in keys)
    return [nested] if len(keys) == 1 else [nested, f"$.{_text(path)}"]


def _value(value: object, field: str) -> str:
    if isinstance(value, str):
        return _text(clean(value).text)
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return json.dumps(value)
    raise InvalidInput(field, "must be a text, a number, true or false.", hint=_FORMS)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
