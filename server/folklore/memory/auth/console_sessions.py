"""Sessions of the console: begun by a token, or by a link that works once; found by the secret of a cookie.

They are in the database, so that every worker and server on it knows them. The database has the digest of the secret. A
token's key, without which row-level security opens nothing, is sealed by the secret, which only the browser has.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from folklore.callers import Caller
from folklore.contract.people import CreateLinkRequest, Link
from folklore.db.stores.callers.console_sessions import ConsoleSessionStore, NewSession
from folklore.errors import DatabaseUnavailable, Refused, Unauthenticated, Unavailable
from folklore.memory.auth.authenticator import TokenAuthenticator
from folklore.memory.context import MemoryContext, RequestContext
from folklore.permissions import require_writable

SESSION_LENGTH = timedelta(hours=12)
LINK_LENGTH = timedelta(minutes=2)
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_AGAIN = "Sign in again."


@dataclass(frozen=True, slots=True)
class ConsoleSessions:
    """The sessions of the console. `local` is the user who runs the server.

    With `by_link_alone`, a session counts only if a link of that user's own began it: none of a token, and none that
    began without either.
    """

    memory: Callable[[], Awaitable[MemoryContext]]
    authenticator: TokenAuthenticator
    local: Callable[[], Caller]
    now: Callable[[], datetime]
    by_link_alone: bool = False

    async def begin(self, caller: Caller) -> str:
        """Begin a session for a caller, and return the secret of its cookie, new at every sign-in.

        Raises Refused on a read-only server, Unavailable.
        """
        if not caller.identified:
            raise DatabaseUnavailable(
                "The database is unavailable, so no session can begin.",
                hint="Try again.",
            )
        _require_sessions(caller)
        secret = secrets.token_urlsafe(32)
        now = self.now()
        session = _new_session(caller, secret, now + SESSION_LENGTH)
        await (await self._store()).insert(session, "sign_in", caller=caller, now=now)
        return secret

    async def exchange(self, code: str) -> str | None:
        """Exchange the code of a link, once, for the secret of a session. None if it is unknown, used or expired.

        Raises Refused on a read-only server, Unavailable.
        """
        if not _SECRET.fullmatch(code):
            return None
        _require_sessions(self.local())
        secret = secrets.token_urlsafe(32)
        now = self.now()
        session = await (await self._store()).exchange(
            _digest(code),
            digest=_digest(secret),
            seal=lambda sealed: _masked(_masked(sealed, code), secret),
            local=self.local(),
            now=now,
            expires_at=now + SESSION_LENGTH,
        )
        return secret if session else None

    async def find(self, secret: str, address: str | None = None) -> Caller:
        """Return the caller of a session as the token itself gives it; UNIDENTIFIED while the database is unavailable.

        Two statements. Raises Unauthenticated if the session ended, or its token was revoked or expired.
        """
        if not _SECRET.fullmatch(secret):
            raise Unauthenticated(
                "malformed", "This is not the cookie of a session.", hint=_AGAIN
            )
        period = self.authenticator.outage.period
        try:
            return await self._find(secret, address)
        except Unavailable as error:
            return self.authenticator.unidentified(error, period)

    async def _find(self, secret: str, address: str | None) -> Caller:
        session = await (await self._store()).find(digest=_digest(secret))
        if session is None:
            raise Unauthenticated("unknown", "This session has ended.", hint=_AGAIN)
        if session.expires_at <= self.now():
            raise Unauthenticated("expired", "This session has expired.", hint=_AGAIN)
        is_of_own_link = session.token_digest is None and not session.anonymous
        if self.by_link_alone and not is_of_own_link:
            raise Unauthenticated("unknown", "This session is none here.", hint=_AGAIN)
        if session.token_digest is not None:
            key = None
            if session.sealed_key is not None:
                key = _masked(session.sealed_key, secret).hex()
            return await self.authenticator.caller_of_digest(
                session.token_digest, key, address
            )
        if session.anonymous:
            return await self.authenticator.caller_of(None)
        return self.local()

    async def end(self, secret: str) -> None:
        """End a session. Raises Unavailable."""
        await (await self._store()).delete(digest=_digest(secret))

    async def _store(self) -> ConsoleSessionStore:
        return ConsoleSessionStore((await self.memory()).database)


async def create_link(context: RequestContext, _request: CreateLinkRequest) -> Link:
    """Create a link that begins a session of the caller, once, within two minutes. Raises Refused."""
    require_writable(context.caller)
    code = secrets.token_urlsafe(32)
    session = _new_session(context.caller, code, context.now + LINK_LENGTH)
    store = ConsoleSessionStore(context.memory.root.database)
    await store.insert(session, "link_create", caller=context.caller, now=context.now)
    return Link(code, session.expires_at)


def form_token(secret: str) -> str:
    """Return the token that every form of a session sends."""
    return _derived(secret, b"form token").hex()


def _require_sessions(caller: Caller) -> None:
    if not caller.may_write:
        hint = "Sign in at a server without read_only, with a token that may only read."
        raise Refused(
            "This server is read-only, and the console cannot record a session.",
            hint=hint,
        )


def _new_session(caller: Caller, secret: str, expires_at: datetime) -> NewSession:
    key = None
    if caller.access is not None:
        key = _masked(bytes.fromhex(caller.access.key), secret)
    return NewSession(_digest(secret), caller.token, key, caller.anonymous, expires_at)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _masked(key: bytes, secret: str) -> bytes:
    """Seal a key by a secret, or unseal it. Each secret seals one key, so the pad is used once."""
    pad = _derived(secret, b"key")
    return bytes(byte ^ mask for byte, mask in zip(key, pad, strict=True))


def _derived(secret: str, purpose: bytes) -> bytes:
    return hmac.digest(secret.encode(), b"folklore console " + purpose, "sha256")
