"""A second listener of a running application."""

import asyncio
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from folklore.config import Settings
from folklore.server.application.connections import ConnectionGuard
from folklore.server.application.serve import LOOPBACK, uvicorn_config
from folklore.server.limits import Limits


class InnerServer(uvicorn.Server):
    """A server that leaves signals to the one around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def inner_server(
    settings: Settings, application: ASGIApp, guard: ConnectionGuard
) -> InnerServer:
    """Return a server for an application that another server starts and closes."""
    config = uvicorn_config(
        settings, LOOPBACK, lambda: application, guard, has_lifespan=False
    )
    return InnerServer(config)


def own_guard() -> ConnectionGuard:
    """Return a guard that accepts the connections of this user alone."""
    return ConnectionGuard(Limits(), is_accepted=_is_of_this_user)


def _is_of_this_user(transport: asyncio.BaseTransport) -> bool:
    """Return whether the process at the other end belongs to the user of this one; its folder admits no other."""
    if sys.platform != "linux":
        return True
    connection = transport.get_extra_info("socket")
    peer = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    return bool(struct.unpack("3i", peer)[1] == os.getuid())
