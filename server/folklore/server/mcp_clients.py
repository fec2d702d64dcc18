"""Requests of MCP clients that nearly keep to the protocol: each is served, or answered in one sentence.

Clients show the message of a JSON-RPC error, and `error_description` of OAuth's; of anything else they say no more than
that an error came.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.server.error_responses import failure, refusal
from folklore.server.limits import replayed
from folklore.server.listener import listener_of

MCP_PATH = "/mcp"
# Where clients look for OAuth, beside /.well-known/.
OAUTH_PATHS = ("/authorize", "/register", "/revoke", "/token")

# The versions of the SDK, whose list is not public: with a handshake, and without one.
_WITH_HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_STATELESS = ("2026-07-28",)
VERSIONS: Sequence[str] = (*_WITH_HANDSHAKE, *_STATELESS)
_VERSION_HEADER = "mcp-protocol-version"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
# One address in two spellings. A redirection would name the server's own scheme and host, which proxies change.
_SPELLINGS = {"/mcp/": MCP_PATH, "/sse/": "/sse", "/messages": "/messages/"}
_PARSE_ERROR = -32700
_INVALID_REQUEST = -32600
_REFUSED = -32000
UNSUPPORTED_VERSION = -32022
_JSON = "application/json"
_EVENTS = "text/event-stream"
_READ_AS: Mapping[str, frozenset[str]] = {
    "*/*": frozenset({_JSON, _EVENTS}),
    "application/*": frozenset({_JSON}),
    "text/*": frozenset({_EVENTS}),
    _JSON: frozenset({_JSON}),
    _EVENTS: frozenset({_EVENTS}),
}
_BOTH = f"{_JSON}, {_EVENTS}"
_EXAMPLE = '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'


class OneSpelling:
    """ASGI middleware that takes a path of the protocol with and without a slash at its end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (path := _SPELLINGS.get(scope["path"])):
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


class McpReplies:
    """ASGI middleware that says errors to clients of MCP as they read them, before and after all other checks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if _is_preflight(scope, headers):
            return await _no_web_pages()(scope, receive, send)
        if _is_bare_address(scope, headers):
            answer = failure(listener_of(scope).bare_address)
            return await answer(scope, receive, _as_json_rpc(send))
        if _speaks_json_rpc(scope, headers):
            send = _as_json_rpc(send)
        return await self._app(scope, receive, send)


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser asks for a web page of another origin. Metadata is open to all."""
    return (
        scope["method"] == "OPTIONS"
        and "access-control-request-method" in headers
        and "/.well-known/" not in scope["path"]
    )


def _is_bare_address(scope: Scope, headers: Headers) -> bool:
    """Return whether a client of MCP has the address without a path."""
    if scope["path"] not in ("", "/"):
        return False
    if scope["method"] == "POST":
        return _declares_json(headers)
    accepted = headers.get("accept", "")
    return scope["method"] == "GET" and accepted.strip() == _EVENTS


def _speaks_json_rpc(scope: Scope, headers: Headers) -> bool:
    path = scope["path"]
    if scope["method"] != "POST" or path.startswith("/api/") or path in OAUTH_PATHS:
        return False
    return path == MCP_PATH or _declares_json(headers)


def _declares_json(headers: Headers) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == _JSON


def _no_web_pages() -> Response:
    answer = refusal(
        405,
        "wrong_method",
        "Web pages of other origins are not served (CORS).",
        "Let the client connect from its own server: in MCP Inspector, choose the connection type `Via Proxy`.",
    )
    answer.headers["allow"] = "GET, POST"
    return answer


def no_oauth(issuer: str | None) -> Response:
    """Return the answer at a path of OAuth that is not this server's, as its clients read it (RFC 6749, 5.2)."""
    if issuer is None:
        description = (
            "This server has no OAuth. Where it asks for a token, let the client send the header"
            " `Authorization: Bearer fk_…`; `folklore tokens create` makes one."
        )
    else:
        description = (
            f"The issuer of this server is {issuer}: register and sign in there."
        )
    return JSONResponse(
        {"error": "invalid_request", "error_description": description}, 404
    )


