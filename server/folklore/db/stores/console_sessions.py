"""Sessions of the console, and the links that begin one. Only the role that owns the tables can read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from folklore.db.database import Database
from folklore.db.rows import made
from folklore.db.stores.audit import NOWHERE, NewEntry, log_entry
from folklore.model import Caller


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


class ConsoleSessionStore:
    """The table console_sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(
        self, session: NewSession, action: Literal["sign_in", "link_create"], *, caller: Caller, now: datetime
    ) -> None:
        """Insert a session (`sign_in`) or a link (`link_create`), with an entry in the audit log. One transaction."""
        async with self._database.transaction() as transaction:
            await transaction.rows(
                "console_sessions/insert", now=now, begun_at=now if action == "sign_in" else None, **asdict(session)
            )
            await log_entry(transaction, NewEntry(NOWHERE, action, amount=1), caller=caller, now=now)

    async def find(self, digest: bytes) -> KnownSession | None:
        """Return the session of this digest, valid or not. One statement."""
        row = await self._database.row("console_sessions/find", digest=digest)
        return None if row is None else made(KnownSession, row)

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
            await session.rows(
                "console_sessions/begin",
                digest=link,
                new_digest=digest,
                sealed_key=sealed_key,
                now=now,
                expires_at=expires_at,
            )
            caller = local if row["principal"] is None else Caller(row["principal"], token=row["token_id"])
            await log_entry(session, NewEntry(NOWHERE, "sign_in", amount=1), caller=caller, now=now)
        return True

    async def delete(self, digest: bytes) -> None:
        """Delete a session. One statement."""
        await self._database.rows("console_sessions/delete", digest=digest)

    async def drop_expired(self, now: datetime, batch: int) -> int:
        """Delete at most `batch` sessions and links that expired, and return how many. One statement."""
        return len(await self._database.rows("console_sessions/delete_expired", "fresh", now=now, batch=batch))
