"""Hooks over HTTP: the same permissions as every tool, and sessions that others cannot see or disturb."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from mcp import Client

from tests.memory.hooks.test_hooks import DEPLOY, FACTS, PORT, hook, kept
from tests.servers import on_http, watched
from tests.team import Team, bearer, connected, library_at

IN_SHOP = {"Folklore-Namespace": "repo:acme/shop"}


@pytest.fixture(scope="module")
async def team(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    settings = watched(
        tmp_path_factory.mktemp("team"), database_url=address, namespace=""
    )
    async with library_at(address) as library, on_http(settings) as server:
        made = Team(server, library)
        for namespace, fact in (
            ("repo:acme/shop", FACTS[0]),
            ("repo:acme/site", FACTS[1]),
        ):
            await made.keep("nothing in particular", namespace=namespace)
            writer = await made.token("writer", f"{namespace}:writer")
            async with made.assistant(writer.secret) as client:
                await kept(client, fact)
        yield made


@asynccontextmanager
async def in_shop(
    team: Team, name: str, *grants: str, sse: bool = False
) -> AsyncIterator[Client]:
    """A client in the shop's repository, by default with the role reader there."""
    token = await team.token(name, *(grants or ("repo:acme/shop:reader",)))
    async with connected(team.url, bearer(token.secret) | IN_SHOP, sse=sse) as client:
        yield client


async def test_a_call_without_a_token_is_refused(team: Team) -> None:
    async with httpx.AsyncClient(base_url=team.url) as client:
        for path in ("/api/hook", "/api/injected"):
            assert (await client.post(path, json={})).status_code == 401


@pytest.mark.parametrize("sse", [False, True])
async def test_a_reader_gets_notes_of_the_project_of_the_request(
    team: Team, *, sse: bool
) -> None:
    async with in_shop(team, "reader", sse=sse) as client:
        assert "client_hook" not in [
            tool.name for tool in (await client.list_tools()).tools
        ]
        assert FACTS[0] in await hook(client, DEPLOY, session=f"sse {sse}")
        assert await hook(client, DEPLOY, session=f"sse {sse}") == ""
        assert await hook(client, PORT, session=f"sse {sse}") == ""


async def test_the_directory_of_a_client_is_not_looked_up_on_the_server(
    team: Team,
) -> None:
    async with in_shop(team, "reader") as client:
        assert FACTS[0] in await hook(
            client, DEPLOY, session="elsewhere", cwd="/nowhere/at/all"
        )


async def test_a_project_without_a_grant_gives_nothing(team: Team) -> None:
    token = await team.token("other", "repo:acme/shop:reader", "repo:acme/web:reader")
    headers = bearer(token.secret) | {
        "Folklore-Namespace": "repo:acme/site",
        "Content-Type": "application/json",
    }

    async with httpx.AsyncClient(base_url=team.url, headers=headers) as client:
        prompt = await client.post("/api/hook", json={"prompt": PORT, "session": "s"})
        start = await client.post(
            "/api/hook", json={"event": "SessionStart", "session": "s"}
        )

    assert prompt.json()["result"]["text"] == start.json()["result"]["text"] == ""


async def test_another_persons_session_of_the_same_name_does_not_matter(
    team: Team,
) -> None:
    for name in ("ana", "ben"):
        async with in_shop(team, name) as client:
            assert FACTS[0] in await hook(client, DEPLOY, session="the same")


async def test_the_ledger_shows_a_token_its_own_injections(team: Team) -> None:
    for name in ("carl", "dora"):
        token = await team.token(name, "repo:acme/shop:reader")
        headers = bearer(token.secret) | IN_SHOP
        async with connected(team.url, headers) as client:
            await hook(client, DEPLOY, session=f"of {name}")
        headers["Content-Type"] = "application/json"
        async with httpx.AsyncClient(base_url=team.url, headers=headers) as client:
            own = (await client.post("/api/injected", json={})).json()["result"]
            everyone = await client.post("/api/injected", json={"everyone": True})
            stats = await client.post("/api/stats", json={})

        assert [entry["session"] for entry in own] == [f"of {name}"]
        assert everyone.status_code == 403
        assert stats.json()["result"]["namespaces"][0]["injected"] > 0


async def test_prompts_at_the_same_time_get_a_memory_once(team: Team) -> None:
    async with in_shop(team, "eva") as one, in_shop(team, "eva") as two:
        texts = await asyncio.gather(
            *(
                hook(client, DEPLOY, session="busy")
                for client in (one, two)
                for _ in range(5)
            )
        )

    assert sum(FACTS[0] in text for text in texts) == 1


@pytest.mark.parametrize(
    ("name", "grants", "prompt"),
    [
        ("fred", (), "Let's use NATS for the queue."),
        ("gina", ("repo:acme/shop:writer",), "Which queue?"),
    ],
)
async def test_a_writer_alone_is_asked_to_store_in_the_form_that_clients_take(
    team: Team, name: str, grants: tuple[str, ...], prompt: str
) -> None:
    async with in_shop(team, name, *grants) as client:
        await hook(client, prompt, session="decides")
        answer = await client.call_tool(
            "client_hook",
            {
                "event": "Stop",
                "session": "decides",
                "message": "We decided to use NATS.",
            },
        )

    output = json.loads(answer.content[0].text)  # type: ignore[union-attr]
    assert output.get("decision") == ("block" if grants else None)
    assert "memory_store" in output["reason"] if grants else output == {}
