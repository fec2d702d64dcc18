"""The current namespace over HTTP: named by the request, the token or a setting, never by the server's directory."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest
from mcp import Client

from folklore.contract.operations import OPERATIONS
from tests.conftest import Cluster
from tests.servers import HttpServer, on_http, watched
from tests.team import Team, bearer, called, connected, library_at, refused
from tests.wire import call

# Each way to connect: the transport, and the era of the protocol.
WAYS = [(sse, mode) for sse in (False, True) for mode in ("legacy", "auto")]
HEADER = "Folklore-Namespace"
DRAFT: dict[str, Any] = {
    "memories": [{"content": "The ferry leaves at noon.", "tags": ["ferry"]}]
}


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    """A server without tokens and without the setting, started inside a repository."""
    async with on_http(
        watched(tmp_path_factory.mktemp("server"), database_url=address, namespace="")
    ) as running:
        yield running


@pytest.fixture(scope="module")
async def team(
    cluster: Cluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    """A server with tokens and with the setting."""
    async with (
        cluster.new_database(template) as name,
        library_at(cluster.address(name)) as library,
    ):
        settings = watched(
            tmp_path_factory.mktemp("team"),
            database_url=cluster.address(name),
            namespace="setting",
        )
        async with on_http(settings) as running:
            made = Team(running, library)
            for namespace in ("setting", "payments", "board"):
                await made.keep(f"the crane of {namespace} is red", namespace=namespace)
            await made.token("root", owner=True)
            yield made


async def stored(client: Client, content: str, **arguments: Any) -> str:
    """Store a memory and return the namespace it went to."""
    return str(
        (await called(client, "memory_store", content=content, **arguments))[
            "namespace"
        ]
    )


async def names(url: str) -> set[str]:
    async with connected(url) as client:
        return {
            item["name"]
            for item in (await called(client, "memory_status"))["namespaces"]
        }


@pytest.mark.parametrize(("sse", "mode"), WAYS)
async def test_a_memory_goes_where_the_argument_says_then_the_header_then_the_url(
    server: HttpServer, sse: bool, mode: str
) -> None:
    async with (
        connected(
            server.url,
            {HEADER: "repo:acme/shop"},
            sse=sse,
            mode=mode,
            query="?namespace=from-url",
        ) as shop,
        connected(server.url, {HEADER: "repo:acme/api"}, sse=sse, mode=mode) as api,
        connected(
            server.url, sse=sse, mode=mode, query="?namespace=repo:acme/web"
        ) as web,
        connected(
            server.url,
            sse=sse,
            mode=mode,
            query=f"?x=1&namespace={quote('München', safe='')}",
        ) as city,
    ):
        for number in range(2):
            for client, name in (
                (shop, "repo:acme/shop"),
                (api, "repo:acme/api"),
                (web, "repo:acme/web"),
                (city, "München"),
            ):
                assert (
                    await stored(client, f"{name} opens at {number} ({sse}, {mode}).")
                    == name
                )
        assert (
            await stored(shop, f"one ({sse}, {mode})", namespace="from-argument")
            == "from-argument"
        )


@pytest.mark.parametrize(("sse", "mode"), WAYS)
async def test_a_write_without_any_namespace_is_refused_with_the_ways_to_name_one(
    server: HttpServer, sse: bool, mode: str
) -> None:
    before = await names(server.url)
    async with connected(
        server.url, {HEADER: ""}, sse=sse, mode=mode, query="?namespace="
    ) as client:
        errors = [
            await refused(client, "memory_store", **DRAFT),
            await refused(client, "memory_forget", filters={"tags": ["x"]}),
        ]
        prompt = str((await client.get_prompt("remember")).messages[0].content)

    for text in errors:
        assert text.startswith("namespace: is missing")
        for way in (
            "Pass namespace",
            "send the header Folklore-Namespace",
            "?namespace=NAME",
            "token with a default",
        ):
            assert way in text
    assert "a namespace that fits" in prompt
    assert await names(server.url) == before


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("two words", "a name is made of letters, digits"),
        ("two%20words", "a name is made of letters, digits"),
        ("-x", "a name begins and ends with a letter"),
        ("x" * 101, "over the limit of 100"),
        ("m%FCnchen", "must be UTF-8, percent-encoded."),
        ("${PROJECT}", "a name is made of letters, digits"),
    ],
)
async def test_a_bad_name_in_header_or_url_is_refused_as_in_an_argument(
    server: HttpServer, value: str, problem: str
) -> None:
    async with connected(server.url, {HEADER: value}) as client:
        in_header = await refused(client, "memory_store", **DRAFT)
    async with connected(
        server.url, query=f"?namespace={quote(value, safe='%')}", sse=True
    ) as client:
        in_url = await refused(client, "memory_store", **DRAFT)
        as_argument = await refused(
            client, "memory_store", content="never stored", namespace=value
        )

    assert in_header.startswith("Folklore-Namespace: ")
    assert problem in in_header
    assert in_url == in_header.replace("Folklore-Namespace", "?namespace")
    if "%" not in value:
        assert as_argument == in_header.replace("Folklore-Namespace", "namespace")


async def test_a_header_is_read_as_utf_8_percent_encoded_or_as_bytes_and_not_as_latin_1(
    server: HttpServer,
) -> None:
    async def store(value: bytes) -> httpx.Response:
        async with httpx.AsyncClient(base_url=server.url) as client:
            return await client.post(
                "/api/store", json=DRAFT, headers=[(HEADER.encode(), value)]
            )

    assert (await store(b"M%C3%BCnchen")).json()["result"]["namespace"] == "München"
    assert (await store("München".encode())).json()["result"]["namespace"] == "München"
    latin = await store("München".encode("latin-1"))
    assert (latin.status_code, latin.json()["error"]["code"]) == (400, "invalid_input")
    assert "percent-encoded" in latin.json()["error"]["message"]


async def test_a_namespace_that_is_named_twice_is_refused(server: HttpServer) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        by_header = await client.post(
            "/api/store", json=DRAFT, headers=[(HEADER, "a"), (HEADER, "b")]
        )
        by_url = await client.post("/api/store?namespace=a&namespace=b", json=DRAFT)

    for answer, field in ((by_header, "Folklore-Namespace"), (by_url, "?namespace")):
        assert answer.status_code == 400
        assert (
            answer.json()["error"]["message"]
            == f"{field}: must be given once, got 2 values."
        )


@pytest.mark.parametrize("by", ["header", "url"])
async def test_the_namespace_of_an_sse_stream_counts_for_messages_that_name_none(
    server: HttpServer, by: str
) -> None:
    name = f"stream-by-{by}"
    headers, query = (
        ({HEADER: name}, {}) if by == "header" else ({}, {"namespace": name})
    )
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=20) as client,
        client.stream("GET", "/sse", headers=headers, params=query) as stream,
    ):
        lines = (
            line.removeprefix("data: ")
            async for line in stream.aiter_lines()
            if line.startswith("data: ")
        )
        endpoint = await anext(lines)

        async def answer(message: dict[str, Any], **more: str) -> dict[str, Any]:
            assert (
                await client.post(endpoint, json=message, headers=more)
            ).status_code == 202
            return dict(json.loads(await anext(lines)))

        opening = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        await answer(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}
        )
        await client.post(
            endpoint, json={"jsonrpc": "2.0", "method": "notifications/initialized"}
        )
        plain = await answer(
            call("memory_store", content=f"stored without a name ({by})")
        )
        other = await answer(
            call("memory_store", content=f"stored with a name ({by})"),
            **{HEADER: "message"},
        )

    assert plain["result"]["structuredContent"]["namespace"] == name
    assert other["result"]["structuredContent"]["namespace"] == "message"


async def found(
    client: Client, tool: str = "memory_recall", **arguments: Any
) -> dict[str, Any]:
    return dict(await called(client, tool, **{"query": "walrus"} | arguments))


def places(answer: dict[str, Any]) -> set[str]:
    """The namespaces of the project's results."""
    return {
        memory["namespace"]
        for memory in answer["memories"]
        if not memory.get("elsewhere")
    }


