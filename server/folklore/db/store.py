"""Stores: each attribute of one is a statement, the section of its name in the SQL file of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

from folklore.db.database import Database, Plans, Row, Session
from folklore.db.rows import Value, made
from folklore.db.sql_loader import statement

# a server on stdio imports stores before it may take the time to import a driver
T = TypeVar("T")
K = TypeVar("K")


class Store:
    """Statements over a database, each in a session of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rows(
        self, name: str, plans: Plans = "kept", /, **values: object
    ) -> list[Row]:
        """Return the rows of a statement."""
        return await self._database.rows(name, plans, **values)


class Transaction(Store):
    """Statements within one session. Each gets those of the `bound` parameters that it names."""

    def __init__(self, session: Session, **bound: object) -> None:
        self._session = session
        self._bound = bound

    async def rows(
        self, name: str, _plans: Plans = "kept", /, **values: object
    ) -> list[Row]:
        """Return the rows of a statement."""
        bound = {
            key: self._bound[key]
            for key in statement(name).parameters
            if key in self._bound
        }
        return await self._session.rows(name, **bound | values)


class Statement(Generic[T]):
    """Statement that is called with its parameters by name, and returns what `read` makes of the rows.

    `defaults` are parameters that a call may leave out.
    """

    def __init__(
        self, read: Callable[[list[Row]], T], plans: Plans, defaults: dict[str, object]
    ) -> None:
        self._read = read
        self._plans = plans
        self._defaults = defaults

    def __set_name__(self, owner: type[Store], name: str) -> None:
        """Take the name from the attribute."""
        self._name = f"{owner.__module__.rpartition('.')[2]}/{name}"

    def __get__(self, store: Store, _owner: type[Store]) -> Callable[..., Awaitable[T]]:
        """Return the function that runs it."""
        return partial(self._run, store)

    async def _run(self, store: Store, /, **values: object) -> T:
        return self._read(
            await store.rows(self._name, self._plans, **self._defaults | values)
        )


def each(
    read: Callable[[Row], T], plans: Plans = "kept", **defaults: object
) -> Statement[list[T]]:
    """Return what `read` makes of every row."""
    return Statement(lambda rows: [read(row) for row in rows], plans, defaults)


def many(
    type_: type[Value], plans: Plans = "kept", **defaults: object
) -> Statement[list[Value]]:
    """Return every row as a dataclass."""
    return each(partial(made, type_), plans, **defaults)


def one(
    type_: type[Value], plans: Plans = "kept", **defaults: object
) -> Statement[Value | None]:
    """Return the first row as a dataclass, or None."""
    return Statement(
        lambda rows: made(type_, rows[0]) if rows else None, plans, defaults
    )


def only(
    type_: type[Value], plans: Plans = "kept", **defaults: object
) -> Statement[Value]:
    """Return the only row as a dataclass."""
    return Statement(lambda rows: made(type_, rows[0]), plans, defaults)


def column(
    _type: type[T], plans: Plans = "kept", **defaults: object
) -> Statement[list[T]]:
    """Return the first column of every row."""
    return Statement(lambda rows: [row[0] for row in rows], plans, defaults)


def value(
    _type: type[T], plans: Plans = "kept", **defaults: object
) -> Statement[T | None]:
    """Return the first column of the first row, or None."""
    return Statement(lambda rows: rows[0][0] if rows else None, plans, defaults)


def pairs(
    _first: type[K], _second: type[T], plans: Plans = "kept", **defaults: object
) -> Statement[list[tuple[K, T]]]:
    """Return the first two columns of every row."""
    return Statement(lambda rows: [(row[0], row[1]) for row in rows], plans, defaults)


def number(plans: Plans = "kept", **defaults: object) -> Statement[int]:
    """Return the number in the only row."""
    return Statement(lambda rows: int(rows[0][0]), plans, defaults)


def affected(plans: Plans = "kept", **defaults: object) -> Statement[int]:
    """Return how many rows there are: those that the statement wrote."""
    return Statement(len, plans, defaults)
