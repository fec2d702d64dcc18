"""Arguments as clients write them, brought into the form that requests have. The one rule for every request:

- null, a blank text, and the words null, None and undefined are no value for an optional argument;
- a list or an object may be JSON in a text, at any depth, and a list of names or ids a text with commas or blanks;
- an id may be in capitals, without hyphens, or in quotes, brackets and the like.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from itertools import chain
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import BaseModel

from folklore.contract.ids import id_in
from folklore.errors import InvalidInput
from folklore.text.arguments import entries_of, is_nothing

# Texts that people ask and say: any word may be meant, "none" too.
_FREE = frozenset({"query", "prompt", "message", "text", "command", "drop"})
# Lists of which a text is one entry, whatever it has.
_WHOLE = frozenset({"queries", "drop"})
# Lists of which each line of a text is an entry.
_PHRASES = frozenset({"cues"})
# Lists of which a text that names one memory is one entry, though it may have blanks: "id: 4f1c".
_IDS = frozenset({"ids", "merge"})
# Lists whose entries may have blanks: commas alone part them.
_WITH_BLANKS = frozenset({"paths"})
# Lists that count if they have no value: without `only`, more would be erased.
_NEVER_LEFT_OUT = frozenset({"only"})


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument by its type.

    `values` are the words that it may be, `parts` is the type of an object, or of the entries of a list, whose fields are
    arguments. An object that `narrows` says which memories a call forgets.
    """

    name: str
    optional: bool
    is_text: bool
    is_list: bool
    is_object: bool
    is_id: bool
    values: frozenset[object]
    parts: type | None
    narrows: bool

    def read(self, value: Any) -> Any:
        """Return the value in the form of the request; None if it is no value."""
        if self._is_nothing(value):
            return None
        if isinstance(value, str) and not self.is_text:
            value = self._decoded(value)
            if value == []:
                return None
        if isinstance(value, Mapping):
            return self._object(value)
        if self.is_list and isinstance(value, Sequence) and not isinstance(value, str):
            return self._entries(value)
        if self.is_id:
            return _usual_id(value)
        return value

    def _object(self, value: Mapping[str, Any]) -> Any:
        if self.parts is None:
            return value
        if self.is_list:  # of one
            return [given(self.parts, value)]
        if self.narrows:
            self._refuse_nothing(value)
        read = given(self.parts, value)
        if value and not read and self.optional:
            return None
        return read

    def _refuse_nothing(self, value: Mapping[str, Any]) -> None:
        """Refuse a condition without a value beside others: without it, more would be changed. Raises InvalidInput."""
        empty = []
        for name, entry in value.items():
            may_be_empty = isinstance(entry, str | list | tuple)
            if may_be_empty and given(self.parts, {name: entry}) == {}:
                empty.append(name)
        if empty and len(empty) < len(value):
            field = f"{self.name}.{empty[0]}"
            raise InvalidInput(
                field, "is empty.", hint="Leave it out, or give a value."
            )

    def _is_nothing(self, value: Any) -> bool:
        if value is None:
            return True
        if not self.optional or self.name in _FREE or not isinstance(value, str):
            return False
        return is_nothing(value) and value.strip().lower() not in self.values

    def _decoded(self, text: str) -> Any:
        """Return the list or object that a text holds; the text itself if it holds none."""
        decoded = _json(text)
        if isinstance(decoded, list) and self.is_list:
            return decoded
        if isinstance(decoded, dict):
            return decoded
        if not self.is_list or self.parts is not None:
            return text
        return self._entries_in(text)

    def _entries_in(self, text: str) -> list[str]:
        """Return the entries of a list that a text holds, which is no JSON."""
        is_one_id = self.name in _IDS and id_in(text) is not None
        if is_one_id or self.name in _WHOLE:
            return [text]
        if self.name in _PHRASES:
            lines = [line.strip("-*• \t") for line in text.splitlines()]
            return [line for line in lines if line]
        return entries_of(text, blanks=self.name not in _WITH_BLANKS)

    def _entries(self, values: Sequence[Any]) -> Any:
        if values and self._are_nothing(values):
            return None
        if self.parts is not None:
            return [given(self.parts, entry) for entry in values]
        if self.is_id:
            return [_usual_id(entry) for entry in values]
        return values

    def _are_nothing(self, values: Sequence[Any]) -> bool:
        """Return True for [null], ["null"] and the like, which some clients make of null."""
        if not self.optional or self.name in _NEVER_LEFT_OUT or self.name in _FREE:
            return False
        texts = [value for value in values if value is not None]
        return all(isinstance(text, str) and is_nothing(text) for text in texts)


