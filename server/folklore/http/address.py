"""The address a server listens on."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from contextlib import ExitStack

from folklore.errors import ConfigInvalid


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address `host` stands for, all on one port (0: any free one), not listening yet.

    Raises ConfigInvalid when there is no such address or the port is taken.
    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigInvalid("http.host", f"{host!r} is not an address ({error.strerror or error}).") from error
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        taken = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(_one(family, kind, protocol, (address[0], taken, *address[2:])))
        except OSError as error:  # e.g. `localhost` in a container without IPv6
            failed = error
    if sockets:
        return sockets
    assert failed is not None
    wrong = "http.port" if failed.errno in (errno.EADDRINUSE, errno.EACCES) else "http.host"
    raise ConfigInvalid(
        wrong,
        f"{host}:{port} cannot be listened on ({failed.strerror or failed}).",
        hint=f"Choose another by --{wrong.removeprefix('http.')}.",
    ) from failed


def _one(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    opened = socket.socket(family, kind, protocol)
    with ExitStack() as failing:
        failing.callback(opened.close)
        if os.name == "posix":  # elsewhere it would let two servers share a port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        opened.setblocking(False)
        failing.pop_all()
    return opened
