"""MCP resources, for clients that attach context by hand. The tools return the same."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from mcp import types
from mcp.shared.exceptions import MCPError

from folklore.contract.compact import JsonDict
from folklore.contract.filters import FiltersRequest
from folklore.contract.health import StatusJson, StatusRequest, status_json
from folklore.contract.ids import id_of
from folklore.contract.memories import GetRequest, ListRequest, details_json
from folklore.contract.namespaces import ListNamespacesRequest, namespace_json
from folklore.contract.recall import AnswerJson, answer_json, fitted_json, token_budget
from folklore.contract.requests import Operations
from folklore.errors import EngineFailed, FolkloreError, InvalidInput, NotFound
from folklore.model import Answer
from folklore.text import names
from folklore.text.hooks.marks import json_text

_JSON = "application/json"
_RECENT = 20
_TOKENS = token_budget("detailed", None)

RESOURCES = tuple(
    types.Resource(
        uri=f"memory://{name}",
        name=name,
        title=title,
        description=description,
        mime_type=_JSON,
    )
    for name, title, description in (
        (
            "status",
            "Memory status",
            "Namespaces with their sizes, and whether everything works.",
        ),
        ("namespaces", "Namespaces", "The namespaces with their descriptions."),
    )
)
_OF_A_NAMESPACE = "Pinned memories of a namespace, then the newest, in 10,000 tokens; its name percent-encoded (repo%3Aacme%2Fapi)."
TEMPLATES = tuple(
    types.ResourceTemplate(
        uri_template=uri,
        name=name,
        title=title,
        description=description,
        mime_type=_JSON,
    )
    for uri, name, title, description in (
        (
            "memory://{namespace}/recent",
            "recent",
            "Recent memories of a namespace",
            _OF_A_NAMESPACE,
        ),
        (
            "memory://item/{id}",
            "item",
            "One whole memory",
            "One memory with all fields, its relations and revision.",
        ),
    )
)


async def read(
    service: Operations, uri: str
) -> list[types.TextResourceContents | types.BlobResourceContents]:
    """Read a resource. Raises MCPError: invalid params for an unknown one."""
    for pattern, reader in _READERS:
        if match := pattern.fullmatch(uri):
            try:
                value = await reader(
                    service, *(unquote(part) for part in match.groups())
                )
            except (NotFound, InvalidInput) as error:
                raise MCPError(
                    types.INVALID_PARAMS, str(error), {"uri": uri}
                ) from error
            except FolkloreError as error:
                raise MCPError(
                    types.INTERNAL_ERROR, in_brief(error), {"uri": uri}
                ) from error
            text = json_text(value)
            return [types.TextResourceContents(uri=uri, mime_type=_JSON, text=text)]
    raise MCPError(
        types.INVALID_PARAMS, f"There is no resource {uri[:200]!r}.", {"uri": uri}
    )


def in_brief(error: FolkloreError) -> str:
    """Return an error for an assistant: one of the engine without the lines of its log, which the first line names."""
    if isinstance(error, EngineFailed):
        message = error.message.partition("\n")[0]
    else:
        message = error.message
    return f"{message} {error.hint or ''}".rstrip()


async def _status(service: Operations) -> StatusJson:
    return status_json(await service.call(StatusRequest()))


async def _namespaces(service: Operations) -> JsonDict:
    namespaces = await service.call(ListNamespacesRequest())
    return {"namespaces": [namespace_json(item) for item in namespaces]}


async def _recent(service: Operations, namespace: str) -> AnswerJson:
    """List the pinned memories, then the newest others, 20 in all, within the budget of a detailed answer."""
    namespace = names.normalise(namespace)
    pinned = await service.call(_listed(namespace, _RECENT, pinned=True))
    remaining = _RECENT - len(pinned.memories)
    if remaining == 0 or pinned.truncated:
        return _within_budget(pinned)
    others = await service.call(_listed(namespace, remaining, pinned=False))
    memories = pinned.memories + others.memories
    note = None if memories and not others.truncated else others.note
    return _within_budget(replace(others, memories=memories, cursor=None, note=note))


def _within_budget(answer: Answer) -> AnswerJson:
    return fitted_json(answer_json(answer, "concise"), _TOKENS)


def _listed(namespace: str, limit: int, **filters: bool) -> ListRequest:
    return ListRequest(
        namespaces=(namespace,),
        limit=limit,
        filters=FiltersRequest(**filters),
        max_tokens=_TOKENS,
    )


async def _item(service: Operations, id_: str) -> JsonDict:
    result = await service.call(
        GetRequest(ids=(id_of(id_, "id", "Recall and list show ids."),))
    )
    return details_json(result.found[0])


_READERS: tuple[tuple[re.Pattern[str], Callable[..., Awaitable[Any]]], ...] = (
    (re.compile(r"memory://status"), _status),
    (re.compile(r"memory://namespaces"), _namespaces),
    (re.compile(r"memory://item/([^/?#]+)"), _item),
    (re.compile(r"memory://([^/?#]+)/recent"), _recent),
)
