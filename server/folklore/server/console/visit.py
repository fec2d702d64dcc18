"""Visit: one request of a signed-in caller to a page of the console."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import ImmutableMultiDict, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from folklore import __version__
from folklore.callers import Caller
from folklore.contract.requests import Result, Returns
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory import Service
from folklore.server.console.render import html, static_version
from folklore.server.error_responses import failure

# Where a script sends the form token; a form has it in a field.
TOKEN_HEADER = "Folklore-Form-Token"  # noqa: S105 - a name
TOKEN_FIELD = "form_token"  # noqa: S105 - a name
# Fields of a form: more are an error.
_FIELDS = 2_000
# The texts that pages show after a change. The address names one of these, never a text.
NOTICES: Mapping[str, str] = {
    "created": "Created.",
    "deleted": "Deleted.",
    "dropped": "Dropped.",
    "erased": "Erased permanently.",
    "forgotten": "Forgotten. It can be restored until the retention time is over.",
    "merged": "Merged.",
    "nothing": "Nothing had to be changed.",
    "pinned": "Pinned.",
    "related": "Related.",
    "renamed": "Renamed.",
    "restored": "Restored.",
    "retagged": "Renamed. The form below can take it back.",
    "revoked": "Revoked.",
    "saved": "Saved.",
    "stored": "Stored.",
    "superseded": "Superseded.",
    "undone": "Undone.",
    "unpinned": "No longer pinned.",
    "unrelated": "The relation is removed.",
}

Handler = Callable[["Visit"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Visit:
    """Request of a signed-in caller. `form` has the fields of a POST; its origin and form token have been checked."""

    request: Request
    caller: Caller
    form_token: str = field(repr=False)
    service: Service
    form: ImmutableMultiDict[str, str] = field(default_factory=ImmutableMultiDict)

    @property
    def query(self) -> QueryParams:
        """The parameters of the address."""
        return self.request.query_params

    @property
    def is_owner(self) -> bool:
        """True for the owner of the deployment, to whom every namespace is open."""
        return self.caller.access is None

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation as this caller. Raises FolkloreError."""
        return await self.service.call(request)

    def wrong_word(self, word: str) -> InvalidInput | None:
        """Return an error unless the word that confirms an erasure was typed."""
        if self.form.get("word", "").strip().lower() == word:
            return None
        return InvalidInput("word", f"must be {word}.", hint="Nothing was erased.")

    def url(self, path: str = "", **parameters: object) -> str:
        """Return the relative address of a page, with parameters; None, "" and empty lists are left out."""
        return address(self.request, path, **parameters)

    async def render(
        self, template: str, /, *, error: FolkloreError | None = None, **values: Any
    ) -> HTMLResponse:
        """Return a page made from a template, which also gets `visit` and the error, if it shows one."""
        status = 200 if error is None else failure(error).status_code
        return HTMLResponse(
            await self.fragment(template, error=error, **values), status
        )

    async def fragment(self, template: str, /, **values: Any) -> str:
        """Return the HTML of a template, for a page or for a script that puts it into one.

        It is made in a thread, and with it what the values compute when they are read: other requests go on meanwhile.
        """
        return await asyncio.to_thread(
            html, template, {**_everywhere(self.request), "visit": self, **values}
        )

    def redirect(
        self, path: str = "", *, notice: str = "", **parameters: object
    ) -> Response:
        """Return the redirection to another page after a change; `notice` is one of NOTICES."""
        return redirection(self.url(path, notice=notice, **parameters))

    @property
    def notice(self) -> str:
        """The text to show after a change, or nothing."""
        return NOTICES.get(self.query.get("notice", ""), "")


def redirection(location: str) -> Response:
    """Return 303 to a relative address."""
    return Response(status_code=303, headers={"location": location})


def address(request: Request, path: str = "", **parameters: object) -> str:
    """Return the address of a page relative to the present one, so that it holds behind any prefix of a proxy."""
    pairs = []
    for name, value in parameters.items():
        if value not in (None, "", [], ()):
            pairs.append((name.rstrip("_"), value))
    depth = max(str(request.scope["path"]).count("/") - 1, 0)
    page = ("../" * depth or "./") + path
    if not pairs:
        return page
    return f"{page}?{urlencode(pairs, doseq=True)}"


def number_of(text: str, name: str, least: int = 0, most: int = 999_999_999) -> int:
    """Return a whole number of an address or a form. Raises InvalidInput."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 10
    if is_number and least <= int(text) <= most:
        return int(text)
    raise InvalidInput(
        name,
        f"must be a number from {least} to {most}.",
        hint="Go back and reload the page.",
    )


def open_page(
    request: Request, template: str, status: int = 200, /, **values: Any
) -> HTMLResponse:
    """Return a small page, by default for a visitor without a session."""
    return HTMLResponse(
        html(template, {**_everywhere(request), "visit": None, **values}), status
    )


def error_page(request: Request, error: FolkloreError, visit: Visit | None) -> Response:
    """Return an error as a page with its hint, or as JSON if the request takes nothing else."""
    answer = failure(error)
    if is_from_script(request):
        return answer
    values = {
        "status": answer.status_code,
        "message": error.message,
        "hint": error.hint or "",
        "visit": visit,
    }
    return open_page(request, "error.html", answer.status_code, **values)


def form_again(
    request: Request,
    form: ImmutableMultiDict[str, str],
    status: int,
    visit: Visit | None = None,
) -> HTMLResponse:
    """Return a page that keeps what was typed into a form, to be sent again after signing in."""
    inputs = [
        (name, value) for name, value in form.multi_items() if name != TOKEN_FIELD
    ]
    here = address(request, request.scope["path"].lstrip("/"))
    return open_page(
        request, "form_again.html", status, visit=visit, kept=inputs, here=here
    )


def is_from_script(request: Request) -> bool:
    """Return True for a request whose answer is for a script: one that takes JSON or events, and no page."""
    accepted = request.headers.get("accept", "")
    if "text/html" in accepted:
        return False
    return "application/json" in accepted or "text/event-stream" in accepted


async def read_form(request: Request) -> ImmutableMultiDict[str, str]:
    """Parse the fields of a form, a file in it as its text. Raises InvalidInput."""
    try:
        if request.headers.get("content-type", "").startswith("multipart/"):
            pairs = await _parts(request)
        else:
            body = (await request.body()).decode("ascii")
            pairs = parse_qsl(
                body, keep_blank_values=True, errors="replace", max_num_fields=_FIELDS
            )
    except (ValueError, HTTPException):
        raise InvalidInput(
            "form", "is not a form's data.", hint="Reload the page and send it again."
        ) from None
    # Browsers send every line break as \r\n.
    return ImmutableMultiDict(
        [(name, value.replace("\r\n", "\n")) for name, value in pairs]
    )


async def _parts(request: Request) -> list[tuple[str, str]]:
    """Return the parts of a form with a file. Raises HTTPException for another body."""
    parts = []
    async with request.form(max_files=1, max_fields=_FIELDS) as form:
        for name, value in form.multi_items():
            if isinstance(value, str):
                parts.append((name, value))
            else:
                parts.append((name, _text(name, await value.read())))
    return parts


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(
            name, "is not text in UTF-8.", hint="Choose another file."
        ) from None


def _everywhere(request: Request) -> dict[str, Any]:
    url = partial(address, request)
    return {
        "url": url,
        "static": lambda name: url(f"static/{static_version()}/{name}"),
        "path": request.scope["path"],
        "version": __version__,
    }
