"""The probes /healthz and /readyz, open to every client: their answers hold codes only.

Neither an address nor a name nor a count; a message from the database may hold any of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from folklore import __version__
from folklore.app import App
from folklore.background import in_background
from folklore.disk import LITTLE_FREE, free_space
from folklore.errors import EmbedderUnavailable, FolkloreError
from folklore.log import get_logger

if TYPE_CHECKING:
    from folklore.db.distribute import SilentNode
    from folklore.db.stores.callers.principals import Principals
    from folklore.runtime import Runtime

# A server listens before the driver of the database is imported: the functions below import what reads the database.

log = get_logger(__name__)

# How long an answer is valid, in seconds: the database is asked once, however many probes come.
_VALID = 1.0
# A start or a statement that takes longer counts as failed.
_TIMEOUT = 5.0
# The same for the embedding model.
_MODEL_VALID = 10.0
# The same for the nodes of a cluster.
_NODES_VALID = 2.0
_MODEL_TIMEOUT = 1.0

_MESSAGES = {
    "starting": "Still starting.",
    "schema_behind": "The database lacks migrations, and this server's role may not apply them.",
    "schema_ahead": "The database was migrated by a newer Folklore.",
    "database_unavailable": "The database does not answer.",
    "database_unsuitable": "The encoding, the locale or a setting of the database is not what Folklore needs: UTF8, a UTF-8 "
    "locale, standard_conforming_strings and row_security on; `folklore doctor` names it, and what to do.",
    "role_not_complete": "Calls with a token fail: the role folklore_app is not complete (`folklore db role`).",
    "engine_failed": "The embedded Postgres does not start.",
    "data_missing": "The data directory of the embedded Postgres was removed.",
    "disk_full": "The disk of the embedded Postgres is full, and it does not start.",
    "start_broken": "The start fails with an unexpected error; the log shows more.",
    "database_broken": "The database fails with an unexpected error; the log shows more.",
    "model_broken": "The embedding model fails with an unexpected error; the log shows more.",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The code of what is missing (then no call can be answered), and of what recall must do without.

    `nodes` are the numbers of the cluster's nodes that do not answer: calls that need them fail.
    """

    engine: str | None = None
    missing: str | None = None
    degraded: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    def response(self) -> Response:
        """Return 503 if something is missing, else 200."""
        if self.missing is not None:
            message = _MESSAGES.get(
                self.missing,
                "A part that the server needs is missing; the log shows which.",
            )
            return JSONResponse(
                {"status": "unavailable", "missing": self.missing, "message": message},
                503,
            )
        answer: dict[str, object] = {"status": "ready", "engine": self.engine}
        if self.degraded:
            answer["degraded"] = list(self.degraded)
        if self.nodes:
            answer["nodes"] = list(self.nodes)
        return JSONResponse(answer)


