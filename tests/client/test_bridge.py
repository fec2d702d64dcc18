"""The bridge: a real process on stdio in front of a real server over HTTP."""

import asyncio
import contextlib
import json
import os
import re
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from mcp import Client, StdioServerParameters

from folklore.client.bridge import REPEATABLE
from folklore.client.credentials import save_token
from folklore.mcp.server import INSTRUCTIONS
from folklore.mcp.tools import TOOLS
from tests import forks
from tests.certificates import issued
from tests.client.assistants.test_credentials import keyring  # noqa: F401 - the fixture
from tests.gate import Gate, gate
from tests.mcp.test_stdio import Wire, most_resident, send_long_lines, wire
from tests.repositories import Repository, repository_of
from tests.servers import Watched, free_port, on_http, watched
from tests.team import Team, bearer, called, connected as over_http, library_at, refused
from tests.waiting import STUCK

NAMES = [tool.name for tool in TOOLS]
LIMIT = 60.0  # seconds of a call that does not hang: the bridge answers after a few, and what hangs does for 120


@pytest.fixture(scope="module")
async def team(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    """A server whose callers have tokens."""
    settings = watched(
        tmp_path_factory.mktemp("server"), database_url=address, namespace=""
    )
    async with library_at(address) as library, on_http(settings) as server:
        made = Team(server, library)
        await made.token("root", owner=True)
        yield made
        assert server.crashes() == []


@asynccontextmanager
async def locked(team: Team) -> AsyncIterator[None]:
    """Hold up every write to memories."""
    async with team.library.database.transaction() as session:
        await session.execute("lock table memories in share row exclusive mode")
        yield


def here(folder: Path, **settings: str) -> Watched:
    """The machine of one person: a home of its own, and no namespace in the settings."""
    return watched(folder, **({"namespace": ""} | settings))


def saved(machine: Watched, url: str, token: str) -> None:
    save_token(url, token, home=Path(machine.environment["FOLKLORE_HOME"]))


async def member(team: Team, folder: Path, name: str, *grants: str) -> Watched:
    """The machine of a person whose token is saved."""
    machine = here(folder)
    saved(machine, team.url, (await team.token(name, *grants)).secret)
    return machine


def bridged(
    machine: Watched, url: str, cwd: Path | None = None, **options: Any
) -> Client:
    program, *beginning = forks.command()
    started = StdioServerParameters(
        command=program,
        args=[*beginning, "--server", url, "serve"],
        env=dict(machine.environment),
        cwd=cwd,
    )
    return Client(started, read_timeout_seconds=STUCK, **options)


def bridged_wire(
    machine: Watched, url: str, cwd: Path | None = None
) -> AbstractAsyncContextManager[Wire]:
    return wire(machine, "--server", url, cwd=cwd)


@asynccontextmanager
async def through_gate(
    team: Team, folder: Path, name: str, **options: Any
) -> AsyncIterator[tuple[Gate, Client]]:
    """A gate before the server, and a client whose bridge goes through it; the person has notes of their own."""
    machine = here(folder)
    token = await team.token(name, f"{name}-notes:writer")
    async with gate(team.server.port) as between:
        saved(machine, between.url, token.secret)
        async with bridged(machine, between.url, folder, **options) as client:
            yield between, client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_all_tools_work_through_the_bridge_in_both_eras(
    team: Team, tmp_path: Path, mode: str
) -> None:
    clone = repository_of(tmp_path / "shop", f"git@github.com:acme/all-{mode}.git")
    machine = await member(team, tmp_path, "alice", f"repo:acme/all-{mode}:admin")

    async with bridged(machine, team.url, clone, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        first = await called(
            client,
            "memory_store",
            content="We deploy the shop from Vienna.",
            tags=["deploy"],
        )
        second = await called(
            client, "memory_store", content="The shop's queue is called marble-17."
        )
        ids = [first["stored"][0]["id"], second["stored"][0]["id"]]
        recalled = await called(
            client, "memory_recall", query="where do we deploy from?"
        )
        found = await called(client, "search_keywords", query="marble-17")
        whole = await called(client, "memory_get", ids=ids)
        listed = await called(client, "memory_list")
        updated = await called(
            client, "memory_update", id=ids[0], tags=["deploy", "vienna"]
        )
        related = await called(
            client,
            "memory_relate",
            relations=[{"from": ids[0], "to": ids[1], "type": "depends_on"}],
        )
        status = await called(client, "memory_status")
        forgotten = await called(client, "memory_forget", ids=[ids[1]])

    assert first["namespace"] == f"repo:acme/all-{mode}"
    assert recalled["memories"][0]["id"] == ids[0]
    assert [memory["id"] for memory in found["memories"]] == [ids[1]]
    assert len(whole["memories"]) == len(listed["memories"]) == 2
    assert updated["tags"] == ["deploy", "vienna"]
    assert len(related["created"]) == 1
    assert [space["name"] for space in status["namespaces"]] == [
        f"repo:acme/all-{mode}"
    ]
    assert [memory["id"] for memory in forgotten["forgotten"]] == [ids[1]]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_handshake_lists_resources_and_prompts_are_those_of_the_server(
    team: Team, tmp_path: Path, mode: str
) -> None:
    machine = here(tmp_path)
    token = await team.token("bob", "board:writer")
    saved(machine, team.url, token.secret)

    async def seen(client: Client) -> list[Any]:
        uri = "memory://board/recent"
        return [
            client.instructions,
            client.server_capabilities,
            (await client.list_tools()).tools,
            (await client.list_resources()).resources,
            (await client.list_resource_templates()).resource_templates,
            (await client.list_prompts()).prompts,
            (await client.read_resource(uri)).contents,
            (await client.get_prompt("recall", {"topic": "Café: Größe"})).messages,
        ]

    async with bridged(machine, team.url, tmp_path, mode=mode) as client:
        through = await seen(client)
    async with over_http(team.url, bearer(token.secret), mode=mode) as client:
        direct = await seen(client)

    assert through == direct
    assert through[0] == INSTRUCTIONS


async def test_a_tool_that_no_list_shows_is_called_at_the_server(
    team: Team, tmp_path: Path
) -> None:
    machine = here(tmp_path)
    token = await team.token("carol", "board:writer")
    saved(machine, team.url, token.secret)
    hidden = {
        "event": "UserPromptSubmit",
        "prompt": "nothing known fits this",
        "session": "s1",
    }

    async def outcome(client: Client) -> str:
        try:
            answer = await client.call_tool("client_hook", hidden)
        except Exception as error:  # noqa: BLE001 - a server without it says so, and the bridge must say the same
            return str(error)
        return str(answer.content)

    async with bridged(machine, team.url, tmp_path) as client:
        through = await outcome(client)
    async with over_http(team.url, bearer(token.secret)) as client:
        assert through == await outcome(client)


async def test_a_token_that_only_reads_is_not_offered_the_tools_that_write(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "reader", "board:reader")

    async with bridged(machine, team.url, tmp_path) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]

    assert "memory_recall" in names
    assert not {
        "memory_store",
        "memory_update",
        "memory_forget",
        "memory_relate",
    } & set(names)


async def test_two_repositories_are_two_namespaces(team: Team, tmp_path: Path) -> None:
    machine = await member(
        team, tmp_path, "dora", "repo:acme/one:writer", "repo:acme/two:writer"
    )
    one = repository_of(tmp_path / "one", "https://github.com/acme/one.git")
    two = repository_of(tmp_path / "two", "ssh://git@github.com/acme/two")

    async with bridged(machine, team.url, one / ".git" / "..") as client:
        in_one = await called(client, "memory_store", content="The lamp of one is red.")
    async with bridged(machine, team.url, two) as client:
        in_two = await called(
            client, "memory_store", content="The lamp of two is green."
        )
        recalled = await called(client, "memory_recall", query="the lamp")
    named = here(tmp_path, namespace="repo:acme/one")
    async with bridged(named, team.url, two) as client:
        by_setting = await called(
            client, "memory_store", content="The door of one is blue."
        )
    claude = Watched(
        {**machine.environment, "CLAUDE_PROJECT_DIR": str(one)}, machine.notes
    )
    async with bridged(claude, team.url, tmp_path) as client:
        by_claude = await called(
            client, "memory_store", content="The roof of one is grey."
        )

    assert (in_one["namespace"], in_two["namespace"]) == (
        "repo:acme/one",
        "repo:acme/two",
    )
    assert recalled["memories"][0]["content"] == "The lamp of two is green."
    assert by_setting["namespace"] == by_claude["namespace"] == "repo:acme/one"


async def test_the_token_of_the_settings_precedes_the_saved_one(
    team: Team, tmp_path: Path
) -> None:
    saved(here(tmp_path), team.url, (await team.token("eve", "board:writer")).secret)
    other = await team.token("frank", "frank-notes:writer")
    machine = here(tmp_path, token=other.secret)

    async with bridged(machine, team.url, tmp_path) as client:
        stored = await called(
            client, "memory_store", content="Frank likes tea.", namespace="frank-notes"
        )
        (whole,) = (
            await called(client, "memory_get", ids=[stored["stored"][0]["id"]])
        )["memories"]

    assert whole["author"] == "frank"


async def test_a_revoked_token_is_reported_with_the_next_step_until_there_is_a_new_one(
    team: Team, tmp_path: Path
) -> None:
    machine = here(tmp_path)
    token = await team.token("hugo", "board:writer")
    saved(machine, team.url, token.secret)

    async with bridged(machine, team.url, tmp_path) as client:
        await called(client, "memory_recall", query="anything")
        await team.revoke(token)
        words = await refused(
            client, "memory_store", content="Hugo was here.", namespace="board"
        )
        saved(machine, team.url, (await team.token("hugo", "board:writer")).secret)
        stored = await called(
            client, "memory_store", content="Hugo is here again.", namespace="board"
        )
    saved(machine, team.url, token.secret)
    async with bridged(machine, team.url, tmp_path) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        from_the_start = await refused(client, "memory_status")

    assert team.url in words
    assert "was revoked" in words
    assert "Ask its owner for a new token" in words
    assert "\n" not in words
    assert stored["stored"][0]["status"] == "stored"
    assert names == NAMES
    assert "was revoked" in from_the_start


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_session_that_starts_while_the_server_is_away_works_when_it_is_back(
    database_url: str, tmp_path: Path, mode: str
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    machine = here(tmp_path)

    async with bridged(machine, url, tmp_path, mode=mode) as client:
        began = time.monotonic()
        names = [tool.name for tool in (await client.list_tools()).tools]
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        words = await refused(client, "memory_recall", query="anything")
        waited = time.monotonic() - began
        (tmp_path / "server").mkdir()
        async with on_http(
            watched(tmp_path / "server", database_url=database_url), port=port
        ):
            stored = await called(client, "memory_store", content="The server is back.")
        assert client.instructions == INSTRUCTIONS

    assert names == NAMES
    assert prompts == ["recall", "remember", "review"]
    assert url in words
    assert "cannot be reached" in words
    assert "\n" not in words
    assert waited < LIMIT
    assert stored["namespace"] == "default"


async def test_a_locked_keyring_hangs_no_call(
    team: Team,
    tmp_path: Path,
    keyring: Path,  # noqa: F811
) -> None:
    machine = await member(team, tmp_path, "ulla", "board:writer")
    locked = {
        name: os.environ[name]
        for name in ("PYTHON_KEYRING_BACKEND", "TEST_KEYRING", "PYTHONPATH")
    }
    machine = Watched(
        {**machine.environment, **locked, "TEST_KEYRING_LOCKED": "1"}, machine.notes
    )

    async with bridged(machine, team.url, tmp_path) as client:
        began = time.monotonic()
        words = await refused(client, "memory_recall", query="anything")
        waited = time.monotonic() - began

    assert "Unlock the system's keyring" in words
    assert waited < LIMIT


@pytest.mark.parametrize(
    ("path", "parts"),
    [("", ("needs a token", "FOLKLORE_TOKEN=fk_")), ("/nowhere", ("{url}/nowhere",))],
)
async def test_a_missing_token_and_a_wrong_address_are_named_in_one_line(
    team: Team, tmp_path: Path, path: str, parts: tuple[str, ...]
) -> None:
    async with bridged(here(tmp_path), f"{team.url}{path}", tmp_path) as client:
        words = await refused(client, "memory_recall", query="anything")

    assert all(part.format(url=team.url) in words for part in parts), words
    assert "\n" not in words


async def test_over_tls_the_certificate_is_checked(
    database_url: str, tmp_path: Path
) -> None:
    made = issued(tmp_path / "tls")
    settings = watched(
        tmp_path,
        database_url=database_url,
        http__tls_cert=str(made.certificate),
        http__tls_key=str(made.key),
    )
    machine = here(tmp_path)
    trusting = Watched(
        {**machine.environment, "SSL_CERT_FILE": str(made.certificate)}, machine.notes
    )

    async with on_http(
        settings, trusting=ssl.create_default_context(cafile=str(made.certificate))
    ) as server:
        async with bridged(trusting, server.url, tmp_path) as client:
            for number in range(3):
                await called(
                    client, "memory_store", content=f"The safe has {number} doors."
                )
        async with bridged(machine, server.url, tmp_path) as client:
            words = await refused(client, "memory_recall", query="safe")

    assert "CERTIFICATE_VERIFY_FAILED" in words
    assert "\n" not in words


async def test_the_proxy_of_the_environment_is_used(team: Team, tmp_path: Path) -> None:
    machine = here(tmp_path)
    asked: list[str] = []

    async def refuse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(
            b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    address = f"http://ann:se%20cret@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    through = Watched(
        {**machine.environment, "http_proxy": address, "https_proxy": address},
        machine.notes,
    )
    saved(machine, team.url, (await team.token("tina", "board:writer")).secret)
    async with bridged(through, "http://memory.example.com", tmp_path) as client:
        plain = await refused(client, "memory_status")
    async with bridged(through, "https://memory.example.com", tmp_path) as client:
        tunnelled = await refused(client, "memory_status")
    async with bridged(through, team.url, tmp_path) as client:
        await called(client, "memory_status")  # this machine is never behind a proxy
    proxy.close()

    assert "secret" not in plain + tunnelled
    named = address.replace("ann:se%20cret@", "")
    assert f"by the proxy {named} of http_proxy" in plain
    assert f"by the proxy {named} of https_proxy" in tunnelled
    assert any(
        head.startswith("POST http://memory.example.com/mcp HTTP/1.1") for head in asked
    )
    assert any(head.startswith("CONNECT memory.example.com:443 ") for head in asked)
    assert all("Basic YW5uOnNlIGNyZXQ=" in head for head in asked)
    assert "http://memory.example.com/mcp answered 502" in plain
    assert "https://memory.example.com cannot be reached" in tunnelled


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_store_whose_answer_was_lost_is_stored_once_and_counts_once(
    team: Team, tmp_path: Path, mode: str
) -> None:
    contents = [
        {"content": f"The {colour} buoy lies east, {mode}."}
        for colour in ("red", "green", "white")
    ]

    async with through_gate(team, tmp_path, "ida", mode=mode) as (between, client):
        await client.list_tools()
        between.losing = 1
        stored = await called(
            client, "memory_store", memories=contents, namespace="ida-notes"
        )

    query = "select content, confirmed_count from memories where content like $1"
    async with team.library.database.session() as session:
        rows = await session.connection.fetch(query, f"The % buoy lies east, {mode}.")
    assert len(stored["stored"]) == 3
    # The second request is known by its key: a second store of the same text would confirm the first.
    assert sorted(tuple(row) for row in rows) == sorted(
        (one["content"], 0) for one in contents
    )


async def test_a_change_whose_answer_was_lost_is_not_repeated_and_says_what_to_do(
    team: Team, tmp_path: Path
) -> None:
    async with through_gate(team, tmp_path, "jana") as (between, client):
        await client.list_tools()
        stored = await called(
            client, "memory_store", content="The pier is long.", namespace="jana-notes"
        )
        id_ = stored["stored"][0]["id"]
        between.losing = 1
        words = await refused(
            client, "memory_update", id=id_, content="The pier is 90 m long."
        )
        (whole,) = (await called(client, "memory_get", ids=[id_]))["memories"]

    assert "may have been carried out" in words
    assert "memory_get" in words
    assert (whole["content"], whole["revision"]) == ("The pier is 90 m long.", 2)


async def test_a_server_that_goes_silent_hangs_no_call(
    team: Team, tmp_path: Path
) -> None:
    async with through_gate(team, tmp_path, "kurt") as (between, client):
        await called(client, "memory_status")
        between.silent = True
        for _ in range(2):
            began = time.monotonic()
            words = await refused(client, "memory_recall", query="anything")
            assert time.monotonic() - began < LIMIT
        between.silent = False
        await called(client, "memory_status")

    assert "does not answer" in words


@pytest.mark.strain
async def test_a_slow_call_is_not_taken_for_a_silent_server(
    team: Team, tmp_path: Path
) -> None:
    """A lock in the database holds the store for longer than any call waits for a server that is away."""
    machine = await member(team, tmp_path, "lena", "lena-notes:writer")

    async with bridged(machine, team.url, tmp_path) as client:
        await called(
            client, "memory_store", content="The first buoy.", namespace="lena-notes"
        )
        async with locked(team):
            began = time.monotonic()
            store = asyncio.create_task(
                called(
                    client,
                    "memory_store",
                    content="The second.",
                    namespace="lena-notes",
                )
            )
            await asyncio.sleep(7)
        stored = await store

    assert time.monotonic() - began > 7
    assert stored["stored"][0]["status"] == "stored"


class SlowServer:
    """Answers probes and lists at once, and the calls of tools when they are `let_go`."""

    def __init__(self) -> None:
        self.calls = 0
        self.most = 0
        self.eight = asyncio.Event()
        self.let_go = asyncio.Event()

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with (
            contextlib.closing(writer),
            contextlib.suppress(asyncio.IncompleteReadError, ConnectionError),
        ):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = re.search(r"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                message = json.loads(body or b"{}")
                if message.get("method") == "tools/call":
                    await self._called()
                answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": {}}
                content = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
                )
                await writer.drain()

    async def _called(self) -> None:
        self.calls += 1
        self.most = max(self.most, self.calls)
        if self.calls == 8:
            self.eight.set()
        await self.let_go.wait()
        self.calls -= 1


async def test_a_server_works_on_eight_calls_of_a_session_at_a_time(
    tmp_path: Path,
) -> None:
    slow = SlowServer()
    server = await asyncio.start_server(slow.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async with bridged_wire(here(tmp_path), url, tmp_path) as spoken:
        for number in range(100, 140):
            await spoken.send("tools/call", number, name="memory_list", arguments={})
        async with asyncio.timeout(STUCK):
            await slow.eight.wait()
        await spoken.send("tools/list", 2)  # which needs no turn
        await spoken.answer(2)
        await spoken.send("ping", 3)
        await spoken.answer(3)
        during = slow.calls
        slow.let_go.set()
        waited_for = set(range(100, 140))
        assert spoken.process.stdout is not None
        async with asyncio.timeout(STUCK):
            while waited_for:  # in any order
                answer = json.loads(await spoken.process.stdout.readline())
                waited_for.discard(answer["id"])
                assert "result" in answer
    server.close()

    assert (during, slow.most) == (8, 8)


async def test_a_cancelled_call_ends_at_the_server_and_others_go_on(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "mara", "mara-notes:writer")

    async with bridged_wire(machine, team.url, tmp_path) as spoken:
        async with locked(team):
            arguments = {
                "content": "This store is cancelled.",
                "namespace": "mara-notes",
            }
            await spoken.send("tools/call", 7, name="memory_store", arguments=arguments)
            await asyncio.sleep(1)
            await spoken.send(
                "notifications/cancelled", requestId=7, reason="changed my mind"
            )
            await spoken.send("tools/list", 8)
            await spoken.answer(8)
            await asyncio.sleep(0.5)
        await spoken.send(
            "tools/call",
            9,
            name="memory_list",
            arguments={"namespaces": ["mara-notes"]},
        )
        listed = await spoken.answer(9)
        await spoken.hang_up()

    assert listed["structuredContent"]["memories"] == []
    assert [json.loads(line).get("id") for line in spoken.lines] == [1, 8, 9]


async def test_a_cancelled_call_of_the_newest_version_ends_at_the_server(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "vera", "vera-notes:writer")

    async with bridged(machine, team.url, tmp_path, mode="2026-07-28") as client:
        async with locked(team):
            arguments = {
                "content": "This store is cancelled.",
                "namespace": "vera-notes",
            }
            store = asyncio.create_task(client.call_tool("memory_store", arguments))
            await asyncio.sleep(1)
            store.cancel()
            await asyncio.sleep(0.5)
        listed = await called(client, "memory_list", namespaces=["vera-notes"])

    assert listed["memories"] == []


async def test_lines_that_cannot_be_read_are_answered_and_the_rest_is_served(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "nora", "nora-notes:writer")

    async with bridged_wire(machine, team.url, tmp_path) as spoken:
        assert spoken.process.stdin is not None
        half = '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"memory_store","arguments":'
        half += '{"namespace":"nora-notes","content":"half of an emoji \\ud83d is kept out"}}}'
        deep = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"memory_get","arguments":'
        deep += '{"ids":' + "[" * 400 + "]" * 400 + "}}}"
        wrong = ["", "no JSON", "[]", "7", '{"id": {}, "method": "x"}', "\xff"]
        ignored = [
            '{"id":99,"result":{}}',
            '{"method":"notifications/cancelled","params":{"requestId":[1]}}',
        ]
        for line in (*wrong, *ignored, half):
            spoken.process.stdin.write(line.encode("latin-1") + b"\n")
        stored = await spoken.message(4)
        spoken.process.stdin.write(deep.encode() + b"\n")
        nested = await spoken.message(5)
        await spoken.send("tools/list", 3)
        await spoken.answer(3)
        errors = await spoken.hang_up()

    assert stored["result"]["structuredContent"]["stored"][0]["status"] == "stored"
    assert "error" in nested or nested["result"]["isError"]
    unread = [
        json.loads(line) for line in spoken.lines if json.loads(line).get("id") is None
    ]
    assert {message["error"]["code"] for message in unread} == {-32700, -32600}
    assert len(unread) == 5
    assert "Traceback" not in errors


async def test_a_line_over_the_limit_is_refused_and_takes_no_memory(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "noah", "noah-notes:writer")

    async with bridged_wire(machine, team.url, tmp_path) as spoken:
        errors = await send_long_lines(spoken)
        most = most_resident(spoken.process)
        await spoken.send("tools/list", 2)
        await spoken.answer(2)

    assert {error["code"] for error in errors} == {-32600}
    assert most < 90, f"{most} MB"


async def test_progress_and_unknown_fields_pass(team: Team, tmp_path: Path) -> None:
    machine = await member(team, tmp_path, "olga", "board:writer")

    async with bridged_wire(machine, team.url, tmp_path) as spoken:
        await spoken.send(
            "tools/call",
            2,
            name="memory_status",
            arguments={},
            _meta={"progressToken": "p1", "x": [1]},
        )
        answer = await spoken.answer(2)
        await spoken.send("logging/setLevel", 3, level="info")
        unknown = await spoken.message(3)
        await spoken.send("ping", 4)
        pong = await spoken.answer(4)

    assert not answer.get("isError")
    assert unknown["error"]["code"] == -32601
    assert pong == {}


async def test_it_ends_when_standard_input_ends_with_a_call_under_way(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "paul", "paul-notes:writer")

    async with bridged_wire(machine, team.url, tmp_path) as spoken, locked(team):
        arguments = {"content": "No caller waits for this.", "namespace": "paul-notes"}
        await spoken.send("tools/call", 7, name="memory_store", arguments=arguments)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        errors = await spoken.hang_up()
        assert time.monotonic() - began < LIMIT
        assert spoken.process.returncode == 0

    assert "Traceback" not in errors


async def test_it_ends_when_its_parent_dies_and_another_process_holds_its_input(
    team: Team, tmp_path: Path
) -> None:
    """The parent is killed; its input stays open, since this test holds the other end."""
    machine = here(tmp_path)
    command = [sys.executable, "-m", "folklore", "--server", team.url, "serve"]
    program = f"import subprocess; subprocess.run({command!r})"
    read_end, write_end = os.pipe()
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        env=dict(machine.environment),
        stdin=read_end,
        stdout=asyncio.subprocess.PIPE,
    )
    os.close(read_end)
    assert parent.stdout is not None
    os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert json.loads(await parent.stdout.readline())["id"] == 1

    parent.kill()
    async with asyncio.timeout(STUCK):
        # its standard output is closed when the bridge has ended
        assert await parent.stdout.read() == b""
    os.close(write_end)
    await parent.wait()


async def test_it_loads_no_sdk_no_database_and_no_model(
    team: Team, tmp_path: Path
) -> None:
    machine = await member(team, tmp_path, "rosa", "board:writer")
    traced = Watched(
        {**machine.environment, "PYTHONPROFILEIMPORTTIME": "1"}, machine.notes
    )

    async with bridged_wire(traced, team.url, tmp_path) as spoken:
        await spoken.send("tools/call", 2, name="memory_status", arguments={})
        await spoken.answer(2)
        errors = await spoken.hang_up()

    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in errors.splitlines()
    }
    assert "select" in loaded
    assert not loaded & {
        "mcp", "asyncpg", "numpy", "wordllama", "tokenizers", "starlette", "keyring", "uvicorn", "httpx",
    }  # fmt: skip


def test_the_tools_that_are_called_twice_read_or_take_keys() -> None:
    keyed = {
        spec.name
        for spec in TOOLS
        if "idempotency_key" in spec.listed.input_schema["properties"]
    }
    assert {spec.name for spec in TOOLS if not spec.writes} | keyed == REPEATABLE, (
        "change REPEATABLE in client/bridge.py"
    )


async def test_what_it_prints_to_stdout_is_the_protocol_alone(tmp_path: Path) -> None:
    machine = here(tmp_path, log_level="debug")

    async with bridged_wire(
        machine, f"http://127.0.0.1:{free_port()}", tmp_path
    ) as spoken:
        await spoken.send("tools/list", 2)
        await spoken.answer(2)
        errors = await spoken.hang_up()

    assert all("jsonrpc" in json.loads(line) for line in spoken.lines)
    assert "answered_from_the_package" in errors


@pytest.mark.strain
async def test_ten_outages_under_a_running_client_lose_nothing_that_was_acknowledged(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    port = free_port()
    machine = here(tmp_path)
    (tmp_path / "server").mkdir()
    settings = watched(tmp_path / "server", database_url=database_url)
    acknowledged: list[str] = []
    longest = 0.0
    failed = 0
    ending = asyncio.Event()

    async def work(client: Client, name: str) -> None:
        nonlocal longest, failed
        number = 0
        while not ending.is_set():
            number += 1
            content = f"Fact {number} of {name} lies in drawer {os.urandom(4).hex()}."
            for tool, arguments in (
                ("memory_store", {"content": content}),
                ("memory_recall", {"query": content}),
            ):
                began = time.monotonic()
                answer = await client.call_tool(tool, arguments)
                longest = max(longest, time.monotonic() - began)
                if answer.is_error:
                    failed += 1
                    assert f"http://127.0.0.1:{port}" in str(answer.content), (
                        answer.content
                    )
                elif tool == "memory_store":
                    acknowledged.append(content)
            await asyncio.sleep(0.02)

    async with (
        asyncio.TaskGroup() as workers,
        bridged(machine, f"http://127.0.0.1:{port}", tmp_path) as one,
        bridged(machine, f"http://127.0.0.1:{port}", tmp_path, mode="legacy") as two,
    ):
        await asyncio.gather(one.list_tools(), two.list_tools())
        running = [
            workers.create_task(work(one, "one")),
            workers.create_task(work(two, "two")),
        ]
        for outage in range(10):
            async with on_http(settings, port=port) as server:
                count = len(acknowledged)
                async with asyncio.timeout(STUCK):
                    while len(acknowledged) < count + 6:  # it works again by itself
                        await asyncio.sleep(0.05)
                await server.end(signal.SIGTERM if outage % 2 else signal.SIGKILL)
            await asyncio.sleep(0.3 * outage)
        async with on_http(settings, port=port):
            await asyncio.sleep(6)  # no call is still under way from before
            ending.set()
            await asyncio.gather(*running)

    stored = [
        row["content"] for row in await connection.fetch("select content from memories")
    ]
    assert longest < LIMIT
    assert failed > 0
    assert len(stored) == len(set(stored))
    assert set(acknowledged) <= set(stored)


async def test_memories_are_tied_to_the_code_of_the_bridge_and_marked_there(
    team: Team, tmp_path: Path
) -> None:
    shop = Repository(repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"))
    for name in ("user.name", "user.email"):
        shop.git("config", name, "tester")
    head = shop.commit({"src/ferry.py": "noon\n"})
    created = await team.token("tied", "repo:acme/shop:admin")
    machine = here(tmp_path, token=created.secret)
    memory = {
        "content": "The ferry leaves at noon.",
        "paths": [f"{shop.root}/src/ferry.py:1"],
    }

    for mode in ("legacy", "auto"):
        async with bridged(machine, team.url, shop.root, mode=mode) as client:
            stored = await called(client, "memory_store", memories=[memory])
            id_ = stored["stored"][0]["id"]
            (whole,) = (await called(client, "memory_get", ids=[id_]))["memories"]
            assert (whole["paths"], whole["commit"], whole.get("stale")) == (
                ["src/ferry.py"],
                head,
                None,
            )
            head = shop.commit({"src/ferry.py": f"{mode}\n"})

            # a busy machine may have no marks within half a second
            async with asyncio.timeout(STUCK):
                while True:
                    (found,) = (await called(client, "memory_recall", query="ferry"))[
                        "memories"
                    ]
                    if "stale" in found:
                        break
            assert (found["stale"]["path"], found["stale"]["commit"]) == (
                "src/ferry.py",
                head[:12],
            )
            await called(
                client, "memory_update", id=id_, content=f"The ferry leaves at {mode}."
            )
            (found,) = (await called(client, "memory_recall", query="ferry"))[
                "memories"
            ]
            assert "stale" not in found
            await called(client, "memory_forget", ids=[id_], erase=True)
