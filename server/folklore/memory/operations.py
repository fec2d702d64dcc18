"""The calls of the desk as JSON: what each takes and gives, read from its signature."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model

from folklore.errors import InvalidInput
from folklore.memory.service import Service


@dataclass(frozen=True)
class Call:
    """One call: `pack` and `result` are for who makes it, `unpack` and `give` for who serves it."""

    name: str

    @cached_property
    def _signature(self) -> tuple[type[Any], TypeAdapter[Any]]:
        function = getattr(Service, self.name)
        hints = get_type_hints(function)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()
            if name != "self"
        }
        arguments = create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        return arguments, TypeAdapter(hints["return"])

    def pack(self, given: Mapping[str, object]) -> Any:
        """Arguments as JSON values."""
        return self._signature[0].model_construct(**given).model_dump(mode="json", include=set(given))

    def unpack(self, body: bytes) -> dict[str, Any]:
        """The arguments in a body. Raises InvalidInput that names the field."""
        try:
            read = self._signature[0].model_validate_json(body or b"{}")
        except ValidationError as error:
            raise wrong(error) from None
        return {name: getattr(read, name) for name in read.model_fields_set}

    def give(self, result: object) -> Any:
        """A result as JSON values."""
        return self._signature[1].dump_python(result, mode="json")

    def result(self, value: object) -> Any:
        """A result that came as JSON values."""
        return self._signature[1].validate_python(value)


def wrong(error: ValidationError) -> InvalidInput:
    """What is wrong with a body: the first field that is, never its value."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return InvalidInput(".".join(str(part) for part in problem["loc"]) or "body", f"{problem['msg']}.")


CALLS: Mapping[str, Call] = {
    name: Call(name) for name, member in vars(Service).items() if inspect.iscoroutinefunction(member)
}
