"""Folklore on stdio as a client starts it: stdout carries protocol messages only."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from mcp import Client
from mcp.types import INVALID_PARAMS

import folklore
from folklore.app import App
from folklore.config import Settings
from folklore.engine import Engine
from folklore.mcp.server import build_server
from tests import forks
from tests.conftest import connected
from tests.doors import own_service
from tests.doorway import Doorway
from tests.servers import Watched, a_session_of_work, free_port, on_stdio, watched
from tests.temporary_engine import temporary_home
from tests.waiting import STUCK


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_session_of_work_on_stdio_needs_no_network(
    database_url: str, tmp_path: Path, mode: str
) -> None:
    server = watched(tmp_path, database_url=database_url)

    async with Client(on_stdio(server), mode=mode, read_timeout_seconds=30) as client:
        await a_session_of_work(client)

    assert server.attempts() == ""


def test_the_network_guard_of_these_tests_records_a_connection(tmp_path: Path) -> None:
    server = watched(tmp_path)
    program = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=server.environment,
        capture_output=True,
        check=False,
    )

    assert done.returncode != 0
    assert "192.0.2.1" in server.attempts()


def test_a_started_server_runs_the_code_that_the_tests_import(tmp_path: Path) -> None:
    program = "import folklore; print(folklore.__file__)"
    environment = watched(tmp_path).environment
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == folklore.__file__


class Wire:
    """A server process spoken to line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def send(
        self, method: str, id_: int | None = None, **parameters: Any
    ) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": parameters} | (
            {} if id_ is None else {"id": id_}
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def answer(self, id_: int) -> dict[str, Any]:
        return dict((await self.message(id_))["result"])

    async def message(self, id_: int | str | None) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(STUCK):
            while line := await self.process.stdout.readline():
                self.lines.append(line.decode())
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == id_:
                    return message
        raise AssertionError("the server has gone")

    async def hang_up(self) -> str:
        """Close its input, wait for its end and return its stderr."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(STUCK):
            rest, errors = await self.process.communicate()
        self.lines += rest.decode().splitlines()
        return errors.decode()


@asynccontextmanager
async def wire(
    server: Watched, *arguments: str, cwd: Path | None = None, alone: bool = True
) -> AsyncIterator[Wire]:
    """A server, which is a process of its own from the beginning if it is `alone`."""
    program = [sys.executable, "-m", "folklore"] if alone else forks.command()
    process = await asyncio.create_subprocess_exec(
        *(*program, *arguments, "serve"),
        env=dict(server.environment),
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    spoken = Wire(process)
    client = {"name": "test", "version": "1"}
    await spoken.send(
        "initialize",
        1,
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo=client,
    )
    await spoken.answer(1)
    await spoken.send("notifications/initialized")
    try:
        yield spoken
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_an_unavailable_database_is_reported_as_an_answer_and_stdout_stays_clean(
    tmp_path: Path,
) -> None:
    server = watched(
        tmp_path,
        database_url=f"postgresql://x:hunter2@127.0.0.1:{free_port()}/none",
        log_level="debug",
    )

    async with wire(server, "--log-level", "debug") as spoken:
        await spoken.send("tools/list", 2)
        tools = (await spoken.answer(2))["tools"]
        await spoken.send(
            "tools/call", 3, name="memory_recall", arguments={"query": "x"}
        )
        called = await spoken.answer(3)
        await spoken.send("tools/list", 4)
        again = (await spoken.answer(4))["tools"]
        errors = await spoken.hang_up()

    assert called["isError"] is True
    text = called["content"][0]["text"]
    assert "cannot be reached" in text
    assert "database_url" in text, "the next step"
    assert tools == again
    assert spoken.process.returncode == 0
    for line in spoken.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert "hunter2" not in "".join(spoken.lines) + errors
    assert not (tmp_path / "home").exists(), (
        "it never falls back to an engine of its own"
    )


async def test_a_lone_surrogate_in_a_call_is_removed_and_the_call_is_answered(
    database_url: str, tmp_path: Path
) -> None:
    server = watched(tmp_path, database_url=database_url)
    async with wire(server, alone=False) as spoken:
        await spoken.send(
            "tools/call",
            2,
            name="memory_store",
            arguments={"content": "The launch is go \ud83d"},
        )
        stored = (await spoken.answer(2))["structuredContent"]
        await spoken.send(
            "tools/call",
            3,
            name="memory_recall",
            arguments={"query": "launch \udc4d of the \ud83d\udc4d"},
        )
        [found] = (await spoken.answer(3))["structuredContent"]["memories"]

    assert found["content"] == "The launch is go"
    assert "removed before storing (content: 1 character)" in stored["note"]


async def test_a_call_whose_parameters_are_no_object_gets_an_error_with_its_id(
    tmp_path: Path,
) -> None:
    async with wire(watched(tmp_path), alone=False) as spoken:
        assert spoken.process.stdin is not None
        spoken.process.stdin.write(
            b'{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": 5}\n'
        )
        refused = await spoken.message(2)

    assert refused["error"]["code"] == INVALID_PARAMS


async def send_long_lines(spoken: Wire) -> list[dict[str, Any]]:
    """Send lines over the limit, one of them of 200 MB; return the errors that answer them."""
    assert spoken.process.stdin is not None
    text = "x" * 5_000_000
    call = {
        "method": "tools/call",
        "params": {"name": "memory_store", "arguments": {"content": text}},
    }
    for message in (
        {"jsonrpc": "2.0", "id": 7} | call,
        call | {"jsonrpc": "2.0", "id": "last"},
        call,
    ):
        spoken.process.stdin.write(json.dumps(message).encode() + b"\n")
    spoken.process.stdin.write(
        b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":"'
    )
    for _ in range(200):
        spoken.process.stdin.write(b"y" * 1_000_000)
        await spoken.process.stdin.drain()
    spoken.process.stdin.write(b'"}\n')
    return [(await spoken.message(id_))["error"] for id_ in (7, "last", None, 8)]


def most_resident(process: asyncio.subprocess.Process) -> int:
    """Return the most megabytes that a process ever had in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


