"""Secret guard: no field and no way of storing lets a secret into the database, a log or an answer."""

import json
import random
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from mcp import Client

from folklore.app import App
from folklore.config import Settings
from folklore.contract.namespaces import DescribeNamespaceRequest
from folklore.errors import Refused
from folklore.mcp.server import build_server
from folklore.memory.context.secret_guard import guard_draft, guard_fields
from folklore.model import Draft
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.conftest import connected
from tests.doors import own_service
from tests.fake_keys import MAKERS, keys_of
from tests.person import Person, contents
from tests.plain_sentences import SENTENCES

KEY = MAKERS["github"][0](random.Random(7))
FIELDS: list[dict[str, Any]] = [
    {"content": f"CI uses {KEY}."}, {"content": "a", "summary": KEY}, {"content": "a", "kind": KEY.lower()},
    {"content": "a", "kind": KEY}, {"content": "a", "tags": ["ci", KEY]},
    {"content": "a", "source": f"https://x-access-token:{KEY}@github.com/acme/api"}, {"content": "a", "session": KEY},
    {"content": "a", "paths": ["src/a.py", f"out/{KEY}"]}, {"content": "a", "commit": KEY},
    {"content": "a", "language": KEY}, {"content": "a", "idempotency_key": KEY},
    {"content": "a", "metadata": {"deploy": {"notes": ["x", KEY]}}}, {"content": "a", "metadata": {KEY: 1}},
    {"content": "a", "metadata": {"password": "hunter2-is-mine"}}, {"content": f"hidden {KEY[:9]}\u200b{KEY[9:]}"},
]  # fmt: skip


async def _everything(connection: asyncpg.Connection) -> str:
    tables = await connection.fetch(
        "select tablename from pg_tables where schemaname = 'public'"
    )
    rows = [
        await connection.fetch(f'select t::text from "{table[0]}" t')
        for table in tables
    ]
    return "\n".join(row[0] for table in rows for row in table)


async def _store(client: Client, **arguments: Any) -> Any:
    return await client.call_tool("memory_store", arguments)


async def test_a_memory_with_a_key_of_any_kind_is_not_stored(
    client: Client, connection: asyncpg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = keys_of(2026)
    for kind, key in keys:
        answer = await _store(client, content=f"For the deploy: {key}")
        said = answer.content[0].text
        assert answer.is_error, kind
        assert "content" in said
        assert key not in said
    assert await connection.fetchval("select count(*) from memories") == 0
    batch = await _store(
        client, memories=[{"content": "A good one."}, {"content": keys[30][1]}]
    )

    assert not batch.is_error
    [refused] = batch.structured_content["refused"]
    assert (refused["index"], refused["field"]) == (1, "content")
    assert "looks like a secret" in refused["reason"]
    assert "1 of 2 memories were refused" in batch.structured_content["note"]
    assert keys[30][1] not in batch.content[0].text
    assert (
        await connection.fetchval("select string_agg(content, ' ') from memories")
        == "A good one."
    )
    logged = capsys.readouterr()
    assert not [key for _, key in keys if key in logged.out + logged.err]


async def test_ordinary_technical_sentences_are_stored(
    client: Client, connection: asyncpg.Connection
) -> None:
    for start in range(0, len(SENTENCES), 100):
        answer = await _store(
            client,
            memories=[{"content": text} for text in SENTENCES[start : start + 100]],
        )
        assert not answer.is_error, answer.content[0].text

    assert await connection.fetchval("select count(*) from memories") == len(
        set(SENTENCES)
    )


@pytest.mark.parametrize("memory", FIELDS, ids=lambda memory: "-".join(memory))
async def test_every_field_is_searched_for_secrets(
    client: Client, connection: asyncpg.Connection, memory: dict[str, Any]
) -> None:
    answer = await _store(client, memories=[memory])

    assert answer.is_error
    assert "secret" in answer.content[0].text
    assert KEY not in answer.content[0].text
    assert "hunter2" not in answer.content[0].text
    assert KEY not in await _everything(connection)
    assert await connection.fetchval("select count(*) from memories") == 0


@pytest.mark.parametrize("policy", ["refuse", "redact"])
async def test_a_text_that_cannot_be_searched_to_its_end_is_refused(
    settings: Settings, connection: asyncpg.Connection, policy: str
) -> None:
    beginnings = "ghp_aaaa\n npm_aaaa\n" * 800
    app = App(settings.model_copy(update={"secrets": policy}))
    try:
        async with connected(build_server(own_service(app))) as client:
            answer = await _store(client, content=beginnings)
    finally:
        await app.close()

    assert answer.is_error
    assert "content: holds more than 1,000 beginnings" in answer.content[0].text
    assert await connection.fetchval("select count(*) from memories") == 0


async def test_a_namespace_name_with_a_key_is_rejected(
    client: Client, connection: asyncpg.Connection
) -> None:
    answer = await _store(client, content="a", namespace=KEY)

    assert answer.is_error
    assert KEY not in answer.content[0].text
    assert await connection.fetchval("select count(*) from namespaces") == 0


async def test_redacting_stores_a_marker_and_reports_it(
    settings: Settings, connection: asyncpg.Connection
) -> None:
    app = App(settings.model_copy(update={"secrets": "redact"}))
    try:
        async with connected(build_server(own_service(app))) as client:
            answers = [await _store(client, memories=[memory]) for memory in FIELDS]
    finally:
        await app.close()

    rows = await _everything(connection)
    assert (KEY in rows, KEY.lower() in rows, "hunter2" in rows) == (
        False,
        False,
        False,
    )
    assert "CI uses [redacted: GitHub token]." in rows
    done = [answer for answer in answers if not answer.is_error]
    # a marker is no valid kind, language or idempotency key
    assert len(done) == len(FIELDS) - 4
    assert all("marker" in answer.structured_content["note"] for answer in done)
    assert not [
        answer
        for answer in answers
        if KEY in json.dumps(answer.model_dump(mode="json"))
    ]


async def test_the_setting_off_searches_for_no_secrets(settings: Settings) -> None:
    app = App(settings.model_copy(update={"secrets": "off"}))
    try:
        async with connected(build_server(own_service(app))) as client:
            assert not (await _store(client, content=KEY)).is_error
    finally:
        await app.close()


async def test_an_import_skips_memories_with_a_secret_and_reports_why(
    folklore: CommandLine, tmp_path: Any
) -> None:
    file = tmp_path / "in.jsonl"
    lines = [
        {"content": "Kept."}, {"content": f"x {KEY}"}, {"content": "Kept too.", "author": KEY}, {"content": "Last."},
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)))

    report = await folklore.json("import", file)
    again = await folklore("import", file)

    assert (report["stored"], report["refused"], report["failed"]) == (2, 2, 0)
    assert [refusal["line"] for refusal in report["refusals"]] == [2, 3]
    assert "GitHub token" in report["refusals"][0]["message"]
    assert "2 skipped" in again.out
    assert "line 2: content: holds what looks like a secret (GitHub token)" in again.err
    assert KEY not in json.dumps(report) + again.out + again.err


