"""Signing in: by a token, by a one-time link, or without either where the server needs no token; and signing out."""

from starlette.requests import Request
from starlette.responses import Response

from folklore.errors import FolkloreError, Unauthenticated
from folklore.memory import ConsoleSessions
from folklore.server.auth import address_of
from folklore.server.console.guard import Visitor, next_address, set_cookie
from folklore.server.console.visit import Visit, open_page, read_form, redirection
from folklore.server.error_responses import failure
from folklore.server.server_context import ServerContext

_BAD_LINK = "This link was used before, or it is older than two minutes."
_NEW_LINK = "`folklore open` makes a new one."


class SigningIn:
    """The pages that need no session."""

    def __init__(self, server: ServerContext, sessions: ConsoleSessions) -> None:
        self._server = server
        self._sessions = sessions

    async def show(self, request: Request) -> Response:
        """Show the sign-in page, or the way on to a visitor who is signed in."""
        next_page = request.query_params.get("next", "")
        if request.scope["state"].get("visitor") is not None:
            return redirection(next_address(next_page))
        return await self._page(request, next_page)

    async def sign_in(self, request: Request) -> Response:
        """Begin a session for the caller of a token, always with a new secret."""
        form = await read_form(request)
        token = form.get("token", "").strip()
        next_page = form.get("next", "")
        try:
            caller = await self._server.authenticator.caller_of(
                token or None, address_of(request.scope)
            )
            secret = await self._sessions.begin(caller)
        except Unauthenticated as error:
            self._server.denied(
                self._server.app.caller, "console sign_in", error, error.reason
            )
            return await self._page(request, next_page, error, status=403)
        except FolkloreError as error:
            status = failure(error).status_code
            return await self._page(request, next_page, error, status=status)
        return self._begun(request, secret, next_page)

    async def open(self, request: Request) -> Response:
        """Exchange a one-time link, at once if the person followed it from outside of a browser's page."""
        code = request.query_params.get("code", "")
        is_prefetch = "prefetch" in request.headers.get("sec-purpose", "")
        if request.method == "HEAD" or is_prefetch:
            return Response(status_code=204)
        # A page of another site could sign its visitor in to an account of its own, where there are several. The file
        # that `folklore open` shows to the browser counts as another site too.
        is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
        if is_from_elsewhere and await self._has_several_accounts():
            return open_page(request, "open.html", code=code)
        return await self._exchange(request, code)

    async def confirm_open(self, request: Request) -> Response:
        """Exchange a one-time link after a confirmation."""
        return await self._exchange(request, (await read_form(request)).get("code", ""))

    async def sign_out(self, visit: Visit) -> Response:
        """End the session."""
        visitor: Visitor = visit.request.scope["state"]["visitor"]
        await self._sessions.end(visitor.secret)
        response = redirection("./sign-in")
        set_cookie(visit.request, response, "", 0)
        return response

    async def _has_several_accounts(self) -> bool:
        if self._sessions.by_link_alone:
            return False
        try:
            return await self._server.authenticator.demands_token()
        except FolkloreError:  # the exchange says what is wrong
            return True

    async def _exchange(self, request: Request, code: str) -> Response:
        try:
            secret = await self._sessions.exchange(code)
        except FolkloreError as error:
            return await self._page(request, "", error, status=503)
        if secret is None:
            bad_link = Unauthenticated("unknown", _BAD_LINK, hint=_NEW_LINK)
            return await self._page(request, "", bad_link, status=403)
        return self._begun(request, secret, request.query_params.get("next", ""))

    def _begun(self, request: Request, secret: str, next_page: str) -> Response:
        response = redirection(next_address(next_page))
        set_cookie(request, response, secret)
        return response

    async def _page(
        self,
        request: Request,
        next_page: str,
        error: FolkloreError | None = None,
        *,
        status: int = 200,
    ) -> Response:
        if self._sessions.by_link_alone:
            return open_page(request, "sign_in_by_link.html", status, error=error)
        try:
            demanded = await self._server.authenticator.demands_token()
            if not demanded:
                self._server.authenticator.check_without_token()
        except Unauthenticated as other_user:
            demanded = True
            error = error or other_user
        except FolkloreError as unavailable:
            demanded = True
            error = error or unavailable
            status = max(status, 503)
        return open_page(
            request,
            "sign_in.html",
            status,
            demanded=demanded,
            next=next_page,
            error=error,
        )
