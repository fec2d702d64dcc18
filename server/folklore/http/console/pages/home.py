"""Home: the projects, the newest memories."""

from __future__ import annotations

from starlette.responses import Response

from folklore.http.console.page_routes import get
from folklore.http.console.visit import Visit
from folklore.memory.requests import ListRequest, StatusRequest


async def show(visit: Visit) -> Response:
    """Show the projects that the caller may read, and the newest memories."""
    status = await visit.call(StatusRequest(check_model=False))
    newest = await visit.call(ListRequest(limit=10))
    return visit.render("home.html", status=status, newest=newest)


ROUTES = [get("/", show)]
