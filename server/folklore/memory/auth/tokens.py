"""Tokens: created, shown once, looked up on every request, revoked."""

import hmac
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import get_args
from uuid import UUID

from folklore.callers import Access, Caller, PatternGrant, Role, Token
from folklore.contract.namespaces import CreateNamespaceRequest
from folklore.contract.people import (
    NO_END,
    CreatedToken,
    CreateTokenRequest,
    InviteRequest,
    ListTokensRequest,
    RevokedToken,
    RevokeTokensRequest,
)
from folklore.contract.token_secrets import (
    INVITATION,
    PREFIX,
    digest_of,
    key_of,
    new_secret,
    with_checksum,
)
from folklore.db.stores.callers.principals import NewToken, Principals, TokenRecord
from folklore.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.memory.namespaces.administration import create_namespace
from folklore.new_ids import new_id
from folklore.permissions import require_owner, stronger
from folklore.text import names
from folklore.text.clean import clean

_TOKEN = re.compile(rf"{PREFIX}(?P<random>[A-Za-z0-9_-]{{43}})[0-9A-Za-z]{{6}}")
_PERIOD = re.compile(r"([1-9][0-9]{0,4})\s*([hdwy])")
_UNITS = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
_LONGEST = timedelta(days=36_500)
MAX_NAME = 200
_ASK = "Ask for a new one."


@dataclass(frozen=True, slots=True)
class ExternalIdentity:
    """The verified content of an issuer's access token."""

    principal: str
    grants: Sequence[str]
    owner: bool
    expires_at: datetime
    issuer: str


@dataclass(frozen=True, slots=True)
class PreparedToken:
    """A token that is not stored yet, the namespaces created for it, and whether requests can use it."""

    token: NewToken
    created_namespaces: tuple[str, ...]
    usable: bool


@dataclass(frozen=True, slots=True)
class _Grants:
    """Name and role of each granted namespace, by the key of its name, and the grants by pattern."""

    by_key: Mapping[str, tuple[str, Role]]
    patterns: Sequence[PatternGrant]

    @property
    def namespaces(self) -> list[str]:
        """The names of the namespaces granted by name."""
        return [name for name, _ in self.by_key.values()]

    def by_id(self, ids: Mapping[str, UUID]) -> list[tuple[UUID, Role]]:
        """Return the roles by the ids of the namespaces, which `ids` gives by the keys of their names."""
        return [(ids[key], role) for key, (_, role) in self.by_key.items()]


async def create_token(
    context: RequestContext, request: CreateTokenRequest
) -> CreatedToken:
    """Create a token of 32 random bytes, and the namespaces of its grants that do not exist.

    Raises InvalidInput, Refused.
    """
    secret = new_secret()
    digest = digest_of(key_of(secret))
    prepared = await prepare_token(context, request, digest=digest, owner=request.owner)
    token = prepared.token
    principals = Principals(context.memory.database)
    principal = await principals.create(
        token, principal_id=new_id(), caller=context.caller, now=context.now
    )
    return CreatedToken(
        token.id,
        principal,
        secret,
        token.expires_at,
        prepared.created_namespaces,
        prepared.usable,
    )


async def prepare_token(
    context: RequestContext,
    request: CreateTokenRequest | InviteRequest,
    *,
    digest: bytes,
    owner: bool = False,
) -> PreparedToken:
    """Check what a token is to be, and create the namespaces of its grants that do not exist.

    Raises InvalidInput, Refused.
    """
    require_owner(context.caller)
    name = _line(request.name, "name")
    # as in `subject <issuer>`, the principals of an identity provider
    if "://" in name:
        raise InvalidInput(
            "name",
            'must not contain "://".',
            hint="Principals of an identity provider contain it.",
        )
    agent = None
    if request.agent is not None:
        agent = _line(request.agent, "agent")
    grants = _parse_grants(request.grants, owner=owner)
    expires_at = None
    if request.expires != NO_END:
        expires_at = context.now + period(request.expires, "expires")
    namespaces = grants.namespaces
    home = None
    if request.namespace is not None:
        home = names.normalise(request.namespace)
        namespaces.append(home)
        if not owner:
            _require_writer(home, grants)
    ids, created = await _ensure_namespaces(context, namespaces)
    home_id = None
    if home is not None:
        home_id = ids[names.key(home)]
    token = NewToken(
        new_id(),
        name,
        digest,
        grants.by_id(ids),
        grants.patterns,
        owner,
        home_id,
        agent,
        expires_at=expires_at,
    )
    usable = owner or await Principals(context.memory.database).has_role()
    return PreparedToken(token, tuple(created), usable)


