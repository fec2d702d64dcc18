"""`folklore open`: finds a server on this memory or starts one, and signs in by a link that works once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from folklore.config import Settings
from folklore.http.local_servers import PROOF_PATH, Identity, find_server, registered
from tests.commands import Ran
from tests.servers import Watched, free_port, limited, on_http, watched
from tests.team import Team, library_at
from tests.visitor import texts


@dataclass(frozen=True, slots=True)
class Machine:
    """A person's machine: a home, a memory, and the commands on it."""

    server: Watched
    home: Path
    dsn: str

    @property
    def settings(self) -> Settings:
        return Settings(home=self.home, database_url=self.dsn)

    @property
    def started(self) -> list[int]:
        """The processes that `folklore open` started here, of which the log has the last."""
        log = self.home / "console.log"
        found = re.findall(r"server process \[(\d+)\]", log.read_text()) if log.exists() else []
        return [int(one) for one in found]

    def with_environment(self, **values: str) -> Machine:
        return replace(self, server=Watched({**self.server.environment, **values}, self.server.notes))

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
    machine = Machine(watched(tmp_path, database_url=database_url), tmp_path / "home", database_url)
    try:
        yield machine
    finally:
        for process in machine.started:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        assert machine.server.attempts() == ""


@asynccontextmanager
async def browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(follow_redirects=True, headers={"Accept": "text/html"}) as client:
        yield client


async def gone(process: int) -> None:
    async with asyncio.timeout(60):
        with suppress(ProcessLookupError):
            while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                await asyncio.sleep(0.05)
            return
    return


def files(machine: Machine) -> list[Path]:
    return sorted((machine.home / "servers").glob("*.json"))


async def test_a_link_to_a_running_server_signs_in_once(machine: Machine) -> None:
    async with on_http(machine.server) as running, browser() as visitor, browser() as other:
        asked = await machine.open("--json")
        first = await visitor.get(asked.json["url"])
        again = await other.get(asked.json["url"])

        assert asked.json["url"].startswith(f"{running.url}/open?code=")
        assert machine.started == []
        assert (first.status_code, str(first.url)) == (200, f"{running.url}/")
        assert "tester" in texts(first)
        assert again.status_code == 403
        assert f"console={running.url}/" in running.log_text()
        assert asked.json["url"].partition("code=")[2] not in running.log_text()
        assert [path.stat().st_mode & 0o777 for path in files(machine)] == [0o600]
        await running.end()
        assert files(machine) == []


async def test_the_user_of_the_machine_needs_no_token_at_his_own_server(machine: Machine) -> None:
    async with on_http(machine.server) as running, library_at(machine.dsn) as library, browser() as visitor:
        await Team(running, library).token("ann", "harbour:reader")

        page = await visitor.get((await machine.open("--json")).json["url"])

    assert "tester" in texts(page)


async def test_without_a_server_one_is_started_and_found_again(machine: Machine) -> None:
    links = await asyncio.gather(*(machine.open("--json") for _ in range(3)))
    later = await machine.open("--json")
    hosts = {httpx.URL(link.json["url"]).copy_with(query=None) for link in (*links, later)}

    async with browser() as visitor:
        page = await visitor.get(later.json["url"])
    assert len(hosts) == 1, "three commands at the same time start one server"
    assert httpx.URL(later.json["url"]).host == "127.0.0.1"
    assert "tester" in texts(page)
    [process] = machine.started
    os.kill(process, signal.SIGTERM)
    await gone(process)
    assert files(machine) == []


async def test_a_killed_server_is_replaced(machine: Machine) -> None:
    before = (await machine.open("--json")).json["url"]
    [process] = machine.started
    os.kill(process, signal.SIGKILL)
    await gone(process)
    assert len(files(machine)) == 1

    after = (await machine.open("--json")).json["url"]

    async with browser() as visitor:
        assert (await visitor.get(after)).status_code == 200
    assert httpx.URL(before).port != httpx.URL(after).port
    assert len(files(machine)) == 1


