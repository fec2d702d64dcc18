"""State that all requests to one server share: each request runs as the caller whom its listener admitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from folklore import memory
from folklore.app import App
from folklore.callers import Caller
from folklore.errors import FolkloreError
from folklore.memory import Denial, DenialLog, Memory, Service, TokenWatch
from folklore.server.current_caller import current_caller
from folklore.server.facts import RequestFacts
from folklore.server.requested import current_listener


@dataclass(frozen=True)
class ServerContext:
    """The service, the authenticator, the denial log, and the watch over streams of one server."""

    app: App
    service: Service
    denials: DenialLog
    watch: TokenWatch
    issuer: memory.Issuer | None
    check_without_token: Callable[[], None]

    @classmethod
    def of(
        cls,
        app: App,
        issuer: memory.Issuer | None = None,
        check_without_token: Callable[[], None] = lambda: None,
        own_namespace: str | None = None,
    ) -> ServerContext:
        """Make one over a running (or starting) application; the caller closes both.

        `check_without_token` is that of the authenticator, `own_namespace` that of RequestFacts.
        """

        async def record(denial: Denial, count: int, at: datetime) -> None:
            if app.settings.read_only:
                return
            from folklore.db.stores.events.audit import NOWHERE, audit_entry

            context = await app.memory()
            namespace_id = NOWHERE
            if denial.namespace is not None:
                for namespace in await context.namespaces.find([denial.namespace]):
                    namespace_id = namespace.id
            entry = audit_entry(
                denial.action,
                caller=denial.caller,
                namespace=namespace_id,
                outcome=denial.outcome,
                detail=denial.detail,
                now=at,
                amount=count,
            )
            await context.database.rows("audit/insert", **entry)

        def denied(operation: str, error: FolkloreError) -> None:
            if not current_listener().is_own:  # nobody denies this user anything
                denials.note(current_caller(), operation, error, now=app.now())

        denials = DenialLog(record)
        facts = RequestFacts(app, own_namespace)
        whole = Memory(app.open, lambda: app.usage, denied)
        service = Service(whole, facts.current, current_caller, facts.namespace)
        watch = TokenWatch(app.memory, app.now)
        return cls(app, service, denials, watch, issuer, check_without_token)

    @cached_property
    def authenticator(self) -> memory.TokenAuthenticator:
        """The authenticator of callers by their tokens."""
        return memory.TokenAuthenticator(
            self.app.memory,
            demand=self.app.settings.http.authentication,
            local=lambda: self.app.caller,
            now=self.app.now,
            issuer=self.issuer,
            check_without_token=self.check_without_token,
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
        if "authenticator" in vars(self):
            await self.authenticator.close()
