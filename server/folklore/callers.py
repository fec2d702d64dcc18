"""Callers: who makes a request and what a token opens to them, tokens, and the record of what they did."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

Role = Literal["reader", "writer", "admin"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A role in one namespace, given by a token."""

    namespace: UUID
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class PatternGrant:
    """A role in every namespace whose name begins with a prefix (`repo:acme/`), those too that are created later."""

    prefix: str
    role: Role


@dataclass(frozen=True, slots=True)
class Access:
    """The grants of a token. `key` proves to the database which token a transaction runs for: a secret, never shown.

    `grants` has the namespaces that match one of the `patterns` too.
    """

    token: UUID
    key: str = field(repr=False)
    grants: tuple[Grant, ...] = ()
    patterns: tuple[PatternGrant, ...] = ()

    @property
    def namespaces(self) -> tuple[UUID, ...]:
        """The ids of the namespaces that the token may read."""
        return tuple(grant.namespace for grant in self.grants)


@dataclass(frozen=True, slots=True)
class Caller:
    """The author of a request, taken from authentication or the operating system, never from arguments.

    Without `access` every namespace is open: to the user who runs the process, or with an owner's token.
    """

    author: str
    agent: str | None = None
    may_write: bool = True
    access: Access | None = None
    token: UUID | None = None
    home: str | None = None  # the default namespace of the token
    expires_at: datetime | None = None
    identified: bool = (
        True  # False while authentication is unavailable: the caller may do nothing
    )
    anonymous: bool = False  # sent no token to a server that needs none


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret; `grants` are written namespace:role, or prefix*:role.

    `invited_until` is the end of an invitation that was not exchanged for the token yet.
    """

    id: UUID
    principal: str
    owner: bool
    grants: tuple[str, ...]
    created_at: datetime
    created_by: str
    agent: str | None = None
    home: str | None = None
    issuer: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    last_address: str | None = None
    invited_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A write or a denied access: by whom, when, what, on how many memories; never the text of a memory."""

    id: UUID
    at: datetime
    principal: str
    action: str
    outcome: str
    amount: int
    namespace: str | None = None
    memories: tuple[UUID, ...] = ()
    token: UUID | None = None
    agent: str | None = None
    detail: str | None = None