async def test_a_program_at_the_address_of_an_old_file_gets_no_link(machine: Machine) -> None:
    """Another user's program may listen on the port by now, and answer anything."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        body = b'{"proof": "' + b"0" * 64 + b'"}'
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    imposter = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = imposter.sockets[0].getsockname()[1]
    secret = "x" * 43
    async with imposter:
        folder = machine.home / "servers"
        folder.mkdir(parents=True)
        address = f"http://127.0.0.1:{port}"
        (folder / "old.json").write_text(json.dumps({"address": address, "url": address, "secret": secret}))
        link = (await machine.open("--json")).json["url"]

    assert httpx.URL(link).port != port
    assert heard
    assert all(PROOF_PATH.encode() in request and b"code" not in request for request in heard)
    assert secret.encode() not in b"".join(heard)


@pytest.mark.parametrize("content", ["", "{}", "[]", "nonsense", '{"address": 1, "url": 2, "secret": 3}', '"\\ud800"'])
async def test_a_damaged_file_is_no_server(machine: Machine, content: str) -> None:
    folder = machine.home / "servers"
    folder.mkdir(parents=True)
    (folder / "damaged.json").write_text(content)

    assert await asyncio.to_thread(find_server, machine.settings) is None


async def test_a_server_of_another_memory_is_not_used(machine: Machine) -> None:
    async with on_http(machine.server) as running:
        other = machine.settings.model_copy(update={"database_url": None})

        assert await asyncio.to_thread(find_server, other) is None
        assert await asyncio.to_thread(find_server, machine.settings) == running.url


async def test_a_read_only_server_is_not_used(machine: Machine) -> None:
    async with on_http(machine.server, "--read-only"):
        assert files(machine) == []
        assert await asyncio.to_thread(find_server, machine.settings) is None


async def test_the_proof_needs_the_secret_and_the_memory(machine: Machine) -> None:
    one, other = Identity.of(machine.settings), Identity.of(machine.settings)
    elsewhere = Identity.of(machine.settings.model_copy(update={"database_url": None}), one.secret)

    assert one.prove("1") == Identity.of(machine.settings, one.secret).prove("1")
    assert len({one.prove("1"), one.prove("2"), other.prove("1"), elsewhere.prove("1")}) == 4


async def test_the_address_of_a_proxy_is_opened_and_the_own_one_asked(machine: Machine) -> None:
    public = "https://memory.example.com/team"
    async with on_http(machine.server, "--url", public) as running:
        link = (await machine.open("--json")).json["url"]

    assert link.startswith(f"{public}/open?code=")
    assert f"console={public}/" in running.log_text()


def test_a_server_on_every_address_is_asked_on_loopback(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with registered(settings, Identity.of(settings), "http://0.0.0.0:8765", None):
        [path] = (tmp_path / "servers").glob("*.json")
        assert json.loads(path.read_text())["url"] == "http://127.0.0.1:8765"
    assert not path.exists()


def test_a_home_that_cannot_be_written_does_not_stop_a_server(tmp_path: Path) -> None:
    (tmp_path / "servers").write_text("in the way")
    settings = Settings(home=tmp_path)

    with registered(settings, Identity.of(settings), "http://127.0.0.1:8765", None):
        pass


async def test_every_worker_proves_itself(machine: Machine) -> None:
    async with on_http(machine.with_environment(FOLKLORE_HTTP__WORKERS="2").server) as running:
        for _ in range(8):
            assert await asyncio.to_thread(find_server, machine.settings) == running.url


# The browser


async def test_the_browser_gets_the_link_and_the_terminal_does_not(machine: Machine, tmp_path: Path) -> None:
    opened, script = tmp_path / "opened", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}\n')
    script.chmod(0o755)
    async with on_http(machine.server) as running, browser() as visitor:
        ran = await machine.with_environment(BROWSER=str(script)).open()
        page = await visitor.get(opened.read_text())

    assert ran.code == 0, ran.err
    assert running.url in ran.out
    assert "code=" not in ran.out + ran.err
    assert "tester" in texts(page)


async def test_the_link_is_printed_without_a_browser(machine: Machine) -> None:
    async with on_http(machine.server) as running, browser() as visitor:
        for arguments in (["--no-browser"], []):
            ran = await machine.with_environment(BROWSER="/nonexistent/browser").open(*arguments)
            page = await visitor.get(ran.out.strip())

            assert ran.out.startswith(f"{running.url}/open?code=")
            assert "once" in ran.err
            assert page.status_code == 200


# With --server


async def test_a_team_server_signs_in_the_person_of_the_token(machine: Machine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    away = Machine(watched(elsewhere), elsewhere / "home", machine.dsn)
    async with on_http(machine.server) as running, library_at(machine.dsn) as library, browser() as visitor:
        created = await Team(running, library).token("ann", "harbour:reader")

        without = await away.open("--json", "--server", running.url)
        given = await away.open("--json", "--server", f"{running.url}/mcp", "--token", created.secret)
        page = await visitor.get(given.json["url"])

    assert (without.code, json.loads(without.err)["error"]["code"]) == (5, "unauthenticated")
    assert given.json["url"].startswith(f"{running.url}/open?code=")
    assert "ann" in texts(page)
    assert away.started == []


async def test_an_unreachable_team_server_is_an_error(machine: Machine) -> None:
    ran = await machine.open("--server", f"http://127.0.0.1:{free_port()}")

    assert ran.code == 3
    assert machine.started == []


# Starting and ending


async def test_a_server_that_cannot_start_is_reported_with_its_log(machine: Machine) -> None:
    ran = await machine.with_environment(FOLKLORE_EMBEDDING__PROVIDER="openai").open("--json")

    error = json.loads(ran.err)["error"]
    assert ran.code != 0
    assert "embedding" in json.dumps(error)


async def test_a_read_only_memory_is_refused_before_anything_starts(machine: Machine) -> None:
    ran = await machine.with_environment(FOLKLORE_READ_ONLY="true").open()

    assert ran.code == 5
    assert "read_only" in ran.err
    assert machine.started == []


async def test_a_server_until_idle_ends_after_a_time_without_requests(machine: Machine) -> None:
    brief = limited(machine.server, until_idle_seconds=2.0)
    async with on_http(brief, "--until-idle", module="tests.limited") as running, asyncio.timeout(60):
        async with httpx.AsyncClient(base_url=running.url) as client:
            for _ in range(8):  # 4 seconds of use
                assert (await client.get("/healthz")).status_code == 200
                await asyncio.sleep(0.5)
        assert await running.process.wait() == 0

    assert files(machine) == []
    assert "idle" in running.log_text()
