"""Authentication of requests: identifies the caller before the request is read further."""

import asyncio
import hashlib
import re
from collections.abc import Callable
from time import monotonic

from cachetools import LRUCache
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.callers import Caller
from folklore.contract.token_secrets import PREFIX
from folklore.errors import FolkloreError, Unauthenticated
from folklore.server.current_caller import calling
from folklore.server.error_responses import failure, too_often
from folklore.server.facts import Callers
from folklore.server.limits import PROBES, Rate
from folklore.server.listener import Admits, listener_of
from folklore.server.mcp_clients import OAUTH_PATHS
from folklore.server.server_context import ServerContext

_METRICS = "/metrics"
# The exchange of an invitation, which needs no token: the code in it is what is checked.
JOIN = "/api/join"
# Exchanges of one address a minute, a fifth of them at once. A code has 128 random bits; this bounds the work.
_JOINS_PER_MINUTE = 60
# Wrong tokens of one address a minute, a fifth of them at once; then seconds until the answer to the next one.
_FAILURES_PER_MINUTE = 300
_PAUSE = 1.0
_REMEMBERED = 10_000
# A token that a client should have put in: ${NAME}, $NAME, %NAME%, {{name}}, {env:NAME}, <your token>.
_VARIABLE = re.compile(r"\$\{?\w|%\w+%|\{\{|\{\w+:|<[^<>]+>")
_QUOTES = "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
# Characters that may not be in a quoted text of a header.
_UNQUOTABLE = re.compile(r'[^ -~]|["\\]')
# How the audit log names a refused request: not by its path, which the caller could fill with anything.
PREFIXES = ("/mcp", "/sse", "/messages/", "/api/", _METRICS)


class FailedTokens:
    """Wrong tokens by address: after too many a minute, only tokens that were right before are looked up from there.

    So a client that guesses costs nothing but its connections, and others behind the same address go on working.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._rate = Rate(_FAILURES_PER_MINUTE, clock)
        self._refused_until: LRUCache[str, float] = LRUCache(_REMEMBERED)
        self._right: LRUCache[bytes, None] = LRUCache(_REMEMBERED)

    def wait(self, address: str, token: str) -> float:
        """Return 0, or in how many seconds the next unknown token of an address is looked up."""
        seconds = self._refused_until.get(address, 0.0) - self._clock()
        return seconds if seconds > 0 and _digest(token) not in self._right else 0.0

    def failed(self, address: str) -> None:
        """Count a wrong token."""
        if wait := self._rate.take(address):
            self._refused_until[address] = self._clock() + wait

    def succeeded(self, token: str) -> None:
        """Remember a token that is right."""
        self._right[_digest(token)] = None


class AuthenticationMiddleware:
    """ASGI middleware that identifies the caller of every request but the open ones, for the rest of the request.

    Its listener says who may enter: this user, under the name that the request states, or who sends a token. The
    console identifies its visitors by sessions, and who enters by links alone finds nothing else.

    A missing or bad token is 401. While the database is unavailable, the caller is not identified and may do nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: ServerContext,
        callers: Callers,
        *,
        metadata_url: str | None,
        is_console: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._server = server
        self._callers = callers
        self._is_console = is_console
        self._metadata_url = metadata_url
        self._joins = Rate(_JOINS_PER_MINUTE)
        self._failures = FailedTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        match listener_of(scope).admits:
            case Admits.THIS_USER:
                with calling(self._callers.this_user()):
                    await self._app(scope, receive, send)
            case Admits.LINKS:  # the console knows its visitors by their sessions
                await self._app(scope, receive, send)
            case Admits.TOKENS:
                await self._serve_by_token(scope, receive, send)

    async def _serve_by_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_console(scope):  # which has sessions
            await self._app(scope, receive, send)
            return
        token = _bearer(scope)
        if _is_open(scope["method"], scope["path"], token):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "POST" and scope["path"] == JOIN:
            await self._join(scope, receive, send)
            return

        caller = await self._caller(scope, token)
        if isinstance(caller, Response):
            await caller(scope, receive, send)
            return

        if caller.token is not None:
            note_token(scope, caller)
            # The SDK holds each session to the token that began it, which it takes from here.
            scope["user"] = _sdk_user(caller)
        with calling(caller):
            await self._app(scope, receive, send)

    async def _caller(self, scope: Scope, token: str | None) -> Caller | Response:
        """Return the caller of a request, or the answer that refuses it."""
        address = address_of(scope)
        if token is not None and (wait := self._failures.wait(address, token)):
            # the connection waits too, so that it cannot take the server's time
            await asyncio.sleep(_PAUSE)
            return too_often(
                f"More than {_FAILURES_PER_MINUTE} wrong tokens a minute come from this address.",
                wait,
            )
        try:
            if token is not None:
                _require_token_alone(token, scope)
            caller = await self._callers.of_token(token, address)
        except Unauthenticated as error:
            was_looked_up = token is not None and error.reason != "unreadable"
            if was_looked_up:
                self._failures.failed(address)
            author = Caller(author=error.principal or "unknown")
            self._server.denied(author, _action(scope["path"]), error, error.reason)
            return self._unauthenticated(error)
        except FolkloreError as error:
            return failure(error)
        if token is not None and caller.identified:
            self._failures.succeeded(token)
        return caller

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        if wait := self._joins.take(address_of(scope)):
            message = f"Invitations are exchanged at most {_JOINS_PER_MINUTE} times a minute from one address."
            await too_often(message, wait)(scope, receive, send)
            return
        with calling(self._callers.invited()):
            await self._app(scope, receive, send)

    def _unauthenticated(self, error: Unauthenticated) -> JSONResponse:
        parts = ['realm="folklore"']
        # RFC 6750: a request without a token learns only that one is needed.
        if error.reason not in ("missing", "other_user"):
            message = _UNQUOTABLE.sub("", error.message)
            parts += ['error="invalid_token"', f'error_description="{message}"']
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url}"')
        return failure(error, {"www-authenticate": f"Bearer {', '.join(parts)}"})


