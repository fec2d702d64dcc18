"""One process that serves many: each call as whoever it is from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from folklore.app import App
from folklore.db.stores.audit import Audit
from folklore.errors import DatabaseUnavailable, FolkloreError, InvalidInput
from folklore.memory.auth.authenticator import NOBODY, Issuer, TokenAuthenticator
from folklore.memory.auth.current_caller import present_caller
from folklore.memory.auth.denial_log import Denial, DenialLog
from folklore.memory.context import MemoryContext
from folklore.memory.permissions import writing_home
from folklore.memory.request_context import RequestContext
from folklore.model import Caller


@dataclass(frozen=True, slots=True)
class Team:
    """What the edges of such a process work with; `keeper` lets callers in."""

    app: App
    host: RequestContext
    keeper: TokenAuthenticator
    refusals: DenialLog

    @classmethod
    def of(cls, app: App, issuer: Issuer | None = None) -> Team:
        """Over a running (or starting) application; its user close both."""

        async def whole() -> MemoryContext:
            return (await app.ready()).library

        async def library() -> MemoryContext:
            opened = (await app.host.library()).opened_to(present_caller().access)
            _somebody(present_caller())
            return opened

        async def record(refusal: Denial, count: int, at: datetime) -> None:
            if not app.settings.read_only:
                await Audit((await whole()).database).refused(
                    refusal.action,
                    caller=refusal.caller,
                    now=at,
                    amount=count,
                    outcome=refusal.outcome,
                    detail=refusal.detail,
                )

        def refused(action: str, error: FolkloreError) -> None:
            refusals.note(present_caller(), action, error, now=app.now())

        def namespace() -> str:
            caller = _somebody(present_caller())
            return app.namespace() if caller.token is None else _home(caller)

        demand = app.settings.http.authentication
        refusals = DenialLog(record)
        return cls(
            app,
            replace(app.host, library=library, caller=present_caller, namespace=namespace, refused=refused),
            TokenAuthenticator(whole, demand=demand, local=lambda: app.caller, now=app.now, issuer=issuer),
            refusals,
        )

    def refused(self, caller: Caller, action: str, error: FolkloreError, reason: str) -> None:
        """Somebody was not let in."""
        self.refusals.note(caller, action, error, now=self.app.now(), reason=reason)

    async def close(self) -> None:
        """Write what is left to write; comes before the application's end."""
        await self.refusals.close()
        await self.keeper.close()


def _somebody(caller: Caller) -> Caller:
    """Raises Unavailable where it could not be found out who calls: nothing is open to nobody, not even a name."""
    if caller is NOBODY:
        raise DatabaseUnavailable(
            "The database is unavailable, or your token's issuer: it cannot be found out who calls.", hint="Try again."
        )
    return caller


def _home(caller: Caller) -> str:
    """Where this caller writes when he does not say. Raises InvalidInput if that is not clear."""
    if (home := writing_home(caller)) is not None:
        return home
    if caller.access is None:
        hint = "An owner's token may write to any."
    else:
        own = ", ".join(grant.name for grant in caller.access.grants if grant.role != "reader")
        hint = f"It may write to {own}." if own else "It may only read."
    raise InvalidInput("namespace", "is missing, and your token has no default.", hint=hint)
