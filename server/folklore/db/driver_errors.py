"""Errors of asyncpg and the network, translated to Folklore's own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from folklore.errors import ConcurrentChange, DatabaseUnavailable, FolkloreError, InvalidInput

# InternalClientError: asyncpg raises it on a connection that Postgres closed between two statements.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate errors of asyncpg and the network that leave the block."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error) from error


def translate(error: BaseException) -> FolkloreError:
    """Return Folklore's error for one of DRIVER_ERRORS."""
    match error:
        case asyncpg.UniqueViolationError() | asyncpg.SerializationError() | asyncpg.DeadlockDetectedError():
            return ConcurrentChange("Another request changed the same memory at the same time.", hint="Try again.")
        case asyncpg.DataError():
            return InvalidInput("value", f"was refused by Postgres ({type(error).__name__}).")
        case asyncpg.QueryCanceledError():
            return DatabaseUnavailable("The database took too long and the statement was cancelled.")
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            return DatabaseUnavailable("The database has no room left; nothing was written.")
        case (
            asyncpg.CannotConnectNowError()
            | asyncpg.AdminShutdownError()
            | asyncpg.CrashShutdownError()
            | asyncpg.PostgresConnectionError()
            | asyncpg.InternalClientError()
        ):
            return _connection_lost()
        # asyncpg says "released back to the pool" of an idle connection that Postgres closed after it was acquired.
        case asyncpg.InterfaceError() if "is closed" in str(error) or "released back to the pool" in str(error):
            return _connection_lost()
        case asyncpg.InvalidPasswordError():
            return DatabaseUnavailable("The database refused the user or password.", hint="Check the database_url.")
        case asyncpg.InsufficientPrivilegeError():
            return DatabaseUnavailable(f"The database role lacks a privilege: {error}.")
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            return DatabaseUnavailable(f"The database failed ({type(error).__name__}): {error}")
        case _:
            return DatabaseUnavailable(
                f"The database cannot be reached ({describe(error)}).",
                hint="Check that it runs and that database_url is right; `folklore doctor` checks both.",
            )


def describe(error: BaseException) -> str:
    """Return the reason of a failed connection without the address, which an unauthenticated caller must not see."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return type(error).__name__


def _connection_lost() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The database is unavailable: it is being started or stopped, or the connection to it was lost.",
        hint="Try again in a moment; a text that was stored already is not stored twice.",
    )
