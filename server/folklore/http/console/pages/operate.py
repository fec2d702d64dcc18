"""Operate: the checks of doctor, embedding models, indexes; for the owner jobs, sizes and backups."""

from starlette.responses import Response

from folklore.contract.health import BackupsRequest, ChecksRequest, SizesRequest
from folklore.contract.jobs import JobsRequest
from folklore.contract.models import EmbeddingsRequest
from folklore.http.console.visit import Visit
from folklore.jobs import definitions

# Backups and tables that are shown.
_BACKUPS = 20
_TABLES = 12


async def show(visit: Visit) -> Response:
    """Show the state of the server as far as the visitor may see it."""
    checks = await visit.call(ChecksRequest())
    embeddings = await visit.call(EmbeddingsRequest())
    owner = visit.is_owner
    return await visit.render(
        "operate.html",
        checks=checks,
        embeddings=embeddings,
        jobs=await visit.call(JobsRequest()) if owner else None,
        definitions=definitions.JOBS if owner else (),
        sizes=await visit.call(SizesRequest()) if owner else None,
        shown_tables=_TABLES,
        backups=(await visit.call(BackupsRequest()))[:_BACKUPS] if owner else None,
    )
