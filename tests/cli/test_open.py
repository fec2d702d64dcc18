"""`folklore open`: the console at the user's server, or at the team's; a link signs in once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from tests.commands import Ran
from tests.servers import Watched, on_http, own_servers_ended, watched
from tests.team import Team, library_at
from tests.visitor import texts


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
            *(sys.executable, "-m", "folklore", "open", *arguments),
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
        first, again = await visitor.get(addresses[0]), await other.get(addresses[0])
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
    opened, script = tmp_path / "opened", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    script.chmod(0o755)
    async with browser() as visitor:
        ran = await machine.with_environment(BROWSER=str(script)).open()
        page = await visitor.get(opened.read_text())

    assert ran.code == 0, ran.err
    assert "http://127.0.0.1:" in ran.out
    assert "code=" not in ran.out + ran.err
    assert "tester" in texts(page)


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
