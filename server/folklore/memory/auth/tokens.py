"""Tokens: made, shown once, looked up on every call, revoked."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import get_args
from uuid import UUID

from folklore.db.stores.principals import Known, NewToken, Principals, Token
from folklore.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.namespaces import create
from folklore.memory.permissions import must_own, stronger
from folklore.model import Access, Caller, Role
from folklore.text import names
from folklore.text.clean import clean

PREFIX = "fk_"
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
_PERIOD = re.compile(r"([1-9][0-9]{0,4})\s*([hdwy])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "y": timedelta(days=365)}
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
_LONGEST = timedelta(days=36_500)
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token somebody asks for; `grants` are written namespace:role."""

    name: str
    grants: Sequence[str] = ()
    owner: bool = False
    namespace: str | None = None
    agent: str | None = None
    expires: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A new token. `secret` is shown now and never again; `created` are namespaces that were made for it."""

    id: UUID
    principal: str
    secret: str
    expires_at: datetime | None
    created: tuple[str, ...] = ()


def key_of(secret: str) -> str:
    """What proves to the database whose transaction it is: the SHA-256 of a token, in hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def digest_of(key: str) -> bytes:
    """What is kept of a key: its SHA-256."""
    return hashlib.sha256(bytes.fromhex(key)).digest()


async def create_token(library: MemoryContext, request: TokenRequest, *, caller: Caller, now: datetime) -> Made:
    """Make a token of 32 random bytes. Namespaces it opens that are not there are made.

    Raises InvalidInput, Refused (only the owner makes tokens).
    """
    must_own(caller)
    name = _local_name(request.name)
    agent = None if request.agent is None else _name(request.agent, "agent")
    wanted = _grants(request)
    expires_at = None if request.expires is None else now + period(request.expires, "expires")
    home = None if request.namespace is None else names.normalise(request.namespace)
    if home is not None and not request.owner and wanted.get(names.key(home), ("", "reader"))[1] == "reader":
        raise InvalidInput(
            "namespace",
            f"{home} is where the token would write, and it may not.",
            hint=f"Add --grant {home}:writer.",
        )
    spelled = [name for name, _ in wanted.values()] + ([home] if home is not None else [])
    ids, created = await _namespaces(library, spelled, caller=caller, now=now)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = NewToken(
        id=new_id(),
        principal=name,
        digest=digest_of(key_of(secret)),
        grants=[(ids[key], role) for key, (_, role) in wanted.items()],
        owner=request.owner,
        home=None if home is None else ids[names.key(home)],
        agent=agent,
        expires_at=expires_at,
    )
    principal = await Principals(library.database).create(token, principal_id=new_id(), caller=caller, now=now)
    return Made(token.id, principal, secret, expires_at, tuple(created))


async def vouch(
    library: MemoryContext,
    principal: str,
    grants: Sequence[str],
    *,
    key: str,
    owner: bool,
    issuer: str,
    expires_at: datetime,
    now: datetime,
) -> None:
    """Let an issuer's access token stand as a token of our own until it expires, with what its claims are worth.

    Raises Unauthenticated if they are worth nothing.
    """
    caller = Caller(author=f"issuer {issuer}")
    try:
        request = TokenRequest(_name(principal, "principal"), () if owner else tuple(dict.fromkeys(grants)), owner)
        wanted = _strongest(request)
    except InvalidInput as error:
        raise Unauthenticated("untrusted", f"This access token opens nothing here ({error.message}).") from error
    ids, _ = await _namespaces(library, [name for name, _ in wanted.values()], caller=caller, now=now)
    token = NewToken(
        id=new_id(),
        principal=request.name,
        digest=digest_of(key),
        grants=[(ids[name], role) for name, (_, role) in wanted.items()],
        owner=owner,
        issuer=issuer,
        expires_at=expires_at,
    )
    await Principals(library.database).create(token, principal_id=new_id(), caller=caller, now=now)


async def list_tokens(
    library: MemoryContext, *, caller: Caller, now: datetime, principal: str | None = None, every: bool = False
) -> list[Token]:
    """The tokens, without their secrets, which nobody knows. Raises Refused, InvalidInput."""
    _must_own_to_read(caller)
    return await Principals(library.database).tokens(now=now, principal=principal_of(principal), every=every)


async def revoke_tokens(
    library: MemoryContext, ids: Sequence[UUID], *, caller: Caller, now: datetime, principal: str | None = None
) -> list[tuple[UUID, str]]:
    """Revoke tokens by id, or all of a principal, from this moment on. Raises NotFound, InvalidInput, Refused."""
    must_own(caller)
    if bool(ids) == (principal is not None):
        raise InvalidInput("ids", "or a name say which tokens to revoke.", hint="Give exactly one of the two.")
    named = principal_of(principal)
    revoked = await Principals(library.database).revoke(ids=ids, principal=named, caller=caller, now=now)
    missing = set(ids) - {id_ for id_, _ in revoked}
    if missing or not revoked:
        which = f"the id {min(missing)}" if missing else f"the name {principal}"
        done = f"; {len(revoked)} of the others were revoked" if revoked else ""
        raise NotFound(f"No token in force has {which}{done}.", hint="`folklore tokens list` shows them.")
    return revoked


