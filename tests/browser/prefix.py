"""A reverse proxy that serves everything below /folklore and removes that from the path, as nginx can."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

PREFIX = "/folklore"


@asynccontextmanager
async def prefixed(port: int) -> AsyncIterator[str]:
    """The address of the prefix on a port of its own; a path outside of it is 404."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await _serve(reader, writer, port)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PREFIX}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> None:
    """Answer one request; each has a connection of its own."""
    there: asyncio.StreamWriter | None = None
    try:
        line, _, rest = (await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
        method, path, version = line.split(b" ")
        if not path.startswith(PREFIX.encode() + b"/"):
            writer.write(
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            return
        there_reader, there = await asyncio.open_connection("127.0.0.1", port)
        headers = [
            item
            for item in rest.split(b"\r\n")
            if not item.lower().startswith(b"connection:")
        ]
        line = b" ".join([method, path[len(PREFIX) :], version])
        there.write(b"\r\n".join([line, b"connection: close", *headers]))
        async with asyncio.TaskGroup() as both:
            sending = both.create_task(_carry(reader, there))
            await _carry(there_reader, writer)
            sending.cancel()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        for one in filter(None, (there, writer)):
            one.close()
            with suppress(OSError):
                await one.wait_closed()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
