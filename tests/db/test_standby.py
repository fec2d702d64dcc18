"""A second server that reads a standby of the database."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from folklore.app import App
from folklore.config import Settings, load_settings
from folklore.engine import Engine
from folklore.engine.account import account_for, make_reachable
from folklore.engine.binaries import MAJOR, find_binaries
from folklore.engine.endpoint import recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import Server, create_files
from folklore.errors import ConfigInvalid
from tests.person import Person
from tests.servers import on_http, watched
from tests.temporary_engine import temporary_home
from tests.waiting import STUCK


def address_of(server: Server) -> str:
    endpoint = recorded_endpoint(server.paths)
    assert endpoint is not None
    return endpoint.dsn


@contextmanager
def standby_of(primary: Path) -> Iterator[Server]:
    source = recorded_endpoint(EnginePaths(primary))
    assert source is not None
    with temporary_home() as home:
        paths = EnginePaths(home)
        server = Server(paths, find_binaries(), account_for(paths), MAJOR)
        create_files(server)
        if server.account:
            make_reachable(paths.engine, server.account)
        copied = server.binaries.run(
            *(
                "pg_basebackup",
                "--pgdata",
                paths.data.name,
                "--write-recovery-conf",
                "--checkpoint",
                "fast",
            ),
            account=server.account,
            cwd=paths.engine,
            variables=source.variables("postgres"),
            timeout=60,
        )
        assert copied.code == 0, copied.output
        server.bring_up("32MB")
        yield server


async def test_a_read_only_server_on_a_standby_answers_what_it_has_replayed(
    tmp_path: Path,
) -> None:
    with temporary_home() as home:
        primary = Engine(home, idle_minutes=10, shared_buffers="32MB").start()
        app = App(Settings(home=tmp_path, database_url=SecretStr(primary)))
        memory = (await app.ready()).memory
        owner = Person(memory, now=datetime.now(UTC))
        await owner.store("The first parcel waits at the depot.")
        secret = (await owner.create_token("alice", "notes:writer")).secret
        with standby_of(home) as server:
            settings = watched(
                tmp_path, database_url=address_of(server), read_only="true"
            )
            async with on_http(settings) as reading:
                async with httpx.AsyncClient(
                    base_url=f"{reading.url}/api",
                    headers={"Authorization": f"Bearer {secret}"},
                    timeout=STUCK,
                ) as alice:
                    first = await found(alice, "first")
                    await owner.store("The second parcel waits in the yard.")
                    async with asyncio.timeout(STUCK):
                        while not (later := await found(alice, "second")):
                            continue
                    refused = await alice.post(
                        "/store", json={"memories": [{"content": "A third parcel."}]}
                    )
                ready = httpx.get(f"{reading.url}/readyz")
                await reading.end()
            said = reading.log.read_text(encoding="utf-8")
            errors = [
                line
                for line in server.paths.log.read_text(encoding="utf-8").splitlines()
                if "ERROR" in line
            ]
        await app.close()

    assert first == ["The first parcel waits at the depot."]
    assert "The second parcel waits in the yard." in later
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "refused")
    assert ready.status_code == 200, ready.text
    assert "error" not in said, said
    assert errors == []


async def found(caller: httpx.AsyncClient, word: str) -> list[str]:
    answer = await caller.post("/recall", json={"query": f"the {word} parcel"})
    assert answer.status_code == 200, answer.text
    contents = [
        item["memory"]["content"] for item in answer.json()["result"]["memories"]
    ]
    return [content for content in contents if word in content]


def test_the_former_setting_is_refused_with_the_way_that_replaced_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE__READ_URL", "postgresql://me@host/folklore")

    with pytest.raises(ConfigInvalid, match=r"database\.read_url.*read_only"):
        load_settings()

    monkeypatch.setenv("FOLKLORE_DATABASE__READ_URL", "")
    assert load_settings().database.pool_max > 0
