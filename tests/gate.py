"""TCP proxy to a server on loopback that loses answers, or goes silent, as networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Gate:
    """Carries bytes to a port on loopback. `losing` answers to come are lost; while it is `silent`, nothing passes."""

    target: int
    port: int = 0
    losing: int = 0
    silent: bool = False
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def enter(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there_reader, there_writer = await asyncio.open_connection(
            "127.0.0.1", self.target
        )
        self._writers |= {writer, there_writer}
        await asyncio.gather(
            self._carry(reader, there_writer),
            self._carry(there_reader, writer, is_answer=True),
        )
        self._writers -= {writer, there_writer}

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_answer: bool = False,
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                while self.silent:
                    await asyncio.sleep(0.05)
                if is_answer and self.losing:
                    self.losing -= 1
                    # until the call is carried out, if this was only the head of the answer
                    await asyncio.sleep(0.5)
                    writer.transport.abort()
                    return
                writer.write(chunk)
                await writer.drain()
        with suppress(OSError):
            writer.close()

    def close(self) -> None:
        self.silent = False
        for writer in list(self._writers):
            writer.transport.abort()


@asynccontextmanager
async def gate(target: int) -> AsyncIterator[Gate]:
    """A gate to the server on this port."""
    made = Gate(target)
    server = await asyncio.start_server(made.enter, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.close()
