"""The limit of namespaces that a person may create in an hour."""

from __future__ import annotations

from datetime import datetime, timedelta

from folklore.db.stores.namespaces import Namespaces
from folklore.errors import RateLimited

# New namespaces of one principal an hour, by stores into missing ones and by claims of access tokens.
MAX_NEW = 100


async def require_new_namespace(
    namespaces: Namespaces, principal: str, now: datetime
) -> None:
    """Check that a principal who is not the owner may create a namespace now. One statement. Raises RateLimited."""
    if (
        await namespaces.created(author=principal, since=now - timedelta(hours=1))
        >= MAX_NEW
    ):
        hint = (
            "Store into one of them, or wait; the owner of the server may create more."
        )
        raise RateLimited(
            f"{principal} created {MAX_NEW} namespaces within an hour, which is the most.",
            hint=hint,
        )
