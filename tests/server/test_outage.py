"""Postgres stopped and started again under load: calls fail clearly meanwhile, and succeed again by themselves."""

import asyncio
import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from folklore.db.migrate import migrate
from folklore.engine import Engine
from tests.faults.network import Network
from tests.person import Person
from tests.servers import on_http, watched
from tests.team import bearer, library_at
from tests.temporary_engine import temporary_home
from tests.wire import MCP, call

pytestmark = pytest.mark.strain

CLIENTS = 6
CLEAR = re.compile(
    "The database (cannot be reached|is unavailable|was unavailable|or the token's issuer is unavailable)"
)
MODES = {"immediate": signal.SIGQUIT, "fast": signal.SIGINT}


@dataclass(frozen=True, slots=True)
class Called:
    """A call of one client, its times by the clock of this process, and its error."""

    client: int
    began: float
    ended: float
    error: str | None


@dataclass
class Load:
    """Clients that recall and store until `ending` is set."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    ending: bool = False

    async def client(self, number: int) -> None:
        async with (
            httpx2.AsyncClient(headers=self.headers, timeout=60) as http,
            Client(
                streamable_http_client(f"{self.url}/mcp", http_client=http),
                read_timeout_seconds=60,
            ) as client,
        ):
            count = 0
            while not self.ending:
                count += 1
                content = f"client {number}, fact {count}"
                if await self._call(client, number, "memory_store", content=content):
                    self.acknowledged.append(content)
                await self._call(client, number, "memory_recall", query=f"fact {count}")

    async def _call(
        self, client: Client, number: int, tool: str, **arguments: str
    ) -> bool:
        began = time.monotonic()
        answer = await client.call_tool(tool, dict(arguments))
        error = str(answer.content) if answer.is_error else None
        self.calls.append(Called(number, began, time.monotonic(), error))
        if error:
            await asyncio.sleep(0.05)
        return error is None

    async def until_each_succeeded_since(self, moment: float) -> None:
        async with asyncio.timeout(120):
            while True:
                succeeded = {
                    call.client
                    for call in self.calls
                    if call.began > moment and call.error is None
                }
                if len(succeeded) == CLIENTS:
                    return
                await asyncio.sleep(0.02)

    async def until_failing(self) -> None:
        async with asyncio.timeout(120):
            while not any(call.error for call in self.calls[-CLIENTS:]):
                await asyncio.sleep(0.02)


async def stop(home: Path, sign: signal.Signals) -> None:
    """Stop Postgres as `pg_ctl stop -m` does."""
    note = home / "engine" / "data" / "postmaster.pid"
    process = int(note.read_text().split()[0])
    os.kill(process, sign)
    async with asyncio.timeout(120):
        while note.exists() or Path(f"/proc/{process}").exists():
            await asyncio.sleep(0.02)
            with suppress(ProcessLookupError):
                os.kill(process, 0)
                continue
            break


async def a_token(dsn: str) -> dict[str, str]:
    """Return the headers with a token for the namespace."""
    await migrate(dsn)
    async with library_at(dsn) as library:
        owner = Person(library, name="root", now=datetime.now(UTC))
        made = await owner.create_token("root", "notes:admin", namespace="notes")
    return bearer(made.secret)


@pytest.mark.parametrize(
    "tokens", [False, True], ids=["without a token", "with a token"]
)
async def test_calls_fail_clearly_while_postgres_is_down_and_recover_by_themselves(
    tmp_path: Path, tokens: bool
) -> None:
    with temporary_home() as home:
        engine = Engine(home, idle_minutes=10, shared_buffers="32MB")
        dsn = await asyncio.to_thread(engine.start)
        settings = watched(tmp_path, database_url=dsn)
        async with (
            on_http(settings) as server,
            httpx2.AsyncClient(base_url=server.url, timeout=30) as raw,
        ):
            load = Load(server.url, await a_token(dsn) if tokens else {})
            clients = [
                asyncio.create_task(load.client(number)) for number in range(CLIENTS)
            ]
            await load.until_each_succeeded_since(0)
            for name, sign in MODES.items():
                down = time.monotonic()
                await stop(home, sign)
                await load.until_failing()
                await asyncio.sleep(1)
                answer = await raw.post(
                    "/mcp", json=call("memory_list"), headers=MCP | load.headers
                )
                assert CLEAR.search(answer.text)
                await asyncio.to_thread(engine.start)
                back = time.monotonic()
                await load.until_each_succeeded_since(back)
                failed = [
                    call for call in load.calls if call.error and call.ended > down
                ]
                slowest = max(call.ended - call.began for call in failed)
                last = max(call.began for call in failed) - back
                print(
                    f"{name}: {len(failed)} failed, the slowest in {slowest:.2f} s, the last {last:+.2f} s from return"
                )
                unclear = {
                    call.error for call in failed if not CLEAR.search(str(call.error))
                }
                assert not unclear
            load.ending = True
            await asyncio.gather(*clients)
            await server.end()
        connection = await asyncpg.connect(dsn)
        kept = {
            row["content"]
            for row in await connection.fetch("select content from memories")
        }
        await connection.close()

    assert len(load.acknowledged) > 2 * CLIENTS
    assert set(load.acknowledged) <= kept


@dataclass
class Failing:
    """Clients of the HTTP API, how many of them go on, and the ids of the requests that were answered by a 5xx."""

    url: str
    ids: Counter[str] = field(default_factory=Counter)
    count: int = CLIENTS

    async def client(self, number: int) -> None:
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as http:
            while number < self.count:
                memories = [{"content": f"{number} {time.monotonic()}"}]
                await self._post(
                    http, "/api/store", {"memories": memories, "namespace": "notes"}
                )
                await self._post(http, "/api/recall", {"query": "fact"})

    async def _post(
        self, http: httpx.AsyncClient, path: str, body: dict[str, object]
    ) -> None:
        answer = await http.post(path, json=body)
        if answer.status_code >= 500:
            self.ids[answer.headers["x-request-id"]] += 1
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("outage", "after"), [("refused", CLIENTS), ("silent", CLIENTS), ("silent", 1)]
)
async def test_an_outage_is_reported_once_and_each_failure_has_its_line(
    database_url: str, tmp_path: Path, outage: str, after: int
) -> None:
    network = Network(lambda: database_url)
    await network.open()
    settings = watched(tmp_path, database_url=network.url, log_format="json")
    async with on_http(settings) as server:
        failing = Failing(server.url)
        clients = [
            asyncio.create_task(failing.client(number)) for number in range(CLIENTS)
        ]
        await _until(lambda: "route" in server.log_text())
        await _begin(network, outage)
        # Requests that wait for a connection fail before one of the connections does.
        await _until(
            lambda: (
                len(failing.ids) >= 3 * CLIENTS
                and "database_unreachable" in server.log_text()
            )
        )
        failing.count = after  # one client alone needs no new connection
        await _end(network, outage)
        await _until(lambda: "database_reachable_again" in server.log_text())
        failing.count = 0
        await asyncio.gather(*clients)
        lines = [json.loads(line) for line in server.log_text().splitlines()]
    await network.shut()

    events = Counter(line["event"] for line in lines)
    assert (events["database_unreachable"], events["database_reachable_again"]) == (
        1,
        1,
    )
    [summary] = [line for line in lines if line["event"] == "database_reachable_again"]
    assert summary["failed"] > 0
    assert [line for line in lines if "exception" in line] == []
    requests = [line for line in lines if line["event"] == "request"]
    assert (
        Counter(line["request_id"] for line in requests if int(line["status"]) >= 500)
        == failing.ids
    )
    assert _with_the_id_of_another(lines) == []


async def _begin(network: Network, outage: str) -> None:
    if outage == "refused":
        await network.shut()
    else:
        network.split()


async def _end(network: Network, outage: str) -> None:
    if outage == "refused":
        await network.open()
    else:
        network.heal()


def _with_the_id_of_another(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    """Lines of jobs that carry the id of a request, and lines that come after the end of their request."""
    ended = {
        line["request_id"]: place
        for place, line in enumerate(lines)
        if line["event"] == "request"
    }
    late = [
        line
        for place, line in enumerate(lines)
        if place > ended.get(line.get("request_id"), len(lines))
    ]
    return late + [
        line
        for line in lines
        if str(line["event"]).startswith("job_") and "request_id" in line
    ]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.05)
