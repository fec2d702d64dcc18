"""Team: the visitor's own token; for the owner people, tokens and invitations; for administrators the audit log."""

from datetime import datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from starlette.responses import Response

from folklore import pip_install
from folklore.contract.ids import id_of
from folklore.contract.people import (
    TOKEN_PERIOD,
    AuditRequest,
    CallerRequest,
    CreateTokenRequest,
    InviteRequest,
    ListTokensRequest,
    RevokeTokensRequest,
)
from folklore.db.stores.events.audit import WRITES
from folklore.errors import InvalidInput, Refused
from folklore.http.console.visit import Visit
from folklore.model import Token

# Entries of the audit log on a page.
_ENTRIES = 50
_BACK = "Go back to the page Team."
# Periods in the form of the audit log.
_PERIODS = {
    "": "any time",
    "24h": "the last 24 hours",
    "7d": "the last 7 days",
    "30d": "the last 30 days",
}


async def show(visit: Visit) -> Response:
    """Show the visitor's own token, and to the owner the people and their tokens."""
    every = visit.query.get("all") == "1"
    if visit.is_owner:
        tokens = await visit.call(ListTokensRequest(all=every))
    else:
        tokens = ()
    people = {
        principal: list(group)
        for principal, group in groupby(tokens, lambda token: token.principal)
    }
    caller = await visit.call(CallerRequest())
    return await visit.render(
        "team.html",
        own=caller,
        people=people,
        every=every,
        state=_state,
        audited=_may_audit(visit),
        period=TOKEN_PERIOD,
    )


async def create(visit: Visit) -> Response:
    """Create a token, and show its secret once: in this answer, which no address and no log repeats."""
    owner = visit.form.get("owner") == "1"
    home = _given(visit, "home")
    agent = _given(visit, "agent")
    request = CreateTokenRequest(
        **_asked(visit), owner=owner, namespace=home, agent=agent
    )
    created = await visit.call(request)
    return await visit.render(
        "team_secret.html", created=created, invitation=None, line=""
    )


async def invite(visit: Visit) -> Response:
    """Create an invitation, and show its code once."""
    within = _given(visit, "within") or "3d"
    invitation = await visit.call(InviteRequest(**_asked(visit), within=within))
    line = f"FOLKLORE_INVITATION={invitation.code} folklore join {_own_address(visit)}"
    values: dict[str, Any] = {
        "invitation": invitation,
        "line": line,
        "install": pip_install(),
    }
    return await visit.render("team_secret.html", created=None, **values)


async def show_again(visit: Visit) -> Response:
    """Return to the page Team: the answer with a secret has no address of its own."""
    return visit.redirect("team")


async def confirm_revoke(visit: Visit) -> Response:
    """Show which tokens would be revoked."""
    ids, principal = _named(visit.query.get("id", ""), visit.query.get("person", ""))
    tokens = await visit.call(ListTokensRequest(principal=principal))
    return await visit.render(
        "team_revoke.html",
        tokens=[token for token in tokens if not ids or token.id in ids],
    )


async def revoke(visit: Visit) -> Response:
    """Revoke the tokens that the visitor saw."""
    ids = tuple(id_of(text, "id", _BACK) for text in visit.form.getlist("id"))
    await visit.call(RevokeTokensRequest(ids=ids))
    return visit.redirect("team", notice="revoked")


async def show_audit(visit: Visit) -> Response:
    """Show a page of the audit log: all of it to the owner, that of their projects to administrators."""
    query = visit.query
    cursor = query.get("after", "")
    # An empty list of namespaces is an error, since it is often a mistake; the default means all.
    scope = {"namespaces": namespaces} if (namespaces := _audited(visit)) else {}
    entries = await visit.call(
        AuditRequest(
            **scope,
            principal=query.get("person") or None,
            denied=query.get("denied") == "1",
            action=query.get("action") or None,
            since=query.get("since") or None,
            after=id_of(cursor, "cursor", _BACK) if cursor else None,
            limit=_ENTRIES + 1,
        )
    )
    filters = {
        name: query.get(name, "")
        for name in ("project", "person", "action", "since", "denied")
    }
    return await visit.render(
        "team_audit.html",
        entries=entries[:_ENTRIES],
        more=entries[_ENTRIES - 1].id if len(entries) > _ENTRIES else None,
        later=bool(cursor),
        filters=filters,
        actions=WRITES,
        periods=_PERIODS,
    )


def _state(token: Token, now: datetime) -> str:
    """Return the state of a token: invited, revoked, expired or valid."""
    if token.revoked_at is not None:
        return "revoked"
    ends = token.invited_until or token.expires_at
    if ends is not None and ends <= now:
        return "expired"
    return "valid" if token.invited_until is None else "invited"


def _administered(visit: Visit) -> tuple[str, ...]:
    access = visit.caller.access
    if access is None:
        return ()
    return tuple(grant.name for grant in access.grants if grant.role == "admin")


def _may_audit(visit: Visit) -> bool:
    return visit.is_owner or bool(_administered(visit))


def _audited(visit: Visit) -> tuple[str, ...]:
    """Return the namespaces whose entries are shown; none for all, with the entries that concern no namespace."""
    if project := visit.query.get("project", ""):
        return (project,)
    if not _may_audit(visit):
        raise Refused(
            "The audit log is for the owner, and for administrators of a project.",
            hint="The timeline shows the writes in the projects that you may read.",
        )
    return _administered(visit)


def _given(visit: Visit, name: str) -> str | None:
    return visit.form.get(name, "").strip() or None


def _asked(visit: Visit) -> dict[str, Any]:
    """Return what the forms of a token and of an invitation have in common."""
    lines = map(str.strip, visit.form.get("grants", "").splitlines())
    expires = _given(visit, "expires") or TOKEN_PERIOD
    return {
        "name": visit.form.get("name", ""),
        "grants": tuple(filter(None, lines)),
        "expires": expires,
    }


def _named(id_: str, principal: str) -> tuple[tuple[UUID, ...], str | None]:
    """Return the token or the principal that an address names. Raises InvalidInput."""
    if bool(id_) == bool(principal):
        raise InvalidInput(
            "id",
            "give a token or a person, one of the two.",
            hint="Choose a token on the page Team.",
        )
    if id_:
        return ((id_of(id_, "id", _BACK),), None)
    return ((), principal)


def _own_address(visit: Visit) -> str:
    """Return the address of this server as the visitor's browser has it: the proxy's, with its path prefix.

    The guard has compared the origin with the host. The prefix is in the address of the page with the form.
    """
    headers = visit.request.headers
    path = urlsplit(headers.get("referer", "")).path
    prefix = path.removesuffix("/team") if path.endswith("/team") else ""
    return f"{headers['origin']}{prefix}"
