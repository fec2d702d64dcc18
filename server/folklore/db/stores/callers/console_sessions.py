"""Sessions of the console, and the links that begin one. Only the role that owns the tables can read them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from folklore.callers import Caller
from folklore.db.store import Store, affected, one
from folklore.db.stores.events.audit import audit_entry


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to begin, or a link; `digest` is the SHA-256 of its secret."""

    digest: bytes
    token: UUID | None
    sealed_key: bytes | None
    anonymous: bool
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session that was looked up, valid or not. `token_digest` is None without a token."""

    sealed_key: bytes | None
    anonymous: bool
    expires_at: datetime
    token_digest: bytes | None


class ConsoleSessionStore(Store):
    """The table console_sessions."""

    find = one(KnownSession)
    delete = affected()
    delete_expired = affected("fresh")

    async def insert(
        self,
        session: NewSession,
        action: Literal["sign_in", "link_create"],
        *,
        caller: Caller,
        now: datetime,
    ) -> None:
        """Insert a session (`sign_in`) or a link (`link_create`), with an entry in the audit log. One transaction."""
        async with self._database.transaction() as transaction:
            await transaction.rows(
                "console_sessions/insert",
                now=now,
                begun_at=now if action == "sign_in" else None,
                **asdict(session),
            )
            await transaction.rows(
                "audit/insert", **audit_entry(action, caller=caller, now=now)
            )

    async def exchange(
        self,
        link: bytes,
        *,
        digest: bytes,
        seal: Callable[[bytes], bytes],
        local: Caller,
        now: datetime,
        expires_at: datetime,
    ) -> bool:
        """Make a session of a link, once; `seal` seals its key anew. Return False if there is no such link.

        `local` is the caller in the audit log if the link has no token. One transaction.
        """
        async with self._database.transaction() as session:
            row = await session.row("console_sessions/lock_link", digest=link, now=now)
            if row is None:
                return False
            sealed_key = None if row["sealed_key"] is None else seal(row["sealed_key"])
            values = {
                "new_digest": digest,
                "sealed_key": sealed_key,
                "now": now,
                "expires_at": expires_at,
            }
            await session.rows("console_sessions/begin", digest=link, **values)
            if row["principal"] is None:
                caller = local
            else:
                caller = Caller(row["principal"], token=row["token_id"])
            await session.rows(
                "audit/insert", **audit_entry("sign_in", caller=caller, now=now)
            )
        return True