async def test_an_acknowledged_store_survives_sigkill(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    async with wire(watched(tmp_path, database_url=database_url)) as spoken:
        await spoken.send(
            "tools/call", 2, name="memory_store", arguments={"content": "acknowledged"}
        )
        answered = await spoken.answer(2)
        spoken.process.kill()
        await spoken.process.communicate()

    assert answered["structuredContent"]["stored"][0]["status"] == "stored"
    assert await connection.fetchval("select content from memories") == "acknowledged"


async def test_the_server_ends_with_its_input_and_leaves_only_the_engine_running(
    tmp_path: Path,
) -> None:
    with temporary_home() as home:
        server = watched(tmp_path, home=str(home))
        async with wire(server) as spoken:
            await spoken.send(
                "tools/call",
                2,
                name="memory_store",
                arguments={"content": "kept in the engine"},
            )
            assert (await spoken.answer(2))["structuredContent"]["stored"][0][
                "status"
            ] == "stored"
            await spoken.hang_up()

        assert spoken.process.returncode == 0
        assert Engine(home).status().running
        assert [
            line
            for line in processes_of(home)
            if "postgres" not in line and "folklore.engine" not in line
        ] == []


def processes_of(home: Path) -> list[str]:
    """The command lines of living processes whose arguments or environment name the home."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc").exists() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                arguments = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(home) in arguments + environment and arguments:
                found.append(arguments.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


@pytest.fixture
async def doorway(database_url: str) -> AsyncIterator[Doorway]:
    door = Doorway(database_url)
    await door.open()
    await door.shut()
    yield door
    await door.shut()


async def test_the_server_reconnects_to_a_database_that_comes_back(
    doorway: Doorway, tmp_path: Path
) -> None:
    app = App(
        Settings(
            database_url=doorway.url, author="tester", namespace="notes", home=tmp_path
        )
    )
    async with connected(build_server(own_service(app))) as client:

        async def store(text: str) -> bool:
            return not (
                await client.call_tool("memory_store", {"content": text})
            ).is_error

        down_at_first = await store("never arrives")
        await doorway.open()
        up = await store("arrives")
        await doorway.shut()
        down_again = await store("never arrives either")
        await doorway.open()
        async with asyncio.timeout(STUCK):
            # each connection of the pool finds out for itself
            while not await store("arrives again"):
                pass
        found = await client.call_tool("memory_recall", {"query": "*"})
    await app.close()

    assert (down_at_first, up, down_again) == (False, True, False)
    assert found.structured_content is not None
    assert {memory["content"] for memory in found.structured_content["memories"]} == {
        "arrives",
        "arrives again",
    }


async def test_a_failed_start_is_retried_and_a_cancelled_caller_cancels_no_shared_start(
    doorway: Doorway, tmp_path: Path
) -> None:
    app = App(Settings(database_url=doorway.url, author="tester", home=tmp_path))
    failures = await asyncio.gather(app.ready(), app.ready(), return_exceptions=True)
    await doorway.open()
    impatient = asyncio.create_task(app.ready())
    patient = asyncio.create_task(app.ready())
    await asyncio.sleep(0)
    impatient.cancel()

    running = await patient
    await app.close()

    assert [type(failure).__name__ for failure in failures] == [
        "DatabaseUnavailable"
    ] * 2
    assert impatient.cancelled()
    assert running.where == "server"