@pytest.mark.parametrize(("sse", "mode"), WAYS)
async def test_a_recall_asks_the_project_that_header_or_url_name_and_without_one_all(
    server: HttpServer, sse: bool, mode: str
) -> None:
    namespaces = ("pool", "beach")
    for namespace in namespaces:
        async with connected(server.url, {HEADER: namespace}) as client:
            await stored(client, f"The walrus sleeps at the {namespace}.")
    how: dict[str, Any] = {"sse": sse, "mode": mode}

    for tool in ("memory_recall", "search_keywords"):
        async with connected(
            server.url, {HEADER: "pool"}, **how, query="?namespace=beach"
        ) as client:
            assert places(await found(client, tool)) == {"pool"}
            assert places(await found(client, tool, namespaces=["beach"])) == {"beach"}
            assert places(await found(client, tool, namespaces=["*"])) >= set(
                namespaces
            )
        async with connected(server.url, **how, query="?namespace=beach") as client:
            assert places(await found(client, tool)) == {"beach"}
        async with connected(server.url, **how) as client:
            assert places(await found(client, tool)) >= set(namespaces)


ONE: dict[str, dict[str, Any]] = {
    "store": DRAFT, "rename_tag": {"tag": "a", "to": "b"}, "review": {"reason": "similar"},
    "rename_namespace": {"to": "other"}, "merge_namespaces": {"into": "board"},
    "create_token": {"name": "walter"}, "invite": {"name": "walter"},
}  # fmt: skip
NAMES = [
    (operation, field)
    for operation, request in OPERATIONS.items()
    for field in request.model_fields
    if field == "namespace"
    or ("namespace" in operation and field in ("name", "to", "into"))
]
ANY_ID = str(UUID(int=1))
SEVERAL: dict[str, dict[str, Any]] = {
    "forget": {"filters": {"tags": ["crane"]}}, "update": {"id": ANY_ID}, "undo": {"id": ANY_ID},
    "relate": {"relations": [{"from": ANY_ID, "to": ANY_ID}]},
}  # fmt: skip


