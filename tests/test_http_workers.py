"""Several processes on one port: any of them answers, a dead one is replaced, all end together."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from folklore.config import Settings
from folklore.errors import ConfigInvalid
from folklore.http.worker_proxy import WorkerProxy
from folklore.http.workers import Workers
from tests.conftest import Cluster
from tests.servers import HttpServer, a_session_of_work, on_http, watched
from tests.team import Team, bearer, library_at
from tests.wire import INITIALIZE, MCP

pytestmark = pytest.mark.strain


@pytest.fixture(scope="module")
async def server(
    cluster: Cluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    async with cluster.new_database(template) as name:
        settings = watched(tmp_path_factory.mktemp("workers"), database_url=cluster.address(name))
        async with on_http(settings, "--workers", "2") as running:
            await serving(running, 2)
            yield running
            assert settings.attempts() == ""


def workers(server: HttpServer) -> set[int]:
    """The processes that serve."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return {int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()}


async def serving(server: HttpServer, count: int, *, but: int = 0) -> set[int]:
    """The workers, once there are as many and all of them listen."""
    async with asyncio.timeout(30):
        while True:
            found = workers(server) - {but}
            started = server.told()
            if len(found) == count and all(f"server process [{one}]" in started for one in found):
                return found
            await asyncio.sleep(0.05)


async def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes by /proc")
class TestOnLinux:
    async def test_both_serve(self, server: HttpServer) -> None:
        before = {one: await processor_time(one) for one in workers(server)}

        async def ask() -> None:
            for _ in range(5):
                async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
                    assert not (await client.call_tool("memory_list", {})).is_error

        await asyncio.gather(*(ask() for _ in range(8)))

        assert len(before) == 2
        assert all([await processor_time(one) > spent for one, spent in before.items()])

    async def test_one_that_is_killed_is_replaced_and_then_no_call_fails(self, server: HttpServer) -> None:
        victim, other = workers(server)
        os.kill(victim, signal.SIGKILL)
        after = await serving(server, 2, but=victim)

        async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
            stored = [await client.call_tool("memory_store", {"content": f"the {n}th buoy"}) for n in range(10)]
        async with httpx.AsyncClient(base_url=server.url) as plain:
            answers = [await plain.get("/readyz", headers={"Connection": "close"}, timeout=30) for _ in range(40)]

        assert other in after
        assert not any(one.is_error for one in stored)
        assert {answer.status_code for answer in answers} == {200}

    async def test_the_address_of_the_database_is_in_no_command_line(self, server: HttpServer) -> None:
        lines = [Path(f"/proc/{one}/cmdline").read_text() for one in workers(server)]

        assert len(lines) == 2
        assert not any("postgresql" in line for line in lines)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_session_on_sse_lives_in_one_worker_and_its_messages_find_it(server: HttpServer, mode: str) -> None:
    async def session() -> None:
        async with Client(sse_client(f"{server.url}/sse"), mode=mode, read_timeout_seconds=30) as client:
            for _ in range(5):
                assert not (await client.call_tool("memory_list", {})).is_error

    await asyncio.gather(*(session() for _ in range(6)))


async def test_a_session_of_work_with_any_of_them(server: HttpServer) -> None:
    async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
        await a_session_of_work(client)


async def test_a_message_for_no_session_is_not_found_at_any_of_them(server: HttpServer) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        for worker in (0, 1, 0, 1):
            answer = await client.post(
                f"/messages/{worker}/", params={"session_id": "0" * 32}, json={}, headers={"Connection": "close"}
            )
            assert answer.status_code == 404, answer.text


async def test_all_end_at_a_signal_and_leave_nothing(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    async with on_http(watched(tmp_path, database_url=database_url), "--workers", "2") as server:
        async with Client(f"{server.url}/mcp") as client:
            stored = await client.call_tool("memory_store", {"content": "acknowledged"})
        took = await server.end()

    assert not stored.is_error
    assert took < 6
    assert server.process.returncode == 0
    assert await connection.fetchval("select content from memories") == "acknowledged"
    assert (
        await connection.fetchval(
            "select count(*) from pg_stat_activity where application_name = 'folklore' and datname = current_database()"
        )
        == 0
    )


def test_settings_reach_a_worker_as_they_are(settings: Settings) -> None:
    import pickle

    assert settings.database_url is not None
    sent = pickle.loads(pickle.dumps(settings.portable()))

    assert sent == settings
    assert sent.database_url.get_secret_value() == settings.database_url.get_secret_value()


def _fail(notes: str) -> None:
    with Path(notes).open("a") as file:
        file.write("x")
    raise SystemExit(1)


def test_one_that_fails_at_its_start_is_tried_again_after_a_growing_pause(tmp_path: Path) -> None:
    notes = tmp_path / "starts"
    failing = Workers([(str(notes),)], _fail)
    place = failing._places[0]
    pauses = []
    for _ in range(3):
        place.due = 0.0
        failing._fill()
        failing._wait()  # until it has ended
        pauses.append(place.pause)
    failing._end_all(grace=1)

    assert notes.read_text() == "xxx"
    assert pauses == sorted(set(pauses))


async def test_a_token_opens_its_session_on_sse_from_any_of_them_and_no_other_token_does(
    database_url: str, tmp_path: Path
) -> None:
    async with (
        on_http(watched(tmp_path, database_url=database_url), "--workers", "2") as server,
        library_at(database_url) as library,
    ):
        team = Team(server, library)
        alice, bob = [await team.token(name, "notes:writer", namespace="notes") for name in ("alice", "bob")]

        async def session() -> bool:
            async with team.assistant(alice.secret, sse=True) as client:
                answers = [await client.call_tool("memory_list", {}) for _ in range(4)]
            return not any(answer.is_error for answer in answers)

        well = await asyncio.gather(*(session() for _ in range(4)))
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=30) as client,
            client.stream("GET", "/sse", headers=bearer(alice.secret)) as stream,
        ):
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    break
            where = line.removeprefix("data:").strip()
            statuses = set()
            for secret in (bob.secret, "fk_nobody"):
                for _ in range(6):  # each on a connection of its own, so that both workers are asked
                    sent = {"Connection": "close"} | MCP | bearer(secret)
                    statuses.add((await client.post(where, json=INITIALIZE, headers=sent)).status_code)

    assert all(well)
    assert statuses == {404, 401}


def test_a_folder_that_holds_no_sockets_is_refused_with_advice(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()

    with pytest.raises(ConfigInvalid, match=r"http\.workers: .*too long.*TMPDIR"):
        WorkerProxy(folder, 2).bound()
