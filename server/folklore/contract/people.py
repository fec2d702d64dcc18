"""People and their tokens, invitations, and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import Field

from folklore.callers import AuditEntry, Role, Token
from folklore.contract.argument_types import NamespaceNames, UpTo1000, Words
from folklore.contract.requests import Request, Returns

# The time after which a new token ends unless another is requested; `never` is one too.
TOKEN_PERIOD = "90d"  # noqa: S105 - a time
NO_END = "never"


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token. `secret` is shown only here; `created` are namespaces that were made for it."""

    id: UUID
    principal: str
    secret: str
    expires_at: datetime | None
    created: tuple[str, ...] = ()
    usable: bool = True  # once the database has the role for requests with a token


class CreateTokenRequest(Request, Returns[CreatedToken]):
    """Create a token; `grants` are written namespace:role or pattern:role, `expires` 12h, 90d, 8w, 1y or never."""

    name: str
    grants: Words = ()
    owner: bool = False
    namespace: str | None = None
    agent: str | None = None
    expires: str = TOKEN_PERIOD


class ListTokensRequest(Request, Returns[tuple[Token, ...]]):
    """List tokens; with `all`, those too that expired or were revoked."""

    principal: str | None = None
    all: bool = False


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """A token that was revoked, and its principal."""

    id: UUID
    principal: str


class RevokeTokensRequest(Request, Returns[tuple[RevokedToken, ...]]):
    """Revoke tokens by id, or all of a principal."""

    ids: tuple[UUID, ...] = ()
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A new invitation. `code` is shown only here; `id` is that of its token, which ends at `expires_at`."""

    id: UUID
    principal: str
    code: str
    valid_until: datetime
    expires_at: datetime | None
    created: tuple[str, ...] = ()
    usable: bool = True


class InviteRequest(Request, Returns[Invitation]):
    """Invite a person by a code that can be exchanged once, `within` a period, for a token (CreateTokenRequest)."""

    name: str
    grants: Words = ()
    namespace: str | None = None
    agent: str | None = None
    expires: str = TOKEN_PERIOD
    within: str = "3d"


@dataclass(frozen=True, slots=True)
class Membership:
    """The principal of the token that an invitation was exchanged for."""

    principal: str


class JoinRequest(Request, Returns[Membership]):
    """Exchange the code of an invitation: its token gets the secret with this digest (hexadecimal).

    The caller makes the secret, so that it travels nowhere, and a repeated request has no further effect.
    """

    code: str
    digest: str = Field(pattern="^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Link:
    """A link to the console. `code` is shown only here."""

    code: str
    expires_at: datetime


class CreateLinkRequest(Request, Returns[Link]):
    """Create a link that signs the caller in to the console, once, within two minutes."""


@dataclass(frozen=True, slots=True)
class CallerInfo:
    """The caller as the server sees it, and the version and time of the server.

    `namespace` is the project of the request, `role` the caller's role there: None without one. `exists` is False also
    if the caller may not see it.
    """

    principal: str
    owner: bool
    grants: tuple[str, ...]
    version: str
    at: datetime
    may_write: bool
    agent: str | None = None
    expires_at: datetime | None = None
    token: UUID | None = None
    namespace: str | None = None
    role: Role | None = None
    exists: bool = False


class CallerRequest(Request, Returns[CallerInfo]):
    """Describe the caller, as `folklore doctor` shows it."""


class AuditRequest(Request, Returns[tuple[AuditEntry, ...]]):
    """Read the audit log, newest first; `since` is a period such as 7d, `after` the last entry of the page before."""

    namespaces: NamespaceNames = ()
    principal: str | None = None
    denied: bool = False
    action: str | None = None
    since: str | None = None
    after: UUID | None = None
    limit: UpTo1000 = 50
