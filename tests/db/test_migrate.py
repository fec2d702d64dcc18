"""Migrations: each is applied once, to what an earlier version made, or that is refused with the next step."""

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
    schema,
)
from folklore.errors import DatabaseUnavailable, SchemaBehind
from folklore.memory.context import MemoryContext
from tests.person import Person, contents


@pytest.fixture
async def empty(empty_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(empty_database_url)
    yield connection
    await connection.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Migration:
    """A migration that a later version brings."""
    later = Migration("9998_later.sql", "create table later (id uuid primary key);")
    monkeypatch.setattr(room, "migrations", lambda: (*migrations(), later))
    return later


async def recorded(connection: asyncpg.Connection) -> dict[str, str]:
    """Return the checksums that a database recorded, by name."""
    rows = await connection.fetch(
        "select name, checksum from folklore_migrations order by name <> 'schema.sql', name"
    )
    return {row["name"]: row["checksum"] for row in rows}


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

    assert [process.returncode for process in processes] == [0] * 6
    assert sorted(printed) == sorted(["['schema.sql']"] + ["[]"] * 5)
    assert await recorded(empty) == {
        migration.name: migration.checksum for migration in [schema(), *migrations()]
    }


async def test_pending_names_what_is_missing_and_changes_nothing(
    empty_database_url: str, empty: asyncpg.Connection
) -> None:
    assert await pending(empty_database_url) == ["schema.sql"]
    assert await empty.fetchval("select to_regclass('memories')") is None

    await migrate(empty_database_url)
    assert await pending(empty_database_url) == []


async def test_a_later_migration_changes_what_an_earlier_schema_made_and_no_new_database(
    database_url: str,
    connection: asyncpg.Connection,
    empty_database_url: str,
    empty: asyncpg.Connection,
    later: Migration,
) -> None:
    assert await pending(database_url) == [later.name]
    assert await migrate(database_url) == [later.name]
    assert await migrate(database_url) == []
    assert await migrate(empty_database_url) == ["schema.sql"]
    assert await migrate(empty_database_url) == []

    assert await connection.fetchval("select to_regclass('later')") == "later"
    # schema.sql alone makes a new database
    assert await empty.fetchval("select to_regclass('later')") is None
    assert (await recorded(connection))[later.name] == later.checksum
    assert await recorded(empty) == await recorded(connection)


async def test_a_store_of_the_last_trial_version_becomes_one_of_schema_sql(
    trial_database_url: str, empty: asyncpg.Connection, database_url: str
) -> None:
    renamed = await empty.fetchval(
        "select applied_at from folklore_migrations where name = '0011_plain_tags.sql'"
    )
    names = ["schema.sql", *(migration.name for migration in migrations())]

    assert await pending(trial_database_url) == names
    assert await migrate(trial_database_url) == names
    assert await migrate(trial_database_url) == []

    assert list(await recorded(empty)) == names
    # From then on projects have the names of today.
    assert renamed == await empty.fetchval(
        "select applied_at from folklore_migrations where name = 'schema.sql'"
    )


async def test_a_store_of_the_last_trial_version_keeps_its_memories(
    trial_database_url: str, empty: asyncpg.Connection
) -> None:
    await empty.execute(
        """
        insert into namespaces (id, name, created_at, created_by)
        values ('01900000-0000-7000-8000-000000000000', 'notes', now(), 'tester');
        insert into memories (namespace_id, id, content, kind, author, language, created_at, updated_at, digest)
        values ('01900000-0000-7000-8000-000000000000', gen_random_uuid(), 'The on-call rota uses Postgres17.',
            'note', 'tester', 'english', now(), now(), '');
        insert into fresh_words (namespace_id, memory_id, length, words, frequencies)
        select m.namespace_id, m.id, folklore_length(m.search), string_agg(int4send(named.word), ''),
            string_agg(int2send(named.frequency), '')
        from memories m, folklore_named_words(m.search, m.created_at) named
        group by m.namespace_id, m.id;
        """
    )

    await migrate(trial_database_url)

    async with Database(trial_database_url) as database:
        reader = Person(MemoryContext.of(database, None))
        await reader.keep("Postgres of the mirror is read only.")
        assert contents(await reader.search("oncall")) == [
            "The on-call rota uses Postgres17."
        ]
        assert len(contents(await reader.search("postgres"))) == 2


async def test_a_role_that_may_not_adopt_a_store_is_told_so(
    trial_database_url: str, empty: asyncpg.Connection
) -> None:
    joint = "&" if "?" in trial_database_url else "?"
    limited = f"{trial_database_url}{joint}role=pg_read_all_data"

    with pytest.raises(SchemaBehind, match=r"lacks schema\.sql, which this role may"):
        await migrate(limited)


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
@pytest.mark.parametrize("last", ["0001_memories.sql", "0015_learned_cues.sql"])
async def test_a_database_of_an_early_trial_version_is_refused_with_the_commands_that_carry_it_over(
    check: Callable[[str], Awaitable[list[str]]],
    last: str,
    empty_database_url: str,
    empty: asyncpg.Connection,
) -> None:
    await empty.execute(
        "create table folklore_migrations (name text primary key, checksum text not null, applied_at timestamptz)"
    )
    await empty.execute("insert into folklore_migrations values ($1, 'x', now())", last)

    with pytest.raises(
        SchemaBehind,
        match=r"folklore export --embeddings (\S+)` .* `folklore import \1`",
    ):
        await check(empty_database_url)

    assert await empty.fetchval("select to_regclass('memories')") is None
    assert list(await recorded(empty)) == [last]


async def test_a_migration_that_was_changed_after_it_was_applied_is_refused(
    database_url: str, connection: asyncpg.Connection, later: Migration
) -> None:
    await migrate(database_url)
    await connection.execute(
        "update folklore_migrations set checksum = 'another' where name = $1",
        later.name,
    )

    with pytest.raises(DatabaseUnavailable, match=f"{later.name} differs"):
        await migrate(database_url)


async def test_a_failed_migration_is_rolled_back(
    database_url: str, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration(
        "9998_broken.sql", "create table half (id uuid); select missing();"
    )
    monkeypatch.setattr(room, "migrations", lambda: (*migrations(), broken))

    with pytest.raises(DatabaseUnavailable, match="UndefinedFunction"):
        await migrate(database_url)

    assert await connection.fetchval("select to_regclass('half')") is None
    assert broken.name not in await recorded(connection)
    assert await connection.fetchval("select pg_try_advisory_lock($1)", room._LOCK), (
        "the lock was released"
    )


async def test_a_failed_creation_of_the_tables_leaves_the_database_empty(
    empty_database_url: str, empty: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Migration("schema.sql", f"{schema().sql}; select missing();")
    monkeypatch.setattr(room, "schema", lambda: broken)

    with pytest.raises(DatabaseUnavailable, match="UndefinedFunction"):
        await migrate(empty_database_url)

    assert await empty.fetchval("select to_regclass('memories')") is None
    assert await pending(empty_database_url) == ["schema.sql"]


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


async def test_words_that_a_migration_makes_anew_are_packed_before_the_servers_start(
    database_url: str,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    person: Person,
) -> None:
    notes = [f"Note {number}" for number in range(300)]
    await person.keep(*notes)
    anew = Migration("9998_anew.sql", "update fresh_words set length = length;")
    monkeypatch.setattr(room, "migrations", lambda: (*migrations(), anew))

    await migrate(database_url)

    assert await connection.fetchval("select count(*) from fresh_words") == 0
    packed = await connection.fetchval("select sum(documents) from packed_namespaces")
    assert packed == 300
    assert contents(await person.search("Note 17"))[0] == "Note 17"
