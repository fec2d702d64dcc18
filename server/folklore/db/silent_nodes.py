"""Nodes of a cluster that do not answer, so that they delay what needs them and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from folklore.background import in_background
from folklore.errors import DatabaseUnavailable, FolkloreError

Result = TypeVar("Result")

# Returns the namespaces on nodes that do not answer, or None if every node answers.
AskNodes = Callable[[], Awaitable[frozenset[UUID] | None]]

# Seconds after which a statement is slow: then the nodes are asked, again and again while one of them is silent.
_SLOW_SECONDS = 3.0
_ASKED_EVERY_SECONDS = 1.0


class SilentNodes:
    """Gives up statements that wait for a node that does not answer.

    Such a statement would keep its connection until the statement timeout, and a few of them would keep all: calls
    that need other nodes would find none. Nothing is asked while every statement is quick.
    """

    def __init__(self, ask: AskNodes) -> None:
        self._ask = ask
        self._namespaces: frozenset[UUID] | None = None
        self._asking: asyncio.Task[None] | None = None

    async def bound(
        self,
        statement: Coroutine[Any, Any, Result],
        namespaces: Collection[UUID] | None,
        connection: Any,
    ) -> Result:
        """Return the result of a statement that needs these namespaces; None: perhaps every node.

        Raises DatabaseUnavailable, and closes the connection, if it waits for a node that does not answer.
        """
        if namespaces is not None and self._waits_in_vain(namespaces):
            statement.close()
            raise _unavailable()
        task = asyncio.ensure_future(statement)
        try:
            await asyncio.wait({task}, timeout=_SLOW_SECONDS)
            while not task.done():
                if self._waits_in_vain(namespaces):
                    connection.terminate()
                    raise _unavailable()
                self._ask_in_background()
                await asyncio.wait({task}, timeout=_ASKED_EVERY_SECONDS)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _waits_in_vain(self, namespaces: Collection[UUID] | None) -> bool:
        if self._namespaces is None:
            return False
        return namespaces is None or not self._namespaces.isdisjoint(namespaces)

    def _ask_in_background(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = in_background(self._watch(), "folklore-silent-nodes")

    async def _watch(self) -> None:
        """Ask the nodes until all of them answer."""
        while True:
            try:
                self._namespaces = await self._ask()
            except FolkloreError:  # the coordinator itself: its own errors say so
                self._namespaces = None
            if self._namespaces is None:
                return
            await asyncio.sleep(_ASKED_EVERY_SECONDS)


def _unavailable() -> DatabaseUnavailable:
    return DatabaseUnavailable(
        "A node of the database's cluster does not answer.",
        hint="Try again in a moment; `folklore db status` and `folklore doctor` name the node.",
    )
