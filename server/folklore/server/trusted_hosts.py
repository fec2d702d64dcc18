"""Checks of every request, whatever its path: its framing, and its Host and Origin.

The latter keep web pages in a browser away from this server.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.server.error_responses import refusal
from folklore.server.listener import Listener, listener_of

if TYPE_CHECKING:
    from mcp.server import transport_security as sdk

_JSON_PATHS = ("/api/", "/mcp")  # the bodies of their requests are JSON


def transport_security(
    host: str, extra: Sequence[str]
) -> sdk.TransportSecuritySettings:
    """Return the rule: only this machine's names, the bound address and the configured names pass."""
    # The user's server, which starts while a hook waits for it, is reached by no browser.
    from mcp.server import transport_security as sdk

    bound = f"[{host}]" if ":" in host else host
    names = ["127.0.0.1", "localhost", "[::1]", bound, *map(_host_of, extra)]
    hosts = []
    origins = []
    for name in dict.fromkeys(names):
        # The pattern `name:*` does not match the bare name, so both are listed.
        hosts += [name, f"{name}:*"]
        for scheme in ("http", "https"):
            origins += [f"{scheme}://{name}", f"{scheme}://{name}:*"]
    return sdk.TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=origins,
    )


def _host_of(name: str) -> str:
    """Return the host of an address as a Host header has it; a bare name as it is."""
    if "://" not in name:
        return name
    host = urlsplit(name).hostname or ""
    return f"[{host}]" if ":" in host else host


class TrustedHosts:
    """ASGI middleware that answers 421 to an unknown Host, 403 to an unknown Origin, 400 to two Hosts or lengths.

    So it does to a POST that does not declare JSON, where JSON is read: other bodies a web page may send unasked. The
    SDK checks its own paths by the same rules; this covers the others too, and says what to do. A Unix socket is
    reached by no browser.
    """

    def __init__(self, app: ASGIApp, *, network: Listener) -> None:
        self.app = app
        self._network = network

    @cached_property
    def _rule(self) -> sdk.TransportSecurityMiddleware:
        from mcp.server import transport_security as sdk

        network = self._network
        security = transport_security(network.host, network.allowed_hosts)
        return sdk.TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or listener_of(scope).is_own:
            return await self.app(scope, receive, send)
        refused = _wrong_framing(scope)
        if refused is None:
            refused = await self._wrong_page(scope)
        if refused is None:
            return await self.app(scope, receive, send)
        return await refused(scope, receive, send)

    async def _wrong_page(self, scope: Scope) -> Response | None:
        """Return the answer to a request that a web page could send: by its Host, its Origin or its type."""
        reads_json = scope["method"] == "POST" and scope["path"].startswith(_JSON_PATHS)
        response = await self._rule.validate_request(Request(scope), is_post=reads_json)
        if response is None:
            return None
        if response.status_code == 400:
            message = "The request's Content-Type is not application/json."
            return refusal(400, "wrong_content_type", message, "Send JSON, and say so.")
        name = "Host" if response.status_code == 421 else "Origin"
        return refusal(
            response.status_code,
            f"wrong_{name.lower()}",
            f"The request's {name} is not one of this server's.",
            "Call it by a name in http.allowed_hosts, or add the name there.",
        )


def _wrong_framing(scope: Scope) -> Response | None:
    """Return the answer to a request whose host or end is not clear (RFC 9112)."""
    names = [name for name, _ in scope["headers"]]
    hosts = names.count(b"host")
    lacks_host = hosts == 0 and scope["http_version"] != "1.0"
    if hosts > 1 or lacks_host:  # section 3.2
        message = f"The request has {hosts} Host headers."
        return refusal(400, "wrong_host", message, "Send one.")
    if b"content-length" in names and b"transfer-encoding" in names:
        # section 6.1: the server and a proxy before it may see different ends
        message = "The request has Content-Length as well as Transfer-Encoding."
        answer = refusal(400, "ambiguous_length", message, "Send one of them.")
        answer.headers["connection"] = "close"
        return answer
    return None
