"""Paths that are ours by whatever method: a wrong one is 405."""

from __future__ import annotations

from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from folklore.http.error_responses import wrong_method


class Path(Route):
    """A route after which none is asked: the protocol takes every path, and would say that it is not there."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the path is this one."""
        match, child = super().matches(scope)
        return Match.FULL if match is Match.PARTIAL else match, child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse its method."""
        allowed = self.methods or set()
        if scope["method"] in allowed:
            await super().handle(scope, receive, send)
        else:
            await wrong_method(allowed)(scope, receive, send)
