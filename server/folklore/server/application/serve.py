"""`folklore serve --http`: the sockets, and uvicorn's processes that serve the application on them."""

import asyncio
import errno
import logging
import multiprocessing
import os
import resource
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from folklore.app import App, running
from folklore.client.credentials import save_token
from folklore.config import Settings, expanded
from folklore.contract.people import CreateTokenRequest
from folklore.errors import ConfigInvalid
from folklore.log import configure, get_logger
from folklore.machine import is_loopback
from folklore.server.application.connections import ConnectionGuard
from folklore.server.application.peers import is_told
from folklore.server.limits import Limits
from folklore.server.listener import by_token

if TYPE_CHECKING:
    from folklore.server.application.app import OwnSide

# The user's server uses parts of this module, and is waited for: functions import what it does not need.

log = get_logger(__name__)

LIMITS = Limits()
LOOPBACK = "127.0.0.1"
# On SIGTERM, how long calls may go on; then, how long the database, the model and the threads may take to close.
GRACEFUL_SECONDS = 3
CLOSING_SECONDS = 1.5

_BACKLOG = 2048
# File descriptors for everything but clients: the pool, the model, the log.
_OTHER_FILES = 128
# A worker that answers its supervisor no sooner is replaced. Loading a model may block the interpreter for seconds.
_UNRESPONSIVE_SECONDS = 30


# Makes what an application has for this user's sessions and commands. Workers get it by pickle.
Beside = Callable[[App], "OwnSide"]


class UserServer(Protocol):
    """The user's server as `folklore serve --http` needs it: whose place it takes (server/application/beside.py)."""

    def hand_over(self, port: int) -> bool:
        """Return true if the server that runs had the port for its console, and has given it up."""

    def owner(self, host: str, port: int) -> str | None:
        """Return a sentence on the Folklore server that listens there; None if none does."""

    def taken(
        self, url: str, console_url: str
    ) -> AbstractContextManager[Beside | None]:
        """Be the user's server within the block; None where that is impossible.

        `url` is where this process listens, `console_url` where a browser of this machine finds the console.
        """

    def release(self) -> None:
        """Let no client connect any more."""


