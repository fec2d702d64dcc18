"""The time zone of times: that of the argument, the header, the setting or the caller's machine; never the server's."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.mcp.test_tools import call, refusal
from tests.servers import HttpServer, Watched, on_http, on_stdio, watched
from tests.team import connected

HEADER = "Folklore-Time-Zone"
# 08:30 on 2 March in Tokyo, 23:30 on 1 March in UTC.
LATE = {"content": "The night build failed.", "occurred_at": "2026-03-01T23:30:00Z"}
SECOND: dict[str, Any] = {"query": "night build", "filters": {"time": "2 March 2026"}}
TEXTS = [LATE["content"]]


async def found(
    client: Client, filters: dict[str, Any], tool: str = "memory_recall"
) -> list[str]:
    asked = {} if tool == "memory_list" else {"query": "night build"}
    return [
        memory["content"]
        for memory in (await call(client, tool, filters=filters, **asked))["memories"]
    ]


@pytest.fixture
async def server(database_url: str, tmp_path: Any) -> AsyncIterator[HttpServer]:
    """A server on a machine whose time zone is not that of its callers."""
    settings = watched(tmp_path, database_url=database_url)
    async with on_http(
        Watched({**settings.environment, "TZ": "Pacific/Auckland"}, settings.notes)
    ) as running:
        yield running


@pytest.mark.parametrize("tool", ["memory_recall", "search_keywords", "memory_list"])
async def test_times_of_filters_are_in_the_zone_of_the_argument(
    client: Client, tool: str
) -> None:
    await call(client, "memory_store", **LATE)
    tokyo = {"time_zone": "Asia/Tokyo"}

    for filters in (
        {"time": "2 March 2026"},
        {"since": "2026-03-02T08:00"},
        {"as_of": "2026-03-02T09:00"},
    ):
        assert await found(client, filters | tokyo, tool) == TEXTS, filters
    assert await found(client, {"until": "2026-03-02T08:00"} | tokyo, tool) == []
    assert await found(client, {"as_of": "2026-03-02T08:00"} | tokyo, tool) == []
    assert (
        await found(
            client, {"time": "2026-03-01T23:00Z..2026-03-01T23:45Z"} | tokyo, tool
        )
        == TEXTS
    )


UNKNOWN: list[str] = [
    "Mars/Phobos",
    "Europe",
    "../etc/passwd",
    "x" * 5_000,
    "UTC\0",
    "+02:00",
]


async def test_an_unknown_time_zone_is_an_error_that_names_the_field(
    client: Client,
) -> None:
    for name in UNKNOWN:
        error = await refusal(
            client, "memory_recall", query="build", filters={"time_zone": name}
        )

        assert error.startswith("filters.time_zone: "), name
        assert (
            "is not a time zone. Use a name such as Europe/Vienna or UTC." in error
        ), name
        assert len(error) < 200, name


@pytest.mark.parametrize("sse", [False, True])
async def test_over_http_the_header_names_the_zone_and_the_argument_comes_first(
    server: HttpServer, sse: bool
) -> None:
    async with (
        connected(server.url, {HEADER: "Asia/Tokyo"}, sse=sse) as tokyo,
        connected(server.url, {HEADER: ""}, sse=sse) as plain,
        connected(server.url, {HEADER: "Mars/Phobos"}, sse=sse) as mars,
    ):
        await call(plain, "memory_store", **LATE)
        assert await found(tokyo, {"time": "2 March 2026"}) == TEXTS
        assert await found(tokyo, {"time": "2 March 2026", "time_zone": "UTC"}) == []
        assert await found(plain, {"time": "2 March 2026"}) == [], (
            "not the zone of the server's machine"
        )
        assert await found(plain, {"time": "1 March 2026"}) == TEXTS
        await call(
            tokyo,
            "memory_store",
            content="It rained.",
            occurred_at="2026-03-02T08:30:00",
        )
        stored = await call(
            plain,
            "memory_list",
            filters={"time": "2026-03-01T23:30Z..2026-03-01T23:31Z"},
        )
        assert len(stored["memories"]) == 2, (
            "a time without an offset is in the zone of the header"
        )
        error = await refusal(mars, "memory_recall", query="build")
        assert error.startswith(f"{HEADER}: 'Mars/Phobos' is not a time zone.")


async def test_operations_of_the_api_use_the_zone_of_the_header(
    server: HttpServer,
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        await client.post(
            "/api/store",
            json={"memories": [LATE]},
            headers={"Folklore-Namespace": "notes"},
        )
        answers = {
            zone: await client.post(
                "/api/recall", json=SECOND, headers=[(HEADER, name) for name in zone]
            )
            for zone in (("Asia/Tokyo",), ("UTC",), ("nowhere",), ("UTC", "Asia/Tokyo"))
        }

    counts = [
        len(answer.json()["result"]["memories"])
        for answer in list(answers.values())[:2]
    ]
    assert counts == [1, 0]
    for answer in list(answers.values())[2:]:
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            400,
            "invalid_input",
        )
        assert answer.json()["error"]["message"].startswith(f"{HEADER}: ")


async def test_on_stdio_the_zone_is_that_of_the_machine(
    database_url: str, tmp_path: Any
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    for machine, setting, texts in (
        ("Asia/Tokyo", "", TEXTS),
        ("UTC", "", []),
        ("UTC", "Asia/Tokyo", TEXTS),
    ):
        own = {"TZ": machine, "FOLKLORE_TIME_ZONE": setting}
        here = Watched({**settings.environment, **own}, settings.notes)
        async with Client(on_stdio(here), read_timeout_seconds=60) as client:
            await call(client, "memory_store", **LATE)
            assert await found(client, {"time": "2 March 2026"}) == texts, own


async def test_the_command_line_reads_and_shows_times_in_the_zone_of_the_machine(
    folklore: CommandLine, server: HttpServer
) -> None:
    recall = ("recall", "night build", "--time", "2 March 2024")
    store = ("store", LATE["content"], "--occurred-at", "2024-03-02 08:30")

    for at in ((), ("--server", server.url)):
        assert folklore.process(*store, *at, TZ="Asia/Tokyo").code == 0
        assert "2024-03-02 08:30" in folklore.process(*recall, *at, TZ="Asia/Tokyo").out
        both = folklore.process(
            *recall, *at, "--filter", "time_zone=Asia/Tokyo", TZ="UTC"
        )
        assert "2024-03-01 23:30" in both.out
    assert "Nothing" in folklore.process(*recall, TZ="UTC").out
    assert (
        "2024-03-02 08:30"
        in folklore.process("list", TZ="UTC", FOLKLORE_TIME_ZONE="Asia/Tokyo").out
    )
    wrong = await folklore(*recall, "--filter", "time_zone=Asia/Tokio")
    assert (
        wrong.code,
        "filters.time_zone: 'Asia/Tokio' is not a time zone." in wrong.err,
    ) == (2, True)


@pytest.mark.parametrize("machine", ["EST5EDT4,M3.2.0", "nonsense"])
async def test_a_machine_without_a_named_zone_is_taken_for_utc(
    folklore: CommandLine, machine: str
) -> None:
    assert (
        folklore.process(
            "store", "It rained.", "--occurred-at", "2024-03-02 08:30", TZ=machine
        ).code
        == 0
    )

    assert "2024-03-02 08:30" in folklore.process("list", TZ="UTC").out
