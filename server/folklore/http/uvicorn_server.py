"""One process that serves: our own uvicorn, with an end that comes in time."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType

import structlog
import uvicorn
from starlette.types import ASGIApp

from folklore.config import HttpSettings
from folklore.http.certificate import Certificate
from folklore.http.connection import Patience, PatientConnection, patient

log = structlog.get_logger(__name__)

BACKLOG = 2048
CLOSING_SECONDS = 1.5  # for pool, model and threads, after the graceful time
STARTUP_FAILED = 3

# Descriptors for the pool, the model, the log: whatever is no client's connection.
_OTHER_FILES = 128
_KEEP_ALIVE_SECONDS = 75  # longer than the 60 of common proxies, which shall be the ones to close


class Server(uvicorn.Server):
    """uvicorn on sockets that are bound already, which ends with code 0 within the graceful time and a moment more."""

    def __init__(
        self, config: uvicorn.Config, protocol: type[PatientConnection], tls: Certificate | None, handshake: float
    ) -> None:
        super().__init__(config)
        self._protocol = protocol
        self._tls = tls
        self._handshake = handshake
        self.graceful = float(config.timeout_graceful_shutdown or 0)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application and listen.

        One connection is accepted in each turn of the loop, where asyncio would take all there are: several workers
        share the socket, and the first to wake would take everybody.
        """
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(STARTUP_FAILED)
        loop = asyncio.get_running_loop()
        self.servers = []
        context = None if self._tls is None else self._tls.context
        for listener in sockets or []:
            tls = None if listener.family == getattr(socket, "AF_UNIX", None) else context  # another worker calls
            made = await loop.create_server(
                self._connection,
                sock=listener,
                backlog=1,
                ssl=tls,
                ssl_handshake_timeout=self._handshake if tls else None,
                ssl_shutdown_timeout=1.0 if tls else None,
            )
            listener.listen(BACKLOG)
            self.servers.append(made)
        self.started = True

    async def main_loop(self) -> None:
        """Until it is to end; meanwhile a certificate that is renewed is noticed."""
        watching = None if self._tls is None else asyncio.create_task(self._tls.keep_new(), name="folklore-certificate")
        try:
            await super().main_loop()
        finally:
            if watching is not None:
                watching.cancel()

    def _connection(self) -> PatientConnection:
        return self._protocol(self.config, self.server_state, self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; should something not let go, the process ends all the same."""
        if not self.should_exit:
            last = threading.Timer(self.graceful + CLOSING_SECONDS, _end_now)
            last.daemon = True
            last.start()
        super().handle_exit(sig, frame)


def serve(app: ASGIApp, settings: HttpSettings, sockets: Sequence[socket.socket], tls: Certificate | None) -> None:
    """Serve the application in this process until SIGTERM or SIGINT; both end it in order, so the exit code is 0."""
    config, protocol = configured(app, settings)
    logging.getLogger("uvicorn.error").addFilter(_is_no_cut)
    server = Server(config, protocol, tls, handshake=settings.header_seconds)
    # uvicorn raises the signal again when it has ended, for whoever handled it before: that is nobody but itself.
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, server.handle_exit)
    server.run(list(sockets))


def _is_no_cut(record: logging.LogRecord) -> bool:
    """uvicorn says how many calls it cuts at the end, and then shows each of them as a crash."""
    return not (record.exc_info and record.exc_info[0] and issubclass(record.exc_info[0], asyncio.CancelledError))


def configured(app: ASGIApp, settings: HttpSettings) -> tuple[uvicorn.Config, type[PatientConnection]]:
    """How uvicorn serves the application, and its connections; nothing is left to the environment to say."""
    most = _descriptors(settings.max_connections + _OTHER_FILES) - _OTHER_FILES
    protocol = patient(
        Patience(
            head=settings.header_seconds,
            next=_KEEP_ALIVE_SECONDS,
            unread=settings.body_seconds,
            connections=max(1, min(settings.max_connections, most)),
        )
    )
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on",
        interface="asgi3",
        workers=1,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.graceful_seconds,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    return config, protocol


def _descriptors(wanted: int) -> int:
    """How many files this process may have open, after asking the system for as many as are wanted."""
    if sys.platform == "win32":
        return wanted
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    return granted


def _end_now() -> None:
    log.warning("ended before everything had let go")
    sys.stderr.flush()
    os._exit(0)