def json_rpc_error(
    code: int, message: str, data: object = None, *, status: int, id_: object = None
) -> Response:
    """Return an error of JSON-RPC as a response."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return JSONResponse({"jsonrpc": "2.0", "id": id_, "error": error}, status)


def _replacing(
    send: Send,
    applies: Callable[[int, str], bool],
    replacement: Callable[[bytes], bytes],
    type_: str,
) -> Send:
    """Return a `send` that waits for the end of a response, and sends the replacement of its body, of a type.

    It `applies` to responses by their status and their type.
    """
    start: Message | None = None
    chunks: list[bytes] = []

    async def sending(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            found = Headers(raw=message["headers"]).get("content-type", "")
            if applies(int(message["status"]), found.partition(";")[0]):
                start = message
                return
        if start is None or message["type"] != "http.response.body":
            await send(message)
            return
        chunks.append(message.get("body", b""))
        if message.get("more_body"):
            return
        body = replacement(b"".join(chunks))
        headers = MutableHeaders(scope=start)
        headers["content-type"] = type_
        headers["content-length"] = str(len(body))
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return sending


def _as_json_rpc(send: Send) -> Send:
    """Return a `send` that turns our errors into those of JSON-RPC, with ours as their data."""

    def is_error(status: int, type_: str) -> bool:
        return status >= 400 and type_ == _JSON

    return _replacing(send, is_error, _converted, _JSON)


def _converted(body: bytes) -> bytes:
    """Return our error as one of JSON-RPC; another body as it is."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), str):
        return body
    sentences = [error.get("message"), error.get("hint")]
    message = " ".join(sentence for sentence in sentences if sentence)
    return bytes(json_rpc_error(_REFUSED, message, error, status=400).body)


class Negotiated:
    """MCP over streamable HTTP, in the type that the client accepts: JSON, an event stream, or what fits.

    The SDK serves clients that accept both, as the specification asks of them; others exist.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        accepted = _accepted(headers.getlist("accept"))
        if not accepted:
            message = f"The answers of this server are {_JSON} or {_EVENTS}; accept one of them."
            answer = json_rpc_error(_INVALID_REQUEST, message, status=406)
            return await answer(scope, receive, send)
        body = await Request(scope, receive).body()
        read, refused = _read(body)
        if refused is None:
            refused = _unknown_version(read, headers) or _unasked(read, headers)
        if refused is not None:
            return await refused(scope, receive, send)
        if accepted == {_EVENTS}:
            send = _as_events(send)
        elif accepted == {_JSON}:
            send = _as_json(send, read.get("id"))
        scope = {**scope, "headers": list(scope["headers"])}
        changed = MutableHeaders(scope=scope)
        del changed["accept"]
        changed["accept"] = _BOTH
        if read.get("method") == "initialize" and not _is_known(headers):
            del changed[_VERSION_HEADER]  # it is negotiated by the message
        return await self._app(scope, replayed(body, receive), send)


def _accepted(headers: Sequence[str]) -> frozenset[str]:
    """Return which of the two types a client accepts; without the header it accepts any (RFC 9110, 12.5.1)."""
    ranges = [part for part in ",".join(headers).split(",") if part.strip()]
    if not ranges:
        return _READ_AS["*/*"]
    accepted: frozenset[str] = frozenset()
    for part in ranges:
        type_, *parameters = [text.strip().lower() for text in part.split(";")]
        if not any(map(_is_zero, parameters)):
            accepted |= _READ_AS.get(type_, frozenset())
    return accepted


def _is_zero(parameter: str) -> bool:
    """Return whether a parameter is the weight 0."""
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and not weight.strip().strip("0.")


def _read(body: bytes) -> tuple[dict[str, Any], Response | None]:
    """Return the message in a body, and the answer to one that holds none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}, json_rpc_error(
            _PARSE_ERROR, "The body cannot be read as JSON.", status=400
        )
    problem = _problem(value)
    if problem is None:
        return value, None
    id_ = value.get("id") if isinstance(value, dict) else None
    if not _is_id(id_):
        id_ = None
    return {}, json_rpc_error(_INVALID_REQUEST, problem, status=400, id_=id_)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _problem(message: Any) -> str | None:
    """Return in a sentence why a JSON value is no JSON-RPC message; None if it is one."""
    if isinstance(message, list):
        return "Batches are not served: send each message in a request of its own."
    if not isinstance(message, dict):
        return f"The body must be one JSON-RPC message, such as {_EXAMPLE}."
    if message.get("jsonrpc") != "2.0":
        return f'jsonrpc must be "2.0"; a message is such as {_EXAMPLE}.'
    if "id" in message and not _is_id(message["id"]):
        return "id must be a text or a whole number, and a notification has none."
    if "method" not in message:
        is_response = "id" in message and ("result" in message or "error" in message)
        if is_response:
            return None
        return f"method is missing; a message is such as {_EXAMPLE}."
    if not isinstance(message["method"], str):
        return "method must be a text."
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object."
    return None


