"""Migrations: each is applied once, and a database that another version made is refused."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from folklore.db import migrate as room
from folklore.db.database import Database
from folklore.db.migrate import (
    Migration,
    ServerInfo,
    migrate,
    migrations,
    pending,
    require_versions,
)
from folklore.errors import DatabaseUnavailable, SchemaBehind
from folklore.memory.context import MemoryContext
from tests.person import Person, contents


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


async def test_six_processes_that_migrate_a_new_database_at_once_apply_it_once(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    program = "import asyncio, sys; from folklore.db.migrate import migrate; print(asyncio.run(migrate(sys.argv[1])))"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            program,
            empty_database_url,
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(6)
    ]
    printed = [
        (await process.communicate())[0].decode().strip() for process in processes
    ]

    everything = str([migration.name for migration in migrations()])
    assert [process.returncode for process in processes] == [0] * 6
    assert sorted(printed) == sorted([everything] + ["[]"] * 5)
    assert await empty.fetchval("select count(*) from folklore_migrations") == len(
        migrations()
    )


async def test_pending_names_what_is_missing_and_changes_nothing(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    names = [migration.name for migration in migrations()]

    assert await pending(empty_database_url) == names
    assert await empty.fetchval("select to_regclass('memories')") is None

    await migrate(empty_database_url)
    assert await pending(empty_database_url) == []


async def test_a_database_of_a_newer_folklore_is_refused(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "insert into folklore_migrations values ('9999_from_the_future.sql', 'x', now())"
    )

    with pytest.raises(
        DatabaseUnavailable,
        match=r"newer Folklore \(9999_from_the_future.sql\).*Upgrade",
    ):
        await migrate(database_url)


@pytest.mark.parametrize("check", [migrate, pending])
async def test_a_database_of_an_unreleased_version_is_refused_with_the_commands_that_carry_it_over(
    check: Callable[[str], Awaitable[list[str]]],
    empty_database_url: str,
    empty: asyncpg.Connection,
) -> None:
    await empty.execute(
        "create table folklore_migrations (name text primary key, checksum text not null, applied_at timestamptz);"
        "insert into folklore_migrations values ('0001_memories.sql', 'x', now()), ('0002_relations.sql', 'y', now())"
    )

    with pytest.raises(
        SchemaBehind,
        match=r"folklore export --embeddings (\S+)` .* `folklore import \1`",
    ):
        await check(empty_database_url)

    assert await empty.fetchval("select to_regclass('memories')") is None


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(
    database_url: str, connection: asyncpg.Connection
) -> None:
    first = migrations()[0].name
    await connection.execute(
        "update folklore_migrations set checksum = 'another' where name = $1", first
    )

    with pytest.raises(DatabaseUnavailable, match=f"{first} differs"):
        await migrate(database_url)


async def test_a_failed_migration_is_rolled_back(
    empty_database_url: str, empty: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(
        "0002_broken.sql", "create table half (id uuid); select missing();"
    )
    monkeypatch.setattr(room, "migrations", lambda: [*migrations()[:1], broken])

    with pytest.raises(DatabaseUnavailable, match="UndefinedFunction"):
        await migrate(empty_database_url)

    assert await empty.fetchval("select to_regclass('half')") is None
    assert await empty.fetchval("select to_regclass('memories')") is not None
    assert await empty.fetchval("select pg_try_advisory_lock($1)", room._LOCK), (
        "the lock was released"
    )


def test_a_migration_is_applied_command_by_command() -> None:
    bodies = [
        "-- Don't split; here.\ncreate function f() returns void language plpgsql as $do$ begin perform 1; end $do$",
        "create function g() returns bigint language sql\nbegin atomic\n    select 1;\nend",
        "insert into t values ('it''s; one')",
    ]
    commands = Migration(
        "0001_some.sql", ";\n".join([*bodies, "drop function g()  -- $$ ; $$\n"])
    ).commands()

    assert commands == [*bodies, "drop function g()  -- $$ ; $$"]


async def test_a_migration_waits_for_another_process_until_the_timeout(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    await empty.execute("select pg_advisory_lock($1)", room._LOCK)

    with pytest.raises(DatabaseUnavailable, match="Another process has been migrating"):
        await migrate(empty_database_url, timeout=1)


def server(major: int, pgvector: str | None) -> ServerInfo:
    """Return information about a server of these versions, which cannot be installed here."""
    return ServerInfo(
        version=f"PostgreSQL {major}",
        major=major,
        pgvector=None,
        offered=pgvector,
        database="folklore",
        role="folklore",
        bytes=0,
    )


@pytest.mark.parametrize(
    ("major", "pgvector", "message"),
    [
        (14, "0.8.1", "Postgres 14 is too old. Folklore needs Postgres 15 or newer."),
        (17, None, "This Postgres has no pgvector. Install pgvector 0.8"),
        (
            17,
            "0.7.4",
            "pgvector 0.7.4 is too old. Folklore needs 0.8; run `alter extension vector update`.",
        ),
    ],
)
def test_a_server_that_is_too_old_is_refused_with_the_next_step(
    major: int, pgvector: str | None, message: str
) -> None:
    with pytest.raises(DatabaseUnavailable) as refusal:
        require_versions(server(major, pgvector))

    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("pgvector", ["0.8.0", "0.8.5", "0.9.0", "1.0"])
def test_supported_versions_are_accepted(pgvector: str) -> None:
    require_versions(server(15, pgvector))


async def test_a_store_of_before_finds_names_and_symbols_after_the_migration(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    [at] = [
        place
        for place, migration in enumerate(migrations())
        if migration.name.endswith("_names.sql")
    ]
    for migration in migrations()[:at]:
        await empty.execute(migration.sql)
        await empty.execute(
            "insert into folklore_migrations values ($1, $2, now())",
            migration.name,
            migration.checksum,
        )
    await empty.execute(
        """
        insert into namespaces (id, name, created_at, created_by)
        values ('01900000-0000-7000-8000-000000000000', 'notes', now(), 'tester');
        insert into memories (namespace_id, id, content, kind, author, language, created_at, updated_at, digest)
        select '01900000-0000-7000-8000-000000000000', gen_random_uuid(),
            case n when 1 then 'The on-call rota uses Postgres17 🚀' else 'Note ' || n end,
            'note', 'tester', 'english', now(), now(), sha256(n::text::bytea)
        from generate_series(1, 300) as n;
        insert into fresh_words
        select namespace_id, id, 1, '', '' from memories where content like 'Note 2%';
        insert into packed_namespaces values ('01900000-0000-7000-8000-000000000000', 9, 9, 9, 0);
        """
    )

    await migrate(empty_database_url)

    assert await empty.fetchval("select count(*) from fresh_words") == 0
    packed = await empty.fetchval("select sum(documents) from packed_namespaces")
    assert packed == 300
    async with Database(empty_database_url) as database:
        reader = Person(MemoryContext.of(database, None))
        for question in ("oncall", "postgres", "🚀", "Note 17"):
            assert contents(await reader.search(question)), question
