"""Principals, their tokens and grants. Only the role that owns the tables can read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from folklore.db.database import Database, Session
from folklore.db.rows import made
from folklore.db.stores.audit import NOWHERE, NewEntry, Write, log_entry
from folklore.errors import Conflict
from folklore.model import Caller, Grant, PatternGrant, Role, Token


@dataclass(frozen=True, slots=True)
class Known:
    """A token that was looked up, valid or not."""

    id: UUID
    digest: bytes
    principal: str
    owner: bool
    agent: str | None
    home: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    grants: tuple[Grant, ...]
    patterns: tuple[PatternGrant, ...]


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to create; `digest` is the SHA-256 of its key."""

    id: UUID
    principal: str
    digest: bytes
    grants: Sequence[tuple[UUID, Role]] = ()
    patterns: Sequence[PatternGrant] = ()
    owner: bool = False
    home: UUID | None = None
    agent: str | None = None
    issuer: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """Invitation to create with its token; `digest` is that of its code."""

    digest: bytes
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Redemption:
    """Outcome of an exchange, and the principal of the token. `again`: the same exchange was made before."""

    outcome: Literal["redeemed", "again", "unknown", "used", "expired", "revoked"]
    principal: str | None = None


class Principals:
    """The tables principals, tokens, grants, pattern_grants and invitations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, digest: bytes) -> Known | None:
        """Return the token of this digest, valid or not. One statement."""
        row = await self._database.row("principals/find_token", digest=digest)
        if row is None:
            return None
        opened = zip(row["ids"] or (), row["names"] or (), row["roles"] or (), strict=True)
        patterns = zip(row["prefixes"] or (), row["prefix_roles"] or (), strict=True)
        return made(
            Known,
            row,
            grants=tuple(Grant(id_, name, role) for id_, name, role in opened),
            patterns=tuple(PatternGrant(prefix, role) for prefix, role in patterns),
        )

    async def any_token(self) -> bool:
        """Return True if a token was ever created. One statement."""
        row = await self._database.row("principals/any_token")
        return row is not None and bool(row["there"])

    async def create(
        self,
        token: NewToken,
        *,
        principal_id: UUID,
        caller: Caller,
        now: datetime,
        invitation: NewInvitation | None = None,
    ) -> str:
        """Create a token, and its principal if it is new, in one transaction; return the principal's stored name."""
        async with self._database.transaction() as session:
            for _ in range(3):  # the next statement sees a row that another process inserted meanwhile
                principal = await session.row("principals/ensure", id=principal_id, name=token.principal)
                if principal is not None:
                    break
            else:
                raise Conflict(f"The principal {token.principal} was created at the same time.", hint="Try again.")
            inserted = await session.row(
                "principals/insert_token",
                id=token.id,
                principal=principal["id"],
                digest=token.digest,
                owner=token.owner,
                home=token.home,
                agent=token.agent,
                issuer=token.issuer,
                now=now,
                author=caller.author,
                expires_at=token.expires_at,
            )
            if inserted is not None:
                await _insert_grants(session, token)
                if invitation is not None:
                    await session.rows(
                        "principals/insert_invitation",
                        token=token.id,
                        digest=invitation.digest,
                        expires_at=invitation.expires_at,
                    )
                action: Write = "token_create" if invitation is None else "invite"
                entry = NewEntry(NOWHERE, action, amount=1, detail=f"{principal['name']} {token.id}")
                await log_entry(session, entry, caller=caller, now=now)
            return str(principal["name"])

    async def redeem(self, invitation: bytes, *, digest: bytes, now: datetime) -> Redemption:
        """Give the token of an invitation a secret, once: the one with this digest. One transaction.

        Raises ConcurrentChange if another token has the digest.
        """
        async with self._database.transaction() as session:
            row = await session.row("principals/lock_invitation", digest=invitation)
            if row is None:
                return Redemption("unknown")
            principal = str(row["principal"])
            if row["revoked_at"] is not None:
                return Redemption("revoked", principal)
            if row["redeemed_at"] is not None:
                return Redemption("again" if row["token_digest"] == digest else "used", principal)
            if row["expires_at"] <= now:
                return Redemption("expired", principal)
            await session.rows("principals/redeem_invitation", token=row["token_id"], now=now)
            await session.rows("principals/set_digest", token=row["token_id"], digest=digest)
            entry = NewEntry(NOWHERE, "join", amount=1, detail=f"{principal} {row['token_id']}")
            await log_entry(session, entry, caller=Caller(principal, token=row["token_id"]), now=now)
        return Redemption("redeemed", principal)

    async def tokens(self, *, now: datetime, principal: str | None = None, every: bool = False) -> list[Token]:
        """List the tokens of a principal, or all; with `every` also expired and revoked ones. One statement."""
        return await self._database.all(Token, "principals/list_tokens", principal=principal, every=every, now=now)

    async def revoke(
        self, *, ids: Sequence[UUID] = (), principal: str | None = None, caller: Caller, now: datetime
    ) -> list[tuple[UUID, str]]:
        """Revoke tokens by id, or all of a principal; return the valid ones among them with their principals."""
        async with self._database.transaction() as session:
            rows = await session.rows("principals/revoke_tokens", ids=ids, principal=principal, now=now)
            for row in rows:
                detail = f"{row['principal']} {row['id']}"
                entry = NewEntry(NOWHERE, "token_revoke", amount=1, detail=detail)
                await log_entry(session, entry, caller=caller, now=now)
        return [(row["id"], row["principal"]) for row in rows]

    async def valid(self, ids: Iterable[UUID], *, now: datetime) -> set[UUID]:
        """Return those of these tokens that are neither revoked nor expired. One statement."""
        return {row["id"] for row in await self._database.rows("principals/valid_tokens", ids=list(ids), now=now)}

    async def used(self, token: UUID, now: datetime, address: str | None) -> None:
        """Write the last use of a token. One statement."""
        await self._database.rows("principals/touch_token", id=token, now=now, address=address)

    async def drop_expired(self, before: datetime) -> int:
        """Delete external tokens that expired before a time, and return their number. One statement."""
        return len(await self._database.rows("principals/delete_expired", before=before))


async def _insert_grants(session: Session, token: NewToken) -> None:
    """Write the grants of a new token, by name and by pattern."""
    if token.grants:
        await session.rows(
            "principals/insert_grants",
            token=token.id,
            namespaces=[namespace for namespace, _ in token.grants],
            roles=[role for _, role in token.grants],
        )
    if token.patterns:
        await session.rows(
            "principals/insert_patterns",
            token=token.id,
            prefixes=[pattern.prefix for pattern in token.patterns],
            roles=[pattern.role for pattern in token.patterns],
        )
