"""Faults of the network between a server and its database."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from folklore.engine.endpoint import DATABASE, USER
from tests.doorway import Doorway


class Network(Doorway):
    """A proxy that can hold bytes back, deliver them late, and cut a connection in the middle of an answer."""

    def __init__(self, address: Callable[[], str]) -> None:
        """`address` gives the DSN of the database at each connection: an engine may come back at another."""
        super().__init__(f"postgresql://{USER}@/{DATABASE}")
        self._address = address
        self.delay = 0.0
        self.left: int | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()

    def split(self) -> None:
        """Deliver no byte until `heal`."""
        self._flowing.clear()

    def cut_after(self, count: int) -> None:
        """Deliver so many more bytes of answers, then abort all connections."""
        self.left = count

    def drop(self) -> None:
        """Abort all connections; new ones are accepted."""
        for visitor in list(self._visitors):
            visitor.transport.abort()

    def heal(self) -> None:
        """End all faults. Connections that were split are dropped: their bytes are late by an unknown time."""
        self.delay = 0.0
        self.left = None
        if not self._flowing.is_set():
            self._flowing.set()
            self.drop()

    async def _enter(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            self.dsn = self._address()
            there_reader, there_writer = await self._beyond()
        except OSError:
            writer.transport.abort()
            return
        self._visitors |= {writer, there_writer}
        try:
            await asyncio.gather(
                self._carry(reader, there_writer),
                self._carry(there_reader, writer, answers=True),
            )
        finally:
            self._visitors -= {writer, there_writer}

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        answers: bool = False,
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                await self._flowing.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                if answers and self.left is not None:
                    writer.write(chunk[: self.left])
                    self.left -= len(chunk)
                    if self.left <= 0:
                        self.left = None
                        await asyncio.sleep(0)  # so that the last bytes leave
                        self.drop()
                        return
                else:
                    writer.write(chunk)
                await writer.drain()
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()
