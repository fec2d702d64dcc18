"""TCP proxy to the test's Postgres, to take the database down for one test while others use the cluster."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit


@dataclass
class Doorway:
    """Carries bytes between a port of its own on loopback and the address in `dsn`, while it is open."""

    dsn: str
    port: int = 0
    _server: asyncio.Server | None = None
    _visitors: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Return the DSN of the same database through this proxy."""
        parts = urlsplit(self.dsn)
        user = parts.netloc.rpartition("@")[0]
        return f"postgresql://{user}@127.0.0.1:{self.port}{parts.path}?sslmode=disable"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Refuse new connections and abort the open ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for visitor in list(self._visitors):
            visitor.transport.abort()

    async def _enter(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there_reader, there_writer = await self._beyond()
        self._visitors |= {writer, there_writer}
        try:
            await asyncio.gather(
                _carry(reader, there_writer), _carry(there_reader, writer)
            )
        finally:
            self._visitors -= {writer, there_writer}

    async def _beyond(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.dsn)
        named = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        host = named.get("host", parts.hostname or "localhost")
        port = int(named.get("port", parts.port or 5432))
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()
