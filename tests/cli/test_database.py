"""`folklore db`, `doctor` and `config`."""

import shutil
from pathlib import Path
from unittest.mock import AsyncMock
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import asyncpg
import pytest
import yaml
from hypothesis import given, strategies as st

from folklore.cli.operate.config import masked
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`


async def test_doctor_succeeds_and_changes_nothing(
    folklore: CommandLine, connection: asyncpg.Connection
) -> None:
    report = await folklore.json("doctor")

    assert report["ok"]
    assert [check["name"] for check in report["checks"]] == [
        "settings", "engine", "database", "schema", "project", "model", "memory",
    ]  # fmt: skip
    assert {check["status"] for check in report["checks"]} == {"ok"}
    for table in ("namespaces", "memories", "fresh_words", "embeddings", "models"):
        assert await connection.fetchval(f"select count(*) from {table}") == 0


async def test_doctor_and_commands_that_make_tokens_warn_where_these_would_fail(
    folklore: CommandLine,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as by a user who may grant nothing
    monkeypatch.setattr("folklore.db.migrate.ensure_role", AsyncMock())
    await connection.execute("revoke insert on relations from folklore_app")

    [schema] = [
        check
        for check in (await folklore.json("doctor"))["checks"]
        if check["name"] == "schema"
    ]
    assert (schema["status"], "`folklore db role`" in schema["hint"]) == (
        "warning",
        True,
    )
    ways = [
        "tokens create --name ann --grant notes:reader",
        "invite ben --grant notes:reader --url https://a.example",
    ]
    for ran in [
        await folklore(*way.split(), *more)
        for way in ways
        for more in ((), ("--json",))
    ]:
        assert (ran.code, "`folklore db role | psql" in ran.err) == (0, True)
    assert (
        "cannot be used"
        not in (await folklore("tokens", "create", "--name", "root", "--owner")).err
    )


async def test_doctor_names_the_next_step_for_an_unreachable_database(
    folklore: CommandLine,
) -> None:
    ran = await folklore(
        "--database-url", "postgresql://x:hunter2@127.0.0.1:1/none", "doctor"
    )

    lines = {
        line.split()[1]: line.split()[0]
        for line in ran.out.splitlines()
        if not line.startswith(" ")
    }
    assert ran.code == 3
    assert lines["database"] == "failed"
    assert lines["memory"] == "skipped"
    assert "→" in ran.out
    assert "hunter2" not in ran.out + ran.err


async def test_doctor_reports_wrong_settings(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_TOOLS", "many")

    ran = await folklore("doctor")

    assert ran.code == 1
    assert ran.out.startswith("failed  settings")


async def test_doctor_does_not_migrate_a_configured_server(
    folklore: CommandLine, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", empty_database_url)

    before = await folklore.json("doctor")
    pending = (await folklore.json("db", "status"))["pending_migrations"]
    applied = (await folklore.json("db", "migrate"))["applied"]

    assert before["ok"]
    assert before["checks"][-1]["status"] == "skipped"
    assert pending == applied != []
    assert (await folklore.json("db", "migrate"))["applied"] == []
    assert (await folklore.json("db", "status"))["pending_migrations"] == []


async def test_status_of_an_engine_that_was_never_started_starts_nothing(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", "")

    status = await folklore.json("--home", tmp_path / "never", "db", "status")

    assert (status["engine"], status["running"]) == ("embedded", False)
    assert not (tmp_path / "never").exists()
    assert (await folklore.json("--home", tmp_path / "never", "db", "stop")) == {
        "running": False,
        "was_running": False,
    }
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert (await folklore.json("--home", tmp_path / "never", "db", "status"))[
        "disk"
    ] == "full: 1 MB free"


async def test_config_shows_settings_with_secrets_masked(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "FOLKLORE_DATABASE_URL",
        "postgresql://sarah:hunter2@db:5433/team?sslmode=require&password=hunter3",
    )
    monkeypatch.setenv("FOLKLORE_EMBEDDING__API_KEY", "sk-hunter4")
    monkeypatch.setenv(
        "FOLKLORE_EMBEDDING__URL", "https://sarah:hunter5@models.example:8443/v1"
    )
    monkeypatch.setenv(
        "FOLKLORE_RERANKER__URL", "https://models.example/rerank?key=hunter6"
    )

    text = await folklore.done("config", "show")
    value = await folklore.json("config", "show")

    assert yaml.safe_load(text) == value
    assert (
        value["database_url"]
        == "postgresql://sarah:********@db:5433/team?sslmode=require&password=********"
    )
    assert value["embedding"]["api_key"] == "********"
    assert value["embedding"]["url"] == "https://sarah:********@models.example:8443/v1"
    assert value["reranker"]["url"] == "https://models.example/rerank?key=********"
    assert "hunter" not in text
    assert value["namespace"] == "notes"


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        ("a:5432,b:5433", "a:5432,b:5433"),
        ("[::1]:5432,[2001:db8::2],b", "[::1]:5432,[2001:db8::2],b"),
        ("a,b:many", None),
    ],
)
def test_the_password_of_an_address_with_several_hosts_is_masked(
    hosts: str, shown: str | None
) -> None:
    address = masked(
        f"postgresql://sarah:hunter2@{hosts}/db?target_session_attrs=read-write&password=hunter3"
    )

    assert "hunter" not in address
    if shown is not None:
        assert (
            address
            == f"postgresql://sarah:********@{shown}/db?target_session_attrs=read-write&password=********"
        )


async def test_of_several_hosts_the_reachable_one_is_used(
    folklore: CommandLine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = urlsplit(database_url)
    user, at, host = parts.netloc.rpartition("@")
    asked = dict(parse_qsl(parts.query))
    if "host" in asked:
        host = f"{quote(asked.pop('host'), safe='')}:{asked.pop('port', '5432')}"
    query = urlencode(asked | {"target_session_attrs": "read-write"})
    several = parts._replace(
        netloc=f"{user}{at}127.0.0.1:1,{host}", query=query
    ).geturl()
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", several)

    await folklore.done("store", "The gate is open.")

    assert (await folklore.json("stats"))["total"]["memories"] == 1


@given(
    st.text(
        st.characters(exclude_characters="*", min_codepoint=33, max_codepoint=126),
        min_size=8,
    ),
    st.text(),
)
def test_no_address_shows_its_password(password: str, rest: str) -> None:
    quoted = quote(password, safe="")

    shown = masked(f"postgresql://sarah:{quoted}@host/{rest}x").removeprefix(
        "postgresql://sarah"
    )

    assert quoted not in shown.split("@")[0]


async def test_config_path_names_the_file_in_use(
    folklore: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_HOME", str(tmp_path))

    none = await folklore.json("config", "path")
    (tmp_path / "config.yaml").write_text("log_level: error\n")
    some = await folklore.json("config", "path")

    assert none == {"path": str(tmp_path / "config.yaml"), "exists": False}
    assert some == {"path": str(tmp_path / "config.yaml"), "exists": True}
    assert (
        await folklore.done("--config", tmp_path / "other.yaml", "config", "path")
    ).strip() == str(tmp_path / "other.yaml")