async def test_a_rejected_store_of_the_command_line_exits_with_5(
    folklore: CommandLine,
) -> None:
    ran = await folklore(
        "store", f"password = {MAKERS['password'][0](random.Random(1))[11:]}"
    )

    assert (ran.code, "password" in ran.err) == (5, True)


def test_an_update_of_some_fields_is_searched_for_secrets() -> None:
    with pytest.raises(
        Refused, match=r"summary: holds what looks like a secret \(GitHub token\)"
    ):
        guard_fields({"content": None, "summary": KEY, "importance": 0.5}, "refuse")
    assert guard_fields({"summary": "fine", "importance": 0.5}, "refuse") == ({}, ())
    assert guard_fields({"tags": ("a", KEY)}, "redact") == (
        {"tags": ("a", "[redacted: GitHub token]")},
        ("tags: GitHub token",),
    )


def test_redacting_a_memory_without_secrets_returns_the_same_object() -> None:
    draft = Draft("A fact.", tags=("a",), metadata={"a": [1, None, {"b": "c"}]})

    assert guard_draft(draft, "redact")[0] is draft
    assert guard_draft(replace(draft, content=KEY), "off")[0].content == KEY


async def test_an_update_with_a_secret_is_rejected(person: Person) -> None:
    [id_] = await person.keep("The release needs a token.")
    changes: list[dict[str, Any]] = [
        {"content": f"The token is {KEY}"},
        {"tags": [KEY]},
        {"metadata": {"token": KEY}},
    ]

    for change in changes:
        with pytest.raises(Refused, match="secret") as refused:
            await person.update(id_, **change)
        assert KEY not in str(refused.value)
    with pytest.raises(Refused, match="description"):
        await person.call(
            DescribeNamespaceRequest(name="notes", description=f"Its key is {KEY}")
        )
    with pytest.raises(Refused, match="supersede_reason"):
        await person.keep(
            Draft(
                "The release needs a key.",
                supersedes=id_,
                supersede_reason=f"now {KEY}",
            )
        )

    assert contents(await person.recall("release token")) == [
        "The release needs a token."
    ]
