"""Names in a request: its namespace, and the time zone of its caller in the header Folklore-Time-Zone.

The namespace is in the header Folklore-Namespace, else in the URL as ?namespace=NAME, percent-encoded as UTF-8;
characters that HTTP allows there need not be encoded.
"""

import re
from contextvars import ContextVar
from datetime import tzinfo
from urllib.parse import parse_qsl, quote, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.errors import InvalidInput
from folklore.server.listener import Listener, listener_of
from folklore.text import names
from folklore.text.arguments import is_nothing
from folklore.text.dates.zones import zone_named

NAMESPACE = "Folklore-Namespace"
TIME_ZONE = "Folklore-Time-Zone"
# What the clients of this user state beside.
AUTHOR = "Folklore-Author"
DIRECTORY = "Folklore-Directory"
PARAMETER = "namespace"

# The first event of an SSE stream: the address to which this client posts its messages.
_ENDPOINT = re.compile(rb"^data: [^\r\n]*\?session_id=[0-9a-f]+", re.MULTILINE)
_NOT_UTF8 = "\N{REPLACEMENT CHARACTER}"

_request: ContextVar[Scope] = ContextVar("folklore_request")


def current_listener() -> Listener:
    """Return the listener by which the current request came. Raises LookupError outside of a request."""
    return listener_of(_request.get())


def requested_namespace() -> str | None:
    """Return the namespace that the current request names, or None. Raises InvalidInput if it is not a valid name."""
    scope = _request.get({})
    field, values = _namespaces(scope)
    if values and listener_of(scope).is_own:
        field = "namespace"  # the setting from which a client of this user takes it
    name = _only(field, values)
    if name is None:
        return None
    if _NOT_UTF8 in name:
        raise InvalidInput(
            field, "must be UTF-8, percent-encoded.", hint="For example: caf%C3%A9"
        )
    return names.normalise(name, field=field)


def requested(name: str) -> str | None:
    """Return what the current request states in a header, percent-decoded, or None."""
    values = _headers(_request.get({}), name)
    return unquote(values[0].decode("latin-1")) if values else None


def requested_zone() -> tzinfo | None:
    """Return the time zone that the current request names, or None. Raises InvalidInput if there is no such zone."""
    headers = _headers(_request.get({}), TIME_ZONE)
    values = [header.decode("latin-1").strip() for header in headers]
    name = _only(TIME_ZONE, [value for value in values if value])
    if name is None:
        return None
    return zone_named(name, TIME_ZONE)


class RequestedNames:
    """ASGI middleware that keeps what a request names, for the call that the request makes.

    An SSE client sends its messages as requests of their own, to an address that its stream gives. That address gets
    the namespace of the stream, which the server then need not remember.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "GET" and scope["path"] == "/sse":
            _, namespaces = _namespaces(scope)
            if namespaces:
                send = _with_endpoint(namespaces, send)
        token = _request.set(scope)
        try:
            await self._app(scope, receive, send)
        finally:
            _request.reset(token)


def _only(field: str, values: list[str]) -> str | None:
    if len(values) > 1:
        raise InvalidInput(field, f"must be given once, got {len(values)} values.")
    return values[0] if values else None


def _namespaces(scope: Scope) -> tuple[str, list[str]]:
    """Return where a request names namespaces, and these. An empty one, or null, names nothing, as such an argument does."""
    in_header = []
    for header in _headers(scope, NAMESPACE):
        value = unquote(header.decode(errors="replace"))
        if not is_nothing(value):
            in_header.append(value)
    if in_header:
        return NAMESPACE, in_header

    in_url = []
    query = scope.get("query_string", b"").decode(errors="replace")
    for name, value in parse_qsl(query):
        if name == PARAMETER and not is_nothing(value):
            in_url.append(value)
    return f"?{PARAMETER}", in_url


def _headers(scope: Scope, name: str) -> list[bytes]:
    key = name.lower().encode()
    return [value for other, value in scope.get("headers", ()) if other == key]


def _with_endpoint(namespaces: list[str], send: Send) -> Send:
    """Return a `send` that adds the namespace to the address for messages."""
    parameters = [f"&{PARAMETER}={quote(name, safe='')}" for name in namespaces]
    added = "".join(parameters).encode("ascii")
    pending = True

    async def sending(message: Message) -> None:
        nonlocal pending
        if pending and message["type"] == "http.response.body":
            body, changed = _ENDPOINT.subn(
                lambda match: match[0] + added, message.get("body", b""), count=1
            )
            if changed:
                pending = False
                message = dict(message, body=body)
        await send(message)

    return sending
