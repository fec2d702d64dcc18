"""Principals, their tokens and grants. Only the role that owns the tables can read them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from secrets import token_hex
from typing import Literal
from uuid import UUID

from folklore.callers import Caller, Grant, PatternGrant, Role, Token
from folklore.db.database import Session
from folklore.db.rows import made
from folklore.db.store import Store, affected, column, many, value
from folklore.db.stores.events.audit import Write, audit_entry
from folklore.errors import Conflict, DatabaseUnavailable


@dataclass(frozen=True, slots=True)
class TokenRecord:
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


# The columns of a token that NewToken names as they are.
_TOKEN = ("id", "digest", "owner", "home", "agent", "issuer", "expires_at")


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


class Principals(Store):
    """The tables principals, tokens, grants, pattern_grants and invitations."""

    any_token = value(bool)
    any_limited = value(bool)
    list_tokens = many(Token, principal=None, every=False)
    valid_tokens = column(UUID)
    touch_token = affected()
    delete_expired = affected()

    async def has_role(self) -> bool:
        """Return True if the database lets requests with a token assume their role, which has all privileges."""
        with suppress(DatabaseUnavailable):
            async with self._database.for_token(token_hex(32)).session() as session:
                return not await session.rows("roles/missing")
        return False

    async def find(self, digest: bytes) -> TokenRecord | None:
        """Return the token of this digest, valid or not. One statement."""
        row = await self._database.row("principals/find_token", digest=digest)
        if row is None:
            return None
        grants = zip(
            row["ids"] or (), row["names"] or (), row["roles"] or (), strict=True
        )
        patterns = zip(row["prefixes"] or (), row["prefix_roles"] or (), strict=True)
        return made(
            TokenRecord,
            row,
            grants=tuple(Grant(id_, name, role) for id_, name, role in grants),
            patterns=tuple(PatternGrant(prefix, role) for prefix, role in patterns),
        )

    async def create(
        self,
        token: NewToken,
        *,
        principal_id: UUID,
        caller: Caller,
        now: datetime,
        invitation: NewInvitation | None = None,
    ) -> str:
        """Create a token in one transaction, and before its principal if it is new; return the principal's stored name.

        On Citus a transaction that wrote to principals could deadlock with the last use of another token.
        """
        # the next statement sees a row that another process inserted meanwhile
        for _ in range(3):
            async with self._database.transaction() as session:
                principal = await session.row(
                    "principals/ensure", id=principal_id, name=token.principal
                )
            if principal is not None:
                break
        else:
            raise Conflict(
                f"The principal {token.principal} was created at the same time.",
                hint="Try again.",
            )
        async with self._database.transaction() as session:
            values = {name: getattr(token, name) for name in _TOKEN}
            inserted = await session.row(
                "principals/insert_token",
                principal=principal["id"],
                now=now,
                author=caller.author,
                **values,
            )
            if inserted is not None:
                await _insert_grants(session, token)
                if invitation is not None:
                    await session.rows(
                        "principals/insert_invitation",
                        token=token.id,
                        **asdict(invitation),
                    )
                action: Write = "token_create" if invitation is None else "invite"
                detail = f"{principal['name']} {token.id}"
                await session.rows(
                    "audit/insert",
                    **audit_entry(action, caller=caller, now=now, detail=detail),
                )
            return str(principal["name"])

    async def redeem(
        self, invitation: bytes, *, digest: bytes, now: datetime
    ) -> Redemption:
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
                return Redemption(
                    "again" if row["token_digest"] == digest else "used", principal
                )
            if row["expires_at"] <= now:
                return Redemption("expired", principal)
            await session.rows(
                "principals/redeem_invitation", token=row["token_id"], now=now
            )
            await session.rows(
                "principals/set_digest", token=row["token_id"], digest=digest
            )
            caller = Caller(principal, token=row["token_id"])
            detail = f"{principal} {row['token_id']}"
            await session.rows(
                "audit/insert",
                **audit_entry("join", caller=caller, now=now, detail=detail),
            )
        return Redemption("redeemed", principal)

    async def revoke(
        self,
        *,
        ids: Sequence[UUID] = (),
        principal: str | None = None,
        caller: Caller,
        now: datetime,
    ) -> list[tuple[UUID, str]]:
        """Revoke tokens by id, or all of a principal; return the valid ones among them with their principals."""
        async with self._database.transaction() as session:
            rows = await session.rows(
                "principals/revoke_tokens", ids=ids, principal=principal, now=now
            )
            for row in rows:
                detail = f"{row['principal']} {row['id']}"
                await session.rows(
                    "audit/insert",
                    **audit_entry(
                        "token_revoke", caller=caller, now=now, detail=detail
                    ),
                )
        return [(row["id"], row["principal"]) for row in rows]


async def _insert_grants(session: Session, token: NewToken) -> None:
    if token.grants:
        namespaces, roles = zip(*token.grants, strict=True)
        await session.rows(
            "principals/insert_grants",
            token=token.id,
            namespaces=namespaces,
            roles=roles,
        )
    if token.patterns:
        prefixes, roles = zip(
            *((pattern.prefix, pattern.role) for pattern in token.patterns), strict=True
        )
        await session.rows(
            "principals/insert_patterns", token=token.id, prefixes=prefixes, roles=roles
        )
