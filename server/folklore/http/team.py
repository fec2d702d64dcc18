"""The service of a server that serves many callers: each request runs as its authenticated caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from folklore.app import App
from folklore.db.stores.events.audit import NOWHERE, audit_entry
from folklore.errors import DatabaseUnavailable, FolkloreError, InvalidInput
from folklore.http.requested import (
    NAMESPACE,
    PARAMETER,
    requested_namespace,
    requested_zone,
)
from folklore.memory.auth.authenticator import Issuer, TokenAuthenticator
from folklore.memory.auth.current_caller import current_caller
from folklore.memory.auth.denial_log import Denial, DenialLog
from folklore.memory.auth.token_watch import TokenWatch
from folklore.memory.context import RequestContext
from folklore.memory.permissions import default_namespace, granted_names, role_in
from folklore.memory.service import Service
from folklore.model import Caller


@dataclass(frozen=True, slots=True)
class Team:
    """The service, the authenticator, the denial log, and the watch over streams of such a server."""

    app: App
    service: Service
    authenticator: TokenAuthenticator
    denials: DenialLog
    watch: TokenWatch

    @classmethod
    def of(
        cls,
        app: App,
        issuer: Issuer | None = None,
        require_local: Callable[[], None] = lambda: None,
    ) -> Team:
        """Make one over a running (or starting) application; the caller closes both.

        `require_local` is that of the authenticator.
        """

        async def open_context() -> RequestContext:
            return await app.context(
                _identified(), namespace, project, requested_zone() or zone
            )

        async def record(denial: Denial, count: int, at: datetime) -> None:
            if app.settings.read_only:
                return
            memory = await app.memory()
            name = denial.namespace
            namespaces = [] if name is None else await memory.namespaces.find([name])
            place = namespaces[0].id if namespaces else NOWHERE
            values: dict[str, Any] = {
                "outcome": denial.outcome,
                "detail": denial.detail,
                "now": at,
                "amount": count,
            }
            entry = audit_entry(
                denial.action, caller=denial.caller, namespace=place, **values
            )
            await memory.database.rows("audit/insert", **entry)

        def denied(operation: str, error: FolkloreError) -> None:
            denials.note(current_caller(), operation, error, now=app.now())

        def project() -> str | None:
            return named_namespace(_identified(), app.settings.namespace)

        def namespace() -> str:
            if (named := project()) is None:
                missing = "is missing, and neither the request nor the token names one."
                raise InvalidInput("namespace", missing, hint=_ways(current_caller()))
            return named

        # Without the setting UTC: the machine's zone is not that of the callers.
        zone = UTC if app.settings.time_zone is None else app.zone
        denials = DenialLog(record)
        service = Service(
            open_context, current_caller, namespace, lambda: app.usage, denied
        )
        authenticator = TokenAuthenticator(
            app.memory,
            demand=app.settings.http.authentication,
            local=lambda: app.caller,
            now=app.now,
            issuer=issuer,
            require_local=require_local,
        )
        return cls(
            app, service, authenticator, denials, TokenWatch(app.memory, app.now)
        )

    def denied(
        self, caller: Caller, action: str, error: FolkloreError, reason: str
    ) -> None:
        """Log a request that was not authenticated."""
        self.denials.note(caller, action, error, now=self.app.now(), reason=reason)

    async def close(self) -> None:
        """Write pending entries; called before the application closes."""
        await self.watch.close()
        await self.denials.close()
        await self.authenticator.close()


def _identified() -> Caller:
    """Return the current caller. Raises Unavailable if it could not be identified: then not even a name is shown."""
    caller = current_caller()
    if not caller.identified:
        raise DatabaseUnavailable(
            "The database or the token's issuer is unavailable, so the caller cannot be identified.",
            hint="Try again.",
        )
    return caller


def named_namespace(caller: Caller, setting: str | None) -> str | None:
    """Return the namespace that a request names outside its arguments, or None; never that of the server's directory.

    In this order: the request's header or URL, the token's default, the setting `namespace` if the caller may read
    there. Raises InvalidInput for a requested name that is not valid.
    """
    if (requested := requested_namespace()) is not None:
        return requested
    if (home := default_namespace(caller)) is not None:
        return home
    # others may not learn its name
    if setting is not None and role_in(caller, setting) is not None:
        return setting
    return None


def _ways(caller: Caller) -> str:
    if caller.access is None:
        where = "repo:owner/name for a repository"
    else:
        where = ", ".join(granted_names(caller.access, "writer"))
        if not where:
            return "Your token may only read."
    return (
        f"Pass namespace ({where}), send the header {NAMESPACE}, add ?{PARAMETER}=NAME to the server's URL,"
        " or use a token with a default (`folklore tokens create --namespace`)."
    )