def _require_writer(home: str, grants: _Grants) -> None:
    key = names.key(home)
    roles = [
        pattern.role for pattern in grants.patterns if key.startswith(pattern.prefix)
    ]
    if key in grants.by_key:
        roles.append(grants.by_key[key][1])
    if all(role == "reader" for role in roles):
        raise InvalidInput(
            "namespace",
            f"{home} would be the default for writing, and the token may not write there.",
            hint=f"Add --grant {home}:writer.",
        )


async def store_external_token(
    memory: MemoryContext, identity: ExternalIdentity, *, key: str, now: datetime
) -> None:
    """Store an issuer's access token as a token with the grants of its claims, until it expires.

    Raises Unauthenticated if it has no grant, RateLimited if these are too many new namespaces.
    """
    context = RequestContext(memory, Caller(author=f"issuer {identity.issuer}"), now)
    principal = replace(context, caller=Caller(author=identity.principal))
    try:
        name = _line(identity.principal, "principal")
        claims = () if identity.owner else identity.grants
        grants = _parse_grants(claims, owner=identity.owner, strongest=True)
    except InvalidInput as error:
        raise Unauthenticated(
            "untrusted", f"This access token has no grant here ({error.message})."
        ) from error
    ids, _ = await _ensure_namespaces(principal, grants.namespaces, limited=True)
    token = NewToken(
        new_id(),
        name,
        digest_of(key),
        grants.by_id(ids),
        grants.patterns,
        identity.owner,
        issuer=identity.issuer,
        expires_at=identity.expires_at,
    )
    await Principals(memory.database).create(
        token, principal_id=new_id(), caller=context.caller, now=now
    )


async def list_tokens(
    context: RequestContext, request: ListTokensRequest
) -> tuple[Token, ...]:
    """List tokens, without their secrets. Raises Refused, InvalidInput."""
    require_owner(context.caller, dry_run=True)
    principals = Principals(context.memory.database)
    tokens = await principals.list_tokens(
        now=context.now, principal=principal_of(request.principal), every=request.all
    )
    return tuple(tokens)


async def revoke_tokens(
    context: RequestContext, request: RevokeTokensRequest
) -> tuple[RevokedToken, ...]:
    """Revoke tokens by id, or all of a principal, at once. Raises NotFound, InvalidInput, Refused."""
    require_owner(context.caller)
    if bool(request.ids) == (request.principal is not None):
        raise InvalidInput("ids", "give ids or a principal, one of the two.")
    revoked = await Principals(context.memory.database).revoke(
        ids=request.ids,
        principal=principal_of(request.principal),
        caller=context.caller,
        now=context.now,
    )
    missing = set(request.ids) - {id_ for id_, _ in revoked}
    if missing or not revoked:
        if missing:
            problem = f"No valid token has the id {min(missing)}"
        else:
            problem = f"No valid token has the principal {request.principal}"
        if revoked:
            problem += f"; {len(revoked)} of the others were revoked"
        hint = "`folklore tokens list` shows tokens."
        raise NotFound(f"{problem}.", hint=hint)
    return tuple(RevokedToken(id_, principal) for id_, principal in revoked)


async def authenticate(
    principals: Principals, secret: str, *, now: datetime
) -> tuple[Caller, TokenRecord]:
    """Return the caller of a token. One statement.

    Raises Unauthenticated for one that is malformed, unknown, expired or revoked.
    """
    if secret.startswith(INVITATION):
        hint = f"`folklore join URL {INVITATION}…` exchanges it for a token, once."
        raise Unauthenticated(
            "malformed", "This is the code of an invitation, not a token.", hint=hint
        )
    form = _TOKEN.fullmatch(secret)
    if form is None:
        raise Unauthenticated(
            "malformed",
            "This is not a Folklore token.",
            hint=f"Tokens begin with {PREFIX}.",
        )
    if with_checksum(form["random"]) != secret:
        raise Unauthenticated(
            "malformed",
            "This token has a typing error.",
            hint="Copy it anew, as it was shown.",
        )
    return await authenticate_key(principals, key_of(secret), now=now)


async def authenticate_key(
    principals: Principals, key: str, *, now: datetime
) -> tuple[Caller, TokenRecord]:
    """Return the caller of a token by its key; see `authenticate`."""
    return await authenticate_digest(principals, digest_of(key), key, now=now)


