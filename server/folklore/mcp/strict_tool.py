"""Tools as the SDK runs them, stricter: unknown arguments are refused, errors speak to the model, schemas are short."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, cast

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import ToolAnnotations
from pydantic import ConfigDict, ValidationError

from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.request_context import RequestContext

# Of the name of a field that there is not, so much is repeated.
_NAME = 60
# What pydantic says of some mistakes names no next step.
_INSTEAD: Mapping[str, str] = {
    "uuid_parsing": "is no id; ids come from recall, search or list, such as 0193e0a1-5b19-7140-a959-dd55a554fce9",
    "uuid_type": "must be an id, as recall, search or list give it",
    "list_type": 'must be a list, such as ["a", "b"]',
    "dict_type": "must be a JSON object",
    "model_type": "must be a JSON object",
    "string_type": "must be a text",
}


class StrictTool(Tool):
    """A tool whose failures all leave through one door: ours and bad arguments as text for the model."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Run it. Raises ToolError whose text names the field and the next step; anything else stays on the server."""
        began, outcome = perf_counter(), "cancelled"
        try:
            result = await super().run(arguments, context, convert_result)
            outcome = "ok"
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                outcome = InvalidInput.code
                raise ToolError(self._bad_arguments(cause)) from None
            if isinstance(cause, FolkloreError):
                outcome = cause.code
                context.request_context.lifespan_context.refused(self.name, cause)
                raise ToolError(str(cause)) from cause
            outcome = "crashed"
            raise  # a crash: the SDK logs it, and tells the model only that there was one
        finally:
            host: RequestContext = context.request_context.lifespan_context
            host.usage.metrics.called(self.name, outcome, perf_counter() - began)
        return result

    def _bad_arguments(self, error: ValidationError) -> str:
        lines = []
        for problem in error.errors(include_url=False, include_context=False, include_input=False)[:5]:
            parts = (f"[{part}]" if isinstance(part, int) else f".{part[:_NAME]}" for part in problem["loc"])
            place = "".join(parts).lstrip(".")
            if problem["type"] == "extra_forbidden":
                parent = "arguments" if "." not in place else place.rpartition(".")[0]
                lines.append(f"{place}: no such field in {parent}; the tool's schema lists what there is.")
            else:
                said = _INSTEAD.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
                lines.append(f"{place}: {said}.")
        return "\n".join(lines)


class StrictArguments(FuncMetadata):
    """Arguments of which only lists and objects are read out of a text that spells them as JSON, as some clients send.

    The SDK reads every text so that may be left out, and what is JSON by chance would be no text any more.
    """

    # Which arguments may be texts.
    texts: frozenset[str]

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """The arguments as they came, but for lists and objects that came as JSON in a text."""
        parsed = super().pre_parse_json(data)
        return {
            name: parsed[name] if isinstance(parsed[name], list | dict) and name not in self.texts else value
            for name, value in data.items()
        }


def strict_tool(
    function: Callable[..., Awaitable[Any]], *, title: str, annotations: ToolAnnotations, always_load: bool = False
) -> StrictTool:
    """The tool of a function; its docstring is the description."""
    tool = StrictTool.from_function(
        function,
        title=title,
        description=" ".join((function.__doc__ or "").split()),
        annotations=annotations,
        meta={"anthropic/alwaysLoad": True} if always_load else None,
    )
    loose = tool.fn_metadata.arg_model
    namespace = {"model_config": ConfigDict(extra="forbid"), "__module__": __name__}
    closed = cast("type[ArgModelBase]", type(loose.__name__, (loose,), namespace))
    held = {name: getattr(tool.fn_metadata, name) for name in FuncMetadata.model_fields}
    # What the closed model's schema would be, without the milliseconds that it takes to be made.
    tool.parameters = _short({"additionalProperties": False} | tool.parameters)
    tool.fn_metadata = StrictArguments(**held | {"arg_model": closed, "texts": _texts(tool.parameters)})
    if tool.fn_metadata.output_schema is not None:
        tool.fn_metadata.output_schema = _short(tool.fn_metadata.output_schema)
    return cast("StrictTool", tool)


def _texts(arguments: dict[str, Any]) -> frozenset[str]:
    """Which arguments of this schema may be texts."""
    return frozenset(
        name
        for name, schema in arguments["properties"].items()
        if any(alternative.get("type") == "string" for alternative in [schema, *schema.get("anyOf", [])])
    )


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what costs every session tokens and says nothing the server would not say in an error.

    Titles, the shapes' own docstrings, null alternatives, empty defaults; definitions stand where they are used.
    """
    short = _shorten(schema, schema.get("$defs", {}), names=False)
    for key in ("$defs", "description"):
        short.pop(key, None)
    return cast("dict[str, Any]", short)


def _shorten(node: Any, definitions: dict[str, Any], *, names: bool) -> Any:
    # `names` is true inside "properties", whose keys are names and not keywords.
    if isinstance(node, list):
        return [_shorten(entry, definitions, names=False) for entry in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {name: _shorten(entry, definitions, names=False) for name, entry in node.items()}
    if (reference := node.get("$ref")) is not None:
        defined = {
            key: entry for key, entry in definitions[reference.rpartition("/")[2]].items() if key != "description"
        }
        node = defined | {key: entry for key, entry in node.items() if key != "$ref"}
    short = {
        key: _shorten(entry, definitions, names=key == "properties")
        for key, entry in node.items()
        if key not in ("title", "$defs") and not (key == "default" and entry in (None, [], {}, False))
    }
    if short.get("additionalProperties") in (True, {}):  # anything, which is what its absence says
        del short["additionalProperties"]
    alternatives = short.get("anyOf")
    if isinstance(alternatives, list):
        real = [entry for entry in alternatives if entry != {"type": "null"}]
        if len(real) == 1:
            del short["anyOf"]
            short = {**real[0], **short}
    return short
