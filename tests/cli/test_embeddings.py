"""`folklore embeddings` with a real endpoint on loopback: status, backfill, switch, rollback, drop."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from structlog.testing import capture_logs

from folklore.db.database import Database
from folklore.memory.context import MemoryContext, active_model
from folklore.memory.models import switch
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.servers import on_http, watched
from tests.team import bearer, root

FACTS = [
    "The harbour is closed on Sundays.",
    "Ines is the captain.",
    "The gull sleeps on the mast.",
    "Ropes are new.",
]


class Service(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint: every word has a direction of its own. `down` answers 503."""

    down = False
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.keys: list[str | None] = []
        self.requests: list[list[str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service: Any = self.server
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))[
            "input"
        ]
        service.keys.append(self.headers["Authorization"])
        service.requests.append(texts)
        data = [
            {"index": place, "embedding": vector(text)}
            for place, text in enumerate(texts)
        ]
        body = json.dumps({"data": data}).encode()
        self.send_response(503 if service.down else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - http.server's name


def vector(text: str) -> list[float]:
    total = np.zeros(16)
    for word in text.lower().replace(".", "").replace("?", "").split():
        total += np.random.default_rng(list(word.encode())).standard_normal(16)
    return [float(value) for value in total]


@pytest.fixture
def service() -> Iterator[Service]:
    serving = Service()
    thread = threading.Thread(
        target=serving.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(switch, "_SWEEP_SECONDS", 0.0)
    for module in (active_model, switch):
        monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    with capture_logs():  # in this process logs are not configured
        yield


async def test_switch_and_rollback_change_the_active_model(
    folklore: CommandLine, service: Service
) -> None:
    for fact in FACTS:
        await folklore.done("store", fact)

    done = await folklore.json(
        "embeddings", "switch", "openai", "--model", "words", "--url", service.url
    )
    assert (done["made"], done["to"]) == (len(FACTS), "openai/words")

    # The settings still name the bundled model, but the database decides.
    answer = await folklore.json("recall", "Who is the captain?")
    assert answer["memories"][0]["content"] == FACTS[1]
    assert "degraded" not in answer
    assert ["Who is the captain?"] in service.requests
    status = await folklore.json("embeddings", "status")
    assert status["active"] == "openai/words"
    assert [
        (row["model"], row["role"], row["embedded"], row["pending"])
        for row in status["models"]
    ] == [
        ("openai/words", "active", 4, 0),
        (status["configured"], "previous", 4, 0),
    ]
    assert {row["path"] for row in status["namespaces"]} == {"exact"}

    checks = {
        check["name"]: check for check in (await folklore.json("doctor"))["checks"]
    }
    assert checks["model"]["status"] == "ok"
    assert checks["model"]["detail"].startswith(
        "openai/words, 16 dimensions, is the active model; the settings"
    )

    back = await folklore.json("embeddings", "rollback")
    assert back["to"] == status["configured"]
    assert (await folklore.json("embeddings", "status"))["active"] == status[
        "configured"
    ]
    dropped = await folklore.json("embeddings", "drop", "openai/words")
    assert dropped == {"model": "openai/words", "dropped": 4}
    assert (await folklore("embeddings", "rollback")).code == 4


@pytest.mark.strain
async def test_backfill_embeds_memories_stored_while_the_service_was_down(
    folklore: CommandLine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "openai")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__URL", service.url)
    monkeypatch.setenv("FOLKLORE_EMBEDDING__MODEL", "words")
    await folklore.done("store", FACTS[0])
    service.down = True
    await folklore.done("store", FACTS[1])
    assert (await folklore.json("recall", "captain"))["degraded"][0][
        "branch"
    ] == "dense"
    service.down = False
    [row] = (await folklore.json("embeddings", "status"))["models"]
    assert (row["embedded"], row["pending"]) == (1, 1)

    done = await folklore.json("embeddings", "backfill")

    assert done["made"] == 1
    [row] = (await folklore.json("embeddings", "status"))["models"]
    assert (row["embedded"], row["pending"]) == (2, 0)
    assert "degraded" not in await folklore.json("recall", "captain")


async def test_settings_that_name_another_model_are_reported_until_the_switch(
    folklore: CommandLine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.done("store", FACTS[1])
    monkeypatch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "openai")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__URL", service.url)
    monkeypatch.setenv("FOLKLORE_EMBEDDING__MODEL", "words")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__API_KEY", "sk-secret")

    [degraded] = (await folklore.json("recall", "captain"))["degraded"]
    doctor = await folklore("doctor", "--json")
    assert "openai/words" in degraded["reason"]
    assert doctor.code == 1
    [model] = [check for check in doctor.json["checks"] if check["name"] == "model"]
    assert (model["status"], "embeddings switch" in model["hint"]) == ("failed", True)
    assert "openai/words" in (await folklore.json("embeddings", "status"))["note"]

    await folklore.done("embeddings", "switch")  # to what the settings name

    assert "degraded" not in await folklore.json("recall", "captain")
    assert (await folklore("doctor")).code == 0
    assert set(service.keys) == {"Bearer sk-secret"}
    assert "sk-secret" not in json.dumps(await folklore.json("embeddings", "status"))


async def test_a_switch_that_cannot_reach_its_model_changes_nothing(
    folklore: CommandLine,
) -> None:
    await folklore.done("store", FACTS[1])

    ran = await folklore(
        "embeddings",
        "switch",
        "openai",
        "--model",
        "m",
        "--url",
        "http://127.0.0.1:9/v1",
    )

    assert ran.code == 3
    assert "cannot be reached" in ran.err
    assert len((await folklore.json("embeddings", "status"))["models"]) == 1


async def test_an_api_key_is_not_sent_to_another_address(
    folklore: CommandLine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.done("store", FACTS[1])
    monkeypatch.setenv("FOLKLORE_EMBEDDING__URL", "https://elsewhere.test/v1")
    monkeypatch.setenv("FOLKLORE_EMBEDDING__API_KEY", "sk-elsewhere")

    await folklore.done(
        "embeddings", "switch", "openai", "--model", "words", "--url", service.url
    )
    await folklore.done("recall", "captain")

    assert set(service.keys) == {None}


async def test_a_servers_key_is_not_sent_to_an_address_that_its_owner_names(
    folklore: CommandLine, service: Service, database: Database, tmp_path: Path
) -> None:
    owner = await root(MemoryContext.of(database, None)).create_token(
        "olga", owner=True
    )
    dsn = folklore.environment["FOLKLORE_DATABASE_URL"]
    async with on_http(
        watched(tmp_path, database_url=dsn, embedding__api_key="sk-server")
    ) as server:
        at = ("--server", server.url, "--token", owner.secret)
        await folklore.done("store", FACTS[1], *at)
        await folklore.done(
            "embeddings",
            "switch",
            "openai",
            "--model",
            "words",
            "--url",
            service.url,
            *at,
        )
        async with httpx.AsyncClient(
            base_url=server.url, headers=bearer(owner.secret)
        ) as client:
            wrong = await client.post(
                "/api/switch_model", json={"provider": "nonsense"}
            )

    assert set(service.keys) == {None}
    assert (wrong.status_code, "provider" in wrong.json()["error"]["message"]) == (
        400,
        True,
    )


async def test_writing_commands_are_refused_if_read_only_is_set(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_READ_ONLY", "true")

    for command in ("backfill", "switch", "rollback"):
        assert (await folklore("embeddings", command)).code == 5
    assert (await folklore("embeddings", "drop", "--next")).code == 5
