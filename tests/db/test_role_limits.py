"""Limits of the database role for tokens: SQL by the role itself writes in no other name and stops no other caller."""

import asyncpg
import pytest

from folklore.contract.token_secrets import key_of
from folklore.db.database import Database, PoolLimits
from tests.memory.auth.test_isolation import Holder, as_role, holder, owner_of_two  # noqa: F401 - a fixture
from tests.person import Person

# Modes of a lock that another caller's reads or writes wait for.
HARMFUL = (
    "share",
    "share row exclusive",
    "exclusive",
    "access exclusive",
    "share update exclusive",
)


@pytest.fixture
async def ada(owner: Person) -> Holder:
    """The strongest token that is no owner's."""
    return await holder(owner, "ada", "payments:admin", "repo:acme/*:admin")


async def refused(
    connection: asyncpg.Connection, person: Holder, statement: str
) -> bool:
    """Return True if the privileges or the policies of the role refuse a statement."""
    try:
        async with as_role(connection, person.secret) as role:
            await role.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return True
    return False


async def test_the_role_takes_no_lock_on_a_table_that_others_wait_for(
    ada: Holder, connection: asyncpg.Connection
) -> None:
    tables = [
        row["relname"]
        for row in await connection.fetch(
            "select relname from pg_class where relkind in ('r', 'p', 'v') and relnamespace = 'public'::regnamespace"
        )
    ]

    taken = [
        f"{table} in {mode}"
        for table in tables
        for mode in HARMFUL
        if not await refused(
            connection, ada, f"lock table {table} in {mode} mode nowait"
        )
    ]

    assert len(tables) > 20
    assert taken == []


MEMORY = (
    "insert into memories (namespace_id, id, kind, language, content, author, created_at, updated_at, digest)"
    " select namespace_id, gen_random_uuid(), 'note', 'english', 'forged', '{author}', now(), now(), sha256('{author}')"
    " from memories limit 1"
)
RELATION = (
    "insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)"
    " select namespace_id, id, 'causes', id, 1, '{author}', now() from memories limit 1"
)
REVISION = (
    "insert into revisions (namespace_id, memory_id, revision, action, author, changed_at, before)"
    " select namespace_id, id, 900, 'update', '{author}', now(), '{{}}' from memories limit 1"
)
AUDIT = (
    "insert into audit (namespace_id, id, at, principal, action, outcome, ids)"
    " select namespace_id, gen_random_uuid(), now(), '{author}', 'store', 'done', '{{}}' from memories limit 1"
)
NAMESPACE = (
    "insert into namespaces (id, name, created_at, created_by)"
    " values (gen_random_uuid(), 'repo:acme/forged', now(), '{author}')"
)


WRITES: list[str] = [MEMORY, RELATION, REVISION, AUDIT, NAMESPACE]


async def test_the_role_writes_in_the_name_of_its_own_principal_alone(
    ada: Holder, connection: asyncpg.Connection
) -> None:
    for statement in WRITES:
        outcomes = {
            author: await refused(connection, ada, statement.format(author=author))
            for author in ("ada", "root", "Ada", "", "ada ")
        }

        assert outcomes == {
            "ada": False,
            "root": True,
            "Ada": True,
            "": True,
            "ada ": True,
        }, statement


CHANGES = (
    "update memories set author = 'ada'", "update memories set agent = 'x'", "update memories set created_at = now()",
    "update memories set id = gen_random_uuid()", "update memories set namespace_id = gen_random_uuid()",
    "update relations set author = 'ada'", "update relations set to_id = from_id",
    "update revisions set author = 'ada'", "update revisions set before = '{}'", "delete from revisions",
    "update audit set principal = 'ada'", "delete from audit", "update idempotency_keys set request = ''",
    "truncate memories cascade", "update namespaces set name = 'mine'", "delete from namespaces",
    "select * from tokens", "select * from principals", "create table public.mine (id uuid)",
    "create function public.mine() returns int language sql return 1",
)  # fmt: skip


async def test_the_role_changes_no_author_no_history_and_no_table(
    ada: Holder, connection: asyncpg.Connection
) -> None:
    for change in CHANGES:
        if change.startswith("select"):
            async with as_role(connection, ada.secret) as role:
                try:
                    assert await role.fetch(change) == [], change
                except asyncpg.InsufficientPrivilegeError:
                    continue
        else:
            assert await refused(connection, ada, change), change


async def test_the_text_of_no_statement_has_the_key_of_a_token(
    ada: Holder, database_url: str
) -> None:
    """A text may be in the log of any node; the key is a parameter."""
    key = key_of(ada.secret)
    sent: list[str] = []
    database = Database(database_url, PoolLimits(minimum=0), log_query=sent.append)
    async with database:
        limited = database.for_token(key)
        await limited.rows("server/requirements")
        async with limited.transaction() as session:
            await session.rows("server/requirements")
        async with limited.snapshot() as session:
            await session.rows("server/requirements")

    assert [text for text in sent if "folklore_enter" in text]
    assert [text for text in sent if key in text] == []
