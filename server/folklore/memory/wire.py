"""Requests and results as JSON, for the HTTP API and its client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from folklore.errors import InvalidInput
from folklore.memory.requests import Part, Request, Returns

P = TypeVar("P", bound=Part)
# Characters of an unknown field's name that an error repeats.
_NAME = 60
# Messages of pydantic that name no next step, and ours in their place.
_UNKNOWN = "unknown field; the schema lists the fields."
_OBJECT = "must be a JSON object."
_LIST = "must be a list."
_MESSAGES: Mapping[str, str] = {
    "uuid_parsing": "must be the id of a memory, as recall and list show it.",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "missing": "is missing.",
    "extra_forbidden": _UNKNOWN,
    "unexpected_keyword_argument": _UNKNOWN,
}


def read_request(kind: type[P], body: bytes) -> P:
    """Parse a request. Raises InvalidInput that names the first wrong field, never its value."""
    try:
        return kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)[0]) from None


def field_errors(error: ValidationError) -> list[tuple[str, str]]:
    """Return the first five wrong fields, each with its message, never with its value."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return [(_place(problem["loc"]), _message(problem["type"], problem["msg"])) for problem in problems]


def _place(path: Sequence[int | str]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:_NAME]}" for part in path)
    return "".join(parts).lstrip(".") or "arguments"


def _message(kind: str, message: str) -> str:
    return _MESSAGES.get(kind) or f"{message.removeprefix('Value error, ')}."


def request_json(request: Request) -> str:
    """Serialize a request, without what was not given."""
    return request.model_dump_json(exclude_unset=True, by_alias=True)


def result_json(request: Request, result: object) -> Any:
    """Serialize the result of a request."""
    return _result_type(type(request)).dump_python(result, mode="json")


def read_result(request: Request, value: object) -> Any:
    """Parse the result of a request from JSON values."""
    return _result_type(type(request)).validate_python(value)


@cache
def _result_type(request: type[Request]) -> TypeAdapter[Any]:
    """The type that the request declares by Returns[...]."""
    [declared] = [base for base in request.__orig_bases__ if getattr(base, "__origin__", None) is Returns]  # type: ignore[attr-defined]
    return TypeAdapter(get_args(declared)[0])
