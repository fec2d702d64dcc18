"""A node that does not answer delays what needs it and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from folklore.db import silent_nodes
from folklore.db.silent_nodes import SilentNodes
from folklore.errors import DatabaseUnavailable

LIVE = uuid4()
FROZEN = uuid4()


class Cluster:
    """A cluster with one node that may be frozen, as far as it is asked."""

    def __init__(self) -> None:
        self.frozen = True
        self.asked = asyncio.Event()

    async def silent(self) -> frozenset[UUID] | None:
        self.asked.set()
        return frozenset({FROZEN}) if self.frozen else None


@pytest.fixture
async def a_cluster() -> AsyncIterator[Cluster]:
    """A cluster with a frozen node, which answers again after the test: else it would be asked for ever."""
    made = Cluster()
    yield made
    made.frozen = False


@pytest.fixture(autouse=True)
def quick_to_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silent_nodes, "_SLOW_SECONDS", 0.05)
    monkeypatch.setattr(silent_nodes, "_ASKED_EVERY_SECONDS", 0.01)


async def test_a_statement_that_waits_for_a_silent_node_is_given_up(
    connection: asyncpg.Connection, empty_database_url: str, a_cluster: Cluster
) -> None:
    nodes = SilentNodes(a_cluster.silent)
    other = await asyncpg.connect(empty_database_url)

    with pytest.raises(DatabaseUnavailable, match="does not answer"):
        await nodes.bound(other.fetch("select pg_sleep(60)"), [FROZEN], other)

    assert other.is_closed()
    with pytest.raises(DatabaseUnavailable, match="does not answer"):
        await nodes.bound(connection.fetch("select 1"), [LIVE, FROZEN], connection)
    assert not connection.is_closed(), "it was refused before it was sent"


async def test_a_slow_statement_of_other_nodes_goes_on(
    connection: asyncpg.Connection, a_cluster: Cluster
) -> None:
    nodes = SilentNodes(a_cluster.silent)

    async def slow() -> str:
        await a_cluster.asked.wait()
        await asyncio.sleep(0)
        return str(await connection.fetchval("select 'late'"))

    assert await nodes.bound(slow(), [LIVE], connection) == "late"


async def test_when_the_node_answers_again_its_statements_are_sent(
    connection: asyncpg.Connection, empty_database_url: str, a_cluster: Cluster
) -> None:
    nodes = SilentNodes(a_cluster.silent)
    other = await asyncpg.connect(empty_database_url)
    with pytest.raises(DatabaseUnavailable):
        await nodes.bound(other.fetch("select pg_sleep(60)"), None, other)

    a_cluster.frozen = False
    a_cluster.asked.clear()
    await a_cluster.asked.wait()
    await asyncio.sleep(0)

    assert await nodes.bound(connection.fetch("select 1"), [FROZEN], connection)
