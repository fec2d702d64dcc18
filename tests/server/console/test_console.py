"""The way into the console: sessions, headers, origins, form tokens."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from mcp import Client
from mcp.client.stdio import stdio_client

from folklore.contract.token_secrets import with_checksum
from folklore.server.console.pages import routes
from tests.servers import on_http, on_stdio, watched
from tests.team import Team
from tests.visitor import texts, visiting

PAGES = ("/", *sorted({page.path for page in routes.PAGES if page.get} - {"/"}))
SECRET_TEXT = "The mole is closed in November."


@pytest.fixture(scope="module")
async def team(team: Team) -> Team:
    """A server that needs a token."""
    await team.keep(SECRET_TEXT, namespace="harbour")
    await team.token("root", owner=True)
    return team


@pytest.fixture
async def stranger(team: Team) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=team.url, headers={"Accept": "text/html"}
    ) as client:
        yield client


def origin(team: Team) -> dict[str, str]:
    return {"Origin": team.url}


async def test_without_a_session_every_page_is_the_way_to_sign_in(
    stranger: httpx.AsyncClient,
) -> None:
    for path in PAGES:
        answer = await stranger.get(path)
        page = await stranger.get(path, follow_redirects=True)

        assert (answer.status_code, answer.content) == (303, b""), path
        assert page.status_code == 200, path
        assert "Your token" in page.text, path
        assert SECRET_TEXT not in page.text, path
        assert "harbour" not in page.text, path


async def test_after_signing_in_the_visitor_is_where_he_wanted_to_be(
    team: Team,
) -> None:
    created = await team.token("ann", "harbour:reader")
    async with httpx.AsyncClient(base_url=team.url, follow_redirects=True) as client:
        asked = await client.get("/?q=a%20b&x=%C3%A9", headers={"Accept": "text/html"})
        data = {"token": created.secret, "next": asked.url.params["next"]}
        answer = await client.post("/sign-in", data=data, headers=origin(team))

    assert str(answer.url) == f"{team.url}/?q=a%20b&x=%C3%A9"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "\\\\evil.example", "/\\evil.example"],
)
async def test_the_way_on_stays_within_the_console(
    team: Team, stranger: httpx.AsyncClient, target: str
) -> None:
    created = await team.token("ann", "harbour:reader")

    answer = await stranger.post(
        "/sign-in", data={"token": created.secret, "next": target}, headers=origin(team)
    )

    assert answer.status_code == 303
    assert (
        httpx.URL(f"{team.url}/sign-in").join(answer.headers["location"]).host
        == "127.0.0.1"
    )


async def test_every_answer_has_the_policy_and_nothing_is_kept(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    async with team.visitor("ann", "harbour:reader") as ann:
        home = await ann.get("/")
        answers = [
            home,
            await ann.get("/sign-in/x"),
            await stranger.get("/sign-in"),
            await stranger.get("/"),
        ]
        style = await ann.get(
            home.text.split('rel="stylesheet" href="./')[1].split('"')[0]
        )

    for answer in (*answers, style):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(
            "default-src 'none'; script-src 'self'; style-src 'self';"
        )
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}
    assert "immutable" in style.headers["cache-control"]


async def test_the_cookie_is_strict_and_hidden_from_scripts(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    created = await team.token("ann", "harbour:reader")

    answer = await stranger.post(
        "/sign-in", data={"token": created.secret}, headers=origin(team)
    )

    attributes = answer.headers["set-cookie"].split("; ")[1:]
    assert {"HttpOnly", "SameSite=strict", "Max-Age=43200"} <= set(attributes)
    assert not any(attribute.startswith("Path") for attribute in attributes)
    assert created.secret not in answer.headers["set-cookie"]


async def test_the_cookie_is_secure_over_tls(database_url: str, tmp_path: Path) -> None:
    settings = watched(
        tmp_path, database_url=database_url, http__trusted_proxies='["127.0.0.1"]'
    )
    async with (
        on_http(settings) as running,
        httpx.AsyncClient(base_url=running.url) as client,
    ):
        headers = {
            "Origin": running.url.replace("http:", "https:"),
            "X-Forwarded-Proto": "https",
        }
        answer = await client.post("/sign-in", headers=headers)

    assert "Secure" in answer.headers["set-cookie"].split("; ")


async def test_a_wrong_token_begins_no_session(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    for token in ("", "nonsense", with_checksum("a" * 43)):
        answer = await stranger.post(
            "/sign-in", data={"token": token}, headers=origin(team)
        )

        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
        assert token not in answer.text or not token


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ],
)
async def test_a_change_from_elsewhere_is_refused(
    team: Team, stranger: httpx.AsyncClient, wrong: dict[str, str]
) -> None:
    created = await team.token("ann", "harbour:reader")

    signing_in = await stranger.post(
        "/sign-in", data={"token": created.secret}, headers=wrong
    )
    async with visiting(team.url, created.secret) as ann:
        out = await ann.http.post(
            "/sign-out", data={"form_token": ann.form_token}, headers=wrong
        )
        home = await ann.get("/")

    assert (signing_in.status_code, out.status_code) == (403, 403)
    assert "set-cookie" not in signing_in.headers
    assert "Sign out" in texts(home)


async def test_a_form_without_its_token_changes_nothing(team: Team) -> None:
    async with (
        team.visitor("ann", "harbour:reader") as ann,
        team.visitor("bob", "harbour:reader") as bob,
    ):
        for given in ("", "x", bob.form_token):
            answer = await ann.http.post(
                "/sign-out", data={"form_token": given}, headers=origin(team)
            )
            assert answer.status_code == 403
        assert "Sign out" in texts(await ann.get("/"))
        assert ann.form_token != bob.form_token


async def test_a_session_that_was_signed_out_is_over(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    async with team.visitor("ann", "harbour:reader") as ann:
        stranger.cookies.update(ann.http.cookies)
        await ann.post("/sign-out")
        after = await ann.get("/")

    old = await stranger.get("/")
    assert "Your token" in after.text
    assert old.status_code == 303


async def test_a_session_has_a_secret_of_its_own(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    """A cookie that was planted before signing in never becomes the session's."""
    created = await team.token("ann", "harbour:reader")
    name = f"folklore_{team.server.port}"
    planted = {name: "a" * 43}

    stranger.cookies.update(planted)
    before = await stranger.get("/")

    answer = await stranger.post(
        "/sign-in", data={"token": created.secret}, headers=origin(team)
    )

    assert before.status_code == 303
    assert answer.cookies[name] != planted[name]


