"""Lets callers in by their tokens: looked up on every call, so that what is revoked is revoked at once everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol
from uuid import UUID

import structlog

from folklore.db.stores.principals import Known, Principals
from folklore.errors import FolkloreError, Unauthenticated, Unavailable
from folklore.memory.auth.tokens import (
    PREFIX,
    ExternalIdentity,
    authenticate,
    authenticate_key,
    key_of,
    store_external_token,
)
from folklore.memory.context import MemoryContext
from folklore.model import Access, Caller, Demand

log = structlog.get_logger(__name__)

# Whoever calls while it cannot be found out who he is. He hears what every server says of itself, and his calls say
# what is down; nothing is open to him, even if it comes back meanwhile.
NOBODY = Caller("unknown", access=Access(UUID(int=0), "0" * 64))

# How long it is believed that there are no tokens yet; that there are is true for ever.
_BELIEVED = 1.0
# When a token was used last is written down so often at most.
_USED_EVERY = timedelta(minutes=1)


class Issuer(Protocol):
    """Somebody else who hands out access tokens."""

    async def verify(self, token: str, *, now: datetime) -> ExternalIdentity:
        """What it says. Raises Unauthenticated, Unavailable."""

    @property
    def rules(self) -> str:
        """What makes grants out of claims, as text: under other rules the same token is another."""


class TokenAuthenticator:
    """Says who a caller is. `local` is whoever runs the process: he needs no token where none is demanded."""

    def __init__(
        self,
        library: Callable[[], Awaitable[MemoryContext]],
        *,
        demand: Demand,
        local: Callable[[], Caller],
        now: Callable[[], datetime],
        issuer: Issuer | None = None,
    ) -> None:
        self._library = library
        self._demand = demand
        self._local = local
        self._now = now
        self._issuer = issuer
        self._open_until = 0.0
        self._noted: dict[object, datetime] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def admit(self, token: str | None) -> Caller:
        """The caller of this token, or of none; NOBODY while that cannot be found out. One statement.

        Raises Unauthenticated.
        """
        try:
            return await self._admit(token)
        except Unavailable as error:
            log.warning("nobody_let_in", reason=error.message)
            return NOBODY

    async def _admit(self, token: str | None) -> Caller:
        if token is None:
            if await self.demands_token():
                raise Unauthenticated(
                    "missing",
                    "This server needs a token.",
                    hint=f"Send `Authorization: Bearer {PREFIX}…`; `folklore tokens create` makes one.",
                )
            return self._local()
        principals = Principals((await self._library()).database)
        if token.startswith(PREFIX) or self._issuer is None:
            caller, known = await authenticate(principals, token, now=self._now())
        else:
            caller, known = await self._vouched(self._issuer, principals, token)
        self._used(principals, known)
        return replace(caller, may_write=self._local().may_write)

    async def demands_token(self) -> bool:
        """Whether nobody is let in without one: always, never, or as soon as there is one."""
        if self._demand != "auto" or self._issuer is not None:
            return self._demand != "never"
        if monotonic() < self._open_until:
            return False
        if await Principals((await self._library()).database).any_token():
            return True
        self._open_until = monotonic() + _BELIEVED
        return False

    async def _vouched(self, issuer: Issuer, principals: Principals, token: str) -> tuple[Caller, Known]:
        said = await issuer.verify(token, now=self._now())
        key = key_of(f"{issuer.rules}\n{token}")
        try:
            return await authenticate_key(principals, key, now=self._now())
        except Unauthenticated as error:
            if error.reason != "unknown":
                raise
        await store_external_token(await self._library(), said, key=key, now=self._now())
        return await authenticate_key(principals, key, now=self._now())

    def _used(self, principals: Principals, known: Known) -> None:
        """Have it written down, behind the answer, that a token was used."""
        if self._local().may_write is False:
            return  # a read-only server writes nothing
        now = self._now()
        last = max(filter(None, (known.last_used_at, self._noted.get(known.id))), default=None)
        if last is not None and now - last < _USED_EVERY:
            return
        if len(self._noted) > 10_000:
            self._noted.clear()
        self._noted[known.id] = now

        async def note() -> None:
            try:
                await principals.used(known.id, now)
            except FolkloreError as error:
                log.info("token_use_not_noted", reason=error.message)

        task = asyncio.create_task(note(), name="folklore-token-used")
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def close(self) -> None:
        """Wait a moment for what is being written."""
        if self._notes:
            await asyncio.wait(self._notes, timeout=2)