STARS = [
    *(
        (operation, {"name": "payments"} | ONE.get(operation, {}) | {field: "*"})
        for operation, field in NAMES
    ),
    *((operation, body | {"namespaces": ["*"]}) for operation, body in SEVERAL.items()),
]


async def test_a_star_is_no_name_of_a_namespace_and_changes_no_memory(
    team: Team,
) -> None:
    root = bearer((await team.token("root", owner=True)).secret)
    async with httpx.AsyncClient(base_url=team.url, headers=root) as http:
        for operation, given in STARS:
            body = {
                name: value
                for name, value in given.items()
                if name in OPERATIONS[operation].model_fields
            }
            answer = await http.post(f"/api/{operation}", json=body)
            listed = (await http.post("/api/list_namespaces", json={})).json()["result"]

            assert (answer.status_code, answer.json()["error"]["code"]) == (
                400,
                "invalid_input",
            ), (operation, body)
            assert {"board", "payments", "setting"} <= {
                item["name"] for item in listed
            }, (operation, body)


async def test_a_recall_by_a_token_asks_its_default_and_all_where_the_named_project_is_not_granted(
    team: Team,
) -> None:
    both = await team.token(
        "walter", "payments:writer", "board:writer", namespace="board"
    )
    several = await team.token("walter", "payments:writer", "board:writer")

    async def recalled(secret: str, **headers: str) -> set[str]:
        async with connected(team.url, bearer(secret) | headers) as client:
            return places(await found(client, query="Which colour has the crane?"))

    assert await recalled(both.secret) == {"board"}
    assert await recalled(both.secret, **{HEADER: "payments"}) == {"payments"}
    assert await recalled(several.secret) == {"board", "payments"}
    # "setting" exists and "missing" does not: the caller learns nothing of it.
    assert await recalled(several.secret, **{HEADER: "setting"}) == {
        "board",
        "payments",
    }
    assert await recalled(several.secret, **{HEADER: "missing"}) == {
        "board",
        "payments",
    }


async def test_a_character_that_no_text_can_hold_is_an_error_of_its_field(
    team: Team,
) -> None:
    root = bearer((await team.token("root", owner=True)).secret) | {
        "content-type": "application/json"
    }
    async with httpx.AsyncClient(base_url=team.url, headers=root) as http:
        for operation, field in (
            ("audit", "principal"),
            ("injected", "session"),
            ("log", "author"),
        ):
            for text in ("\\u0000", "\\ud800"):
                answer = await http.post(
                    f"/api/{operation}", content=f'{{"{field}": "a{text}"}}'
                )

                assert answer.status_code == 400, (operation, text)
                assert answer.json()["error"]["message"].startswith(
                    f"{field}: holds a NUL"
                ), text
            deep = await http.post(
                f"/api/{operation}", content=f'{{"{field}": ' + "[" * 5_000
            )

            assert deep.status_code == 400, operation
            assert (
                "recursion limit exceeded at line 1 column"
                in deep.json()["error"]["message"]
            )