class Health:
    """The endpoints of both probes, for one application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._checking: asyncio.Task[Report] | None = None
        self._checked_at = float("-inf")
        self._logged: str | None = None
        self._probing: asyncio.Task[str | None] | None = None
        self._probed_at = float("-inf")
        self._silent: list[SilentNode] = []
        self._nodes_asked_at = float("-inf")

    async def alive(self, _request: Request) -> Response:
        """Return 200 as long as the process answers."""
        return JSONResponse(
            {"status": "ok", "name": "folklore", "version": __version__}
        )

    async def ready(self, _request: Request) -> Response:
        """Return 200 if recall and store work, though perhaps without the model."""
        if _is_due(self._checking, self._checked_at + _VALID):
            self._checking = in_background(self._check(), "folklore-ready")
        assert self._checking is not None
        report = await asyncio.shield(self._checking)
        return report.response()

    async def _check(self) -> Report:
        try:
            report = await self._checked()
        finally:
            self._checked_at = monotonic()
        if report.missing is None:
            self._logged = None
        return report

    async def _checked(self) -> Report:
        from folklore.db.migrate import check_requirements, check_schema
        from folklore.db.stores.callers.principals import Principals

        part = "start"
        try:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    running = await self._app.ready()
                    part = "database"
                    await running.database.confirm_data()
                    await check_schema(running.database)
                    silent = await self._silent_nodes(running)
                    unmet = await check_requirements(running.database)
                    if any(requirement.hinders for requirement in unmet):
                        reason = " ".join(requirement.problem for requirement in unmet)
                        return self._missing("database_unsuitable", reason=reason)
                    if not await self._serves_tokens(Principals(running.database)):
                        return self._missing("role_not_complete")
            except FolkloreError as error:
                return self._missing(error.code, reason=error.message)
            except TimeoutError:
                code = "database_unavailable"
                if self._app.started is None:
                    code = "starting"
                return self._missing(code, reason="takes too long")

            part = "model"
            degraded = [
                await self._check_model(running),
                _full_disk(running, self._app.settings.home),
                "nodes_unreachable" if silent else None,
                *(requirement.code for requirement in unmet),
            ]
        except Exception as error:  # noqa: BLE001 - the outermost edge of a probe: any error means not ready
            return self._missing(f"{part}_broken", exc_info=error)
        return Report(
            running.where,
            degraded=tuple(code for code in degraded if code is not None),
            nodes=tuple(node.number for node in silent),
        )

    async def _silent_nodes(self, running: Runtime) -> list[SilentNode]:
        """Return the nodes of a cluster that do not answer, and log a change of them with their addresses."""
        database = running.database
        if not database.distributed:
            return []
        if monotonic() - self._nodes_asked_at > _NODES_VALID:
            from folklore.db.distribute import silent_nodes

            silent = await silent_nodes(database.dsn)
            if silent != self._silent:
                event = "nodes_unreachable" if silent else "nodes_reachable_again"
                log.warning(event, nodes=[str(node) for node in silent])
            self._silent = silent
            self._nodes_asked_at = monotonic()
        return self._silent

    async def _serves_tokens(self, principals: Principals) -> bool:
        """Return False if there may be requests with a token, and the database has no complete role for them."""
        settings = self._app.settings
        needs_role = (
            settings.http.authentication == "always"
            or settings.oauth.issuer is not None
            or await principals.any_limited(now=datetime.now(UTC))
        )
        return not needs_role or await principals.has_role()

    def _missing(self, code: str, **reason: object) -> Report:
        """Log the reason once; the client gets the code."""
        if code != self._logged:
            log.warning("not_ready", missing=code, **reason)
        self._logged = code
        return Report(missing=code)

    async def _check_model(self, running: Runtime) -> str | None:
        """Return the code of the model's failure, or None; a service that does not answer in time counts as down."""
        if _is_due(self._probing, self._probed_at + _MODEL_VALID):
            self._probing = in_background(self._probe(running), "folklore-ready-model")
        assert self._probing is not None
        done, _ = await asyncio.wait({self._probing}, timeout=_MODEL_TIMEOUT)
        if done:
            return self._probing.result()
        return EmbedderUnavailable.code

    async def _probe(self, running: Runtime) -> str | None:
        embedder = running.memory.embedder
        try:
            if embedder is not None:
                await embedder.probe()
        except FolkloreError as error:
            return error.code
        finally:
            self._probed_at = monotonic()
        return None

    async def close(self) -> None:
        """Cancel the checks that still run."""
        for task in (self._checking, self._probing):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})


def _is_due(task: asyncio.Task[Any] | None, until: float) -> bool:
    """Return True without a check that runs, or whose result is valid `until` later."""
    return task is None or (task.done() and monotonic() > until)


def _full_disk(running: Runtime, home: Path) -> str | None:
    """Return the code of a disk without room for writes, or with little; None for a Postgres elsewhere."""
    try:
        running.database.require_space()
    except FolkloreError as error:
        return error.code
    if running.where == "embedded" and free_space(home) < LITTLE_FREE:
        return "disk_low"
    return None
