"""What a database must be is tested by what it does, and named with the remedy."""

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from folklore.app import App
from folklore.config import Settings
from folklore.db.database import Database
from folklore.db.migrate import migrate, read_requirements
from folklore.errors import DatabaseUnsuitable
from folklore.memory.context import MemoryContext
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.conftest import Cluster
from tests.memory.auth.test_isolation import enter, holder
from tests.person import Person
from tests.server.test_health import served

WRONG = [
    ("encoding 'LATIN1' locale 'C'", "encoding is LATIN1"),
    ("encoding 'SQL_ASCII' locale 'C'", "encoding is SQL_ASCII"),
    ("encoding 'UTF8' locale 'C'", "locale (C) knows no letters"),
]
SETTINGS = ["standard_conforming_strings", "row_security"]


@pytest.fixture
async def made(cluster: Cluster) -> AsyncIterator[str]:
    """The name of a database that the test makes."""
    name = f"folklore_test_{uuid4().hex[:12]}"
    yield name
    await cluster.admin.execute(f"drop database if exists {name} with (force)")


@pytest.mark.parametrize(("options", "problem"), WRONG)
async def test_a_new_database_of_a_wrong_encoding_or_locale_is_refused_with_the_remedy(
    cluster: Cluster, made: str, options: str, problem: str
) -> None:
    await cluster.admin.execute(f"create database {made} template template0 {options}")

    with pytest.raises(DatabaseUnsuitable) as refusal:
        await migrate(cluster.address(made))

    assert problem in str(refusal.value)
    assert "template template0 encoding 'UTF8' locale" in (refusal.value.hint or "")


async def test_a_database_made_as_the_remedy_says_fits(
    cluster: Cluster, made: str
) -> None:
    await cluster.admin.execute(
        f"create database {made} template template0 encoding 'UTF8' locale 'C.UTF-8'"
    )

    assert await read_requirements(cluster.address(made)) == []


@pytest.mark.parametrize("setting", SETTINGS)
async def test_a_setting_that_is_off_is_named_with_the_command_that_sets_it_on(
    cluster: Cluster, empty_database_url: str, setting: str
) -> None:
    connection = await asyncpg.connect(empty_database_url)
    name = await connection.fetchval("select current_database()")
    await connection.execute(f"alter database {name} set {setting} = off")
    await connection.close()

    with pytest.raises(DatabaseUnsuitable) as refusal:
        await migrate(empty_database_url)
    assert f"{setting} is off" in str(refusal.value)

    command = (refusal.value.hint or "").split("`")[1]
    assert command.startswith("alter role")
    assert command.endswith(f"{setting} = on")
    await cluster.admin.execute(command)
    try:
        assert await migrate(empty_database_url)
        assert await read_requirements(empty_database_url) == []
    finally:
        role = command.removesuffix(f" set {setting} = on")
        await cluster.admin.execute(f"{role} reset all")


@pytest.mark.parametrize(
    ("setting", "status", "code"),
    [
        ("row_security", 503, "database_unsuitable"),
        ("standard_conforming_strings", 200, "database_standard_conforming_strings"),
    ],
)
async def test_doctor_migrate_and_readyz_name_a_setting_of_a_database_with_memories(
    folklore: CommandLine, settings: Settings, setting: str, status: int, code: str
) -> None:
    await folklore.keep("The port is 8080.")
    assert settings.database_url is not None
    connection = await asyncpg.connect(settings.database_url.get_secret_value())
    name = await connection.fetchval("select current_database()")
    await connection.execute(f"alter database {name} set {setting} = off")
    await connection.close()

    migrated = await folklore("db", "migrate")
    examined = await folklore("doctor")
    async with served(App(settings)) as client:
        answer = await client.get("/readyz")

    assert migrated.code != 0
    assert f"{setting} is off" in migrated.err
    assert examined.code != 0
    assert f"{setting} is off" in examined.out
    assert f"set {setting} = on" in examined.out
    assert "store" not in examined.out.partition("model")[2], "nothing is tried there"
    assert answer.status_code == status
    assert code in (answer.json().get("missing"), *answer.json().get("degraded", ()))


async def test_a_token_learns_that_row_security_is_off(database_url: str) -> None:
    async with Database(database_url) as database:
        owner = Person(MemoryContext.of(database, None))
        await owner.keep("The port is 8080.")
        reader = await holder(owner, "alice", "notes:reader")
        async with database.session() as session:
            name = await session.connection.fetchval("select current_database()")
            await session.connection.execute(
                f"alter database {name} set row_security = off"
            )

    async with Database(database_url) as database:
        library = MemoryContext.of(database, None)
        again = await enter(library, reader.secret)
        with pytest.raises(DatabaseUnsuitable, match="row_security is off"):
            await again.search("port")
