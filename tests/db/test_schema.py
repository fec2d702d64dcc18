"""The schema: schema.sql makes it, later migrations lead to it, and a cluster can distribute it."""

import re

import asyncpg
import pytest

from folklore.db.migrate import Migration, migrate, migrations, schema
from tests.schema_text import schema_text

# Small tables, copied whole to every node; all others hold data and are cut by namespace.
SMALL = frozenset({
    "namespaces", "models", "principals", "tokens", "grants", "pattern_grants", "invitations", "console_sessions",
    "folklore_migrations", "jobs",
})  # fmt: skip


async def test_schema_sql_and_the_migrations_make_the_same_schema(
    database_url: str, trial_database_url: str
) -> None:
    await migrate(trial_database_url)

    assert schema_text(trial_database_url) == schema_text(database_url), (
        "schema.sql differs from the migrations; a column that a migration adds is the last of its table there too"
    )


def test_schema_sql_describes_every_table() -> None:
    lines = schema().sql.splitlines()
    tables = [
        place for place, line in enumerate(lines) if line.startswith("create table")
    ]

    assert len(tables) > 10
    assert [
        lines[place] for place in tables if not lines[place - 1].startswith("-- ")
    ] == []


async def test_every_key_of_a_data_table_begins_with_the_namespace(
    connection: asyncpg.Connection,
) -> None:
    keys = await connection.fetch(
        """
        select t.relname as of, i.relname as name, a.attname as first
        from pg_index x
        join pg_class t on t.oid = x.indrelid
        join pg_class i on i.oid = x.indexrelid
        left join pg_attribute a on a.attrelid = t.oid and a.attnum = x.indkey[0]
        where t.relnamespace = 'public'::regnamespace and x.indisunique
        """
    )
    data_keys = [key for key in keys if key["of"] not in SMALL]

    assert data_keys
    assert {
        key["name"]: key["first"] for key in data_keys if key["first"] != "namespace_id"
    } == {}


async def test_foreign_keys_stay_within_a_namespace_and_never_unset_anything(
    connection: asyncpg.Connection,
) -> None:
    keys = await connection.fetch(
        """
        select c.conname as name, t.relname as of, r.relname as to,
            c.confdeltype as on_delete, c.confupdtype as on_update,
            (select attname from pg_attribute where attrelid = t.oid and attnum = c.conkey[1]) as first,
            (select attname from pg_attribute where attrelid = r.oid and attnum = c.confkey[1]) as first_there
        from pg_constraint c
        join pg_class t on t.oid = c.conrelid
        join pg_class r on r.oid = c.confrelid
        where c.contype = 'f'
        """
    )

    assert keys
    for key in keys:
        assert key["on_delete"] in (b"a", b"r", b"c"), (
            f"{key['name']} would set null or default"
        )
        assert key["on_update"] == b"a", f"{key['name']}: keys are never updated"
        assert key["of"] not in SMALL or key["to"] in SMALL, (
            f"{key['name']}: a small table may not lean on a data table"
        )
        if key["to"] not in SMALL:
            assert (key["first"], key["first_there"]) == (
                "namespace_id",
                "namespace_id",
            ), key["name"]


async def test_namespace_ids_are_uuids_that_are_always_there(
    connection: asyncpg.Connection,
) -> None:
    columns = await connection.fetch(
        """
        select t.relname as of, a.atttypid::regtype::text as type, a.attnotnull as needed, a.attnum as place
        from pg_attribute a join pg_class t on t.oid = a.attrelid
        where t.relnamespace = 'public'::regnamespace and t.relkind = 'r' and a.attname = 'namespace_id'
        """
    )
    tables = await connection.fetch(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')"
    )

    assert {column["of"] for column in columns} >= {
        table["relname"] for table in tables
    } - SMALL
    assert {(column["type"], column["needed"]) for column in columns} == {
        ("uuid", True)
    }


