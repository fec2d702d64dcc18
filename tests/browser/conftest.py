"""A browser, and a server whose store has realistic memories and hostile texts in every field.

Every page that a test opens fails it for an error in the browser's console, a violation of the content security policy,
an error of a script, a dialog, or a request to another host.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    async_playwright,
)

from folklore.contract.namespaces import CreateNamespaceRequest
from folklore.embedding.protocol import Embedder
from folklore.model import Draft, Relation
from tests import ROOT
from tests.conftest import Cluster
from tests.servers import on_http, watched
from tests.team import Team, bearer, library_at

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb", "--hide-scrollbars",
]  # fmt: skip
# Anything that a text could make a browser do would set this.
PROBE = "pwned"
HOSTILE = (
    f"<script>window.{PROBE}=1</script>\"'><img src=x onerror=window.{PROBE}=1><svg/onload=window.{PROBE}=1>"
    f"</textarea></title><a href=javascript:window.{PROBE}=1>x</a>{{{{7*7}}}}${{7*7}}"
)
ODD = "עברית \u0645\u0631\u062d\u0628\u0627 👩‍👩‍👧‍👦 e\u0301\u0301 " + "w" * 3_000
LONG = ("A long note about the harbour. " * 1_100)[:32_000]


@dataclass(frozen=True, slots=True)
class Site:
    """A server with people and memories."""

    team: Team
    tokens: dict[str, str]
    ids: dict[str, UUID]

    @property
    def url(self) -> str:
        return self.team.url


@dataclass
class Watch:
    """Faults in the pages of a context."""

    host: str
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    # Texts of console messages that a test expects, such as that of a page which is not there.
    expected: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(
            text in message.text for text in self.expected
        ):
            self.problems.append(f"console: {message.text}")

    async def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        if urlsplit(request.url).netloc != self.host:
            self.problems.append(f"request to {request.url}")


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip(
            "There is no Chromium here; install the package `chromium`, or run `make test-console` as root."
        )
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=_FLAGS)
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
async def site(
    cluster: Cluster,
    template: str,
    embedder: Embedder,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Site]:
    async with cluster.new_database(template) as name:
        settings = watched(
            tmp_path_factory.mktemp("site"), database_url=cluster.address(name)
        )
        async with (
            library_at(cluster.address(name), embedder) as library,
            on_http(settings) as running,
        ):
            team = Team(running, library)
            yield await _filled(team)
            assert not running.crashes()
            assert settings.attempts() == ""


async def _filled(team: Team) -> Site:
    """Make people with different grants and a store of which every page has something to show."""
    people = {
        "ann": ("harbour:writer", "odd:writer", "repo:acme/shop:writer"),
        "rita": ("harbour:reader",),
        "ada": ("harbour:admin",),
        "bob": ("bob-private:writer",),
    }
    tokens = {
        name: (await team.token(name, *grants)).secret
        for name, grants in people.items()
    }
    tokens["root"] = (await team.token("root", owner=True)).secret
    keep = team.keep
    ids: dict[str, UUID] = {}
    first = await keep(
        Draft("The mole is closed in November, and the ferry leaves from the north quay.", tags=("port", "season")),
        Draft("Deploys happen on Thursday after the tests are green.", kind="decision", tags=("deploy",), pinned=True),
        Draft("The pool of connections has six places for each server.", kind="semantic", tags=("db/pool",),
              source="docs/x.md", paths=("server/pool.py",)),
        Draft("PgBouncer runs in transaction mode, so statements are not prepared.", tags=("db/pool",), importance=0.8),
        Draft("The crane opens at six in the morning."), Draft("The crane opens at seven in the morning."),
        Draft("The lighthouse is white."), Draft("The lighthouse was painted red."),
        namespace="harbour",
    )  # fmt: skip
    names = ("mole", "deploy", "pool", "bouncer", "crane", "crane2", "white", "red")
    ids |= dict(zip(names, first, strict=True))
    hostile = await keep(
        Draft(HOSTILE, summary=HOSTILE, source=HOSTILE, session=HOSTILE[:200], tags=("x'><b>", "{{7*7}}"),
              paths=("<img src=x onerror=alert(1)>",), commit="<b>", metadata={HOSTILE: HOSTILE}),
        Draft(ODD), Draft(LONG, summary="A long note"), namespace="odd",
    )  # fmt: skip
    ids |= dict(zip(("hostile", "odd", "long"), hostile, strict=True))
    await keep(
        "Bob alone knows where the key of the boathouse is.", namespace="bob-private"
    )
    await keep(
        Draft("The shop sells tickets for the ferry."), namespace="repo:acme/shop"
    )
    await team.owner.call(CreateNamespaceRequest(name="empty", description=HOSTILE))
    await team.owner.relate(
        Relation(ids["pool"], "relates_to", ids["bouncer"]),
        Relation(ids["red"], "contradicts", ids["white"]),
        Relation(ids["deploy"], "near_to", ids["pool"]),
        Relation(ids["odd"], "near_to", ids["hostile"]),
    )
    await team.owner.update(ids["mole"], content="The mole is closed in winter.")
    [ids["gone"]] = await keep("The old timetable.", namespace="harbour")
    await team.owner.forget(ids["gone"])
    async with httpx.AsyncClient(
        base_url=team.url, headers=bearer(tokens["ada"])
    ) as client:
        for query in (
            "when do deploys happen?",
            "connections of the pool",
            "when is the mole closed?",
        ):
            (
                await client.post(
                    "/api/recall", json={"query": query, "namespaces": ["harbour"]}
                )
            ).raise_for_status()
        event = {
            "event": "UserPromptSubmit",
            "prompt": "How many places has the pool of connections?",
        }
        for session, namespace, author in (
            ("resize-the-pool", "harbour", "ada"),
            (HOSTILE, "odd", "ann"),
        ):
            headers = bearer(tokens[author]) | {"Folklore-Namespace": namespace}
            sent = event | {"session": session}
            (
                await client.post("/api/hook", json=sent, headers=headers)
            ).raise_for_status()
    return Site(team, tokens, ids)


@asynccontextmanager
async def browsing(
    chromium: Browser,
    site: Site,
    person: str | None = None,
    *,
    url: str | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Page, Watch]]:
    """A page in a context of its own, signed in as a person; at its end nothing may have gone wrong."""
    base = url or site.url
    if person is not None and url is None:
        options["storage_state"] = await _signed_in(site, person)
    context: BrowserContext = await chromium.new_context(base_url=base, **options)
    try:
        await context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('policy', event.violatedDirective))"
        )
        page = await context.new_page()
        watch = Watch(urlsplit(base).netloc)
        watch.on(page)
        page.set_default_timeout(20_000)
        if person is not None and url is not None:
            await page.goto(f"{base}/sign-in")
            await page.fill("#token", site.tokens[person])
            await page.click("button")
            await page.wait_for_url(f"{base}/")
        yield page, watch
        if options.get("java_script_enabled", True):
            assert await page.evaluate(f"typeof window.{PROBE}") == "undefined"
        assert watch.problems == []
    finally:
        await context.close()


async def _signed_in(site: Site, person: str) -> Any:
    """The cookie of a session that was begun without a browser."""
    async with httpx.AsyncClient(base_url=site.url) as client:
        data = {"token": site.tokens[person]}
        await client.post("/sign-in", data=data, headers={"Origin": site.url})
        [(name, value)] = client.cookies.items()
    cookie = {
        "name": name,
        "value": value,
        "domain": "127.0.0.1",
        "path": "/",
        "expires": -1,
    }
    return {
        "cookies": [
            {**cookie, "httpOnly": True, "secure": False, "sameSite": "Strict"}
        ],
        "origins": [],
    }


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the screenshots of a run."""
    folder = ROOT / ".console-pictures"
    folder.mkdir(exist_ok=True)
    return folder
