"""The request context of a process that serves many callers: each call runs as its own caller."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from folklore.app import App
from folklore.db.stores.audit import Audit
from folklore.errors import DatabaseUnavailable, FolkloreError, InvalidInput
from folklore.http.namespace import HEADER, PARAMETER, requested_namespace
from folklore.memory.auth.authenticator import NOBODY, Issuer, TokenAuthenticator
from folklore.memory.auth.current_caller import present_caller
from folklore.memory.auth.denial_log import Denial, DenialLog
from folklore.memory.context import MemoryContext
from folklore.memory.permissions import role_in, writing_home
from folklore.memory.request_context import RequestContext
from folklore.model import Caller


@dataclass(frozen=True, slots=True)
class Team:
    """The context that the edges of such a process work with; `keeper` authenticates callers."""

    app: App
    host: RequestContext
    keeper: TokenAuthenticator
    refusals: DenialLog

    @classmethod
    def of(cls, app: App, issuer: Issuer | None = None) -> Team:
        """Make one over a running (or starting) application; the caller closes both."""

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
            return current_namespace(_somebody(present_caller()), app.settings.namespace)

        demand = app.settings.http.authentication
        refusals = DenialLog(record)
        return cls(
            app,
            replace(app.host, library=library, caller=present_caller, namespace=namespace, refused=refused),
            TokenAuthenticator(whole, demand=demand, local=lambda: app.caller, now=app.now, issuer=issuer),
            refusals,
        )

    def refused(self, caller: Caller, action: str, error: FolkloreError, reason: str) -> None:
        """Note a request that was not authenticated."""
        self.refusals.note(caller, action, error, now=self.app.now(), reason=reason)

    async def close(self) -> None:
        """Write pending entries; called before the application closes."""
        await self.refusals.close()
        await self.keeper.close()


def _somebody(caller: Caller) -> Caller:
    """Return the caller. Raises Unavailable if the caller could not be identified: then not even a name is shown."""
    if caller is NOBODY:
        raise DatabaseUnavailable(
            "The database is unavailable, or your token's issuer: it cannot be found out who calls.", hint="Try again."
        )
    return caller


def current_namespace(caller: Caller, setting: str | None) -> str:
    """Return the namespace of the current request where its call names none; never that of the server's directory.

    In this order: what the request names in its header or URL, the token's default, the setting `namespace` if the
    caller may read there. Raises InvalidInput that names the ways, or that says what is wrong with a requested name.
    """
    if (requested := requested_namespace()) is not None:
        return requested
    if (home := writing_home(caller)) is not None:
        return home
    if setting is not None and role_in(caller, setting) is not None:  # else not even its name is for this caller
        return setting
    raise InvalidInput("namespace", "is missing, and neither the request nor the token names one.", hint=_ways(caller))


def _ways(caller: Caller) -> str:
    if caller.access is None:
        where = "repo:owner/name for a repository"
    else:
        where = ", ".join(grant.name for grant in caller.access.grants if grant.role != "reader")
        if not where:
            return "Your token may only read."
    return (
        f"Pass namespace ({where}), send the header {HEADER}, add ?{PARAMETER}=NAME to the server's URL,"
        " or use a token with a default (`folklore tokens create --namespace`)."
    )
