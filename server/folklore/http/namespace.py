"""The namespace that a request names: in the header Folklore-Namespace, else in its URL as ?namespace=NAME.

Both hold the name percent-encoded as UTF-8; characters that HTTP allows there need not be encoded.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.errors import InvalidInput
from folklore.text import names

HEADER = "Folklore-Namespace"
PARAMETER = "namespace"

_HEADER = HEADER.lower().encode()
# The first event of an SSE stream: the address to which this client posts its messages.
_ENDPOINT = re.compile(rb"^data: [^\r\n]*\?session_id=[0-9a-f]+", re.MULTILINE)
_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class _Named:
    """The values that a request gives in header or URL, decoded; `field` says which."""

    field: str
    values: tuple[str, ...]

    def name(self) -> str:
        """Return the name in its one spelling. Raises InvalidInput that names the field."""
        if len(self.values) > 1:
            raise InvalidInput(self.field, f"must be given once, got {len(self.values)} values.")
        if _NOT_UTF8 in self.values[0]:
            raise InvalidInput(self.field, "must be UTF-8, percent-encoded.", hint="For example: caf%C3%A9")
        return names.normalise(self.values[0], field=self.field)


_named: ContextVar[_Named | None] = ContextVar("folklore_namespace", default=None)


def requested_namespace() -> str | None:
    """Return the namespace that the current request names, or None. Raises InvalidInput if it is not a valid name."""
    named = _named.get()
    return None if named is None else named.name()


class RequestedNamespace:
    """ASGI middleware that keeps the namespace which a request names, for the call that the request makes.

    An SSE client sends its messages as requests of their own, to an address that its stream gives. That address gets
    the namespace of the stream, which the server then need not remember.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        named = _read(scope) if scope["type"] == "http" else None
        if named is None:
            await self._app(scope, receive, send)
            return
        is_sse = scope["method"] == "GET" and scope["path"] == "/sse"
        token = _named.set(named)
        try:
            await self._app(scope, receive, _with_endpoint(named, send) if is_sse else send)
        finally:
            _named.reset(token)


def _read(scope: Scope) -> _Named | None:
    """Return what the request names. An empty value names nothing, as an empty argument does."""
    in_header = (unquote(value.decode(errors="replace")) for name, value in scope["headers"] if name == _HEADER)
    query = parse_qsl(scope["query_string"].decode(errors="replace"))
    in_url = (value for name, value in query if name == PARAMETER)
    for field, values in ((HEADER, in_header), (f"?{PARAMETER}", in_url)):
        if given := tuple(value for value in values if value.strip()):
            return _Named(field, given)
    return None


def _with_endpoint(named: _Named, send: Send) -> Send:
    """Return a `send` that adds the namespace to the address for messages."""
    added = "".join(f"&{PARAMETER}={quote(value, safe='')}" for value in named.values).encode("ascii")
    waiting = True

    async def sending(message: Message) -> None:
        nonlocal waiting
        if waiting and message["type"] == "http.response.body":
            body, changed = _ENDPOINT.subn(lambda found: found[0] + added, message.get("body", b""), count=1)
            if changed:
                waiting = False
                message = dict(message, body=body)
        await send(message)

    return sending