@pytest.mark.parametrize(
    ("what", "query"),
    [
        (
            "a reg* column: OIDs differ between nodes and pg_upgrade refuses them",
            """
            select t.relname || '.' || a.attname from pg_attribute a join pg_class t on t.oid = a.attrelid
            where t.relnamespace = 'public'::regnamespace and a.atttypid::regtype::text like 'reg%'
            """,
        ),
        (
            "a trigger: it runs on one node and sees one node",
            "select tgname::text from pg_trigger where not tgisinternal",
        ),
        (
            "a sequence, serial or identity column: ids come from the client",
            "select relname::text from pg_class where relkind = 'S' and relnamespace = 'public'::regnamespace",
        ),
        (
            "a partitioned, inherited or foreign table",
            """
            select relname::text from pg_class
            where relnamespace = 'public'::regnamespace and (relkind in ('p', 'f') or relispartition)
            """,
        ),
        (
            "an HNSW or IVFFlat index: it is built per namespace and in the background",
            """
            select c.relname::text from pg_class c join pg_am m on m.oid = c.relam
            where c.relnamespace = 'public'::regnamespace and m.amname in ('hnsw', 'ivfflat')
            """,
        ),
        (
            # Not the second of a row: two of thousands of dimensions are longer than a page.
            "a vector that could be moved out of line",
            """
            select t.relname || '.' || a.attname from pg_attribute a join pg_class t on t.oid = a.attrelid
            where t.relkind = 'r' and a.atttypid::regtype::text in ('vector', 'halfvec') and a.attstorage <> 'p'
                and (t.relname, a.attname) <> ('embeddings', 'cues')
            """,
        ),
        (
            "a default that differs by node or moment",
            """
            select t.relname || '.' || a.attname
            from pg_attrdef d
            join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
            join pg_class t on t.oid = d.adrelid
            where t.relnamespace = 'public'::regnamespace
                and pg_get_expr(d.adbin, d.adrelid) ~* '(now|random|uuid|clock|current_|nextval)'
            """,
        ),
        (
            "a function of ours that is not immutable",
            """
            select p.proname::text from pg_proc p
            where p.pronamespace = 'public'::regnamespace and p.provolatile <> 'i' and p.proname like 'folklore%'
                -- What a transaction says of itself, what policies ask of it, what it deletes: never a part of a row.
                and p.proname not in ('folklore_enter', 'folklore_opened', 'folklore_readable', 'folklore_writable',
                    'folklore_principal', 'folklore_matching', 'folklore_token', 'folklore_prefixes',
                    'folklore_deletes', 'folklore_delete_memories', 'folklore_delete_postings',
                    'folklore_delete_embeddings', 'folklore_delete_relations', 'folklore_release_keys',
                    'folklore_named', 'folklore_lock', 'folklore_ensure', 'folklore_record_usage')
                and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
            """,
        ),
    ],
)
async def test_the_schema_holds_nothing_that_cannot_be_distributed(
    connection: asyncpg.Connection, what: str, query: str
) -> None:
    found = [row[0] for row in await connection.fetch(query)]

    assert found == [], what


@pytest.mark.parametrize(
    "migration", [schema(), *migrations()], ids=lambda migration: migration.name
)
def test_migrations_name_every_constraint(migration: Migration) -> None:
    text = re.sub(r"--[^\n]*", "", migration.sql)
    constraint = re.compile(
        r"(?<!\w)(?:primary key|foreign key|unique \(|check \(|references)"
    )
    unnamed = [
        line.strip()
        for line in re.split(r",\s*\n", text)
        if constraint.search(line)
        and "constraint " not in line
        and "unique index" not in line
    ]

    assert unnamed == []


@pytest.mark.parametrize(
    "migration", [schema(), *migrations()], ids=lambda migration: migration.name
)
def test_migrations_need_no_second_connection_and_no_clock(
    migration: Migration,
) -> None:
    text = re.sub(r"--[^\n]*", "", migration.sql).lower()
    # Asked whenever a policy asks, and never kept: whether a token has expired.
    text = text.replace("t.expires_at > now()", "")

    assert "concurrently" not in text, "each migration runs in a transaction"
    assert (
        re.search(
            r"\b(now|random|clock_timestamp|gen_random_uuid|pg_advisory_(?!xact_)\w*)\(",
            text,
        )
        is None
    )
    assert re.search(r"\bcommit;|\bbegin;|\brollback;", text) is None


# What Citus 14 takes of a distributed table, one subcommand at a time.
TAKEN = re.compile(
    r"alter table \w+ (?:add column|drop column|add constraint|drop constraint|validate constraint"
    r"|alter column \w+ (?:set|drop) (?:not null|default))\b"
)
# Stable functions: Citus calls them with no column of a distributed table.
STABLE = re.compile(
    r"\b(?:convert_to|convert_from|to_char|to_timestamp|concat_ws|format|now)\("
)


def refused_by_a_cluster(migration: Migration) -> list[str]:
    """Return the commands of a migration that Citus does not take of tables that are distributed."""
    refused = []
    for text in migration.commands():
        command = re.sub(r"^(?:--[^\n]*\n)+", "", text).strip()
        alters = command.startswith("alter table") and not TAKEN.match(command)
        updates = command.startswith("update") and STABLE.search(command)
        inserts = command.startswith("insert") and " union " in command
        if alters or updates or inserts:
            refused.append(command)
    return refused


def test_later_migrations_use_what_a_cluster_takes() -> None:
    for migration in migrations():
        assert refused_by_a_cluster(migration) == [], migration.name


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("-- A column.\nalter table memories add column mood text", True),
        ("alter table memories alter column mood set statistics 0", False),
        ("update memories set mood = lower(content)", True),
        ("update memories set digest = sha256(convert_to(content, 'UTF8'))", False),
        ("insert into jobs (name) select 'a' union select 'b'", False),
    ],
)
def test_what_a_cluster_does_not_take_is_found(command: str, taken: bool) -> None:
    refused = refused_by_a_cluster(Migration("0017_mood.sql", f"{command};\n"))

    assert (refused == []) == taken