async def authenticate_digest(
    principals: Principals, digest: bytes, key: str | None, *, now: datetime
) -> tuple[Caller, TokenRecord]:
    """Return the caller of a token by its digest; see `authenticate`. An owner's token needs no key."""
    record = await principals.find(digest)
    if record is None or not hmac.compare_digest(record.digest, digest):
        raise Unauthenticated("unknown", "This token is not known here.", hint=_ASK)
    if record.revoked_at is not None:
        raise Unauthenticated(
            "revoked", "This token was revoked.", hint=_ASK, principal=record.principal
        )
    if record.expires_at is not None and record.expires_at <= now:
        raise Unauthenticated(
            "expired", "This token has expired.", hint=_ASK, principal=record.principal
        )
    access = None if record.owner else _access(record, key)
    caller = Caller(
        record.principal,
        record.agent,
        access=access,
        token=record.id,
        home=record.home,
        expires_at=record.expires_at,
    )
    return caller, record


def _access(record: TokenRecord, key: str | None) -> Access:
    if key is None or not hmac.compare_digest(digest_of(key), record.digest):
        raise Unauthenticated(
            "unknown",
            "This key is not that of the token.",
            hint=_ASK,
            principal=record.principal,
        )
    return Access(record.id, key, record.grants, record.patterns)


def period(text: str, field: str) -> timedelta:
    """Parse a period such as 12h, 90d, 8w or 1y. Raises InvalidInput."""
    match = _PERIOD.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInput(
            field, f"{text[:40]!r} is not a period.", hint="Write 12h, 90d, 8w or 1y."
        )
    length = int(match[1]) * _UNITS[match[2]]
    if length > _LONGEST:
        raise InvalidInput(
            field, "must be at most a hundred years.", hint="Write 12h, 90d, 8w or 1y."
        )
    return length


def parse_grant(text: str) -> tuple[str, Role]:
    """Parse namespace:role or pattern:role; a pattern is returned as its prefix and `*`. Raises InvalidInput."""
    name, _, role = text.rpartition(":")
    if not name or role not in _ROLES:
        hint = f"Roles are {', '.join(_ROLES)}: payments:writer."
        raise InvalidInput("grant", f"{text!r} is not namespace:role.", hint=hint)
    prefix = names.prefix_of(name)
    if prefix is not None:
        return f"{prefix}*", _ROLES[role]
    return names.normalise(name, field="grant"), _ROLES[role]


def principal_of(name: str | None) -> str | None:
    """Return the requested principal; None for all. Raises InvalidInput for an empty name."""
    if name is not None and not name.strip():
        raise InvalidInput(
            "principal",
            "is empty.",
            hint="Leave it out for all principals, or name one.",
        )
    return name


def _parse_grants(
    grants: Sequence[str], *, owner: bool, strongest: bool = False
) -> _Grants:
    """Parse grants.

    With `strongest`, the strongest of several roles in one namespace holds, as the claims of an access token may give.
    """
    parsed: dict[str, tuple[str, Role]] = {}
    for text in grants:
        name, role = parse_grant(text)
        key = names.key(name)
        if key in parsed and not strongest:
            raise InvalidInput(
                "grant", f"{name} is given twice.", hint="One role for each namespace."
            )
        if key not in parsed or stronger(role, parsed[key][1]):
            parsed[key] = name, role
    if owner and parsed:
        raise InvalidInput(
            "owner", "has every grant already.", hint="Leave out --grant."
        )
    if not owner and not parsed:
        raise InvalidInput(
            "grant",
            "is missing: the token could read nothing.",
            hint="--grant payments:writer",
        )
    by_key = {}
    patterns = []
    for key, (name, role) in parsed.items():
        if key.endswith("*"):
            patterns.append(PatternGrant(key[:-1], role))
        else:
            by_key[key] = name, role
    return _Grants(by_key, patterns)


async def _ensure_namespaces(
    context: RequestContext, requested: Sequence[str], *, limited: bool = False
) -> tuple[dict[str, UUID], list[str]]:
    """Return the ids of namespaces by the keys of their names, and the names of those that were created."""
    unique = list(dict.fromkeys(requested))
    if not unique:
        return {}, []
    store = context.memory.namespaces
    existing = {names.key(namespace.name) for namespace in await store.find(unique)}
    created = []
    for name in unique:
        if names.key(name) in existing:
            continue
        if limited:
            await require_new_namespace(
                context.memory.root.namespaces, context.caller.author, context.now
            )
        request = CreateNamespaceRequest(name=name)
        with suppress(Conflict):  # another process created it meanwhile
            created.append(await create_namespace(context, request))
    found = await store.find(unique)
    ids = {names.key(namespace.name): namespace.id for namespace in found}
    return ids, created


def _line(text: str, field: str) -> str:
    line = text.strip()
    fits = 1 <= len(line) <= MAX_NAME
    is_one_line = "\n" not in line and "\t" not in line
    if not fits or not is_one_line or clean(line).text != line:
        raise InvalidInput(
            field, f"must be one line of 1 to {MAX_NAME} characters that can be seen."
        )
    return line
