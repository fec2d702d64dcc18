"""Invitations: a code that is exchanged once, within days, for a token.

The code is sent in a chat, where others may read it later; the token is not. The machine of the invited person makes
the secret of the token and sends only its digest, so that an exchange whose answer was lost can be repeated.
"""

import re
import secrets
from datetime import timedelta

from folklore.contract.people import Invitation, InviteRequest, JoinRequest, Membership
from folklore.contract.token_secrets import INVITATION, digest_of, key_of
from folklore.db.stores.callers.principals import NewInvitation, Principals
from folklore.errors import ConcurrentChange, Conflict, InvalidInput, Unauthenticated
from folklore.memory.auth.tokens import period, prepare_token
from folklore.memory.context import RequestContext
from folklore.new_ids import new_id
from folklore.permissions import require_writable

_CODE = re.compile(rf"{INVITATION}[A-Za-z0-9_-]{{22}}")
_LONGEST = timedelta(days=30)
_ANEW = "Ask for a new one."
_REFUSALS = {
    "unknown": (
        "This invitation is not known at this server.",
        "Check the address, and copy the whole line.",
    ),
    "used": (
        "This invitation was used already.",
        f"{_ANEW} If it was not you, say so to its sender, who can revoke the token (`folklore tokens revoke`).",
    ),
    "expired": ("This invitation has expired.", _ANEW),
    "revoked": ("This invitation was revoked.", _ANEW),
}


async def invite(context: RequestContext, request: InviteRequest) -> Invitation:
    """Create an invitation, its token, and the namespaces of its grants that do not exist.

    Raises InvalidInput, Refused.
    """
    within = period(request.within, "within")
    if within > _LONGEST:
        raise InvalidInput(
            "within", f"must be at most {_LONGEST.days} days.", hint="Default: 3d."
        )
    code = INVITATION + secrets.token_urlsafe(16)
    # No secret has the digest of random bytes: the token opens nothing before the exchange.
    prepared = await prepare_token(context, request, digest=secrets.token_bytes(32))
    token = prepared.token
    invitation = NewInvitation(digest_of(key_of(code)), context.now + within)
    principal = await Principals(context.memory.database).create(
        token,
        principal_id=new_id(),
        caller=context.caller,
        now=context.now,
        invitation=invitation,
    )
    return Invitation(
        token.id,
        principal,
        code,
        invitation.expires_at,
        token.expires_at,
        prepared.created_namespaces,
        prepared.usable,
    )


async def join(context: RequestContext, request: JoinRequest) -> Membership:
    """Exchange the code of an invitation for its token, in one transaction. The same request again changes nothing.

    The caller needs no token. Raises Unauthenticated for a code that is unknown, used, expired or revoked; Conflict for
    a digest in use.
    """
    require_writable(context.caller)
    if not _CODE.fullmatch(request.code):
        hint = f"Codes begin with {INVITATION}. Copy the whole line."
        raise Unauthenticated(
            "malformed", "This is not the code of an invitation.", hint=hint
        )
    try:
        result = await Principals(context.memory.root.database).redeem(
            digest_of(key_of(request.code)),
            digest=bytes.fromhex(request.digest),
            now=context.now,
        )
    except ConcurrentChange as error:
        raise Conflict(
            "This secret belongs to another token.",
            hint="Send the digest of a new one.",
        ) from error
    if result.outcome in _REFUSALS:
        message, hint = _REFUSALS[result.outcome]
        raise Unauthenticated(
            result.outcome, message, hint=hint, principal=result.principal
        )
    return Membership(str(result.principal))
