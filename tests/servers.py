"""Folklore as others start it: a process on stdio, a process on HTTP."""

import asyncio
import json
import os
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import structlog
import uvicorn
from mcp import Client, StdioServerParameters
from starlette.types import ASGIApp

from folklore.app import App
from folklore.config import Settings
from folklore.server.application.app import build_app
from folklore.server.listener import by_token
from tests import forks

# Imported by every Python at its start: whatever the process tries to reach beyond this machine is refused and noted.
WATCHMAN = """
import ipaddress, os, socket, sys

def local(host):
    if host in (None, "", b"", "localhost", b"localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host)
        return address.is_loopback or address.is_unspecified  # the latter to listen on
    except ValueError:
        return False

def watch(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if not local(host):
        with open(os.environ["WATCHMAN_NOTES"], "a") as notes:
            notes.write(f"{event} {arguments!r}\\n")
        raise OSError(f"nothing may be reached outside this machine: {host!r}")

sys.addaudithook(watch)
"""


_KEPT = (
    *("PATH", "HOME", "LANG", "TMPDIR", "PYTHON_KEYRING_BACKEND"),
    *("FOLKLORE_EMBEDDING__PROVIDER", "FOLKLORE_OWN"),
)


@dataclass(frozen=True, slots=True)
class Watched:
    """The environment of a server that may not reach outside, and what it tried."""

    environment: Mapping[str, str]
    notes: Path

    def attempts(self) -> str:
        return self.notes.read_text(encoding="utf-8") if self.notes.exists() else ""


def limited(server: Watched, **limits: float) -> Watched:
    """The same server with these limits (server/limits.py); to be run as the module `tests.limited`."""
    return Watched(
        {**server.environment, "TEST_LIMITS": json.dumps(limits)}, server.notes
    )


def watched(folder: Path, **settings: str) -> Watched:
    """Settings as FOLKLORE_* variables, with a home and a watchman below `folder`."""
    post = folder / "watchman"
    post.mkdir(exist_ok=True)
    (post / "sitecustomize.py").write_text(WATCHMAN, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    own = {
        # What these tests import is what they start, also where another Folklore is installed.
        "PYTHONPATH": os.pathsep.join(
            [str(post), os.environ.get("PYTHONPATH", "")]
        ).rstrip(os.pathsep),
        "WATCHMAN_NOTES": str(folder / "attempts"),
        "FOLKLORE_HOME": str(folder / "home"),
        "FOLKLORE_AUTHOR": "tester",
        "FOLKLORE_NAMESPACE": "notes",
    }
    return Watched(
        kept
        | own
        | {f"FOLKLORE_{name.upper()}": value for name, value in settings.items()},
        folder / "attempts",
    )


def on_stdio(
    server: Watched, *arguments: str, alone: bool = False
) -> StdioServerParameters:
    """How a client starts a server on stdio; `alone`: as a process of its own from the beginning."""
    program, *beginning = (
        [sys.executable, "-m", "folklore"] if alone else forks.command()
    )
    return StdioServerParameters(
        command=program,
        args=[*beginning, *arguments, "serve"],
        env=dict(server.environment),
    )


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A running `folklore serve --http`."""

    url: str
    process: asyncio.subprocess.Process
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def log_text(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8")

    def crashes(self) -> list[str]:
        """Return the log lines of calls and requests that ended with an unexpected error."""
        return [
            line
            for line in self.log_text().splitlines()
            if "outcome=crashed" in line or "status=500" in line
        ]

    async def end(self, sign: signal.Signals = signal.SIGTERM) -> None:
        """Signal the server and wait until it has ended.

        It gives its calls five seconds. Ten times as long means that it waits for something that never comes.
        """
        self.process.send_signal(sign)
        async with asyncio.timeout(50):
            await self.process.wait()


@asynccontextmanager
async def on_http(
    server: Watched,
    *arguments: str,
    host: str = "127.0.0.1",
    trusting: ssl.SSLContext | bool = True,
    module: str = "folklore",
    python: str = sys.executable,
    port: int | None = None,
    alone: bool = False,
) -> AsyncIterator[HttpServer]:
    """A server on a free port that answers already; over TLS if `trusting` says whose certificate is right.

    `module` is what `python` runs as `folklore`. Of a server that is `alone`, `process` is the server itself and not
    one that stands for a fork (tests/forks.py).
    """
    program = [python, "-m", module]
    if (python, module, alone) == (sys.executable, "folklore", False):
        program = forks.command()
    port = port or free_port()
    log = server.notes.with_name("server.log")
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(
                *program,
                "serve",
                "--http",
                "--host",
                host,
                "--port",
                str(port),
                *arguments,
            ),
            env=dict(server.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    running = HttpServer(
        f"{'http' if trusting is True else 'https'}://127.0.0.1:{port}", process, log
    )
    try:
        await _alive(running, trusting)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


class _Inner(uvicorn.Server):
    """A server that leaves signals to pytest."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    settings: Settings, within: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncIterator[str]:
    """Give the URL of a server in this process, for tests of its clients: it starts in a fraction of the time.

    `within` puts the application into another one, which sees what goes in and out.
    """
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        structlog.testing.capture_logs(),
    ):
        app = within(build_app(App(settings), by_token("127.0.0.1")))
        server = _Inner(uvicorn.Config(app, lifespan="on", ws="none", log_config=None))
        task = asyncio.create_task(server.serve([listening]))
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await task


def own_servers(home: Path, *, forks: bool = False) -> list[int]:
    """The processes that serve the sessions and commands of a home; those of `folklore-forks` instead with `forks`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile
            serves = b"--socket" in (process / "cmdline").read_bytes().split(b"\0")
            serves = serves and forks is (
                (process / "comm").read_text() == "folklore-forks\n"
            )
            if serves and f"FOLKLORE_HOME={home}".encode() in (
                process / "environ"
            ).read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


@contextmanager
def own_servers_ended(home: Path) -> Iterator[None]:
    """Kill those processes after the block."""
    try:
        yield
    finally:
        for process in (*own_servers(home), *own_servers(home, forks=True)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _alive(server: HttpServer, trusting: ssl.SSLContext | bool) -> None:
    async with (
        httpx.AsyncClient(base_url=server.url, verify=trusting) as client,
        asyncio.timeout(120),
    ):
        while True:
            assert server.process.returncode is None, server.log.read_text(
                encoding="utf-8"
            )
            try:
                await client.get("/healthz")
            except httpx.TransportError:
                await asyncio.sleep(0.02)
            else:
                return


async def a_session_of_work(client: Client) -> None:
    """What an assistant does: looks at the tools, stores, recalls, makes a mistake."""
    assert [tool.name for tool in (await client.list_tools()).tools][:3] == [
        "memory_store", "memory_recall", "search_keywords",
    ]  # fmt: skip
    fact = f"The lamp of lighthouse {os.urandom(4).hex()} is lit at dusk."

    stored = await _called(client, "memory_store", content=fact)
    recalled = await _called(client, "memory_recall", query=fact, limit=1)
    searched = await _called(client, "search_keywords", query="lighthouse dusk")
    mistaken = await client.call_tool(
        "memory_recall", {"query": "x", "namespace": "notes"}
    )

    assert [memory["content"] for memory in recalled["memories"]] == [fact]
    assert recalled["memories"][0]["id"] == stored["stored"][0]["id"]
    assert fact in [memory["content"] for memory in searched["memories"]]
    assert mistaken.is_error


async def _called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)
