"""Operate: the checks of doctor, embedding models, indexes; for the owner jobs, sizes and backups."""

from typing import Any

from starlette.responses import Response

from folklore.contract.health import BackupsRequest, ChecksRequest, SizesRequest
from folklore.contract.jobs import JobsRequest
from folklore.contract.models import EmbeddingsRequest
from folklore.jobs import definitions
from folklore.server.console.visit import Visit

# Backups and tables that are shown.
_BACKUPS = 20
_TABLES = 12


async def show(visit: Visit) -> Response:
    """Show the state of the server as far as the visitor may see it."""
    owners_part: dict[str, Any] = {
        "jobs": None,
        "definitions": (),
        "sizes": None,
        "backups": None,
    }
    checks = await visit.call(ChecksRequest())
    embeddings = await visit.call(EmbeddingsRequest())
    if visit.is_owner:
        backups = await visit.call(BackupsRequest())
        owners_part = {
            "jobs": await visit.call(JobsRequest()),
            "definitions": definitions.JOBS,
            "sizes": await visit.call(SizesRequest()),
            "backups": backups[:_BACKUPS],
        }
    return await visit.render(
        "operate.html",
        checks=checks,
        embeddings=embeddings,
        shown_tables=_TABLES,
        **owners_part,
    )