async def test_only_an_administrator_of_a_namespace_shares_it(team: Team) -> None:
    await team.keep("The rule of the harbour is silence.", namespace="shared-rules")
    writer = await team.token(
        "walter", "shared-rules:writer", "board:writer", namespace="board"
    )
    admin = await team.token("ada", "shared-rules:admin")
    stranger = await team.token("steve", "board:writer")

    async with httpx.AsyncClient(base_url=team.url) as http:

        async def share(secret: str, **more: bool) -> int:
            body = {"name": "shared-rules", **more}
            return (
                await http.post(
                    "/api/share_namespace", json=body, headers=bearer(secret)
                )
            ).status_code

        assert [
            await share(writer.secret),
            await share(stranger.secret),
            await share(admin.secret),
        ] == [403, 404, 200]
        listed = (
            await http.post(
                "/api/list_namespaces", json={}, headers=bearer(writer.secret)
            )
        ).json()["result"]
        hidden = (
            await http.post(
                "/api/list_namespaces", json={}, headers=bearer(stranger.secret)
            )
        ).json()["result"]
    assert {item["name"]: item["shared"] for item in listed} == {
        "board": "never",
        "shared-rules": "always",
    }
    assert {item["name"] for item in hidden} == {"board"}
    async with connected(team.url, bearer(writer.secret)) as client:
        answer = await found(client, query="What is the rule of the harbour?")
        status = (await client.call_tool("memory_status", {})).structured_content
    assert answer["memories"][0]["namespace"] == "shared-rules"
    assert "elsewhere" not in answer["memories"][0]
    assert status is not None
    assert {item["name"]: item.get("shared") for item in status["namespaces"]}[
        "shared-rules"
    ] == "always"


async def test_operations_of_the_api_use_the_namespace_that_their_request_names(
    server: HttpServer,
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:

        async def post(name: str, body: dict[str, Any], **more: str) -> httpx.Response:
            return await client.post(f"/api/{name}", json=body, headers=more)

        by_header = await post("store", DRAFT, **{HEADER: "ferry-one"})
        by_url = await post("store?namespace=ferry-two", DRAFT)
        by_argument = await post(
            "store", DRAFT | {"namespace": "ferry-three"}, **{HEADER: "ferry-one"}
        )
        missing = [
            await post("store", DRAFT),
            await post("forget", {"filters": {"kinds": ["x"]}}),
        ]
        gone = await post(
            "forget", {"filters": {"tags": ["ferry"]}}, **{HEADER: "ferry-two"}
        )

    namespaces = [
        answer.json()["result"]["namespace"]
        for answer in (by_header, by_url, by_argument)
    ]
    assert namespaces == ["ferry-one", "ferry-two", "ferry-three"]
    for answer in missing:
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            400,
            "invalid_input",
        )
        assert "Folklore-Namespace" in answer.json()["error"]["hint"]
    assert [memory["namespace"] for memory in gone.json()["result"]["memories"]] == [
        "ferry-two"
    ]


async def test_the_header_counts_before_the_tokens_default_and_that_before_the_setting(
    team: Team,
) -> None:
    both = await team.token(
        "walter", "payments:writer", "board:writer", namespace="board"
    )
    owner = await team.token("ops", owner=True)

    async with team.assistant(both.secret) as client:
        assert await stored(client, "The board meets on Mondays.") == "board"
    async with connected(
        team.url, bearer(both.secret) | {HEADER: "payments"}, sse=True
    ) as client:
        assert await stored(client, "Refunds take three days.") == "payments"
    async with team.assistant(owner.secret) as client:
        assert await stored(client, "Deploys stop on Fridays.") == "setting"


async def test_the_setting_is_not_named_to_a_token_that_has_no_grant_for_it(
    team: Team,
) -> None:
    several = await team.token("walter", "payments:writer", "board:writer")
    opened = await team.token(
        "walter", "payments:writer", "board:writer", "setting:writer"
    )
    reader = await team.token("rita", "payments:reader")

    async with team.assistant(several.secret) as client:
        error = await refused(client, "memory_store", **DRAFT)
    async with team.assistant(opened.secret) as client:
        assert await stored(client, "The gate is shut at night.") == "setting"
    async with httpx.AsyncClient(base_url=team.url) as http:
        reading = (
            await http.post("/api/store", json=DRAFT, headers=bearer(reader.secret))
        ).json()["error"]

    assert "Pass namespace (board, payments)" in error
    assert "setting" not in error
    assert reading["hint"] == "Your token may only read."


@pytest.mark.parametrize("sse", [False, True])
async def test_a_namespace_without_a_grant_answers_like_one_that_does_not_exist(
    team: Team, sse: bool
) -> None:
    token = await team.token("walter", "payments:writer")

    async def error(headers: dict[str, str], query: str = "", **arguments: str) -> str:
        async with connected(
            team.url, bearer(token.secret) | headers, sse=sse, query=query
        ) as client:
            return await refused(
                client, "memory_store", content="never stored", **arguments
            )

    by_argument = await error({}, namespace="board")

    assert "There is no namespace 'board' that you may write to." in by_argument
    assert await error({HEADER: "board"}) == by_argument
    assert await error({}, "?namespace=board") == by_argument
    assert await error({HEADER: "bored"}) == by_argument.replace("'board'", "'bored'")