async def test_a_revoked_token_ends_its_sessions_at_once(team: Team) -> None:
    created = await team.token("ann", "harbour:reader")
    async with visiting(team.url, created.secret) as ann:
        before = await ann.get("/")
        await team.revoke(created)
        after = await ann.get("/")

    assert "harbour" in texts(before)
    assert "Your token" in after.text


async def test_a_server_without_tokens_is_opened_by_a_button(
    database_url: str, tmp_path: Path
) -> None:
    async with on_http(watched(tmp_path, database_url=database_url)) as running:
        async with httpx.AsyncClient(base_url=running.url) as client:
            first = await client.get("/", follow_redirects=True)
        async with visiting(running.url) as tester:
            home = await tester.get("/")

    assert "Open the console" in first.text
    assert "tester" in texts(home)


async def test_an_address_without_a_page_is_a_page_that_says_so(
    team: Team, stranger: httpx.AsyncClient
) -> None:
    async with team.visitor("ann", "harbour:reader") as ann:
        pages = [
            await ann.http.get("/memory/0197", headers={"Accept": kind})
            for kind in ("text/html", "*/*")
        ]
    machines = [
        await stranger.get(path, headers={"Accept": "*/*"})
        for path in ("/api/nowhere", "/memory/0197")
    ]

    assert all(
        (page.status_code, "There is no such page." in texts(page)) == (404, True)
        for page in pages
    )
    assert all('<a href="../">Home</a>' in page.text for page in pages)
    assert (await stranger.get("/nowhere")).headers[
        "location"
    ] == "./sign-in?next=nowhere"
    assert {
        (answer.status_code, answer.headers["content-type"]) for answer in machines
    } == {(401, "application/json")}


async def test_scripts_without_a_session_get_an_error_in_json(
    stranger: httpx.AsyncClient,
) -> None:
    answer = await stranger.get("/", headers={"Accept": "application/json"})

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthenticated"


async def test_pages_name_no_absolute_address(team: Team) -> None:
    """Behind a proxy under a path prefix, every address that a page has must stay below the prefix."""
    async with team.visitor("ann", "harbour:reader") as ann:
        for path in ("/", "/sign-in/x/y"):
            page = await ann.get(path)
            assert 'href="/' not in page.text
            assert 'src="/' not in page.text
            assert 'action="/' not in page.text


async def test_no_two_elements_of_a_page_have_one_id(team: Team) -> None:
    async with team.visitor("ann", "harbour:reader") as ann:
        for path in PAGES:
            ids = re.findall(r' id="([^"]+)"', (await ann.get(path)).text)
            assert len(ids) == len(set(ids)), path


async def test_nothing_of_the_pages_is_loaded_before_the_first_visit(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    settings = replace(
        settings, environment={**settings.environment, "PYTHONPROFILEIMPORTTIME": "1"}
    )
    async with (
        on_http(settings, alone=True) as running,
        httpx.AsyncClient(base_url=running.url) as client,
    ):
        assert (await client.post("/api/status", json={})).status_code == 200
        before = running.log_text()
        await client.get("/sign-in", headers={"Accept": "text/html"})
        after = running.log_text()

    assert "asyncpg" in before
    assert "jinja2" not in before
    assert "jinja2" in after


async def test_a_server_on_stdio_imports_none_of_it(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    server = on_stdio(
        replace(
            settings,
            environment={**settings.environment, "PYTHONPROFILEIMPORTTIME": "1"},
        ),
        alone=True,
    )
    imported = tmp_path / "imported"
    with imported.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            await client.call_tool("memory_recall", {"query": "the gate"})

    log = imported.read_text(encoding="utf-8")
    assert "asyncpg" in log
    assert not [
        name
        for name in (
            "folklore.server.console.pages",
            "jinja2",
            "prometheus_client",
            "structlog",
        )
        if name in log
    ]


async def test_a_read_only_server_says_why_nobody_can_sign_in(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url, read_only="true")
    async with (
        on_http(settings) as running,
        httpx.AsyncClient(base_url=running.url) as client,
    ):
        answer = await client.post(
            "/sign-in", headers={"Origin": running.url, "Accept": "text/html"}
        )

    assert answer.status_code == 403
    assert "read-only" in texts(answer)
