"""The facts of a request: who calls, in which namespace and time zone. They are decided here, for all listeners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from folklore import memory
from folklore.app import App
from folklore.callers import Caller
from folklore.errors import DatabaseUnavailable, InvalidInput
from folklore.memory import Facts
from folklore.permissions import default_namespace, granted_names, role_in
from folklore.server.current_caller import current_caller
from folklore.server.requested import (
    AUTHOR,
    DIRECTORY,
    NAMESPACE,
    PARAMETER,
    current_listener,
    requested,
    requested_namespace,
    requested_zone,
)


@dataclass(frozen=True, slots=True)
class Callers:
    """The caller of a request, identified as its listener demands. The middleware answers those that it refuses."""

    app: App
    authenticator: Callable[[], memory.TokenAuthenticator]
    sessions: Callable[[], memory.ConsoleSessions]

    def this_user(self) -> Caller:
        """Return the user of this process, under the name that the request states: only for the user's own socket."""
        caller = self.app.caller
        return replace(caller, author=requested(AUTHOR) or caller.author)

    async def of_token(self, token: str | None, address: str) -> Caller:
        """Return the caller of a token, or without one where none is needed. Raises Unauthenticated."""
        return await self.authenticator().caller_of(token, address)

    async def of_session(self, secret: str, address: str) -> Caller:
        """Return the visitor of the console whose cookie holds a secret. Raises Unauthenticated."""
        return await self.sessions().find(secret, address)

    def invited(self) -> Caller:
        """Return the caller who exchanges an invitation, and may do nothing else."""
        return replace(memory.INVITED, may_write=self.app.caller.may_write)


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The facts of the current request, whose caller the middleware has identified.

    `own_namespace` is the setting for all projects of this user. The directory of a request counts for this user alone:
    that of another caller is on another machine.
    """

    app: App
    own_namespace: str | None = None

    def current(self) -> Facts:
        """Return the facts of the request. Raises Unavailable, and InvalidInput for a name that is not valid."""
        caller = _identified()
        now = self.app.now()
        if current_listener().is_own:
            return Facts(
                caller,
                now,
                requested_zone() or self.app.zone,
                namespace=self.namespace,
                project=self.namespace,
                project_at=self._project_at,
            )
        return Facts(
            caller,
            now,
            requested_zone() or self._zone,
            namespace=self.namespace,
            project=self._named,
        )

    def namespace(self) -> str:
        """Return the namespace of a request whose arguments name none. Raises InvalidInput without one."""
        if current_listener().is_own:
            return requested_namespace() or self.app.namespace()
        named = self._named()
        if named is None:
            missing = "is missing, and neither the request nor the token names one."
            raise InvalidInput("namespace", missing, hint=_ways(current_caller()))
        return named

    def _named(self) -> str | None:
        """Return the namespace that a request names outside its arguments; never that of the server's directory.

        In this order: the request's header or URL, the token's default, the setting `namespace` if the caller may read
        there. Raises InvalidInput for a requested name that is not valid.
        """
        caller = _identified()
        named = requested_namespace() or default_namespace(caller)
        if named is not None:
            return named
        setting = self.app.settings.namespace
        # Others may not learn its name.
        if setting is not None and role_in(caller, setting) is not None:
            return setting
        return None

    async def _project_at(self, directory: str) -> str:
        """Return the namespace of a directory of this user."""
        # A client whose namespace is set for all directories sends no directory (client/access.py).
        namespace_applies = requested(DIRECTORY) in (None, directory)
        if namespace_applies and requested_namespace() is not None:
            return self.namespace()
        return self.own_namespace or await self.app.repository_at(directory)

    @property
    def _zone(self) -> tzinfo:
        # Without the setting UTC: the machine's zone is not that of the callers.
        return UTC if self.app.settings.time_zone is None else self.app.zone


def _identified() -> Caller:
    """Return the current caller. Raises Unavailable if it could not be identified: then not even a name is shown."""
    caller = current_caller()
    if not caller.identified:
        raise DatabaseUnavailable(
            "The database or the token's issuer is unavailable, so the caller cannot be identified.",
            hint="Try again.",
        )
    return caller


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
