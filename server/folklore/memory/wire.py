"""Requests and results as JSON, for the HTTP API and its client."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from folklore.errors import InvalidInput
from folklore.memory.requests import Part, Request, Returns

P = TypeVar("P", bound=Part)


def read_request(kind: type[P], body: bytes) -> P:
    """Parse a request. Raises InvalidInput that names the first wrong field, never its value."""
    try:
        return kind.model_validate_json(body or b"{}")
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in problem["loc"]) or "body"
        raise InvalidInput(field, f"{problem['msg'].removeprefix('Value error, ')}.") from None


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
