"""The base of all requests, and requests and results as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)

from folklore.contract.argument_types import VALUE_TYPES
from folklore.contract.arguments import given
from folklore.errors import InvalidInput, field_errors
from folklore.model import FIELDS
from folklore.text.clean import replace_lone_surrogates

Result = TypeVar("Result")
Model = TypeVar("Model", bound=BaseModel)


def without_nulls(value: object) -> object:
    """Drop keys with null."""
    if isinstance(value, Mapping):
        return {name: entry for name, entry in value.items() if entry is not None}
    return value


class Part(BaseModel):
    """A part of a request. Unknown keys are errors: a misspelt filter must not widen a search."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _as_given(cls, value: object) -> object:
        return given(cls, value)


def with_fields(names: Iterable[str]) -> Callable[[type[Model]], type[Model]]:
    """Return a decorator that adds declared fields of a memory to a part of a request, each of them optional."""

    def extended(model: type[Model]) -> type[Model]:
        fields: dict[str, Any] = {
            name: (VALUE_TYPES[FIELDS[name].type] | None, None) for name in names
        }
        return create_model(
            model.__name__,
            __base__=model,
            __doc__=model.__doc__,
            __module__=model.__module__,
            **fields,
        )

    return extended


class Returns(Generic[Result]):
    """Declares the type of an operation's result."""


_CLEANED = ("query", "queries", "prompt", "message")


class Request(Part):
    """A request; `operation` names its use case and the path of the HTTP API: list_tokens for ListTokensRequest.

    One that is `lasting` may take hours: the API reports its progress.
    """

    operation: ClassVar[str]
    lasting: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.operation = re.sub(
            r"\B[A-Z]", r"_\g<0>", cls.__name__.removesuffix("Request")
        ).lower()

    @model_validator(mode="after")
    def _storable(self) -> Self:
        """Refuse a NUL in a name. What people write at length is cleaned instead."""
        for name, value in self:
            texts = value if isinstance(value, tuple) else (value,)
            if name not in _CLEANED and any(
                isinstance(text, str) and "\0" in text for text in texts
            ):
                raise InvalidInput(
                    name,
                    "holds a NUL or half of a surrogate pair, which no text can hold.",
                )
        return self


class Operations(Protocol):
    """The operations of this process, or those of a server over HTTP."""

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation. Raises FolkloreError."""


Parsed = TypeVar("Parsed", bound=Part)


def read_request(kind: type[Parsed], body: bytes) -> Parsed:
    """Parse a request. Raises InvalidInput that names the first wrong field, never its value."""
    try:
        return kind.model_validate_json(replace_lone_surrogates(body) or b"{}")
    except ValidationError as error:
        raise InvalidInput(*field_errors(error)[0]) from None


def request_json(request: Request) -> str:
    """Serialize a request, without what was not given. Raises InvalidInput for an argument that is not UTF-8."""
    try:
        return request.model_dump_json(exclude_unset=True, by_alias=True)
    except ValueError:
        raise InvalidInput(
            "arguments",
            "have text that is not UTF-8.",
            hint="Convert it, e.g. by `iconv`.",
        ) from None


def result_json(request: Request, result: object) -> Any:
    """Serialize the result of a request."""
    return _result_type(type(request)).dump_python(result, mode="json")


def read_result(request: Request, value: object) -> Any:
    """Parse the result of a request from JSON values."""
    return _result_type(type(request)).validate_python(value)


@cache
def _result_type(request: type[Request]) -> TypeAdapter[Any]:
    [declared] = [
        base
        for base in request.__orig_bases__  # type: ignore[attr-defined]
        if getattr(base, "__origin__", None) is Returns
    ]
    return TypeAdapter(get_args(declared)[0])