def _is_known(headers: Headers) -> bool:
    return headers.get(_VERSION_HEADER, VERSIONS[0]) in VERSIONS


def _unknown_version(message: Mapping[str, Any], headers: Headers) -> Response | None:
    """Return the answer to a request of a version that nobody here knows.

    One that states its version in the message too, as from 2026-07-28 on, gets the SDK's.
    """
    params = message.get("params") or {}
    meta = params.get("_meta")
    states_it = isinstance(meta, dict) and _VERSION_KEY in meta
    if _is_known(headers) or states_it or message.get("method") == "initialize":
        return None
    requested = headers[_VERSION_HEADER]
    text = (
        f"The protocol version {requested[:40]!r} in MCP-Protocol-Version is not known here; known are"
        f" {', '.join(VERSIONS)}."
    )
    data = {"supported": list(VERSIONS), "requested": requested[:40]}
    return json_rpc_error(
        UNSUPPORTED_VERSION, text, data, status=400, id_=message.get("id")
    )


def _unasked(message: Mapping[str, Any], headers: Headers) -> Response | None:
    """Return the answer to a response of a client, whom this server asks nothing; None for another message."""
    if "method" in message:
        return None
    if headers.get(_VERSION_HEADER) in _STATELESS:
        text = "This server asks its clients nothing, so it takes no responses."
        return json_rpc_error(_INVALID_REQUEST, text, status=400)
    return Response(status_code=202)


def _as_events(send: Send) -> Send:
    """Return a `send` that gives an answer in JSON as a stream of one event; errors stay as they are."""

    def is_answer(status: int, type_: str) -> bool:
        return status == 200 and type_ == _JSON

    def event(body: bytes) -> bytes:
        data = b"".join(b"data: %b\r\n" % line for line in body.splitlines())
        return b"event: message\r\n" + data + b"\r\n"

    return _replacing(send, is_answer, event, _EVENTS)


def _as_json(send: Send, id_: object) -> Send:
    """Return a `send` that gives the answer in an event stream as JSON at its end, without notifications before it."""

    def is_stream(_status: int, type_: str) -> bool:
        return type_ == _EVENTS

    return _replacing(send, is_stream, lambda body: _answer_in(body, id_), _JSON)


def _answer_in(stream: bytes, id_: object) -> bytes:
    """Return the answer to a request that an event stream holds, an error if it holds none."""
    for event in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = [line for line in event.split(b"\n") if line.startswith(b"data:")]
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines)
        if data.strip() and "method" not in json.loads(data):
            return data
    text = "The call ended without an answer."
    return bytes(json_rpc_error(-32603, text, status=500, id_=id_).body)