def given(kind: type | None, value: Any) -> Any:
    """Return the arguments that were given for a request, or a part of one. What is wrong stays for its validation."""
    if isinstance(value, str):
        decoded = _json(value)
        if isinstance(decoded, dict):
            value = decoded
    if kind is None or not isinstance(value, Mapping):
        return value
    arguments = _arguments_of(kind)
    result = {}
    for name, entry in value.items():
        if name in arguments:
            entry = arguments[name].read(entry)
        if entry is not None:
            result[name] = entry
    return result


def _json(text: str) -> Any:
    """Return what a text is in JSON, if it is a list or an object."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _usual_id(value: Any) -> Any:
    """Return an id in its usual spelling, if it is a whole one."""
    id_ = id_in(value) if isinstance(value, str) else None
    if isinstance(id_, UUID):
        return str(id_)
    return value


@cache
def _arguments_of(kind: type) -> Mapping[str, _Argument]:
    """Return the arguments of a request, or of a part of one, by their names and aliases."""
    arguments = {}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        for part in fields(kind):
            has_default = (part.default, part.default_factory) != (MISSING, MISSING)
            arguments[part.name] = _argument(
                part.name, hints[part.name], optional=has_default
            )
        return arguments
    assert issubclass(kind, BaseModel)
    for name, field in kind.model_fields.items():
        argument = _argument(
            name,
            field.annotation,
            optional=not field.is_required(),
            narrows=name == "filters" and "erase" in kind.model_fields,
        )
        arguments[name] = arguments[field.alias or name] = argument
    return arguments


def _argument(
    name: str, annotation: Any, *, optional: bool, narrows: bool = False
) -> _Argument:
    types = _types(annotation)
    lists = [type_ for type_ in types if get_origin(type_) in (tuple, frozenset)]
    objects = [type_ for type_ in types if _is_object(type_)]
    entries: list[Any] = []
    for type_ in lists:
        for entry in get_args(type_):
            if entry is not ...:
                entries += _types(entry)
    values: list[object] = []
    for type_ in (*types, *entries):
        if get_origin(type_) is Literal:
            values += get_args(type_)
    parts = [type_ for type_ in (*objects, *entries) if _is_part(type_)]
    return _Argument(
        name,
        optional,
        is_text=len(lists) + len(objects) < len(types),
        is_list=bool(lists),
        is_object=bool(objects),
        is_id=UUID in (*types, *entries),
        values=frozenset(values),
        parts=parts[0] if parts else None,
        narrows=narrows,
    )


def _types(annotation: Any) -> list[Any]:
    """Return the types of a union but None, without what is annotated."""
    if get_origin(annotation) is Annotated:
        return _types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return list(chain.from_iterable(map(_types, get_args(annotation))))
    if annotation is type(None):
        return []
    return [annotation]


def _is_object(kind: Any) -> bool:
    return _is_part(kind) or get_origin(kind) in (dict, Mapping)


def _is_part(kind: Any) -> bool:
    """Return True for a type whose fields are arguments."""
    if not isinstance(kind, type) or get_origin(kind) is not None:
        return False
    return is_dataclass(kind) or issubclass(kind, BaseModel)
