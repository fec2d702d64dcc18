"""`folklore import` through a team's server: whose memories they become, and what a long or broken upload does."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from folklore.contract.memories import ListRequest
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.model import Memory
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import on_http, watched
from tests.team import Team, bearer, library_at


@pytest.fixture(scope="module")
async def team(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    settings = watched(
        tmp_path_factory.mktemp("team"), database_url=address, namespace=""
    )
    async with library_at(address) as library, on_http(settings) as server:
        made = Team(server, library)
        await made.token("root", owner=True)
        yield made


async def imported(
    folklore: CommandLine, team: Team, secret: str, *words: object, code: int = 0
) -> Any:
    ran = await folklore(
        "import", *words, "--server", team.url, "--token", secret, "--json"
    )
    assert ran.code == code, ran.err
    return json.loads(ran.out)


async def memories(team: Team, namespace: str) -> dict[str, Memory]:
    answer = await team.owner.call(ListRequest(namespaces=(namespace,)))
    return {result.memory.content: result.memory for result in answer.memories}


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


async def test_a_member_is_the_author_of_what_they_import(
    folklore: CommandLine, team: Team, tmp_path: Path
) -> None:
    member = await team.token("mia", "harbour:writer", "docks/*:writer")
    memory = {
        "type": "memory",
        "author": "sarah",
        "trust": "confirmed",
        "recall_count": 50,
        "namespace": "harbour",
    }
    file = written(
        tmp_path / "team.jsonl",
        {
            "folklore": 1,
            "namespaces": [
                {
                    "name": "docks/made",
                    "created_at": "2025-01-01T00:00:00Z",
                    "created_by": "x",
                }
            ],
        },
        memory | {"content": "The crane is red."},
        memory
        | {"content": "The crane was blue.", "forgotten_at": "2025-01-01T00:00:00Z"},
        memory | {"content": "Berth 4 is new.", "namespace": "docks/four"},
        memory | {"content": "The safe holds 12.", "namespace": "board"},
    )

    report = await imported(folklore, team, member.secret, file, code=1)

    assert (report["stored"], report["failed"]) == (2, 1)
    assert report["skipped"] == {"forgotten or superseded memory": 1}
    assert "no namespace 'board'" in report["failures"][0]["message"]
    [crane] = (await memories(team, "harbour")).values()
    assert (crane.content, crane.author, crane.recall_count) == (
        "The crane is red.",
        "mia",
        0,
    )
    assert [found.name for found in await team.library.namespaces.find(None)] == [
        "docks/four",
        "harbour",
    ]
    again = await imported(folklore, team, member.secret, file, code=1)
    assert (again["stored"], again["duplicates"]) == (0, 2)


async def test_a_reader_imports_nothing_and_an_owner_everything(
    folklore: CommandLine, team: Team, tmp_path: Path
) -> None:
    reader = await team.token("rita", "quay:reader")
    owner = await team.token("olga", owner=True)
    file = written(
        tmp_path / "a.jsonl",
        {"content": "The quay is long.", "namespace": "quay", "author": "sarah"},
    )

    ran = await folklore("import", file, "--server", team.url, "--token", reader.secret)
    assert (ran.code, "You may write to no namespace here" in ran.err) == (5, True)
    assert (await imported(folklore, team, owner.secret, file))["stored"] == 1
    assert (await memories(team, "quay"))["The quay is long."].author == "sarah"


async def test_an_edited_page_is_imported_again_by_a_member(
    folklore: CommandLine, team: Team, tmp_path: Path
) -> None:
    member = await team.token("max", "wiki:writer")
    page = tmp_path / "deploy.md"
    page.write_text(
        "# Deploy\n\nWe deploy from tags.\n\n# Rollback\n\nWe roll back by hand.\n"
    )
    first = await imported(
        folklore, team, member.secret, page, "--namespace", "wiki", "--yes"
    )
    page.write_text("# Deploy\n\nWe deploy from main.\n")

    again = await imported(
        folklore, team, member.secret, page, "--namespace", "wiki", "--yes"
    )

    assert (first["stored"], again["overwritten"], again["removed"]) == (2, 1, 1)
    assert first["targets"][0]["readers"] == ["its team"]
    assert [content.splitlines()[-1] for content in await memories(team, "wiki")] == [
        "We deploy from main."
    ]


async def test_the_answer_to_a_large_upload_comes_after_an_error_in_its_beginning(
    folklore: CommandLine, team: Team, tmp_path: Path
) -> None:
    owner = await team.token("otto", owner=True)
    await team.keep("known", namespace="large")
    lines = (
        {"content": f"{number} {'word ' * 1000}", "namespace": "large"}
        for number in range(2_000)
    )
    file = written(
        tmp_path / "large.jsonl", {"content": "known", "namespace": "large"}, *lines
    )
    assert file.stat().st_size > 9_000_000

    ran = await folklore(
        "import",
        file,
        "--on-conflict",
        "fail",
        "--server",
        team.url,
        "--token",
        owner.secret,
    )

    assert (ran.code, "Line 1 exists already" in ran.err) == (1, True)
    assert list(await memories(team, "large")) == ["known"]


async def test_an_upload_that_ends_early_stores_whole_batches_only(team: Team) -> None:
    owner = await team.token("ole", owner=True)
    stored = threading.Event()

    def body() -> Iterator[bytes]:
        yield b'{"namespace": "cut"}\n'
        yield b"".join(
            b'[%d, "", 0, null]\t{"content": "fact %d"}\n' % (number, number)
            for number in range(700)
        )
        assert stored.wait(60)
        raise InterruptedError

    def send() -> None:
        headers = bearer(owner.secret) | {"content-type": "application/json"}
        with (
            pytest.raises(InterruptedError),
            httpx.Client(base_url=team.url, headers=headers) as client,
        ):
            client.post("/api/import", content=body())

    sending = asyncio.create_task(asyncio.to_thread(send))
    async with asyncio.timeout(60):
        while not await team.library.namespaces.find(["cut"]):
            await asyncio.sleep(0.05)
    stored.set()
    await sending

    assert [
        item.memories
        for item in await team.owner.call(ListNamespacesRequest())
        if item.name == "cut"
    ] == [500]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"namespace": 4}\n', "namespace"),
        (
            b'{}\n[1, "", 0]\t{"content": "x"}\n',
            "is not what `folklore import` of this version sends",
        ),
        (b'{"report": {"seconds": 1e400}}\n', "report.seconds"),
    ],
)
async def test_a_body_of_another_form_is_refused(
    team: Team, content: bytes, message: str
) -> None:
    owner = await team.token("ove", owner=True)

    async with httpx.AsyncClient(
        base_url=team.url, headers=bearer(owner.secret)
    ) as client:
        answer = await client.post(
            "/api/import", content=content, headers={"content-type": "application/json"}
        )

    assert (answer.status_code, answer.json()["error"]["code"]) == (
        400,
        "invalid_input",
    )
    assert message in answer.json()["error"]["message"]


async def test_imports_that_stall_take_no_place_of_other_calls_and_end_with_their_token(
    team: Team,
) -> None:
    member = await team.token("ida", "pier:writer")
    owner = await team.token("oda", owner=True)
    address = httpx.URL(team.url)
    head = f"Host: {address.host}:{address.port}\r\nAuthorization: Bearer {member.secret}\r\n"
    form = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"
    streams = [
        await asyncio.open_connection(address.host, address.port) for _ in range(70)
    ]
    for _, writer in streams:
        writer.write(f"POST /api/import HTTP/1.1\r\n{head}{form}".encode())

    async with httpx.AsyncClient(
        base_url=team.url, headers=bearer(owner.secret)
    ) as client:
        assert (await client.post("/api/status", json={})).status_code == 200
    await team.revoke(member)

    async with asyncio.timeout(20):
        answers = {await reader.readline() for reader, _ in streams}
    late = b"HTTP/1.1 401 Unauthorized\r\n"  # what a busy server had not read before
    assert answers - {late} == {b"HTTP/1.1 503 Service Unavailable\r\n"}
    for _, writer in streams:
        writer.close()


async def test_an_export_ends_with_its_token(team: Team) -> None:
    reader = await team.token("eva", "archive:reader")
    await team.keep(
        *(f"Box {number}: {'paper ' * 5000}" for number in range(500)),
        namespace="archive",
    )

    with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012 - the stream begins well
        async with (
            httpx.AsyncClient(
                base_url=team.url, headers=bearer(reader.secret)
            ) as client,
            client.stream("POST", "/api/export", json={}) as stream,
        ):
            await team.revoke(reader)
            revoked = time.monotonic()
            async for _ in stream.aiter_raw(chunk_size=200_000):
                # buffers hide what follows
                await asyncio.sleep(0.2 if time.monotonic() < revoked + 4 else 0)
