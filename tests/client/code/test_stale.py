"""Memories whose files changed are marked wherever they are shown, by the process that has the working copy alone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ReadResourceResult

from folklore.app import App
from folklore.client.code import working_copy
from folklore.client.code.bridged_code import BridgedCode
from folklore.client.surroundings import namespace_of, working_copy as working_copy_of
from folklore.config import Settings
from folklore.contract.anchors import ANCHORS
from folklore.mcp.server import build_server
from folklore.memory import Facts, Memory, Service
from folklore.memory.context import MemoryContext
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.conftest import connected
from tests.doors import own_service
from tests.repositories import Repository, empty_repository, git_without_settings  # noqa: F401 - fixtures
from tests.servers import on_http, watched
from tests.team import Team, called, connected as connected_over_http
from tests.terminal import on_terminal

FERRY = "The ferry leaves at noon."
CRANE = "The crane is red."
GATE = "The gate opens at dawn."
WHOLE = ("detailed", "concise", "ids")


@pytest.fixture(autouse=True)
def here(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The working copy in which the caller is. Git has more time than an answer gives it: a machine may be busy."""
    repository.commit(
        {"src/ferry.py": "noon\n", "src/crane.py": "red\n", "guide/gate.md": "dawn\n"}
    )
    monkeypatch.chdir(repository.root)
    monkeypatch.setattr(working_copy, "_ANSWER_SECONDS", 20.0)
    return repository


