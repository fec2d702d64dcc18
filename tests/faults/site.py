"""Two Folklore servers on one embedded Postgres, and the faults that strike them.

The first server starts the engine; a second reaches it through a network, as one on another machine would.
"""

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import httpx

from folklore.engine import Engine
from folklore.engine.endpoint import recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.probe import server_processes
from tests.faults.layer import Layer
from tests.faults.network import Network
from tests.servers import HttpServer, Watched, free_port, on_http, watched
from tests.waiting import eventually

HERE = (
    0  # the server that starts the engine, and the one on the other side of the network
)
THERE = 1
_SECONDS_TO_RESTART = 0.3
_SECONDS_TO_RECOVER = 60.0


@dataclass
class _Process:
    """A server that is started again when it was killed, as a supervisor does."""

    settings: Watched
    port: int
    crashes: list[str] = field(default_factory=list)
    running: HttpServer | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        self.running = await self._stack.enter_async_context(
            on_http(self.settings, port=self.port, alone=True)
        )

    async def kill(self) -> None:
        if self.running is not None and self.running.process.returncode is None:
            with suppress(ProcessLookupError):
                self.running.process.kill()
        await self.stopped()

    async def stopped(self) -> None:
        if self.running is not None:
            running = self.running
            self.running = None
            await self._stack.aclose()
            self.crashes += running.crashes()

    def signal(self, sign: signal.Signals) -> None:
        if self.running is not None and self.running.process.returncode is None:
            self.running.process.send_signal(sign)


class Site:
    """The servers, their engine and what can go wrong with them."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.paths = EnginePaths(home)
        self.layer = Layer(folder / "layer", home)
        self.network = Network(self._address)
        self.servers: list[_Process] = []
        self._folder = folder

    def _address(self) -> str:
        endpoint = recorded_endpoint(self.paths)
        if endpoint is None:
            raise ConnectionRefusedError("The engine does not run.")
        return endpoint.dsn

    async def start(self) -> None:
        """Start the engine and both servers."""
        await self.network.open()
        for place, settings in enumerate(({}, {"database_url": self.network.url})):
            folder = self._folder / f"server-{place}"
            folder.mkdir()
            own = watched(folder, **settings)
            environment = dict(own.environment) | self.layer.environment()
            environment["PYTHONPATH"] = os.pathsep.join(
                [str(self.layer.packages), environment["PYTHONPATH"]]
            )
            if place == HERE:
                environment["FOLKLORE_HOME"] = str(self.paths.home)
            self.servers.append(_Process(Watched(environment, own.notes), free_port()))
        await self.servers[HERE].start()
        # its first call starts the engine, which the other server cannot
        await ready(self.urls()[HERE])
        await self.servers[THERE].start()
        await ready(self.urls()[THERE])

    async def stop(self) -> None:
        for server in self.servers:
            await server.kill()
        await self.network.shut()
        await asyncio.to_thread(Engine(self.paths.home).stop)

    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{server.port}" for server in self.servers]

    def copy_logs(self, target: Path) -> None:
        """Copy the logs of the servers and of the engine."""
        target.mkdir(parents=True)
        for place in (HERE, THERE):
            shutil.copy(
                self._folder / f"server-{place}" / "server.log",
                target / f"server-{place}.log",
            )
        shutil.copytree(self.paths.log.parent, target / "engine")

    def postgres(self) -> list[int]:
        """The processes of Postgres."""
        return server_processes(self.paths)

    # Faults of processes

    async def kill_server(self, place: int) -> None:
        await self.servers[place].kill()
        await asyncio.sleep(_SECONDS_TO_RESTART)
        await self.servers[place].start()

    async def freeze_server(self, place: int, seconds: float) -> None:
        """Stop a server for a while, as a sleeping machine or a full one does."""
        self.servers[place].signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.servers[place].signal(signal.SIGCONT)

    async def freeze_postgres(self, seconds: float) -> None:
        frozen = self.postgres()
        _signal(frozen, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal(frozen, signal.SIGCONT)

    async def kill_postgres(self, chance: random.Random, *, all_: bool) -> None:
        """Kill all processes of Postgres, or any one of them: it then restarts by itself."""
        processes = self.postgres()
        if processes:
            _signal(processes if all_ else [chance.choice(processes)], signal.SIGKILL)

    async def lose_power(self, chance: random.Random) -> int:
        """Take the power of the engine's machine away. Return how many writes were not synced."""
        await self.servers[HERE].kill()
        _signal(self.postgres(), signal.SIGKILL)
        await asyncio.to_thread(eventually, lambda: not self.postgres())
        lost = self.layer.lose_power(chance)
        await asyncio.sleep(_SECONDS_TO_RESTART)
        await self.servers[HERE].start()
        return lost

    async def calm(self) -> None:
        """End all faults that last."""
        self.layer.calm()
        self.network.heal()
        _signal(self.postgres(), signal.SIGCONT)
        for server in self.servers:
            server.signal(signal.SIGCONT)
            if server.running is None:
                await server.start()


async def ready(url: str) -> float:
    """Wait until a server answers a call. Return after how many seconds."""
    begin = monotonic()
    async with (
        httpx.AsyncClient(base_url=url, timeout=_SECONDS_TO_RECOVER) as client,
        asyncio.timeout(_SECONDS_TO_RECOVER),
    ):
        while True:
            with suppress(httpx.TransportError):
                if (await client.post("/api/status", json={})).is_success:
                    return monotonic() - begin
            await asyncio.sleep(0.05)


@asynccontextmanager
async def site(folder: Path, home: Path) -> AsyncIterator[Site]:
    """A site that runs, and is stopped at the end."""
    made = Site(folder, home)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


def _signal(processes: list[int], sign: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, sign)
