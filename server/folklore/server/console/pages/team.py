"""Team: the visitor's own token; for the owner people, tokens and invitations; for administrators the audit log."""

from collections import defaultdict
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from folklore import pip_install
from folklore.callers import Token
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
from folklore.server.console.visit import Visit

# Entries of the audit log on a page.
_ENTRIES = 50
_BACK = "Go back to the page Team."
# Inputs of the form of the audit log, and the periods in it.
_FILTERS = ("project", "person", "action", "since", "denied")
_PERIODS = {
    "": "any time",
    "24h": "the last 24 hours",
    "7d": "the last 7 days",
    "30d": "the last 30 days",
}


async def show(visit: Visit) -> Response:
    """Show the visitor's own token, and to the owner the people and their tokens."""
    every = visit.query.get("all") == "1"
    tokens: tuple[Token, ...] = ()
    if visit.is_owner:
        tokens = await visit.call(ListTokensRequest(all=every))
    people = defaultdict[str, list[Token]](list)
    for token in tokens:
        people[token.principal].append(token)
    return await visit.render(
        "team.html",
        own=await visit.call(CallerRequest()),
        people=people,
        every=every,
        state=_state,
        audited=_may_audit(visit),
        period=TOKEN_PERIOD,
    )


async def create(visit: Visit) -> Response:
    """Create a token, and show its secret once: in this answer, which no address and no log repeats."""
    request = CreateTokenRequest(
        **_common_values(visit),
        owner=visit.form.get("owner") == "1",
        namespace=_value(visit, "home"),
        agent=_value(visit, "agent"),
    )
    created = await visit.call(request)
    return await visit.render(
        "team_secret.html", created=created, invitation=None, line=""
    )


async def invite(visit: Visit) -> Response:
    """Create an invitation, and show its code once."""
    within = _value(visit, "within") or "3d"
    invitation = await visit.call(InviteRequest(**_common_values(visit), within=within))
    line = f"FOLKLORE_INVITATION={invitation.code} folklore join {_own_address(visit)}"
    return await visit.render(
        "team_secret.html",
        created=None,
        invitation=invitation,
        line=line,
        install=pip_install(),
    )


async def show_again(visit: Visit) -> Response:
    """Return to the page Team: the answer with a secret has no address of its own."""
    return visit.redirect("team")


async def confirm_revoke(visit: Visit) -> Response:
    """Show which tokens would be revoked: one, or all of a person. Raises InvalidInput."""
    id_ = visit.query.get("id", "")
    person = visit.query.get("person", "")
    if bool(id_) == bool(person):
        raise InvalidInput(
            "id",
            "give a token or a person, one of the two.",
            hint="Choose a token on the page Team.",
        )
    if id_:
        wanted = id_of(id_, "id", _BACK)
        tokens = await visit.call(ListTokensRequest())
        tokens = tuple(token for token in tokens if token.id == wanted)
    else:
        tokens = await visit.call(ListTokensRequest(principal=person))
    return await visit.render("team_revoke.html", tokens=tokens)


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
    namespaces = _audited(visit)
    scope = {"namespaces": namespaces} if namespaces else {}
    request = AuditRequest(
        **scope,
        principal=query.get("person") or None,
        denied=query.get("denied") == "1",
        action=query.get("action") or None,
        since=query.get("since") or None,
        after=id_of(cursor, "cursor", _BACK) if cursor else None,
        limit=_ENTRIES + 1,
    )
    entries = await visit.call(request)
    page = entries[:_ENTRIES]
    return await visit.render(
        "team_audit.html",
        entries=page,
        more=page[-1].id if len(entries) > _ENTRIES else None,
        later=bool(cursor),
        filters={name: query.get(name, "") for name in _FILTERS},
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
    if token.invited_until is not None:
        return "invited"
    return "valid"


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


def _value(visit: Visit, name: str) -> str | None:
    """Return the text of an input; None without one."""
    return visit.form.get(name, "").strip() or None


def _common_values(visit: Visit) -> dict[str, Any]:
    """Return what the forms of a token and of an invitation have in common."""
    grants = [line.strip() for line in visit.form.get("grants", "").splitlines()]
    return {
        "name": visit.form.get("name", ""),
        "grants": tuple(grant for grant in grants if grant),
        "expires": _value(visit, "expires") or TOKEN_PERIOD,
    }


def _own_address(visit: Visit) -> str:
    """Return the address of this server as the visitor's browser has it: the proxy's, with its path prefix.

    The guard has compared the origin with the host. The prefix is in the address of the page with the form.
    """
    origin: str = visit.request.headers["origin"]
    path = urlsplit(visit.request.headers.get("referer", "")).path
    if not path.endswith("/team"):
        return origin
    return origin + path.removesuffix("/team")