def run(
    settings: Settings,
    host: str,
    port: int,
    *,
    insecure: bool = False,
    public_url: str | None = None,
    user_server: UserServer | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then end in time; `public_url` is the address of a proxy before it.

    With `user_server`, the user's sessions and commands are served too.

    Raises ConfigInvalid before anything listens: for an address that other machines reach where no token is needed
    (unless `insecure`), for one that cannot be listened on, and for a certificate that cannot be used.
    """
    if not insecure and not is_loopback(host):
        _require_token(settings, host)
    tls = tls_context(settings.http.tls_cert, settings.http.tls_key)
    App(settings)  # raises ConfigInvalid here, where a worker could only log it

    sockets = _bind_or_take(host, port, user_server)
    scheme = "http" if tls is None else "https"
    url = f"{scheme}://{_in_url(host)}:{sockets[0].getsockname()[1]}"
    open_to_all = insecure or settings.http.authentication == "never"
    if open_to_all:
        _warn_of_every_client(url, insecure=insecure)
    elif is_loopback(host) and not is_told() and not _needs_token(settings):
        _make_token(settings, url)
    log.info(
        "serving",
        url=f"{url}/mcp",
        console=f"{public_url or url}/",
        workers=settings.http.workers,
    )
    # uvicorn repeats the signal when it has ended, for the handler before its own.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    from folklore.server.application.metrics import shared_folder

    with shared_folder(settings.http.workers), ExitStack() as stack:
        beside = None
        if user_server is not None:
            console_url = public_url or _from_here(url)
            beside = stack.enter_context(user_server.taken(url, console_url))
        application = partial(_application, settings, host, LIMITS, open_to_all, beside)
        config = uvicorn_config(settings, host, application)
        if settings.http.workers == 1:
            _Server(config, user_server).run(sockets)
        else:
            _Workers(config, sockets, user_server).run()


def _warn_of_every_client(url: str, *, insecure: bool) -> None:
    reason = "--insecure" if insecure else "http.authentication: never"
    log.warning(
        f"EVERY client that reaches this address may work without a token ({reason})",
        url=url,
    )


def _require_token(settings: Settings, host: str) -> None:
    """Raise ConfigInvalid if clients of other machines could work without a token."""
    if not _needs_token(settings):
        raise ConfigInvalid(
            "http.host",
            f"{host} can be reached from other machines, and no token is needed.",
            hint="Create the first token (`folklore tokens create --name you --owner`), listen on 127.0.0.1,"
            " or pass --insecure.",
        )


def _in_url(host: str) -> str:
    """Return an address as URLs have it: one of IPv6 in brackets."""
    if ":" in host and not host.startswith("["):
        return f"[{host}]"
    return host


def _from_here(url: str) -> str:
    """Return an address that a browser of this machine can open."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


class _Server(uvicorn.Server):
    """The server of this process. As it ends, the user's clients find another one."""

    def __init__(self, config: uvicorn.Config, user_server: UserServer | None) -> None:
        super().__init__(config)
        self._user_server = user_server

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._user_server is not None:
            self._user_server.release()
        super().handle_exit(sig, frame)


class _Workers(Multiprocess):
    """Several processes, as _Server."""

    def __init__(
        self,
        config: uvicorn.Config,
        sockets: list[socket.socket],
        user_server: UserServer | None,
    ) -> None:
        super().__init__(config, sockets)
        self._user_server = user_server

    def terminate_all(self) -> None:
        if self._user_server is not None:
            self._user_server.release()
        super().terminate_all()


def _bind_or_take(
    host: str, port: int, user_server: UserServer | None
) -> list[socket.socket]:
    """Bind as `bind` does; a port that the console of the user's server has is taken over."""
    try:
        return bind(host, port)
    except ConfigInvalid as error:
        if user_server is None or not port:
            raise
        if user_server.hand_over(port):
            return bind(host, port)
        owner = user_server.owner(host, port)
        if owner is None:
            raise
        raise ConfigInvalid("http.port", owner, hint=error.hint) from error


def bind(host: str, port: int) -> list[socket.socket]:
    """Return sockets on every address of `host`, all on one port (0: any free one).

    Raises ConfigInvalid if there is no such address or the port is taken.
    """
    try:
        addresses = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ConfigInvalid(
            "http.host", f"{host!r} is not an address ({error.strerror or error})."
        ) from error
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(addresses):
        free_port = sockets[0].getsockname()[1] if sockets else port
        try:
            listener = socket.create_server(
                (address[0], free_port), family=family, backlog=_BACKLOG
            )
            # Accepted connections inherit it. asyncio sets it only if the protocol of the socket is stated; without it
            # the body of a response waits 40 ms for the client to confirm the head.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(listener)
        except OSError as error:  # e.g. `localhost` in a container without IPv6
            failed = error
    if failed is not None and not sockets:
        raise _unusable(host, port, failed) from failed
    return sockets


def _unusable(host: str, port: int, error: OSError) -> ConfigInvalid:
    reason = f"{host}:{port} cannot be listened on ({error.strerror or error})."
    if error.errno not in (errno.EADDRINUSE, errno.EACCES):
        return ConfigInvalid("http.host", reason, hint="Choose another by --host.")
    under_make = ", or `make run PORT=…`" if "MAKELEVEL" in os.environ else ""
    return ConfigInvalid(
        "http.port", reason, hint=f"Choose another by --port{under_make}."
    )


def uvicorn_config(
    settings: Settings,
    host: str,
    application: Callable[[], ASGIApp] | None = None,
    guard: ConnectionGuard | None = None,
    each_second: Callable[[], Awaitable[None]] | None = None,
    *,
    has_lifespan: bool = True,
) -> uvicorn.Config:
    """Return how uvicorn serves; its environment variables have no effect. Workers get it by pickle.

    Without `has_lifespan`, another server starts and closes the application.
    """
    guard = guard or ConnectionGuard(LIMITS)
    http = settings.http
    limits = guard.limits
    tls = None if http.tls_cert is None else partial(_tls, http.tls_cert, http.tls_key)
    return uvicorn.Config(
        cast(
            "Callable[..., Any]",
            application or partial(_application, settings, host, limits),
        ),
        factory=True,
        workers=http.workers,
        http=cast(
            "type[asyncio.Protocol]", guard.protocol
        ),  # called as a class would be
        ws="none",
        lifespan="on" if has_lifespan else "off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_context_factory=tls,
        backlog=_BACKLOG,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        timeout_worker_healthcheck=_UNRESPONSIVE_SECONDS,
        callback_notify=each_second or guard.close_overdue,
        timeout_notify=0,  # as often as uvicorn looks, once a second
        proxy_headers=bool(http.trusted_proxies),
        forwarded_allow_ips=list(http.trusted_proxies),
    )


def _tls(
    certificate: Path,
    key: Path | None,
    _config: uvicorn.Config,
    _default: Callable[[], Any],
) -> ssl.SSLContext:
    return cast("ssl.SSLContext", tls_context(certificate, key))


def _application(
    settings: Settings,
    host: str,
    limits: Limits,
    open_to_all: bool = False,
    beside: Beside | None = None,
) -> ASGIApp:
    """Return the application of this process, which may be a worker."""
    if (parent := multiprocessing.parent_process()) is not None:
        configure(settings.log_level, settings.log_format)
        threading.Thread(
            target=_end_with, args=(parent,), name="folklore-parent", daemon=True
        ).start()
    from folklore.server.application.app import build_app

    _raise_file_limit(limits.connections + _OTHER_FILES)
    logging.getLogger("uvicorn.error").addFilter(is_no_cancellation)
    app = App(settings)
    network = by_token(host, settings.http.allowed_hosts, open_to_all=open_to_all)
    own = None if beside is None else beside(app)
    return build_app(app, network, limits, own=own, on_shutdown=exit_in_time)


def _end_with(parent: Any) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def exit_in_time(seconds: float = CLOSING_SECONDS) -> None:
    """End the process after the closing time, whatever is not closed by then."""

    def exit_now() -> None:
        log.warning("exited_before_everything_closed")
        sys.stderr.flush()
        os._exit(0)  # sys.exit would wait for the threads that are still at work

    timer = threading.Timer(seconds, exit_now)
    timer.daemon = True
    timer.start()


def is_no_cancellation(record: logging.LogRecord) -> bool:
    """Hide the tracebacks of calls that uvicorn cancels at the end; it logs their number."""
    if not record.exc_info or record.exc_info[0] is None:
        return True
    return not issubclass(record.exc_info[0], asyncio.CancelledError)


def _raise_file_limit(needed: int) -> None:
    """Ask the system for as many open files as connections may need, as far as it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _needs_token(settings: Settings) -> bool:
    """Return True if every client needs a token, now and later. Raises DatabaseUnavailable."""
    if settings.http.authentication == "never":
        return False
    if settings.http.authentication == "always" or settings.oauth.issuer is not None:
        return True

    from folklore.server.server_context import ServerContext

    async def demanded() -> bool:
        async with running(settings) as app:
            context = ServerContext.of(app)
            return await context.authenticator.demands_token()

    return asyncio.run(demanded())


def _make_token(settings: Settings, url: str) -> None:
    """Make the first token, an owner's, and keep it in the home for the bridges and commands of this user.

    Raises ConfigInvalid on a server that may not write, DatabaseUnavailable.
    """
    if settings.read_only:
        raise ConfigInvalid(
            "read_only",
            "is set, no token exists, and this system does not tell whose a connection is.",
            hint="Make a token first (`folklore tokens create --name you --owner`), or pass --insecure to admit every"
            " user of this machine.",
        )

    from folklore.server.application.in_process import operations_here

    async def made() -> str:
        request = CreateTokenRequest(name=settings.author, owner=True, expires="never")
        async with operations_here(settings) as operations:
            return (await operations.call(request)).secret

    path = save_token(url, asyncio.run(made()), home=settings.home)
    log.info(
        "made a token, since this system does not tell whose a connection is: "
        "`folklore install --server` and commands find it",
        url=url,
        kept_in=path,
    )


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context to serve with; None if neither file is set.

    Raises ConfigInvalid, which names the file that is missing, unreadable or does not belong to the other.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "http.tls_cert" if certificate is None else "http.tls_key"
        raise ConfigInvalid(
            missing,
            "is not set.",
            hint="TLS needs both http.tls_cert and http.tls_key.",
        )
    certificate = expanded(certificate)
    key = expanded(key)
    for setting, path in (("http.tls_cert", certificate), ("http.tls_key", key)):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ConfigInvalid(
                setting, f"{path} cannot be read ({error.strerror})."
            ) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigInvalid(
                "http.tls_key", f"{key} is not the key of {certificate}."
            ) from error
        raise ConfigInvalid(
            "http.tls_cert",
            f"{certificate} and {key} are not a certificate and its key in PEM ({error.reason}).",
        ) from error
    return context


def _no_password() -> str:
    raise ConfigInvalid(
        "http.tls_key",
        "is protected by a password.",
        hint="Remove it, e.g. `openssl pkey -in KEY -out NEW`.",
    )
