"""Errors of asyncpg and the network, translated to Folklore's own."""

import os
import socket
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import asyncpg

from folklore.errors import (
    ConcurrentChange,
    DatabaseUnavailable,
    FolkloreError,
    InvalidInput,
)

# InternalClientError: asyncpg raises it on a connection that Postgres closed between two statements.
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate errors of asyncpg and the network that leave the block."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error) from error


@asynccontextmanager
async def closed_after(
    connecting: Awaitable[asyncpg.Connection],
) -> AsyncIterator[asyncpg.Connection]:
    """Return a connection for the length of the block, whose errors are translated."""
    with translated_errors():
        connection = await connecting
        try:
            yield connection
        finally:
            await connection.close(timeout=5)


def connected(
    dsn: str, timeout: float = 10.0, **options: Any
) -> AbstractAsyncContextManager[asyncpg.Connection]:
    """Open a connection outside the pools for the length of a block, whose errors are translated."""
    return closed_after(
        asyncpg.connect(dsn, timeout=timeout, statement_cache_size=0, **options)
    )


def translate(error: BaseException) -> FolkloreError:
    """Return Folklore's error for one of DRIVER_ERRORS."""
    name = type(error).__name__
    hint = None
    match error:
        case asyncpg.ConnectionFailureError() if "remote node" in str(error):
            # It has an address, which an unauthenticated caller must not see.
            text = "A node of the database's cluster cannot be reached."
            hint = "Try again in a moment; `folklore db status` and `folklore doctor` name the node."
        case _ if _is_lost_connection(error):
            text = "The database is unavailable: it is being started or stopped, or the connection to it was lost."
            hint = "Try again in a moment; a text that was stored already is not stored twice."
        case (
            asyncpg.UniqueViolationError()
            | asyncpg.SerializationError()
            | asyncpg.DeadlockDetectedError()
        ):
            return ConcurrentChange(
                "Another request changed the same memory at the same time.",
                hint="Try again.",
            )
        case asyncpg.DataError():
            return InvalidInput("value", f"was refused by Postgres ({name}).")
        case asyncpg.QueryCanceledError():
            text = "The database took too long and the statement was cancelled."
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            text = "The database has no room left; nothing was written."
        case asyncpg.InvalidPasswordError():
            text = "The database refused the user or password."
            hint = "Check the database_url."
        case asyncpg.InsufficientPrivilegeError():
            text = f"The database role lacks a privilege: {error}."
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            text = f"The database failed ({name}): {error}"
        case _:
            text = f"The database cannot be reached ({describe(error)})."
            hint = "Check that it runs and that database_url is right; `folklore doctor` checks both."
    return DatabaseUnavailable(text, hint=hint)


_LOST_CONNECTION = (
    asyncpg.CannotConnectNowError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError,
    asyncpg.PostgresConnectionError, asyncpg.InternalClientError,
)  # fmt: skip


def _is_lost_connection(error: BaseException) -> bool:
    if isinstance(error, asyncpg.InterfaceError):
        # "released back to the pool": an idle connection that Postgres closed after it was acquired.
        return "is closed" in str(error) or "released back to the pool" in str(error)
    return isinstance(error, _LOST_CONNECTION)


def describe(error: BaseException) -> str:
    """Return the reason of a failed connection without the address, which an unauthenticated caller must not see."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return type(error).__name__
