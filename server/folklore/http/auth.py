"""The door: who calls is found out before anything else looks at a request, and carried with it."""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.errors import FolkloreError, Unauthenticated
from folklore.http.error_responses import failure
from folklore.memory.auth.authenticator import TokenAuthenticator
from folklore.memory.auth.current_caller import calling
from folklore.model import Caller

# What anybody may ask: whether we are alive, and what clients look for after a 401 (RFC 9728; 404 where there is none).
OPEN = frozenset({"/healthz", "/readyz"})
DISCOVERY = "/.well-known/"
# By these methods alone, a browser's question before them under DISCOVERY: any other is answered by what must know who
# calls.
_ASKING = frozenset({"GET", "HEAD"})
_BEFORE = "OPTIONS"

# Says itself who may read it without a token (http.metrics).
METRICS = "/metrics"

# How the audit log names what somebody was kept from: no text of his, or he could fill it.
KNOWN = ("/mcp", "/sse", "/messages/", "/api/", METRICS)

Refused = Callable[[Caller, str, FolkloreError, str], None]


class AuthenticationMiddleware:
    """Asks the doorkeeper about every request but the open ones, and tells the rest of the call who it is from.

    A missing or bad token is 401; while the database cannot be asked, every caller is nobody: never an open door.
    """

    def __init__(
        self, app: ASGIApp, keeper: TokenAuthenticator, refused: Refused, *, metadata_url: str | None = None
    ) -> None:
        self._app = app
        self._keeper = keeper
        self._refused = refused
        self._metadata_url = metadata_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        token = _bearer(scope) if scope["type"] == "http" else None
        if scope["type"] != "http" or _is_open(scope["method"], scope["path"], token):
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._keeper.admit(token)
        except Unauthenticated as error:
            self._refused(Caller(author=error.principal or "unknown"), _what(scope["path"]), error, error.reason)
            await self._unauthenticated(error)(scope, receive, send)
            return
        except FolkloreError as error:
            await failure(error)(scope, receive, send)
            return
        if caller.token is not None:
            state = scope.setdefault("state", {})
            state["principal"], state["token"] = caller.author, str(caller.token)
            state["owner"] = caller.access is None
            # By this the SDK holds each session to the token that began it.
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=str(caller.token), scopes=[]))
        with calling(caller):
            await self._app(scope, receive, send)

    def _unauthenticated(self, error: Unauthenticated) -> JSONResponse:
        # RFC 6750: who sent no token is told only that he needs one.
        parts = ['realm="folklore"']
        if error.reason != "missing":
            said = "".join(char for char in error.message if " " <= char <= "~" and char not in '"\\')
            parts += ['error="invalid_token"', f'error_description="{said}"']
        if self._metadata_url is not None:
            parts.append(f'resource_metadata="{self._metadata_url}"')
        return failure(error, {"www-authenticate": f"Bearer {', '.join(parts)}"})


def _is_open(method: str, path: str, token: str | None) -> bool:
    if path.startswith(DISCOVERY):
        return method in _ASKING or method == _BEFORE
    return method in _ASKING and (path in OPEN or (token is None and path == METRICS))


def _what(path: str) -> str:
    return f"http {next((known for known in KNOWN if path.startswith(known)), 'other')}"


def is_owner(request: Request) -> bool:
    """Whether the request came with an owner's token."""
    return bool(request.scope.get("state", {}).get("owner"))


def _bearer(scope: Scope) -> str | None:
    """The token of a request; an Authorization that is none, or several of them, is a malformed one."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        return None
    scheme, _, token = given[0].decode("latin-1").strip().partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer":
        return ""
    return str(token.strip())
