"""The probes: codes for every client, cheap however often they are asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import asyncpg
import httpx
import pytest
import structlog
from pydantic import SecretStr
from starlette.applications import Starlette

from folklore import __version__
from folklore.app import App
from folklore.config import EmbeddingSettings, Settings
from folklore.contract.memories import StoreRequest
from folklore.contract.people import CreateTokenRequest
from folklore.db.migrate import migrations, schema
from folklore.model import Demand, Draft
from folklore.server.application import health
from folklore.server.application.app import build_app
from folklore.server.listener import by_token
from tests.doors import own_service
from tests.servers import free_port


@asynccontextmanager
async def served(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """Run the ASGI application and give a client of it."""
    built: Starlette = build_app(app, by_token("127.0.0.1"))
    async with (
        built.router.lifespan_context(built),
        httpx.AsyncClient(
            base_url="http://127.0.0.1", transport=httpx.ASGITransport(built)
        ) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def checked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_VALID", 0.0)


async def test_a_schema_behind_or_ahead_is_reported_until_it_fits_again_and_nothing_that_is_stored(
    settings: Settings, connection: asyncpg.Connection
) -> None:
    app = App(settings)
    last = [schema(), *migrations()][-1]
    async with served(app) as client:
        await own_service(app).call(
            StoreRequest(memories=(Draft("marked"),), namespace="marked")
        )
        alive = await client.get("/healthz")
        ready = await client.get("/readyz")
        await connection.execute(
            "delete from folklore_migrations where name = $1", last.name
        )
        behind = await client.get("/readyz")
        add = "insert into folklore_migrations (name, checksum, applied_at) values ($1, $2, $3)"
        await connection.execute(add, last.name, last.checksum, datetime.now(UTC))
        again = await client.get("/readyz")
        await connection.execute(add, "9999_marked.sql", "?", datetime.now(UTC))
        ahead = await client.get("/readyz")

    assert (alive.status_code, alive.json()) == (
        200,
        {"status": "ok", "name": "folklore", "version": __version__},
    )
    assert (ready.status_code, ready.json()) == (
        200,
        {"status": "ready", "engine": "server"},
    )
    assert (behind.status_code, behind.json()["missing"]) == (503, "schema_behind")
    assert again.status_code == 200
    assert (ahead.status_code, ahead.json()["missing"]) == (503, "schema_ahead")
    assert "9999" not in ahead.text


async def test_a_role_that_may_not_migrate_reports_the_schema_as_behind(
    empty_database_url: str, settings: Settings
) -> None:
    joint = "&" if "?" in empty_database_url else "?"
    limited = settings.model_copy(
        update={
            "database_url": SecretStr(
                f"{empty_database_url}{joint}role=pg_read_all_data"
            )
        }
    )
    async with served(App(limited)) as client:
        answer = await client.get("/readyz")

    assert (answer.status_code, answer.json()["missing"]) == (503, "schema_behind")
    assert "pg_read_all_data" not in answer.text


@pytest.mark.parametrize("authentication", ["auto", "never", "always"])
async def test_a_role_for_tokens_that_is_not_complete_is_reported_where_there_may_be_tokens(
    settings: Settings, connection: asyncpg.Connection, authentication: Demand
) -> None:
    http = settings.http.model_copy(update={"authentication": authentication})
    app = App(settings.model_copy(update={"http": http}))
    async with served(app) as client:
        await own_service(app).call(CreateTokenRequest(name="owner", owner=True))
        await own_service(app).call(
            CreateTokenRequest(name="bea", grants=("notes:reader",))
        )
        await connection.execute(
            "update tokens set expires_at = created_at where not owner"
        )
        complete = await client.get("/readyz")
        await connection.execute("revoke insert on relations from folklore_app")
        before = await client.get("/readyz")
        made = await own_service(app).call(
            CreateTokenRequest(name="ann", grants=("notes:reader",))
        )
        after = await client.get("/readyz")

    assert (complete.status_code, before.status_code) == (
        200,
        503 if authentication == "always" else 200,
    )
    assert (after.status_code, after.json()["missing"]) == (503, "role_not_complete")
    assert (made.usable, "folklore_app" in after.json()["message"]) == (False, True)


async def test_a_model_that_is_down_degrades_until_it_is_back(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_MODEL_VALID", 0.0)
    port = free_port()
    changed = settings.model_copy(
        update={
            "embedding": EmbeddingSettings(
                provider="openai",
                url=f"http://127.0.0.1:{port}/v1",
                model="marked-model",
            )
        }
    )

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"data": [{"index": 0, "embedding": [1.0, 0.0]}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))  # fmt: skip
        await writer.drain()
        writer.close()

    async with served(App(changed)) as client:
        down = await client.get("/readyz")
        service = await asyncio.start_server(answer, "127.0.0.1", port)
        async with service, asyncio.timeout(120):
            while "degraded" in (back := await client.get("/readyz")).json():
                await asyncio.sleep(0.1)

    degraded = {
        "status": "ready",
        "engine": "server",
        "degraded": ["embedder_unavailable"],
    }
    assert (down.status_code, down.json()) == (200, degraded)
    assert back.json() == {"status": "ready", "engine": "server"}


@pytest.mark.parametrize(
    ("broken", "part"),
    [
        ("folklore.app.App.ready", "start"),
        ("folklore.db.migrate.check_schema", "database"),
        ("folklore.embedding.bundled.BundledEmbedder.probe", "model"),
    ],
)
async def test_an_unexpected_error_is_reported_by_its_part_only(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, broken: str, part: str
) -> None:
    async def fails(*_: object) -> None:
        raise LookupError("marked words of a library")

    app = App(settings)
    async with served(app) as client:
        await app.ready()
        with (
            monkeypatch.context() as meanwhile,
            structlog.testing.capture_logs() as logged,
        ):
            meanwhile.setattr(broken, fails)
            answer = await client.get("/readyz")
            again = await client.get("/readyz")
        monkeypatch.setattr(health, "_MODEL_VALID", 0.0)
        back = await client.get("/readyz")

    told = answer.json()
    assert (answer.status_code, told["status"], told["missing"]) == (
        503,
        "unavailable",
        f"{part}_broken",
    )
    assert again.json() == told
    assert not any(word in answer.text for word in ("marked", "LookupError"))
    assert [
        (line["missing"], str(line["exc_info"]))
        for line in logged
        if line["event"] == "not_ready"
    ] == [(f"{part}_broken", "marked words of a library")]
    assert back.status_code == 200


async def test_a_database_that_accepts_and_never_answers_delays_no_probe(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_TIMEOUT", 0.3)

    async def silent(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read()
        writer.close()

    service = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = service.sockets[0].getsockname()[1]
    url = SecretStr(f"postgresql://x:hunter2@127.0.0.1:{port}/marked")
    changed = settings.model_copy(update={"database_url": url})
    async with service, served(App(changed)) as client, asyncio.timeout(120):
        answer = await client.get("/readyz")
        alive = await client.get("/healthz")

    assert (alive.status_code, alive.json()["status"]) == (200, "ok")
    assert (answer.status_code, answer.json()["missing"]) == (503, "starting")
    for secret in ("hunter2", "marked", str(port)):
        assert secret not in answer.text


async def test_many_probes_at_once_ask_the_database_once(
    settings: Settings, queries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_VALID", 60.0)
    async with served(App(settings, log_query=queries.append)) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(100)))
        await asyncio.sleep(0)
        await client.get("/readyz")

    assert {answer.status_code for answer in answers} == {200}
    assert sum("folklore_migrations" in query for query in queries) == 1
