"""The user at the other end of a connection of this machine, by the kernel.

Linux answers this for one connection in 0.03 ms (sock_diag(7), as `ss` asks); reading /proc/net/tcp took 15 ms. Other
systems give no answer.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.errors import Unauthenticated

Address = tuple[str, int]

# Headers of proxies: the client of the connection is then not whose request it is.
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_ANY_STATE = 0xFFFFFFFF
_SYN_SENT = 2
_NO_COOKIE = (0xFFFFFFFF, 0xFFFFFFFF)
_HEADER = struct.Struct("=IHHII")
# family, protocol, extensions, padding, states; ports; addresses; interface and cookie
_ASKED = struct.Struct("=BBBxI")
_PORTS = struct.Struct("!HH")
_WHICH = struct.Struct("=III")
# Of the answer: after family, state, timer, retransmissions, and the 48 bytes of what was asked, expiry and two queues.
_OWNER = struct.Struct("=II")
_OWNER_AT = _HEADER.size + 4 + 48 + 12
_MAPPED = "::ffff:"


def user_at(client: Address, server: Address) -> int | None:
    """Return the user whose process holds the client's end of a TCP connection; None where the system gives no answer.

    For a client that has closed its end the kernel says 0, whoever it was.
    """
    if sys.platform != "linux":
        return None
    try:
        with socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG
        ) as kernel:
            kernel.settimeout(1.0)
            kernel.send(_question(client, server))
            answer = kernel.recv(4096)
    except (OSError, ValueError):
        return None
    if len(answer) < _OWNER_AT + _OWNER.size:
        return None  # an error, such as for a connection of another machine
    is_open = answer[_HEADER.size + 1] != _SYN_SENT  # else another's first try
    user, inode = _OWNER.unpack_from(answer, _OWNER_AT)
    if inode == 0 or not is_open or _stands_for_several(user):
        return None
    return int(user)


def _question(client: Address, server: Address) -> bytes:
    hosts = [host.removeprefix(_MAPPED) for host, _ in (client, server)]
    if ":" in hosts[0]:
        family = socket.AF_INET6
    else:
        family = socket.AF_INET
    body = b"".join(
        (
            _ASKED.pack(family, socket.IPPROTO_TCP, 0, _ANY_STATE),
            _PORTS.pack(client[1], server[1]),
            *(socket.inet_pton(family, host).ljust(16, b"\0") for host in hosts),
            _WHICH.pack(0, *_NO_COOKIE),
        )
    )
    return _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body


def _stands_for_several(user: int) -> bool:
    """Return whether this is the number that a user namespace shows for every user outside of it."""
    try:
        if user != int(Path("/proc/sys/kernel/overflowuid").read_text()):
            return False
        return Path("/proc/self/uid_map").read_text().split() != [
            "0",
            "0",
            str(2**32 - 1),
        ]
    except (OSError, ValueError):
        return True


def is_told() -> bool:
    """Return whether this system tells whose a connection is."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        return user_at(client.getsockname(), listening.getsockname()) == os.geteuid()


@dataclass
class Peer:
    """The other end of a connection, whose user is looked up once."""

    client: Address
    server: Address

    @cached_property
    def user(self) -> int | None:
        """The user, as `user_at` says."""
        return user_at(self.client, self.server)


_request: ContextVar[tuple[Scope, Peer | None]] = ContextVar(
    "folklore_request_of_peer", default=({}, None)
)


class RequestPeer:
    """ASGI middleware that keeps from where a request comes; `peer_of` returns the peer of its connection, if known."""

    def __init__(self, app: ASGIApp, peer_of: Callable[[], Peer | None]) -> None:
        self._app = app
        self._peer_of = peer_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = _request.set((scope, self._peer_of()))
        try:
            await self._app(scope, receive, send)
        finally:
            _request.reset(token)


def require_own_user() -> None:
    """Raise Unauthenticated unless a process of this server's user sends the current request, for itself."""
    problem = _problem(*_request.get())
    if problem is None:
        return
    raise Unauthenticated(
        "other_user",
        f"Without a token this server admits processes of user id {os.geteuid()}, who started it, alone; {problem}.",
        hint="Make a token as that user (`folklore tokens create --name you --owner`; then everyone needs one), and send"
        " `Authorization: Bearer fk_…`.",
    )


def _problem(scope: Scope, peer: Peer | None) -> str | None:
    """Return in words why a request is not of this user; None if it is."""
    client = scope.get("client")
    server = scope.get("server")
    if client is None or server is None or server[1] is None:
        return "it is not known whose this request is"
    if peer is None:
        peer = Peer((client[0], client[1]), (server[0], server[1]))
    is_forwarded = any(name in Headers(scope=scope) for name in FORWARDED)
    if is_forwarded or tuple(client) != peer.client:
        return "a proxy has passed this request on"
    if peer.user is None:
        return "the system does not tell whose this request is"
    if peer.user != os.geteuid():
        return f"user id {peer.user} sent this request (another person, a proxy, a tunnel or a container)"
    return None
