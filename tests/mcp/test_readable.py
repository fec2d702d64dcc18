"""Reading whole, listing, status; resources and prompts: everything a client may attach or offer by hand."""

import json
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from folklore import __version__
from folklore.app import App
from folklore.config import Settings
from folklore.mcp.server import build_server
from tests.conftest import connected
from tests.doors import own_service
from tests.mcp.test_tools import call, refusal


async def read(client: Client, uri: str) -> Any:
    [part] = (await client.read_resource(uri)).contents
    assert part.mime_type == "application/json"
    return json.loads(part.text)  # type: ignore[union-attr]


async def stored(client: Client, content: str, **fields: Any) -> str:
    return str(
        (await call(client, "memory_store", content=content, **fields))["stored"][0][
            "id"
        ]
    )


async def test_a_memory_is_read_whole(client: Client) -> None:
    id_ = await stored(
        client, "The gate opens at nine.", tags=["gate"], source="wiki", importance=0.5
    )
    missing = str(uuid4())

    answer = await call(client, "memory_get", ids=[id_, missing, id_])

    [memory] = answer["memories"]
    assert (
        memory.items()
        >= {
            "id": id_,
            "source": "wiki",
            "tags": ["gate"],
            "revision": 1,
            "revisions": 0,
        }.items()
    )
    assert answer["missing"] == [missing]
    assert "no memory" in await refusal(client, "memory_get", ids=[missing])
    assert "ids" in await refusal(client, "memory_get", ids=[])


async def test_status_says_what_there_is_and_what_works(client: Client) -> None:
    await stored(client, "one")
    await stored(client, "two", namespace="other")

    answer = await call(client, "memory_status")

    assert answer["version"] == __version__
    assert answer["engine"] == "server"
    assert answer["model"]["provider"] == "bundled"
    assert answer["embedding_debt"] == 0
    assert answer["namespaces"] == [
        {"name": "notes", "memories": 1, "role": "admin"},
        {"name": "other", "memories": 1, "role": "admin"},
    ]
    assert "degraded" not in answer


async def test_status_says_what_is_missing(settings: Settings) -> None:
    app = App(
        settings.model_copy(
            update={
                "embedding": settings.embedding.model_copy(update={"provider": "none"})
            }
        )
    )
    async with connected(build_server(own_service(app))) as client:
        answer = await call(client, "memory_status")
    await app.close()

    assert [item["branch"] for item in answer["degraded"]] == ["dense"]
    assert "model" not in answer


async def test_resources_are_listed_and_read(client: Client) -> None:
    id_ = await stored(client, "The gate opens at nine.", namespace="repo:acme/api")

    listed = {
        str(resource.uri) for resource in (await client.list_resources()).resources
    }
    templates = {
        template.uri_template
        for template in (await client.list_resource_templates()).resource_templates
    }

    assert listed == {"memory://status", "memory://namespaces"}
    assert templates == {"memory://{namespace}/recent", "memory://item/{id}"}
    assert (await read(client, "memory://status"))["version"] == __version__
    assert [
        item["name"]
        for item in (await read(client, "memory://namespaces"))["namespaces"]
    ] == ["repo:acme/api"]
    recent = await read(client, "memory://repo%3Aacme%2Fapi/recent")
    assert [memory["id"] for memory in recent["memories"]] == [id_]
    item = await read(client, f"memory://item/{id_}")
    assert (item["id"], item["revisions"]) == (id_, 0)


@pytest.mark.parametrize("letter", ["w", "字"])
@pytest.mark.parametrize("pinned", [True, False])
async def test_recent_memories_are_bounded_as_the_answers_of_tools_are(
    client: Client, letter: str, pinned: bool
) -> None:
    for number in range(6):
        id_ = await stored(client, f"{number} {letter * 5} " * (32_000 // 9))
        if pinned:
            await call(client, "memory_update", id=id_, pinned=True)

    recent = await read(client, "memory://notes/recent")

    text = json.dumps(recent, ensure_ascii=False)
    tokens = sum(0.25 if char.isascii() else 1 for char in text)
    assert tokens < 15_000
    assert len(recent["memories"]) == 6
    assert recent["memories"][0]["content"].startswith(f"5 {letter}")


@pytest.mark.parametrize(
    "uri",
    [
        "memory://item/7e2c2673-3090-400f-b541-a5e20c2b6419",
        "memory://item/nonsense",
        "memory://nowhere/recent",
    ],
)
async def test_a_resource_that_is_not_there_is_said_to_be_missing(
    client: Client, uri: str
) -> None:
    await stored(client, "something")

    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.error.code == -32602


async def test_prompts_name_the_tools_and_take_their_topic(client: Client) -> None:
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}

    assert list(prompts) == ["recall", "remember", "review"]
    assert all(prompt.title and prompt.description for prompt in prompts.values())
    for name, arguments, words in (
        (
            "recall",
            {"topic": "login timeouts"},
            ("memory_recall", "login timeouts", "never instructions"),
        ),
        ("remember", {}, ("memory_store", "notes", "Never secrets")),
        ("review", {"namespace": "team"}, ("memory_list", "team", "wait for a yes")),
    ):
        [message] = (await client.get_prompt(name, arguments)).messages
        assert all(word in message.content.text for word in words), name  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("recal", {}, "There are recall, remember, review"),
        ("recall", None, "topic: is missing"),
    ],
)
async def test_a_prompt_asked_for_in_a_wrong_way_is_the_clients_mistake(
    client: Client, name: str, arguments: dict[str, str] | None, words: str
) -> None:
    with pytest.raises(MCPError, match=words) as caught:
        await client.get_prompt(name, arguments)

    assert caught.value.error.code == -32602
