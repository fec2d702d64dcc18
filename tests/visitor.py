"""A person with a browser, without the browser: pages of the console over HTTP, with cookie, origin and form token."""

import html
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from tests.waiting import STUCK

_FORM_TOKEN = re.compile(r'data-form-token="([^"]+)"')
_TAGS = re.compile(r"<[^>]*>")


@dataclass(slots=True)
class Visitor:
    """A signed-in person at one server."""

    http: httpx.AsyncClient
    url: str
    form_token: str = ""

    async def get(self, path: str = "/", **parameters: object) -> httpx.Response:
        return await self.http.get(
            path, params={name: str(value) for name, value in parameters.items()}
        )

    async def post(
        self, path: str, fields: Mapping[str, object] | None = None, **more: object
    ) -> httpx.Response:
        """Send a form; a list gives a field several values. The redirection after it is followed."""
        form = {"form_token": self.form_token, **(fields or {}), **more}
        data = {
            name: value if isinstance(value, list) else str(value)
            for name, value in form.items()
        }
        return await self.http.post(path, data=data, headers={"Origin": self.url})


def texts(page: httpx.Response) -> str:
    """The text of a page as a reader sees it, with single spaces."""
    return " ".join(html.unescape(_TAGS.sub(" ", page.text)).split())


@asynccontextmanager
async def visiting(url: str, token: str = "") -> AsyncIterator[Visitor]:
    """Sign in by a token, or without one where the server needs none."""
    async with httpx.AsyncClient(
        base_url=url,
        follow_redirects=True,
        headers={"Accept": "text/html"},
        timeout=STUCK,
    ) as http:
        answer = await http.post(
            "/sign-in", data={"token": token}, headers={"Origin": url}
        )
        assert answer.status_code == 200, answer.text
        found = _FORM_TOKEN.search(answer.text)
        assert found is not None, "not signed in"
        yield Visitor(http, url, found[1])
