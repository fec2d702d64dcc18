"""What asyncpg and the network raise, and the one of our errors that stands for each."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from folklore.errors import ConcurrentChange, DatabaseUnavailable, FolkloreError, InvalidInput

# What asyncpg and the network raise. InternalClientError comes from a connection that Postgres ended between two
# statements: what asyncpg reads then fits none of its states.
FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@contextmanager
def ours() -> Iterator[None]:
    """Turn what asyncpg and the network raise into our family; our own pass through."""
    try:
        yield
    except FOREIGN as error:
        raise translated(error) from error


def translated(error: BaseException) -> FolkloreError:
    """The one of our family that stands for an error of asyncpg or the network."""
    match error:
        case asyncpg.UniqueViolationError() | asyncpg.SerializationError() | asyncpg.DeadlockDetectedError():
            return ConcurrentChange("Somebody else changed the same memory at the same time.", hint="Try again.")
        case asyncpg.DataError():
            return InvalidInput("value", f"Postgres refused it ({type(error).__name__}).")
        case asyncpg.QueryCanceledError():
            return DatabaseUnavailable("The database took too long and the statement was cancelled.")
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            return DatabaseUnavailable("The database has no room left; nothing was written.")
        case (
            asyncpg.CannotConnectNowError()
            | asyncpg.AdminShutdownError()
            | asyncpg.CrashShutdownError()
            | asyncpg.PostgresConnectionError()
        ):
            return _gone()
        case asyncpg.InternalClientError():
            return _gone()
        # "released" is what asyncpg says of a connection that Postgres ended while it was held and idle.
        case asyncpg.InterfaceError() if "is closed" in str(error) or "released back to the pool" in str(error):
            return _gone()
        case asyncpg.InvalidPasswordError():
            return DatabaseUnavailable("The database refused the user or password.", hint="Check the database_url.")
        case asyncpg.InsufficientPrivilegeError():
            return DatabaseUnavailable(f"The database role may not do this: {error}.")
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            return DatabaseUnavailable(f"The database failed ({type(error).__name__}): {error}")
        case _:
            return DatabaseUnavailable(
                f"The database cannot be reached ({_plainly(error)}).",
                hint="Check that it runs and that database_url is right; `folklore doctor` tells more.",
            )


def _plainly(error: BaseException) -> str:
    """What went wrong without the address, which a caller whom nobody knows yet would be told."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return type(error).__name__


def _gone() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "The database is unavailable: it is being started or stopped, or the connection to it was lost.",
        hint="Try again in a moment; a text that was stored already is not stored twice.",
    )
