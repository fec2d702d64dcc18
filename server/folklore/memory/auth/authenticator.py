"""Authentication by tokens, which are looked up on every request, so that a revoked one fails at once everywhere."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Protocol
from uuid import UUID

from cachetools import LRUCache

from folklore.background import in_background
from folklore.callers import Access, Caller
from folklore.contract.token_secrets import INVITATION, PREFIX, key_of
from folklore.db.stores.callers.principals import Principals, TokenRecord
from folklore.errors import FolkloreError, Unauthenticated, Unavailable
from folklore.log import Outage, get_logger
from folklore.memory.auth import tokens
from folklore.memory.context import MemoryContext
from folklore.model import Demand

log = get_logger(__name__)

# The caller while authentication is unavailable: every operation fails with the reason, and nothing can be read.
UNIDENTIFIED = Caller(
    "unknown", access=Access(UUID(int=0), secrets.token_hex(32)), identified=False
)
# The caller of an exchange, who has no token yet and may do nothing else. The keys are random: a person who joins by an
# invitation chooses a digest, and could choose that of a known key.
INVITED = Caller("invited", access=Access(UUID(int=0), secrets.token_hex(32)))

# Seconds for which "no token exists yet" is cached; that one exists stays true.
_NO_TOKEN_CACHED = 1.0
# The last use of a token is written at most this often.
_USE_WRITTEN_EVERY = timedelta(minutes=1)
_USES_CACHED = 10_000


class Issuer(Protocol):
    """An identity provider whose access tokens are accepted."""

    async def verify(self, token: str, *, now: datetime) -> tokens.ExternalIdentity:
        """Verify an access token. Raises Unauthenticated, Unavailable."""

    @property
    def rules(self) -> str:
        """The rules that turn claims into grants, as text: other rules give the same token other grants."""


@dataclass(slots=True)
class TokenAuthenticator:
    """Returns the caller of a token. `local` is the user who runs the process, and the caller where none is needed.

    `check_without_token` raises Unauthenticated for a request that may not do without a token, though no token exists.
    """

    memory: Callable[[], Awaitable[MemoryContext]]
    _: KW_ONLY
    demand: Demand
    local: Callable[[], Caller]
    now: Callable[[], datetime]
    issuer: Issuer | None = None
    check_without_token: Callable[[], None] = lambda: None
    outage: Outage = field(
        default_factory=lambda: Outage(
            "authentication_unavailable", "authentication_available_again"
        )
    )
    _no_token_until: float = 0.0
    _looking: asyncio.Task[bool] | None = None
    _uses: LRUCache[UUID, datetime] = field(
        default_factory=lambda: LRUCache(_USES_CACHED)
    )
    _writes: set[asyncio.Task[None]] = field(default_factory=set)

    async def caller_of(self, token: str | None, address: str | None = None) -> Caller:
        """Return the caller of a token, or without one; UNIDENTIFIED while this is unavailable. One statement.

        `address` is where the request came from. Raises Unauthenticated.
        """
        period = self.outage.period
        try:
            caller = await self._find(token, address)
        except Unavailable as error:
            return self.unidentified(error, period)
        self.outage.over(period)
        return caller

    def unidentified(self, error: Unavailable, period: int) -> Caller:
        """Return the caller of a request of that period of outage or none, if authentication is unavailable."""
        self.outage.failed(error.message, period)
        return self._limited(UNIDENTIFIED)

    async def caller_of_digest(
        self, digest: bytes, key: str | None, address: str | None = None
    ) -> Caller:
        """Return the caller of a token by its digest and its key; an owner's token needs no key. One statement.

        Raises Unauthenticated, Unavailable.
        """
        principals = Principals((await self.memory()).database)
        caller, record = await tokens.authenticate_digest(
            principals, digest, key, now=self.now()
        )
        self._record_use(principals, record, address)
        return self._limited(caller)

    async def _find(self, token: str | None, address: str | None) -> Caller:
        if token is None:
            if await self.demands_token():
                hint = f"Send `Authorization: Bearer {PREFIX}…`; `folklore tokens create` makes one."
                raise Unauthenticated(
                    "missing", "This server needs a token.", hint=hint
                )
            self.check_without_token()
            return replace(self.local(), anonymous=True)
        principals = Principals((await self.memory()).database)
        if token.startswith((PREFIX, INVITATION)) or self.issuer is None:
            caller, record = await tokens.authenticate(
                principals, token, now=self.now()
            )
        else:
            caller, record = await self._external(self.issuer, principals, token)
        self._record_use(principals, record, address)
        return self._limited(caller)

    def _limited(self, caller: Caller) -> Caller:
        """Return a caller who may write only if this server writes at all."""
        return replace(caller, may_write=self.local().may_write)

    async def demands_token(self) -> bool:
        """Return True if every request needs a token: always, never, or as soon as one exists."""
        if self.demand != "auto" or self.issuer is not None:
            return self.demand != "never"
        if monotonic() < self._no_token_until:
            return False
        # requests that come together share one statement
        if self._looking is None or self._looking.done():
            self._looking = in_background(self._any_token(), "folklore-any-token")
        return await asyncio.shield(self._looking)

    async def _any_token(self) -> bool:
        if await Principals((await self.memory()).database).any_token():
            return True
        self._no_token_until = monotonic() + _NO_TOKEN_CACHED
        return False

    async def _external(
        self, issuer: Issuer, principals: Principals, token: str
    ) -> tuple[Caller, TokenRecord]:
        identity = await issuer.verify(token, now=self.now())
        key = key_of(f"{issuer.rules}\n{token}")
        try:
            return await tokens.authenticate_key(principals, key, now=self.now())
        except Unauthenticated as error:
            if error.reason != "unknown":
                raise
        await tokens.store_external_token(
            await self.memory(), identity, key=key, now=self.now()
        )
        return await tokens.authenticate_key(principals, key, now=self.now())

    def _record_use(
        self, principals: Principals, record: TokenRecord, address: str | None
    ) -> None:
        """Write the time and address of a token's use, in the background and once a minute."""
        if not self.local().may_write:
            return
        now = self.now()
        for last in (record.last_used_at, self._uses.get(record.id)):
            if last is not None and now - last < _USE_WRITTEN_EVERY:
                return
        self._uses[record.id] = now
        write = _write_use(principals, record.id, address, now)
        task = in_background(write, "folklore-token-use")
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def close(self) -> None:
        """Wait up to two seconds for pending statements."""
        pending: set[asyncio.Task[Any]] = {*self._writes}
        if self._looking is not None:
            pending.add(self._looking)
        if pending:
            await asyncio.wait(pending, timeout=2)


async def _write_use(
    principals: Principals, token: UUID, address: str | None, now: datetime
) -> None:
    try:
        await principals.touch_token(id=token, now=now, address=address)
    except FolkloreError as error:
        log.info("token_use_not_written", reason=error.message)
