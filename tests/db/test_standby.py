"""Questions that a standby answers: what was stored is found at once, whether it keeps up, lags or is down."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
from pydantic import SecretStr

from folklore.app import App
from folklore.cli.operate.doctor import _examine
from folklore.config import DatabaseSettings, Settings
from folklore.db import standby as standby_module
from folklore.db.stores.callers.principals import Principals
from folklore.engine import Engine
from folklore.engine.account import account_for, make_reachable
from folklore.engine.binaries import MAJOR, find_binaries
from folklore.engine.endpoint import recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import Server, create_files
from folklore.errors import ConfigInvalid
from folklore.memory.auth.tokens import authenticate
from tests.person import Person, contents
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


async def test_what_was_stored_is_found_at_once_whether_the_standby_keeps_up_lags_or_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby_module, "_PAUSE", 0.0)
    with temporary_home() as home:
        primary = Engine(home, idle_minutes=10, shared_buffers="32MB").start()
        with standby_of(home) as server:
            database = DatabaseSettings(read_url=SecretStr(address_of(server)))
            app = App(
                Settings(
                    home=tmp_path, database_url=SecretStr(primary), database=database
                )
            )
            memory = (await app.ready()).memory
            owner = Person(memory, now=datetime.now(UTC))
            secret = (await owner.create_token("alice", "notes:reader")).secret
            caller, _ = await authenticate(
                Principals(memory.database), secret, now=owner.now
            )
            alice = Person(memory.view_of(caller.access), caller=caller, now=owner.now)

            async def assert_found(count: int, state: str) -> None:
                for number in range(count):
                    text = f"the {state} parcel {number} waits at the depot"
                    await owner.store(text)
                    assert text in contents(await owner.recall(text))
                    assert text in contents(await alice.recall(text))

            await assert_found(20, "first")
            connection = await asyncpg.connect(address_of(server))
            last = await connection.fetch(
                "select query from pg_stat_activity where application_name = 'folklore'"
            )
            assert any("embeddings" in row["query"] for row in last)
            assert [
                item.status
                for item in (await _examine(app.settings)).checks
                if item.name == "standby"
            ] == ["ok"]
            await connection.execute("select pg_wal_replay_pause()")
            await assert_found(2, "second")
            await connection.execute("select pg_wal_replay_resume()")
            await connection.close()
            server.halt()
            await assert_found(2, "third")
            server.bring_up("32MB")
            await assert_found(2, "fourth")
            # it keeps up, and fails each question
            connection = await asyncpg.connect(address_of(server))
            for statement in (
                "alter system set search_path = pg_catalog",
                "select pg_reload_conf()",
            ):
                await connection.execute(statement)
            await connection.close()
            monkeypatch.setattr(standby_module, "_PAUSE", STUCK)
            await assert_found(2, "fifth")
            assert memory.standby is not None
            assert not await memory.standby.has_all()
            await app.close()


async def test_a_standby_without_the_address_of_its_primary_is_refused(
    tmp_path: Path,
) -> None:
    database = DatabaseSettings(read_url=SecretStr("postgresql://me@host/folklore"))
    with pytest.raises(ConfigInvalid, match=r"database\.read_url"):
        await App(Settings(home=tmp_path, database=database)).ready()
    assert not EnginePaths(tmp_path).engine.exists()
