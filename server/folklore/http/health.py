"""Is it alive, is it ready: for those who start and watch servers. Answered to everybody, so they tell codes alone.

No address, no name, no count; a message of the database's may hold any of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from folklore import __version__
from folklore.errors import EmbedderUnavailable, FolkloreError

if TYPE_CHECKING:
    from folklore.app import App
    from folklore.runtime import Runtime

log = structlog.get_logger(__name__)

# An answer holds for so long, in seconds: however often somebody asks, the database is asked once.
_HOLDS = 1.0
# A start or a statement that takes longer counts as not there.
_PATIENCE = 5.0
# The model is looked at as often, and waited for as long.
_MODEL_HOLDS = 10.0
_MODEL_PATIENCE = 1.0

_SAID = {
    "starting": "Still starting.",
    "schema_behind": "The database lacks migrations, and this server's role may not apply them.",
    "schema_ahead": "The database was migrated by a newer Folklore.",
    "database_unavailable": "The database does not answer.",
    "engine_failed": "The embedded Postgres does not start.",
    "start_broken": "It does not start, for a reason that was not foreseen; the log says more.",
    "database_broken": "The database fails in a way that was not foreseen; the log says more.",
    "model_broken": "The embedding model fails in a way that was not foreseen; the log says more.",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What is missing (then nothing can be answered), and what recall must do without, by code."""

    engine: str | None = None
    missing: str | None = None
    degraded: tuple[str, ...] = ()

    def response(self) -> Response:
        """503 if something is missing, else 200."""
        if self.missing is not None:
            said = _SAID.get(self.missing, "Something it depends on is not there; the log says what.")
            return JSONResponse({"status": "unavailable", "missing": self.missing, "message": said}, 503)
        degraded = {"degraded": list(self.degraded)} if self.degraded else {}
        return JSONResponse({"status": "ready", "engine": self.engine, **degraded})


class Health:
    """The two questions, about one application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._looking: asyncio.Task[Report] | None = None
        self._looked_at = float("-inf")
        self._lacks: str | None = None
        self._probing: asyncio.Task[str | None] | None = None
        self._probed_at = float("-inf")

    async def alive(self, _request: Request) -> Response:
        """200 as long as the process answers."""
        return JSONResponse({"status": "ok", "version": __version__})

    async def ready(self, _request: Request) -> Response:
        """200 if recall and store can work, though perhaps without the model."""
        if self._looking is None or (self._looking.done() and monotonic() - self._looked_at > _HOLDS):
            self._looking = asyncio.create_task(self._look(), name="folklore-ready")
        return (await asyncio.shield(self._looking)).response()

    async def _look(self) -> Report:
        from folklore.db.migrate import check_schema

        part = "start"
        try:
            try:
                async with asyncio.timeout(_PATIENCE):
                    running = await self._app.ready()
                    part = "database"
                    await check_schema(running.database)
            except FolkloreError as error:
                return self._lacking(error.code, reason=error.message)
            except TimeoutError:
                code = "starting" if self._app.here is None else "database_unavailable"
                return self._lacking(code, reason="takes too long")
            part = "model"
            degraded = await self._model(running)
        except Exception as error:  # noqa: BLE001 - the outermost edge of a probe: whatever it is, we are not ready
            return self._lacking(f"{part}_broken", exc_info=error)
        finally:
            self._looked_at = monotonic()
        self._lacks = None
        return Report(running.where, degraded=() if degraded is None else (degraded,))

    def _lacking(self, code: str, **reason: object) -> Report:
        """The reason goes to the log, once; who asks is told the code."""
        if code != self._lacks:
            log.warning("not_ready", missing=code, **reason)
        self._lacks = code
        return Report(missing=code)

    async def _model(self, running: Runtime) -> str | None:
        """What the model's code is, as far as is known: one that answered is not asked again before it fails.

        A service that is being asked, and does not answer in time, counts as down until it does.
        """
        if self._probing is None or (self._probing.done() and monotonic() - self._probed_at > _MODEL_HOLDS):
            self._probing = asyncio.create_task(self._probe(running), name="folklore-ready-model")
        done, _ = await asyncio.wait({self._probing}, timeout=_MODEL_PATIENCE)
        return self._probing.result() if done else EmbedderUnavailable.code

    async def _probe(self, running: Runtime) -> str | None:
        embedder = running.memory.embedder
        try:
            if embedder is not None:
                await embedder.probe()
        except FolkloreError as error:
            return error.code
        else:
            return None
        finally:
            self._probed_at = monotonic()

    async def close(self) -> None:
        """Let go of what is still looking."""
        for task in (self._looking, self._probing):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
