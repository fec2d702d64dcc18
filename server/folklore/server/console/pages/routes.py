"""Routes of the console: the pages, the static files, and the call of a page."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import quote

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from folklore.contract.transfer import ExportRequest
from folklore.errors import FolkloreError, InvalidInput, NotFound, Refused, field_errors
from folklore.memory import ConsoleSessions, Service, form_token
from folklore.server.console.guard import Visitor, cookie_name
from folklore.server.console.pages import (
    home,
    injected,
    memory,
    memory_changes,
    operate,
    project,
    projects,
    review,
    search,
    team,
    timeline,
    why,
)
from folklore.server.console.pages.live import LiveFeed
from folklore.server.console.pages.signing_in import SigningIn
from folklore.server.console.render import static_files
from folklore.server.console.visit import (
    TOKEN_FIELD,
    TOKEN_HEADER,
    Handler,
    Visit,
    error_page,
    form_again,
    is_from_script,
    read_form,
)
from folklore.server.error_responses import Path
from folklore.server.limits import LIVE_PATH
from folklore.server.server_context import ServerContext
from folklore.server.transfers import Exports
from folklore.text import names

Endpoint = Callable[[Request], Awaitable[Response]]

_CACHING = "public, max-age=31536000, immutable"


class PageRoute(NamedTuple):
    """Path below the console with its handlers. A GET changes nothing; a POST comes from a form of the console."""

    path: str
    get: Handler | None
    post: Handler | None = None


PAGES = [
    PageRoute(*row)
    for row in (
        ("/", home.show),
        ("/injected", injected.show),
        ("/memories/{id}", memory.show),
        ("/new", memory_changes.new, memory_changes.store),
        ("/memories/{id}/edit", memory_changes.edit, memory_changes.save),
        ("/memories/{id}/pin", None, memory_changes.pin),
        ("/memories/{id}/cue", None, memory_changes.add_cue),
        ("/memories/{id}/uncue", None, memory_changes.remove_cue),
        ("/memories/{id}/undo", memory_changes.ask_undo, memory_changes.undo),
        ("/memories/{id}/forget", memory_changes.ask_forget, memory_changes.forget),
        ("/memories/{id}/erase", memory_changes.ask_erase, memory_changes.erase),
        (
            "/memories/{id}/supersede",
            memory_changes.ask_supersede,
            memory_changes.supersede,
        ),
        ("/memories/{id}/relate", memory_changes.choose, memory_changes.relate),
        ("/memories/{id}/unrelate", None, memory_changes.unrelate),
        ("/memories/{id}/merge", memory_changes.choose, memory_changes.merge),
        ("/operate", operate.show),
        ("/project", project.show),
        ("/project/rename", None, project.rename),
        ("/project/describe", None, project.describe),
        ("/project/share", None, project.share),
        ("/project/tag", project.ask_rename_tag, project.rename_tag),
        ("/project/merge", project.ask_merge, project.merge),
        ("/project/delete", project.ask_delete, project.delete),
        ("/project/erase", project.ask_erase, project.erase),
        ("/projects", projects.show, projects.create),
        ("/projects/restore", None, projects.restore),
        ("/projects/import", projects.show_import, projects.import_file),
        ("/review", review.show),
        ("/review/statement", None, review.store_or_drop),
        ("/review/preview", None, review.preview),
        ("/review/apply", None, review.apply),
        ("/review/undo", None, review.undo),
        ("/search", search.show),
        ("/team", team.show),
        ("/team/tokens", team.show_again, team.create),
        ("/team/invitations", team.show_again, team.invite),
        ("/team/revoke", team.confirm_revoke, team.revoke),
        ("/team/audit", team.show_audit),
        ("/timeline", timeline.show),
        ("/why", why.show),
    )
]


def console_routes(
    server: ServerContext, sessions: ConsoleSessions, exports: Exports
) -> list[BaseRoute]:
    """Return the routes of the console."""
    signing_in = SigningIn(server, sessions)
    live = LiveFeed(server, sessions)

    async def export(visit: Visit) -> Response:
        name = names.normalise(visit.query.get("project", ""), field="project")
        answer = await exports.answer(ExportRequest(namespaces=(name,)))
        answer.headers["content-disposition"] = (
            f"attachment; filename*=utf-8''{quote(name, safe='')}.jsonl"
        )
        return answer

    page = partial(_page, server.service)
    sign_in = None if sessions.by_link_alone else signing_in.sign_in
    routes: list[BaseRoute] = [
        Route("/static/{version}/{name}", _static),
        _route("/sign-in", signing_in.show, sign_in),
        _route("/open", signing_in.open, signing_in.confirm_open),
        _route(LIVE_PATH, page(live.show)),
        _route("/project/export", page(export)),
        _route("/sign-out", None, page(signing_in.sign_out)),
    ]
    for path, get, post in PAGES:
        routes.append(_route(path, get and page(get), post and page(post)))
    return routes


def is_console(scope: Scope) -> bool:
    """Return True for a path of the console: that of a page, or what a browser or a session gets of no machine."""
    beginning = _beginning(scope["path"])
    if beginning in _BEGINNINGS:
        return True
    if scope["method"] != "GET" or beginning in _MACHINES:
        return False
    request = Request(scope)
    if "text/html" in request.headers.get("accept", ""):
        return True
    return cookie_name(request) in request.cookies


async def missing_page(service: Service, request: Request) -> Response:
    """Return the page for a path that the console does not have, to a visitor who is signed in."""
    missing = NotFound(
        "There is no such page.", hint="The navigation above has all pages."
    )
    return error_page(request, missing, _visit(service, request))


def _visit(service: Service, request: Request) -> Visit:
    visitor: Visitor = request.scope["state"]["visitor"]
    return Visit(request, visitor.caller, form_token(visitor.secret), service)


def _beginning(path: str) -> str:
    return path.split("/")[1] if path.startswith("/") else path


_OTHERS = ("/static/", "/sign-in", "/sign-out", "/open", LIVE_PATH)
_MACHINES = (
    "api",
    "mcp",
    "sse",
    "messages",
    "healthz",
    "readyz",
    "metrics",
    ".well-known",
    "authorize",
    "register",
    "revoke",
    "token",
)
_BEGINNINGS = frozenset(map(_beginning, (*(page.path for page in PAGES), *_OTHERS)))


def _route(path: str, get: Endpoint | None, post: Endpoint | None = None) -> Path:
    methods = []
    if get is not None:
        methods.append("GET")
    if post is not None:
        methods.append("POST")

    async def endpoint(request: Request) -> Response:
        handler = post if request.method == "POST" else get
        assert handler is not None  # Path has refused other methods
        return await handler(request)

    return Path(path, endpoint, methods=methods)


def _page(service: Service, handler: Handler) -> Endpoint:
    """Return the endpoint of a page: its form is read and checked, its errors become pages."""

    async def endpoint(request: Request) -> Response:
        visit = _visit(service, request)
        try:
            if request.method == "POST":
                form = await read_form(request)
                token = request.headers.get(TOKEN_HEADER) or form.get(TOKEN_FIELD, "")
                visit = replace(visit, form=form)
                if not compare_digest(token.encode(), visit.form_token.encode()):
                    return _sent_again(visit)
            return await handler(visit)
        except ValidationError as error:  # of a request that a page makes of its input
            return error_page(request, InvalidInput(*field_errors(error)[0]), visit)
        except FolkloreError as error:
            return error_page(request, error, visit)

    return endpoint


def _sent_again(visit: Visit) -> Response:
    """Refuse a form without the token of this session, and offer to send it again with it: a session may have ended."""
    error = Refused(
        "The form lacks the token of this session.",
        hint="Look at it and send it again.",
    )
    visit.service.on_denial("console", error)
    if is_from_script(visit.request):
        return error_page(visit.request, error, visit)
    return form_again(visit.request, visit.form, 403, visit)


async def _static(request: Request) -> Response:
    file = static_files().get(request.path_params["name"])
    if file is None:
        return Response(status_code=404)
    return Response(
        file.content, media_type=file.media_type, headers={"cache-control": _CACHING}
    )