async def authenticate(principals: Principals, secret: str, *, now: datetime) -> tuple[Caller, Known]:
    """Whose token this is and what it opens. One statement.

    Raises Unauthenticated for one that is malformed, unknown, expired or revoked.
    """
    if not _TOKEN.fullmatch(secret):
        raise Unauthenticated("malformed", "This is no token of Folklore.", hint=f"One begins with {PREFIX}.")
    return await by_key(principals, key_of(secret), now=now)


async def by_key(principals: Principals, key: str, *, now: datetime) -> tuple[Caller, Known]:
    """As `authenticate`, by the token's key."""
    digest = digest_of(key)
    known = await principals.find(digest)
    if known is None or not hmac.compare_digest(known.digest, digest):
        raise Unauthenticated("unknown", "This token is not known here.", hint="Ask for a new one.")
    if known.revoked_at is not None:
        raise Unauthenticated("revoked", "This token was revoked.", hint="Ask for a new one.", who=known.principal)
    if known.expires_at is not None and known.expires_at <= now:
        raise Unauthenticated("expired", "This token has expired.", hint="Ask for a new one.", who=known.principal)
    access = None if known.owner else Access(known.id, key, known.grants)
    return Caller(known.principal, known.agent, access=access, token=known.id, home=known.home), known


def period(text: str, field: str) -> timedelta:
    """A time such as 12h, 90d, 8w or 1y. Raises InvalidInput."""
    found = _PERIOD.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidInput(field, f"{text[:40]!r} is not understood.", hint="Write 12h, 90d, 8w or 1y.")
    length = int(found[1]) * _UNITS[found[2]]
    if length > _LONGEST:
        raise InvalidInput(field, "is longer than a hundred years.", hint="Write 12h, 90d, 8w or 1y.")
    return length


def grant_of(text: str, field: str = "grant") -> tuple[str, Role]:
    """A namespace and a role out of namespace:role. Raises InvalidInput."""
    name, _, role = text.rpartition(":")
    if not name or role not in _ROLES:
        raise InvalidInput(
            field, f"{text!r} is not namespace:role.", hint=f"Roles are {', '.join(_ROLES)}: payments:writer."
        )
    return names.normalise(name, field=field), _ROLES[role]


def _grants(request: TokenRequest) -> dict[str, tuple[str, Role]]:
    """The namespaces asked for, by the keys of their names."""
    wanted: dict[str, tuple[str, Role]] = {}
    for text in request.grants:
        name, role = grant_of(text)
        key = names.key(name)
        if key in wanted:
            raise InvalidInput("grant", f"{name} is given twice.", hint="One role for each namespace.")
        wanted[key] = name, role
    if request.owner and wanted:
        raise InvalidInput("owner", "opens everything already.", hint="Leave out --grant.")
    if not request.owner and not wanted:
        raise InvalidInput("grant", "is missing: the token would open nothing.", hint="--grant payments:writer")
    return wanted


def _strongest(request: TokenRequest) -> dict[str, tuple[str, Role]]:
    """As `_grants`; of several roles in one namespace, as claims may give them, the strongest counts."""
    best: dict[str, str] = {}
    for text in request.grants:
        name, role = grant_of(text)
        key = names.key(name)
        held = best.get(key)
        if held is None or stronger(role, grant_of(held)[1]):
            best[key] = text
    return _grants(replace(request, grants=tuple(best.values())))


async def _namespaces(
    library: MemoryContext, spelled: Sequence[str], *, caller: Caller, now: datetime
) -> tuple[dict[str, UUID], list[str]]:
    """The ids of namespaces by the keys of their names, and the names of those that had to be made."""
    wanted = list(dict.fromkeys(spelled))
    if not wanted:
        return {}, []
    known = {names.key(notebook.name) for notebook in await library.namespaces.notebooks(wanted)}
    created = []
    for name in wanted:
        if names.key(name) not in known:
            with suppress(Conflict):  # somebody else has made it meanwhile
                created.append(await create(library, name, caller=caller, now=now))
    return {names.key(notebook.name): notebook.id for notebook in await library.namespaces.notebooks(wanted)}, created


def principal_of(name: str | None) -> str | None:
    """The principal asked for, or everybody. Raises InvalidInput for an empty name, which is nobody's."""
    if name is not None and not name.strip():
        raise InvalidInput("principal", "the name is empty.", hint="Leave it out for everybody, or say whose.")
    return name


def _name(text: str, field: str) -> str:
    cleaned = clean(text).text.strip()
    if not 1 <= len(cleaned) <= MAX_NAME or "\n" in cleaned:
        raise InvalidInput(field, f"must be one line of 1 to {MAX_NAME} characters.")
    return cleaned


def _local_name(text: str) -> str:
    """Return a name that no principal of an identity provider has: those are `subject <issuer>`."""
    name = _name(text, "name")
    if "://" in name:
        raise InvalidInput("name", 'must not contain "://".', hint="Principals of an identity provider contain it.")
    return name


def _must_own_to_read(caller: Caller) -> None:
    if caller.access is not None:
        must_own(caller)
