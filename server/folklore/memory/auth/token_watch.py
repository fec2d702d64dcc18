"""A look at the tokens of open streams, which end with their token; every other request looks its token up itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from folklore.background import in_background
from folklore.errors import Unavailable
from folklore.log import get_logger

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext

log = get_logger(__name__)

# Seconds between two looks: one statement for all streams of the process.
_PAUSE = 2.0


class TokenWatch:
    """The open streams of one process. While there are any, a task looks for those whose token is no longer valid."""

    def __init__(
        self,
        memory: Callable[[], Awaitable[MemoryContext]],
        now: Callable[[], datetime],
    ) -> None:
        self._memory = memory
        self._now = now
        self._streams: dict[object, tuple[UUID, Callable[[], None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, token: UUID | None, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` once when the token is revoked, expired or gone during this block; never without a token."""
        if token is None:
            yield
            return
        stream = object()
        self._streams[stream] = token, end
        if self._looking is None or self._looking.done():
            self._looking = in_background(self._look(), "folklore-token-watch")
        try:
            yield
        finally:
            self._streams.pop(stream, None)

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        from folklore.db.stores.callers.principals import Principals

        while self._streams:
            await asyncio.sleep(_PAUSE)
            try:
                tokens = {token for token, _ in self._streams.values()}
                principals = Principals((await self._memory()).database)
                valid = await principals.valid_tokens(ids=list(tokens), now=self._now())
            except Unavailable as error:
                log.info("tokens_of_streams_not_checked", reason=error.message)
                continue
            ended = tokens.difference(valid)  # others have begun meanwhile
            for stream, (token, end) in list(self._streams.items()):
                if token in ended:
                    self._streams.pop(stream, None)
                    end()
