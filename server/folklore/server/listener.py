"""Listeners: sockets, and whom each admits. One application serves all listeners of a process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Literal

from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.errors import NotFound

AreaName = Literal[
    "alive", "ready", "metrics", "metadata", "api", "mcp", "sse", "console", "own"
]

_KEY = "folklore.listener"
_ROUTE = "folklore.route"
_NO_SUCH_PATH = NotFound(
    "There is nothing at this path.",
    hint="MCP is at /mcp, for clients that know SSE only at /sse; the console is at /.",
)
_NO_MCP_HERE = NotFound(
    "MCP is not at this address.",
    hint="Add /mcp to the address in the client's settings (/sse for clients that know SSE only).",
)
_ONLY_PAGES = NotFound(
    "This port has the pages of the console alone.",
    hint="`folklore install` connects assistants; `folklore serve --http` serves MCP on a port.",
)


class Admits(Enum):
    """The callers that a listener admits."""

    THIS_USER = auto()
    """Processes of this user, as the kernel tells of a connection to the Unix socket."""
    TOKENS = auto()
    """Who sends a token; while none is needed, this user's processes."""
    LINKS = auto()
    """The browser of the person who followed a one-time link."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket: whom it admits, and which areas of the application exist there.

    Web pages reach it by the names `host` and `allowed_hosts`. Where no token is needed, a listener that is
    `open_to_all` lets in every process that reaches it, any other only this user's.
    """

    admits: Admits
    areas: frozenset[AreaName]
    host: str
    allowed_hosts: tuple[str, ...] = ()
    open_to_all: bool = False
    no_such_path: NotFound = _NO_SUCH_PATH
    bare_address: NotFound = _NO_MCP_HERE

    @property
    def is_own(self) -> bool:
        """True if it admits this user alone, by a Unix socket: no other user, browser or proxy reaches it."""
        return self.admits is Admits.THIS_USER


OWN = Listener(
    Admits.THIS_USER, frozenset(("alive", "ready", "api", "mcp", "own")), "localhost"
)


def by_token(
    host: str,
    allowed_hosts: Sequence[str] = (),
    *,
    open_to_all: bool = False,
) -> Listener:
    """Return the listener of `folklore serve --http`."""
    return Listener(
        Admits.TOKENS,
        frozenset(
            ("alive", "ready", "metrics", "metadata", "api", "mcp", "sse", "console")
        ),
        host,
        tuple(allowed_hosts),
        open_to_all,
    )


def by_link(host: str) -> Listener:
    """Return the listener of one person's console; `host` is an address of this machine alone."""
    return Listener(
        Admits.LINKS,
        frozenset(("alive", "console")),
        host,
        no_such_path=_ONLY_PAGES,
        bare_address=_ONLY_PAGES,
    )


def listener_of(scope: Scope) -> Listener:
    """Return the listener by which a request came. Raises KeyError where none is known: then nobody enters."""
    listener: Listener = scope[_KEY]
    return listener


class Entrance:
    """ASGI application that marks what comes as come by a listener, unless one before it did."""

    def __init__(self, app: ASGIApp, listener: Listener) -> None:
        self._app = app
        self._listener = listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault(_KEY, self._listener)
        await self._app(scope, receive, send)


class Area(BaseRoute):
    """Routes that exist on the listeners with this area alone; made when the first request looks for one."""

    def __init__(self, name: AreaName, make: Callable[[], Sequence[BaseRoute]]) -> None:
        self._name = name
        self._make = make

    @cached_property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes."""
        return self._make()

    def prepare(self) -> None:
        """Make the routes now."""
        _ = self.routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match as the first route does that takes the path and the method, else as the first that takes the path."""
        if self._name not in listener_of(scope).areas:
            return Match.NONE, {}
        partial: tuple[Match, Scope] | None = None
        for route in self.routes:
            match, child = route.matches(scope)
            if match is Match.NONE:
                continue
            marked = {**child, _ROUTE: route}
            if match is Match.FULL:
                return match, marked
            partial = partial or (match, marked)
        return partial or (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that matches."""
        route: BaseRoute = scope[_ROUTE]
        await route.handle(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        """Name no path: pages have relative addresses."""
        raise NoMatchFound(name, path_params)


def pattern_of(areas: Sequence[Area], scope: Scope) -> str | None:
    """Return the pattern of the route that takes a request; None if none does."""
    for area in areas:
        match, child = area.matches(scope)
        if match is Match.NONE:
            continue
        route = child[_ROUTE]
        if isinstance(route, Route):
            return route.path
        return None
    return None
