"""`folklore open`: the console at the user's server, or at the team's; a link signs in once."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest

from tests import forks
from tests.commands import Ran
from tests.servers import Watched, on_http, own_servers_ended, watched
from tests.stranger import Sent, as_nobody, needs_root
from tests.team import Team, library_at
from tests.visitor import texts, visiting
from tests.wire import INITIALIZE, MCP


@dataclass(frozen=True, slots=True)
class Machine:
    """A person's machine: a home, a memory, and the commands on it."""

    server: Watched
    dsn: str

    def with_environment(self, **values: str) -> Machine:
        return replace(
            self,
            server=Watched({**self.server.environment, **values}, self.server.notes),
        )

    async def open(self, *arguments: str) -> Ran:
        process = await asyncio.create_subprocess_exec(
            *(*forks.command(), "open", *arguments),
            env=dict(self.server.environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(90):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def machine(database_url: str, tmp_path: Path) -> AsyncIterator[Machine]:
    with own_servers_ended(tmp_path / "home"):
        yield (
            machine := Machine(
                watched(tmp_path, database_url=database_url, own=""), database_url
            )
        )
    assert machine.server.attempts() == ""


@asynccontextmanager
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        follow_redirects=True, headers={"Accept": "text/html"}
    ) as client:
        yield client


async def test_links_of_several_commands_sign_in_once_each_at_one_server(
    machine: Machine,
) -> None:
    links = await asyncio.gather(*(machine.open("--json") for _ in range(3)))
    addresses = [httpx.URL(link.json["url"]) for link in links]

    async with browser() as visitor, browser() as other:
        first = await visitor.get(addresses[0])
        again = await other.get(addresses[0])
        page = await other.get(addresses[1])

    assert len({address.copy_with(query=None) for address in addresses}) == 1
    assert addresses[0].host == "127.0.0.1"
    assert (first.status_code, again.status_code) == (200, 403)
    assert "tester" in texts(first)
    assert "tester" in texts(page)


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ({"FOLKLORE_OWN": "1"}, 3, "folklore serve --http"),
        ({"FOLKLORE_READ_ONLY": "true"}, 5, "read_only"),
    ],
)
async def test_without_a_server_that_stays_or_may_write_the_error_names_another_way(
    machine: Machine, setting: dict[str, str], code: int, words: str
) -> None:
    ran = await machine.with_environment(**setting).open()

    assert ran.code == code
    assert words in ran.err


# The browser


async def test_the_browser_gets_the_link_and_the_terminal_does_not(
    machine: Machine, tmp_path: Path
) -> None:
    opened = tmp_path / "opened"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    script.chmod(0o755)
    async with browser() as visitor:
        ran = await machine.with_environment(BROWSER=str(script)).open()
        file = Path(url2pathname(urlsplit(opened.read_text()).path))
        [link] = set(re.findall(r'url=([^"]+)', file.read_text()))
        # As browsers say of a link in a file.
        page = await visitor.get(link, headers={"Sec-Fetch-Site": "cross-site"})

    assert ran.code == 0, ran.err
    assert opened.read_text().startswith("file:///")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o077) == (
        0o600,
        0,
    )
    assert "http://127.0.0.1:" in ran.out
    assert "code=" not in ran.out + ran.err
    assert "tester" in texts(page)


async def test_a_file_whose_link_works_no_more_is_removed_by_the_next_command(
    machine: Machine, tmp_path: Path
) -> None:
    script = tmp_path / "browser"
    folder = tmp_path / "home" / "run"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    opening = machine.with_environment(BROWSER=str(script))
    await opening.open()
    [old] = folder.glob("open-*.html")
    os.utime(old, (0, 0))
    await opening.open()
    [new] = folder.glob("open-*.html")

    assert new != old


async def test_the_link_is_printed_without_a_browser(machine: Machine) -> None:
    async with browser() as visitor:
        for arguments in (["--no-browser"], []):
            ran = await machine.with_environment(BROWSER="/nonexistent/browser").open(
                *arguments
            )
            page = await visitor.get(ran.out.strip())

            assert "/open?code=" in ran.out
            assert "once" in ran.err
            assert page.status_code == 200


# Another user of the machine


@needs_root
async def test_another_user_of_the_machine_gets_nothing_at_the_port(
    machine: Machine,
) -> None:
    link = httpx.URL((await machine.open("--json")).json["url"])
    url = f"http://{link.host}:{link.port}"
    as_json = {"Content-Type": "application/json"}
    as_page = {"Accept": "text/html"}
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": url}
    async with browser() as visitor:
        home = await visitor.get(link)
    machines = [
        *(
            Sent("POST", f"{url}/api/{name}", "{}", as_json)
            for name in ("list", "caller", "create_link", "export", "store")
        ),
        Sent("POST", f"{url}/mcp", json.dumps(INITIALIZE), MCP),
        Sent("POST", f"{url}/", json.dumps(INITIALIZE), MCP),
        *(Sent("GET", url + path) for path in ("/sse", "/metrics", "/readyz", "/docs")),
        Sent("POST", f"{url}/messages/?session_id=1", "{}", as_json),
        Sent("POST", f"{url}/register", "{}", as_json),
    ]
    *answers, page, search, signed_in, used = await as_nobody(
        *machines,
        Sent("GET", f"{url}/sign-in", None, as_page),
        Sent("GET", f"{url}/search", None, as_page),
        Sent("POST", f"{url}/sign-in", "token=&next=", form),
        Sent("GET", str(link), None, as_page),
    )

    mcp = next(answer.json for answer in answers if "jsonrpc" in answer.text)
    assert "folklore serve --http" in mcp["error"]["message"]
    assert "tester" in texts(home)
    assert {answer.status for answer in answers} == {404}
    assert (page.status, "<button" in page.text) == (200, False)
    assert "folklore open" in page.text
    assert (search.status, search.headers["location"]) == (303, "./sign-in?next=search")
    assert (signed_in.status, used.status) == (405, 403)
    assert not any(
        "set-cookie" in one.headers for one in (page, search, signed_in, used)
    )


async def test_no_session_but_that_of_a_link_counts_at_the_port(
    machine: Machine, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    settings = watched(elsewhere, database_url=machine.dsn)
    async with on_http(settings) as other, visiting(other.url) as signed_in:
        [cookie] = signed_in.http.cookies.jar
        link = httpx.URL((await machine.open("--json")).json["url"])
        headers = {
            "Accept": "text/html",
            "Cookie": f"folklore_{link.port}={cookie.value}",
        }
        async with httpx.AsyncClient(headers=headers) as client:
            page = await client.get(f"http://{link.host}:{link.port}/search")

    assert page.headers["location"] == "./sign-in?next=search"


# With --server


async def test_a_team_server_signs_in_the_person_of_the_token(
    machine: Machine, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    away = Machine(watched(elsewhere), machine.dsn)
    async with (
        on_http(machine.server) as running,
        library_at(machine.dsn) as library,
        browser() as visitor,
    ):
        created = await Team(running, library).token("ann", "harbour:reader")

        without = await away.open("--json", "--server", running.url)
        given = await away.open(
            "--json", "--server", f"{running.url}/mcp", "--token", created.secret
        )
        page = await visitor.get(given.json["url"])

    assert (without.code, json.loads(without.err)["error"]["code"]) == (
        5,
        "unauthenticated",
    )
    assert given.json["url"].startswith(f"{running.url}/open?code=")
    assert "ann" in texts(page)
    assert not (elsewhere / "home" / "run").exists()