def _sdk_user(caller: Caller) -> object:
    """Return the user by whom the SDK knows a session."""
    # The user's server, which starts while a hook waits for it, needs no tokens.
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(
        AccessToken(token="", client_id=str(caller.token), scopes=[])
    )


def address_of(scope: Scope) -> str:
    """Return the address of the client: behind a trusted proxy, the one that the proxy states."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def note_token(scope: Scope, caller: Caller) -> None:
    """Note whose token a request has: for the limit of its rate, the log and the metrics."""
    state = scope.setdefault("state", {})
    state["principal"] = caller.author
    state["owner"] = caller.access is None


def _action(path: str) -> str:
    """Return the name of a refused request in the audit log."""
    for prefix in PREFIXES:
        if path.startswith(prefix):
            return f"http {prefix}"
    return "http other"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _is_open(method: str, path: str, token: str | None) -> bool:
    """Return True for probes, and for what clients look for after a 401: metadata (RFC 9728), OAuth."""
    if "/.well-known/" in path:
        return method in ("GET", "HEAD", "OPTIONS")
    if path in OAUTH_PATHS:
        return True
    if path not in PROBES or method not in ("GET", "HEAD"):
        return False
    # Metrics decide themselves who may read them without a token.
    return path != _METRICS or token is None


def _authorization(scope: Scope) -> list[str]:
    """Return the values of the headers Authorization."""
    headers = scope["headers"]
    return [
        value.decode("latin-1").strip()
        for name, value in headers
        if name == b"authorization"
    ]


def _bearer(scope: Scope) -> str | None:
    """Return the token of a request, None without one; of an Authorization that holds none, the whole value."""
    values = _authorization(scope)
    if not values:
        return None
    scheme, _, token = values[0].partition(" ")
    if len(values) > 1 or scheme.lower() != "bearer":
        return ", ".join(values)
    return token.strip()


def _require_token_alone(token: str, scope: Scope) -> None:
    """Raise Unauthenticated for an Authorization that holds a token in a way that cannot be read, and say how.

    `token` is what `_bearer` returns.
    """
    problem = _problem(token, _authorization(scope))
    if problem is not None:
        hint = (
            f"Send `Authorization: Bearer {PREFIX}…`, once and without quotation marks."
        )
        raise Unauthenticated("unreadable", f"{problem}.", hint=hint)


def _problem(token: str, headers: list[str]) -> str | None:
    """Return the reason why the token of these headers cannot be read; None if it can."""
    if len(headers) > 1:
        return "The request has several Authorization headers"
    if not token:
        return "The Authorization header has no token"
    if _VARIABLE.search(token):
        from folklore.client.assistants.known import TOKEN_VARIABLE

        return (
            "The token is the name of a variable that the client did not replace;"
            f" set {TOKEN_VARIABLE} where the client starts, or write the token itself"
        )
    [header] = headers
    if token[0] in _QUOTES or header[0] in _QUOTES:
        return "The token is in quotation marks"
    if header.partition(" ")[0].lower() != "bearer":
        if token.startswith(PREFIX):
            return "The Authorization header lacks the word Bearer before the token"
        return "The Authorization header is not of the scheme Bearer"
    if token.lower().startswith("bearer"):
        return "The Authorization header has the word Bearer twice"
    return None
