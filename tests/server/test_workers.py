"""Several workers on one port: any of them answers, a dead one is replaced, all end together."""

import asyncio
import os
import pickle
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from mcp import Client

from folklore.config import Settings
from folklore.server.application.serve import uvicorn_config
from tests.servers import HttpServer, a_session_of_work, on_http, watched

pytestmark = pytest.mark.strain


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    settings = watched(
        tmp_path_factory.mktemp("workers"), database_url=address, http__workers="2"
    )
    async with on_http(settings, alone=True) as running:
        await serving(running, 2)
        yield running
        assert settings.attempts() == ""


def workers(server: HttpServer) -> set[int]:
    """Return the processes that serve."""
    children = (
        Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        .read_text()
        .split()
    )
    return {
        int(child)
        for child in children
        if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()
    }


async def serving(server: HttpServer, count: int, *, but: int = 0) -> set[int]:
    """Return the workers, once there are as many and all of them have started."""
    async with asyncio.timeout(120):
        while True:
            found = workers(server) - {but}
            started = server.log_text()
            if len(found) == count and all(
                f"server process [{one}]" in started for one in found
            ):
                return found
            await asyncio.sleep(0.05)


async def processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks at processes by /proc"
)
class TestOnLinux:
    async def test_both_serve(self, server: HttpServer) -> None:
        before = {one: await processor_time(one) for one in workers(server)}

        async def ask() -> None:
            for _ in range(5):
                async with Client(
                    f"{server.url}/mcp", read_timeout_seconds=30
                ) as client:
                    assert not (await client.call_tool("memory_list", {})).is_error

        await asyncio.gather(*(ask() for _ in range(8)))

        assert len(before) == 2
        assert all([await processor_time(one) > spent for one, spent in before.items()])

    async def test_one_that_is_killed_is_replaced_and_then_no_call_fails(
        self, server: HttpServer
    ) -> None:
        victim, other = workers(server)
        os.kill(victim, signal.SIGKILL)
        after = await serving(server, 2, but=victim)

        async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
            stored = [
                await client.call_tool("memory_store", {"content": f"the {n}th buoy"})
                for n in range(10)
            ]
        async with httpx.AsyncClient(base_url=server.url) as plain:
            answers = [
                await plain.get("/readyz", headers={"Connection": "close"}, timeout=30)
                for _ in range(40)
            ]

        assert other in after
        assert not any(one.is_error for one in stored)
        assert {answer.status_code for answer in answers} == {200}

    async def test_the_address_of_the_database_is_in_no_command_line(
        self, server: HttpServer
    ) -> None:
        lines = [Path(f"/proc/{one}/cmdline").read_text() for one in workers(server)]

        assert len(lines) == 2
        assert not any("postgresql" in line for line in lines)


async def test_a_session_of_work_with_any_of_them(server: HttpServer) -> None:
    async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
        await a_session_of_work(client)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/sse"), ("POST", "/messages/?session_id=0")]
)
async def test_several_workers_refuse_sse_and_name_the_alternative(
    server: HttpServer, method: str, path: str
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.request(method, path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (
        501,
        "sse_needs_one_worker",
    )
    assert "/mcp" in answer.json()["error"]["hint"]


async def test_all_end_at_a_signal_and_leave_nothing(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    async with on_http(
        watched(tmp_path, database_url=database_url, http__workers="2"),
        alone=True,
    ) as server:
        async with Client(f"{server.url}/mcp") as client:
            stored = await client.call_tool("memory_store", {"content": "acknowledged"})
        await server.end()

    assert not stored.is_error
    assert server.process.returncode == 0
    assert await connection.fetchval("select content from memories") == "acknowledged"
    assert (
        await connection.fetchval(
            "select count(*) from pg_stat_activity where application_name = 'folklore' and datname = current_database()"
        )
        == 0
    )


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks at processes by /proc"
)
async def test_workers_end_when_their_parent_is_killed(
    database_url: str, tmp_path: Path
) -> None:
    async with on_http(
        watched(tmp_path, database_url=database_url, http__workers="2"),
        alone=True,
    ) as server:
        left = await serving(server, 2)
        await server.end(signal.SIGKILL)
        async with asyncio.timeout(120):
            while any(Path(f"/proc/{one}").exists() for one in left):
                await asyncio.sleep(0.05)


def test_a_worker_gets_the_settings_unchanged_by_pickle(settings: Settings) -> None:
    config = uvicorn_config(settings, "127.0.0.1")
    sent = pickle.loads(pickle.dumps(config)).app.args[0]

    assert settings.database_url is not None
    assert sent == settings
    assert (
        sent.database_url.get_secret_value() == settings.database_url.get_secret_value()
    )
