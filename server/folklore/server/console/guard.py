"""The way into the console: response headers, the caller of a session, the origin of changes, signing in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from starlette.datastructures import ImmutableMultiDict, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.callers import Caller
from folklore.errors import FolkloreError, InvalidInput, Refused, Unauthenticated
from folklore.server.auth import address_of, note_token
from folklore.server.console.visit import (
    address,
    error_page,
    form_again,
    is_from_script,
    read_form,
    redirection,
)
from folklore.server.current_caller import calling
from folklore.server.error_responses import failure, refusal, too_often
from folklore.server.facts import Callers
from folklore.server.limits import Rate
from folklore.server.listener import listener_of
from folklore.server.requested import TIME_ZONE
from folklore.server.server_context import ServerContext
from folklore.text.dates.zones import zone_named

# Twelve hours, after which the database ends a session too.
_COOKIE_SECONDS = 12 * 60 * 60
# Tries of one address a minute. A token has 256 random bits; this bounds the work.
_SIGN_INS_PER_MINUTE = 600
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Browsers send the origin `null` with a form under no-referrer.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_STATIC = "/static/"
# Bytes of a form without a session that are kept for the next one: a long text, and its encoding.
_FORM_LIMIT = 200_000
_OPEN = ("/sign-in", "/open")


@dataclass(frozen=True, slots=True)
class Visitor:
    """The session of a request: the secret of its cookie, and its caller."""

    caller: Caller
    secret: str = field(repr=False)


class ConsoleGuard:
    """ASGI middleware that finds the caller of a request to the console by the cookie of its session.

    Without a session a page answers with the way to the sign-in page, and nothing else is done. A change must come from
    a page of this server: its Origin is compared with its Host.
    """

    def __init__(
        self,
        app: ASGIApp,
        server: ServerContext,
        callers: Callers,
        is_console: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._server = server
        self._callers = callers
        self._is_console = is_console
        self._sign_ins = Rate(_SIGN_INS_PER_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_console = "console" in listener_of(scope).areas
        if scope["type"] != "http" or not has_console or not self._is_console(scope):
            return await self._app(scope, receive, send)
        if scope["path"].startswith(_STATIC):
            return await self._app(scope, receive, _with_headers(send, keep=True))

        request = Request(scope, receive)
        send = _with_headers(send)
        try:
            visitor = await self._visitor(request)
            refusal = await self._refused(request, visitor)
        except FolkloreError as error:
            refusal = error_page(request, error, None)
        if refusal is not None:
            return await refusal(scope, receive, send)

        scope.setdefault("state", {})["visitor"] = visitor
        scope["headers"] = [*scope["headers"], *self._zone(request)]
        if visitor is None:
            return await self._app(scope, receive, send)
        if visitor.caller.token is not None:
            note_token(scope, visitor.caller)
        with calling(visitor.caller):
            return await self._app(scope, receive, send)

    def _zone(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Return the header of the visitor's time zone, which a script keeps in a cookie, else that of the setting."""
        if TIME_ZONE in request.headers:
            return []
        zone = request.cookies.get("folklore_zone", "")
        try:
            zone_named(zone, TIME_ZONE)
        except InvalidInput:
            zone = self._server.app.settings.time_zone or ""
        return [(TIME_ZONE.lower().encode(), zone.encode())]

    async def _visitor(self, request: Request) -> Visitor | None:
        secret = request.cookies.get(cookie_name(request))
        if not secret:
            return None
        try:
            address = address_of(request.scope)
            caller = await self._callers.of_session(secret, address)
        except Unauthenticated:
            return None
        return Visitor(caller, secret)

    async def _refused(
        self, request: Request, visitor: Visitor | None
    ) -> Response | None:
        """Return the answer to a request that goes no further."""
        if request.method not in ("GET", "HEAD", "POST"):
            return refusal(
                405,
                "wrong_method",
                "This path takes GET and POST only.",
                "Use the pages of the console.",
            )
        if request.method == "POST" and not _is_from_this_server(request):
            wrong_origin = Refused(
                "This change does not come from a page of this server.",
                hint="Reload the page and try again.",
            )
            unknown = Caller(author="unknown")
            self._server.denied(unknown, "console", wrong_origin, "wrong_origin")
            return error_page(request, wrong_origin, None)
        if request.scope["path"] in _OPEN:
            return self._too_often(request)
        if visitor is None:
            return await _sign_in(request)
        return None

    def _too_often(self, request: Request) -> Response | None:
        if request.method != "POST" and "code" not in request.query_params:
            return None
        wait = self._sign_ins.take(address_of(request.scope))
        if not wait:
            return None
        message = (
            f"Sign in at most {_SIGN_INS_PER_MINUTE} times a minute from one address."
        )
        return too_often(message, wait)


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie: browsers keep cookies of one host apart by name alone, not by port."""
    url = urlsplit(f"//{request.headers.get('host', '')}")
    return f"folklore_{url.port or request.url.scheme}"


def set_cookie(
    request: Request, response: Response, secret: str, seconds: int = _COOKIE_SECONDS
) -> None:
    """Set the session's cookie, or delete it: with no seconds.

    Without a path it holds for the pages below the sign-in page, so below any prefix.
    """
    response.set_cookie(
        cookie_name(request),
        secret,
        max_age=seconds,
        path=None,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _is_from_this_server(request: Request) -> bool:
    """Return True for a change that comes from a page of this server. A browser always states where it comes from."""
    origin = request.headers.get("origin")
    if origin is None:
        return False
    return urlsplit(origin).netloc == request.headers.get("host")


async def _sign_in(request: Request) -> Response:
    """Return the way to sign in and back: a redirection for a page, 401 for a script; a form is kept."""
    if is_from_script(request):
        return failure(
            Unauthenticated("missing", "The session has ended.", hint="Sign in again.")
        )
    if request.method == "POST":
        form = ImmutableMultiDict[str, str]()
        if _may_keep_form(request):
            form = await read_form(request)
        return form_again(request, form, 401)
    next_page = request.scope["path"].lstrip("/")
    if request.url.query:
        next_page += f"?{request.url.query}"
    return redirection(address(request, "sign-in", next=next_page))


def _may_keep_form(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    if request.headers.get("content-type", "").startswith("multipart/"):
        return False
    return length.isdecimal() and int(length) <= _FORM_LIMIT


def next_address(path: str) -> str:
    """Return the address of a page within the console, whatever the address of the sign-in page says."""
    return "./" + quote(path.lstrip("/\\"), safe="/?&=%+,:")


def _with_headers(send: Send, *, keep: bool = False) -> Send:
    """Return a `send` that adds the headers of the console; a page is kept nowhere unless it says otherwise."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            if not keep:
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending
