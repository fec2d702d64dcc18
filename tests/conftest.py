"""A real Postgres for the session, a fresh database for each test that asks for one, and an application over it.

The cluster is TEST_DATABASE_URL's if that is set (its role must be able to create databases), else an embedded engine.
A database is a copy of a template that was migrated once: 20 to 40 ms instead of a migration each. On a coordinator of
Citus the template is distributed, and copied on every node.
"""

import asyncio
import functools
import gc
import gzip
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4
from zlib import crc32

import asyncpg
import hypothesis
import pytest
from mcp import Client

from folklore.app import App
from folklore.config import Settings
from folklore.db.database import Database, PoolLimits
from folklore.db.distribute import distribute
from folklore.db.migrate import migrate
from folklore.embedding import bundled, factory
from folklore.embedding.bundled import BundledEmbedder
from folklore.embedding.protocol import Embedder
from folklore.mcp.server import build_server
from folklore.memory.context import MemoryContext
from tests.background_jobs import BackgroundJobs
from tests.doors import own_service
from tests.person import Person
from tests.servers import on_http, watched
from tests.team import Team, library_at
from tests.temporary_engine import temporary_engine
from tests.waiting import STUCK

_STARTED = time.monotonic()
# Its schema.sql, and the rows of folklore_migrations that it wrote.
_TRIAL_STORE = Path(__file__).parent / "db" / "trial_store.sql.gz"
_PROGRESS_SECONDS = 10.0

# `make test-console` installs playwright, and the other targets do without its 170 MB.
collect_ignore = [] if find_spec("playwright") else ["browser"]

# A busy machine may pause a test for longer than hypothesis' deadline.
hypothesis.settings.register_profile("folklore", deadline=None)
hypothesis.settings.load_profile("folklore")


class Progress:
    """Says every ten seconds how far the tests are: for logs, which show a dot long after it was printed."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)

    def _report(self) -> None:
        while not self._ended.wait(_PROGRESS_SECONDS):
            stats = self._reporter.stats
            failed = len(stats.get("failed", ())) + len(stats.get("error", ()))
            seconds = time.monotonic() - _STARTED
            self._reporter.write_line(
                f" {len(stats.get('passed', ())):,} passed, {failed:,} failed after {seconds:.0f} s"
            )

    def pytest_sessionstart(self) -> None:
        self._thread.start()

    def pytest_sessionfinish(self) -> None:
        self._ended.set()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Tear fixtures down on SIGTERM as on Ctrl-C, so that the servers and engines that they started end too.

    A worker of pytest-xdist that has lost its controller sends itself SIGINT after five seconds, but ignores it by
    default.
    """
    # An engine of root runs as another user, who passes through here; another session would close pytest's own folder.
    folder = Path(
        tempfile.gettempdir(), f"folklore-{crc32(os.fsencode(Path(__file__).parent)):x}"
    )
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    is_worker = hasattr(config, "workerinput")
    if reporter is not None and not is_worker and not sys.stdout.isatty():
        config.pluginmanager.register(Progress(reporter))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among the thousands of tests and what they import: they stay."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the session's Postgres."""
    if "cluster_dsn" in getattr(item, "fixturenames", ()):
        item.add_marker("database")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter,
    exitstatus: pytest.ExitCode,
    config: pytest.Config,
) -> Iterator[None]:
    """End the output of `make test`, which passes -qq and so gets no summary line from pytest, with one line."""
    yield
    if config.get_verbosity() > -2:
        return
    seconds = time.monotonic() - _STARTED
    counts = {
        outcome: len(reports) for outcome, reports in terminalreporter.stats.items()
    }
    passed = counts.get("passed", 0)
    failed = counts.get("failed", 0) + counts.get("error", 0)
    line = f"{passed:,} tests passed, {failed:,} failed, {counts.get('skipped', 0):,} skipped in {seconds:.0f} s."
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        line = f"Interrupted: {line}"
    elif failed:
        line += f" Run the failed ones again: {shlex.quote(os.path.relpath(sys.executable))} -m pytest --last-failed"
    terminalreporter.write_line(
        line, bold=True, red=bool(exitstatus), green=not exitstatus
    )


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Postgres that this session may make databases in; `workers` are connections to the other nodes of Citus."""

    dsn: str
    admin: asyncpg.Connection
    workers: tuple[asyncpg.Connection, ...] = ()

    def address(self, database: str) -> str:
        """The DSN of one of its databases."""
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{database}"))

    async def everywhere(self, command: str) -> None:
        """Run a command on every node."""
        for node in (*self.workers, self.admin):
            await node.execute(command)

    @asynccontextmanager
    async def new_database(self, template: str = "template1") -> AsyncIterator[str]:
        """The name of a database that lives as long as the block."""
        name = f"folklore_test_{uuid4().hex[:12]}"
        # Copying files takes three quarters of the time that copying blocks through the log does.
        await self.everywhere(
            f"create database {name} template {template} strategy file_copy"
        )
        try:
            # Test data need not survive a power failure, and a commit that waits for the disk takes milliseconds.
            # The setting belongs to the database and is not copied from its template.
            await self.everywhere(f"alter database {name} set synchronous_commit = off")
            yield name
        finally:
            # the coordinator connects to the workers by itself
            for node in (self.admin, *self.workers):
                drop = f"drop database {name} with (force)"
                try:
                    await node.execute(drop)
                except asyncpg.ObjectInUseError:
                    if not self.workers:
                        raise
                    # Citus begins a process of its own with the first statement: after a short test it may just
                    # be starting, and is not ended by force. Postgres has waited five seconds for it.
                    await node.execute(drop)

    async def join(self, name: str) -> None:
        """Make one database of that of this name on every node."""
        places = await self.admin.fetch(
            "select nodename, nodeport from pg_dist_node order by groupid"
        )
        for host, port in reversed(places):
            node = await asyncpg.connect(self.address(name), host=host, port=port)
            await node.execute(
                "create extension if not exists vector; create extension citus"
            )
            if (host, port) == tuple(places[0]):
                await node.execute(
                    "select citus_set_coordinator_host($1, $2)", host, port
                )
                for worker in places[1:]:
                    await node.execute("select citus_add_node($1, $2)", *worker)
            await node.close()

    @asynccontextmanager
    async def opened(self, template: str) -> AsyncIterator[Database]:
        """A new database with its pool."""
        async with (
            self.new_database(template) as name,
            Database(self.address(name)) as database,
        ):
            yield database


@pytest.fixture(autouse=True)
def no_test_waits_forever() -> Iterator[None]:
    """Fail a test that is stuck, also where asyncio's timeouts cannot: the slowest test takes a few minutes."""

    def stop(*_: object) -> None:
        raise TimeoutError("the test is stuck")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(900)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the settings, the home and the keyring of the developer out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("FOLKLORE_", "CLAUDE_", "PG")):
                patch.delenv(name)
        home = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(home))
        patch.setenv("FOLKLORE_HOME", str(home / ".folklore"))
        # `auto` takes the bundled model, which is quick, here and in processes that tests start.
        patch.setattr(factory, "find_spec", lambda _name: None)
        patch.setenv("FOLKLORE_EMBEDDING__PROVIDER", "bundled")
        patch.setenv("FOLKLORE_OWN", "1")  # else every command leaves a server behind
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        # A command in this process would configure the logs, and keep the stream of its test, for all later ones.
        patch.setattr("folklore.log.configure_on_use", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_model_for_the_session() -> Iterator[None]:
    """Load the bundled model once: it takes 0.3 s, and each embedder would load it again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled, "load_model", functools.cache(bundled.load_model))
        yield


@pytest.fixture(scope="session")
def embedder(one_model_for_the_session: None) -> Embedder:
    return BundledEmbedder()


@pytest.fixture(scope="session")
def cluster_dsn() -> Iterator[str]:
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    with temporary_engine(shared_buffers="128MB") as dsn:
        yield dsn


@pytest.fixture(scope="session")
async def cluster(cluster_dsn: str) -> AsyncIterator[Cluster]:
    admin = await asyncpg.connect(cluster_dsn)
    if not os.environ.get("TEST_DATABASE_URL"):
        # Ours looks each five seconds, at databases that live for less. This is what Postgres does by itself.
        await admin.execute("alter system set autovacuum_naptime = '1min'")
        # Nothing here survives the session; a new database would sync each of its files.
        await admin.execute("alter system set fsync = off")
        await admin.execute("select pg_reload_conf()")
    places = []
    if await admin.fetchval("select to_regclass('pg_dist_node')"):
        places = await admin.fetch(
            "select nodename, nodeport from pg_dist_node where groupid > 0"
        )
    workers = [
        await asyncpg.connect(cluster_dsn, host=host, port=port)
        for host, port in places
    ]
    try:
        yield Cluster(cluster_dsn, admin, tuple(workers))
    finally:
        for node in (admin, *workers):
            await node.close()


@pytest.fixture(scope="session")
async def template(cluster: Cluster) -> AsyncIterator[str]:
    """Name of a migrated database without connections."""
    async with cluster.new_database() as name:
        if cluster.workers:
            # two that change roles on all nodes at once fail
            await cluster.admin.execute("select pg_advisory_lock(1)")
            await cluster.join(name)
        await migrate(cluster.address(name))
        if cluster.workers:
            await distribute(cluster.address(name), dry_run=False)
            # Citus keeps one open
            await cluster.everywhere(f"alter database {name} allow_connections false")
            await cluster.everywhere(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
            )
            await cluster.admin.execute("select pg_advisory_unlock(1)")
        yield name


@pytest.fixture
async def empty_database_url(cluster: Cluster) -> AsyncIterator[str]:
    """A database without our schema."""
    async with cluster.new_database() as name:
        yield cluster.address(name)


@pytest.fixture
async def trial_database_url(empty_database_url: str) -> str:
    """A database as the last trial version left it: before schema.sql made databases."""
    connection = await asyncpg.connect(empty_database_url)
    await connection.execute(gzip.decompress(_TRIAL_STORE.read_bytes()).decode())
    await connection.close()
    return empty_database_url


@pytest.fixture
async def database_url(cluster: Cluster, template: str) -> AsyncIterator[str]:
    """A database with our schema and no rows."""
    async with cluster.new_database(template) as name:
        yield cluster.address(name)


@pytest.fixture(scope="module")
async def address(cluster: Cluster, template: str) -> AsyncIterator[str]:
    """A database of this module, with our schema and no rows."""
    async with cluster.new_database(template) as name:
        yield cluster.address(name)


@pytest.fixture(scope="module")
async def team(
    address: str, embedder: Embedder, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Team]:
    """A server of this module, with a database of its own."""
    settings = watched(tmp_path_factory.mktemp("team"), database_url=address)
    async with library_at(address, embedder) as library, on_http(settings) as running:
        yield Team(running, library)
        assert not running.crashes()


@pytest.fixture
def queries() -> list[str]:
    """Statements of `database` or `app`, in order. asyncpg logs a statement in the loop's next turn."""
    return []


@pytest.fixture
async def database(database_url: str, queries: list[str]) -> AsyncIterator[Database]:
    async with Database(
        database_url, PoolLimits(minimum=0, maximum=10), queries.append
    ) as opened:
        yield opened


@pytest.fixture
async def library(database: Database, embedder: Embedder) -> MemoryContext:
    """The memory context of a fresh database, with the bundled model."""
    return MemoryContext.of(database, embedder)


@pytest.fixture
async def person(library: MemoryContext) -> Person:
    """The caller `tester`, who writes to `notes`."""
    return Person(library)


@pytest.fixture
async def jobs(database: Database, library: MemoryContext) -> BackgroundJobs:
    """Background jobs by hand, over the same database as `person`."""
    return BackgroundJobs(database, library)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A plain connection to the test's database."""
    opened = await asyncpg.connect(database_url)
    yield opened
    await opened.close()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(
        database_url=database_url,
        author="tester",
        namespace="notes",
        home=tmp_path / "home",
    )


@pytest.fixture
async def app(settings: Settings, queries: list[str]) -> AsyncIterator[App]:
    """A running application: the bundled model, the caller `tester`, with the default namespace `notes`."""
    running = App(settings, log_query=queries.append)
    await running.ready()
    yield running
    await running.close()


@pytest.fixture
async def client(app: App) -> AsyncIterator[Client]:
    """The SDK's client, joined to our server in memory."""
    async with connected(build_server(own_service(app))) as joined:
        yield joined


@asynccontextmanager
async def connected(server: Any, **options: Any) -> AsyncIterator[Client]:
    """A connected client for fixtures: opened and closed by one task, as its cancel scopes demand."""
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        try:
            async with Client(server, read_timeout_seconds=STUCK, **options) as opened:
                ready.set_result(opened)
                await done.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    task = asyncio.create_task(hold())
    try:
        yield await ready
    finally:
        done.set()
        await task