@pytest.fixture(params=["here", "at a server"])
async def where(
    request: pytest.FixtureRequest,
    folklore: CommandLine,
    database_url: str,
    library: MemoryContext,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[tuple[str, ...]]:
    """Options of a command that works on the database itself, or at a server elsewhere."""
    if request.param == "here":
        yield ()
        return
    folder = tmp_path_factory.mktemp("server")
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(folder)
        settings = watched(folder, database_url=database_url, namespace="")
        async with on_http(settings) as server:
            elsewhere.undo()
            made = await Team(server, library).token("boss", owner=True)
            monkeypatch.delenv("FOLKLORE_DATABASE_URL")
            yield "--server", server.url, "--token", made.secret


async def test_the_command_line_shows_what_is_stale(
    folklore: CommandLine, here: Repository, where: tuple[str, ...]
) -> None:
    await folklore.done("store", FERRY, "--path", f"{here.root}/src/ferry.py:3", *where)
    await folklore.done(
        "store", CRANE, "--path", "./src/crane.py", "--path", "docs/", *where
    )
    assert "notes: no memory is stale." in await folklore.done("stale", *where)
    stored = await folklore.json(
        "list", "--filter", f"paths={here.root}/src", "--format", "detailed", *where
    )
    assert [memory["paths"] for memory in stored["memories"]] == [
        ["src/crane.py", "docs"],
        ["src/ferry.py"],
    ]
    assert {memory["commit"] for memory in stored["memories"]} == {here.head}
    here.git("mv", "src/crane.py", "src/lift.py")
    changed = here.commit({"src/ferry.py": "one o'clock\n"})

    for command in (("recall", "ferry"), ("search", "ferry"), ("list",), ("show", "2")):
        text = await folklore.done(*command, *where)
        assert "stale: src/ferry.py changed" in text, command
        value = await folklore.json(*command, *where)
        marks = {memory["content"]: memory.get("stale") for memory in value["memories"]}
        assert marks[FERRY] == {
            "path": "src/ferry.py",
            "since": "2026-05-01T12:00:00Z",
            "commit": changed[:12],
        }
        await folklore.done("list", *where)
    shown = await folklore.done("stale", *where)
    listed = await folklore.json("stale", *where)

    assert "stale: src/crane.py moved to src/lift.py" in shown
    assert [
        [file["path"] for file in memory["files"]] for memory in listed["stale"]
    ] == [
        ["src/crane.py"],
        ["src/ferry.py"],
    ]
    assert listed["stale"][0]["stale"]["moved_to"] == "src/lift.py"


async def test_a_memory_is_confirmed_with_the_present_code(
    folklore: CommandLine, here: Repository, where: tuple[str, ...]
) -> None:
    for text, path in ((FERRY, "src/ferry.py"), (CRANE, "src/crane.py")):
        await folklore.done("store", text, "--path", path, *where)
    here.git("mv", "src/crane.py", "src/lift.py")
    head = here.commit({"src/ferry.py": "one o'clock\n"})
    await folklore.done("stale", *where)

    assert f"of commit {head[:12]}" in await folklore.done(
        "stale", "--confirm", "1", "--confirm", "2", *where
    )

    assert "no memory is stale" in await folklore.done("stale", *where)
    (crane, ferry) = (await folklore.json("list", "--format", "detailed", *where))[
        "memories"
    ]
    assert (crane["paths"], ferry["paths"]) == (["src/lift.py"], ["src/ferry.py"])
    assert crane["commit"] == ferry["commit"] == head
    assert "blobs" not in await folklore.done("history", ferry["id"], *where)
    again = await folklore.json("stale", "--confirm", ferry["id"], *where)
    assert again["confirmed"][0]["revision"] == ferry["revision"], "nothing differs"
    await folklore.done("undo", ferry["id"], *where)
    assert [
        memory["id"] for memory in (await folklore.json("stale", *where))["stale"]
    ] == [ferry["id"]]


async def test_what_cannot_be_stale_is_refused_with_the_next_step(
    folklore: CommandLine,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await folklore.done("store", GATE)
    await folklore.done("store", CRANE, "--path", "src/crane.py", "-n", "other")
    await folklore.done("list", "-n", "notes")
    without = await folklore("stale", "--confirm", "1")
    await folklore.done("list", "-n", "other")
    foreign = await folklore("stale", "--confirm", "1")
    unknown = await folklore("stale", "--confirm", "0" * 32)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    outside = await folklore("stale")

    assert (without.code, foreign.code, unknown.code, outside.code) == (2, 2, 4, 2)
    assert "names no path" in without.err
    assert "is in other, not in notes" in foreign.err
    assert "is in no git repository" in outside.err


@pytest.fixture
async def app_here(settings: Settings, here: Repository) -> AsyncIterator[App]:
    running = App(settings)
    await running.ready()
    yield running
    await running.close()


class Bridged:
    """A client of a server by a bridge, which has the working copy."""

    def __init__(self, client: Client, code: BridgedCode) -> None:
        self._client = client
        self._code = code

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        asked = await self._code.asked(
            {"name": tool, "arguments": arguments}, self._call
        )
        result = await self._code.answered(await self._call(asked))
        assert ANCHORS not in result.get("_meta", {})
        return CallToolResult.model_validate(result)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        params = self._code.asked_of_resource({"uri": uri})
        answer = await self._client.read_resource(uri, meta=params["_meta"])
        marked = await self._code.answered(_json(answer))
        assert ANCHORS not in marked.get("_meta", {})
        return ReadResourceResult.model_validate(marked)

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.call_tool(
            params["name"], params["arguments"], meta=params.get("_meta")
        )
        return _json(answer)


def _json(answer: CallToolResult | ReadResourceResult) -> dict[str, Any]:
    value: dict[str, Any] = answer.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    return value


@asynccontextmanager
async def bridged(app: App) -> AsyncIterator[Any]:
    """A client by a bridge, of an application that has no working copy itself."""
    async with connected(build_server(own_service(app))) as client:
        yield Bridged(client, BridgedCode(working_copy_of(namespace_of(app.settings))))


async def test_assistants_on_stdio_see_what_is_stale_and_confirm_it(
    app_here: App, here: Repository
) -> None:
    async with bridged(app_here) as client:
        memories = [{"content": FERRY, "paths": ["./src/ferry.py"]}, {"content": GATE}]
        stored = await called(client, "memory_store", memories=memories)
        id_ = stored["stored"][0]["id"]
        changed = here.commit({"src/ferry.py": "one o'clock\n"})
        mark = {
            "path": "src/ferry.py",
            "since": "2026-05-01T12:00:00Z",
            "commit": changed[:12],
        }

        for tool, query in (
            ("memory_recall", {"query": "ferry"}),
            ("search_keywords", {"query": "ferry"}),
            ("memory_list", {}),
        ):
            for form in WHOLE:
                found = await called(client, tool, **query, format=form)
                assert {
                    memory["id"]: memory.get("stale") for memory in found["memories"]
                }[id_] == mark, (tool, form)
        (whole,) = (await called(client, "memory_get", ids=[id_]))["memories"]
        recent = await client.read_resource("memory://notes/recent")
        assert whole["stale"] == mark
        assert '"stale": {"path": "src/ferry.py"' in recent.contents[0].text
        assert "blobs" not in whole

        confirmed = await called(
            client, "memory_update", id=id_, paths=["src/ferry.py"]
        )

        assert confirmed["commit"] == here.head
        assert (
            "stale"
            not in (await called(client, "memory_recall", query="ferry"))["memories"][0]
        )
        here.commit({"src/ferry.py": "two o'clock\n"})
        await called(client, "memory_update", id=id_, tags=["port"])
        assert (
            "stale"
            in (await called(client, "memory_recall", query="ferry"))["memories"][0]
        )
        await called(
            client, "memory_update", id=id_, content="The ferry leaves at two."
        )
        assert (
            "stale"
            not in (await called(client, "memory_recall", query="ferry"))["memories"][0]
        )


async def test_over_http_the_directory_of_the_server_marks_nothing(
    here: Repository, database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The server runs in the repository itself, of which its callers may have nothing."""
    settings = watched(tmp_path_factory.mktemp("server"), database_url=database_url)
    async with on_http(settings) as server, connected_over_http(server.url) as client:
        paths = ["./src/ferry.py:3", f"{here.root}/src/crane.py"]
        stored = await called(
            client, "memory_store", memories=[{"content": FERRY, "paths": paths}]
        )
        here.commit({"src/ferry.py": "one o'clock\n"})
        (whole,) = (
            await called(client, "memory_get", ids=[stored["stored"][0]["id"]])
        )["memories"]

    assert whole["paths"] == ["src/ferry.py", f"{here.root}/src/crane.py"]
    assert "commit" not in whole
    assert "stale" not in whole


async def never(_params: dict[str, Any]) -> dict[str, Any]:
    raise AssertionError


async def test_a_bridge_ties_and_marks_what_a_server_without_the_working_copy_stores(
    app_here: App, here: Repository
) -> None:
    async with bridged(app_here) as bridge:

        async def by_bridge(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = await bridge.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return _json(answer)

        paths = [f"{here.root}/src/ferry.py"]
        stored = await by_bridge(
            "memory_store",
            memories=[{"content": FERRY, "paths": paths}, {"content": GATE}],
        )
        id_ = stored["structuredContent"]["stored"][0]["id"]
        here.commit({"src/ferry.py": "one o'clock\n"})
        for form in WHOLE:
            result = await by_bridge(
                "memory_recall", query="ferry", format=form, filters={"paths": paths}
            )
            (found,) = result["structuredContent"]["memories"]
            assert found["stale"]["path"] == "src/ferry.py"
            assert '"stale":{"path":"src/ferry.py"' in result["content"][0]["text"]
        confirmed = await by_bridge(
            "memory_update", id=id_, content="The ferry leaves at one."
        )
        after = await by_bridge("memory_get", ids=[id_])
        cleared = await by_bridge(
            "memory_update", id=id_, content="The ferry leaves at two.", clear=["paths"]
        )
    code = BridgedCode(working_copy_of(namespace_of(app_here.settings)))
    async with connected(build_server(own_service(app_here))) as client:
        wrong = await code.asked(
            {"name": "memory_store", "arguments": {"memories": "x", "filters": 3}},
            never,
        )
        plain = await client.call_tool("memory_recall", {"query": "ferry"})

    assert confirmed["structuredContent"]["commit"] == here.head
    assert "stale" not in after["structuredContent"]["memories"][0]
    assert "paths" not in cleared["structuredContent"]
    assert wrong["arguments"] == {"memories": "x", "filters": 3}
    assert ANCHORS not in (plain.meta or {}), "which only a bridge asks for"


async def test_a_caller_without_the_working_copy_moves_the_commit_by_an_update(
    app_here: App, here: Repository
) -> None:
    async with bridged(app_here) as client:
        stored = await called(
            client,
            "memory_store",
            memories=[{"content": FERRY, "paths": ["src/ferry.py"]}],
        )
        head = here.commit({"src/ferry.py": "one o'clock\n"})
        elsewhere = Service(
            Memory(app_here.open, lambda: app_here.usage),
            lambda: Facts(
                app_here.caller,
                app_here.now(),
                app_here.zone,
                app_here.namespace,
                app_here.namespace,
            ),
            lambda: app_here.caller,
            app_here.namespace,
        )
        async with connected(build_server(elsewhere)) as other:
            await called(
                other, "memory_update", id=stored["stored"][0]["id"], commit=head
            )

        assert "stale" not in (await called(client, "memory_list"))["memories"][0]


async def test_a_filter_by_path_meets_every_spelling_and_folders(
    app_here: App, here: Repository
) -> None:
    async with bridged(app_here) as client:
        memories = [
            {"content": FERRY, "paths": ["src/ferry.py"]},
            {"content": CRANE, "paths": ["/etc/crane.conf"]},
            {"content": GATE},
        ]
        await called(client, "memory_store", memories=memories)
        found = {}
        for path in (
            "src/ferry.py",
            "./src/ferry.py:7",
            f"{here.root}/src/",
            "src\\",
            ".",
            "/etc",
            "ferry.py",
        ):
            answer = await called(client, "memory_list", filters={"paths": [path]})
            found[path] = [memory["content"] for memory in answer["memories"]]

    assert found.pop("/etc") == [CRANE]
    assert found.pop("ferry.py") == []
    assert all(contents == [FERRY] for contents in found.values()), found


async def test_review_asks_about_stale_memories_and_one_key_confirms(
    folklore: CommandLine, here: Repository, where: tuple[str, ...]
) -> None:
    await folklore.done("store", FERRY, "--path", "src/ferry.py", *where)
    await folklore.done("store", CRANE, "--path", "src/crane.py", *where)
    here.commit({"src/ferry.py": "one o'clock\n"})

    listed = (await folklore.json("review", *where))["review"]
    assert [
        (item["reason"], item["memories"][0]["content"], item["stale"]["path"])
        for item in listed
    ] == [("stale", FERRY, "src/ferry.py")]
    shown = await asyncio.to_thread(
        on_terminal,
        folklore.environment,
        "review",
        *where,
        keys="k",
        prompt="[q]uit",
        columns=80,
    )

    assert "src/ferry.py changed" in shown.text
    assert (await folklore.json("review", *where))["review"] == []
    assert "no memory is stale" in await folklore.done("stale", *where)


async def test_a_note_for_a_prompt_says_that_its_file_changed(
    app_here: App, here: Repository
) -> None:
    async with bridged(app_here) as client:
        await called(
            client,
            "memory_store",
            memories=[{"content": FERRY, "paths": ["src/ferry.py"]}],
        )
        here.commit({"src/ferry.py": "one o'clock\n"})
        answer = await client.call_tool(
            "client_hook",
            {
                "prompt": "When does the ferry leave? At noon?",
                "session": "s",
                "cwd": str(here.root),
            },
        )

    assert "src/ferry.py changed since, verify" in answer.content[0].text


async def test_an_edit_in_a_folder_of_the_repository_gets_the_notes_of_its_file(
    app_here: App, here: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here.root / "src")
    async with bridged(app_here) as client:
        memories = [{"content": FERRY, "paths": ["src/ferry.py"]}]
        await called(client, "memory_store", memories=memories, namespace="notes")
        here.commit({"src/ferry.py": "one o'clock\n"})
        answer = await client.call_tool(
            "client_hook",
            {
                "event": "PreToolUse",
                "session": "s",
                "cwd": str(here.root / "src"),
                "tool": "Edit",
                "tool_input": {
                    "file_path": str(here.root / "src/ferry.py"),
                    "old_string": "noon",
                    "new_string": "two o'clock",
                },
            },
        )

    note = json.loads(answer.content[0].text)["hookSpecificOutput"]["additionalContext"]
    assert FERRY in note
    assert "src/ferry.py changed since, verify" in note
