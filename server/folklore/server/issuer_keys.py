"""The published keys of an issuer, found by their ids. A known key is never waited for, however slow the issuer is."""

import asyncio
from collections.abc import Callable, Sequence
from http.client import HTTPException
from time import monotonic

import jwt

from folklore.background import in_background
from folklore.errors import Unavailable
from folklore.log import get_logger

log = get_logger(__name__)

# Seconds after which known keys are fetched again, in the background; after which they are no longer used.
_FRESH = 300.0
_LIFETIME = 3600.0
# The least seconds between two fetches: for unknown keys, and after a failure.
_PAUSE = 30.0
_PAUSE_AFTER_FAILURE = 5.0
# Seconds that a token with an unknown key waits for a fetch.
_DEADLINE = 5.0


class IssuerKeys:
    """The keys of one issuer. `fetch` blocks, and may raise what a server that answers wrongly causes."""

    def __init__(
        self,
        issuer: str,
        fetch: Callable[[], Sequence[jwt.PyJWK]],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._keys: Sequence[jwt.PyJWK] = ()
        self._fetched_at = self._tried_at = float("-inf")
        self._failed = False
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str | None) -> jwt.PyJWK | None:
        """Return the key of an id; an issuer with one key need not name it. None if the issuer does not publish it.

        Raises Unavailable.
        """
        if (key := self._known(kid)) is not None:
            if self._clock() - self._fetched_at > _FRESH and self._may_fetch():
                self._start()
            return key
        if self._may_fetch():
            self._start()
        if self._fetching is not None:
            try:
                async with asyncio.timeout(_DEADLINE):
                    await asyncio.shield(self._fetching)
            except TimeoutError:
                raise self._unavailable() from None
        if (key := self._known(kid)) is None and self._failed:
            raise self._unavailable()
        return key

    def _known(self, kid: str | None) -> jwt.PyJWK | None:
        if self._clock() - self._fetched_at > _LIFETIME:
            return None
        if kid is None and len(self._keys) == 1:
            return self._keys[0]
        for key in self._keys:
            if kid is not None and key.key_id == kid:
                return key
        return None

    def _may_fetch(self) -> bool:
        pause = _PAUSE_AFTER_FAILURE if self._failed else _PAUSE
        return self._fetching is None and self._clock() - self._tried_at >= pause

    def _start(self) -> None:
        self._tried_at = self._clock()
        self._fetching = in_background(self._refresh(), "folklore-issuer-keys")

    async def _refresh(self) -> None:
        try:
            self._keys = await asyncio.to_thread(self._fetch)
        except (jwt.PyJWTError, OSError, ValueError, HTTPException) as error:
            self._failed = True
            log.warning(
                "issuer_unreachable",
                issuer=self._issuer,
                reason=f"{type(error).__name__}: {error}",
            )
        else:
            self._failed = False
            self._fetched_at = self._clock()
        finally:
            self._fetching = None

    def _unavailable(self) -> Unavailable:
        return Unavailable(
            "The issuer's keys cannot be fetched now.", hint="Try again."
        )
