"""A disk that is nearly full: writes are refused before Postgres ends, and reads go on."""

import re
import shutil
import threading
from pathlib import Path

import pytest

from folklore.app import App
from folklore.client.http_client import HttpClient
from folklore.client.local_server import LocalServer
from folklore.config import Settings
from folklore.contract.memories import ForgetRequest, StoreRequest
from folklore.contract.recall import RecallRequest
from folklore.db.database import Database, PoolLimits
from folklore.disk import LEAST_FREE, LITTLE_FREE, require_space
from folklore.errors import DatabaseUnavailable, DiskFull
from folklore.model import Draft
from folklore.server.application.health import Health
from folklore.server.application.metrics import Metrics
from tests.doors import own_service
from tests.person import contents
from tests.waiting import STUCK


@pytest.fixture
async def full(app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> App:
    """An application with one memory over a disk that is nearly full."""
    await own_service(app).call(
        StoreRequest(memories=(Draft("We deploy from Frankfurt."),))
    )
    usage = shutil.disk_usage(tmp_path)._replace(free=LEAST_FREE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(
        (await app.ready()).database, "require_space", lambda: require_space(tmp_path)
    )
    return app


async def test_writes_are_refused_with_the_disk_and_its_space_and_reads_go_on(
    full: App, tmp_path: Path
) -> None:
    with pytest.raises(
        DiskFull,
        match=rf"The disk of {tmp_path} has 100 MB free, and a write needs 100 MB",
    ):
        await own_service(full).call(StoreRequest(memories=(Draft("A later fact."),)))

    answer = await own_service(full).call(
        RecallRequest(query="where do we deploy from?")
    )
    assert contents(answer) == ["We deploy from Frankfurt."]
    with pytest.raises(DiskFull):
        await own_service(full).call(ForgetRequest(ids=(answer.memories[0].memory.id,)))


async def test_writes_are_accepted_as_soon_as_there_is_space(
    full: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DiskFull):
        await own_service(full).call(StoreRequest(memories=(Draft("A later fact."),)))
    monkeypatch.undo()

    assert (
        await own_service(full).call(StoreRequest(memories=(Draft("A later fact."),)))
    ).stored


async def test_a_full_disk_that_ends_the_database_is_named(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = (await app.ready()).database
    usage = shutil.disk_usage("/")._replace(free=0)
    monkeypatch.setattr(database, "require_space", lambda: require_space(Path("/")))

    async def work() -> None:
        async with database.transaction():
            monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
            raise DatabaseUnavailable("The connection was lost.")

    with pytest.raises(DiskFull):
        await work()


async def test_a_start_that_a_full_disk_holds_up_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = shutil.disk_usage("/")._replace(free=0)
    over = threading.Event()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr("folklore.app.import_module", lambda _: over.wait(STUCK))
    monkeypatch.setattr(
        LocalServer, "connect", lambda *_: (tmp_path / "no-server").stat()
    )
    app = App(Settings(home=tmp_path))
    client = HttpClient(Settings(home=tmp_path), LocalServer(str(tmp_path), {}))
    for call in (app.ready(0.01), client.send("GET", "/healthz")):
        with pytest.raises(DiskFull, match="has 0 MB free"):
            await call
    over.set()
    await app.close()


async def test_readyz_names_a_full_disk(full: App) -> None:
    health = Health(full)
    assert b'"degraded":["disk_full"]' in (await health.ready(None)).body  # type: ignore[arg-type]
    await health.close()


@pytest.fixture
def low(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with some space, but little."""
    usage = shutil.disk_usage(tmp_path)._replace(free=LITTLE_FREE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


@pytest.mark.usefixtures("low")
async def test_probes_and_metrics_warn_before_the_disk_is_full(app: App) -> None:
    running = await app.ready()
    health = Health(app)
    metrics = Metrics(app)
    assert b"degraded" not in (await health.ready(None)).body  # type: ignore[arg-type]  # a Postgres elsewhere
    assert "disk_free_bytes 0.0" in metrics.text().decode()
    object.__setattr__(running, "where", "embedded")
    try:
        await health.close()
        health = Health(app)
        assert b'"degraded":["disk_low"]' in (await health.ready(None)).body  # type: ignore[arg-type]
        [free] = re.findall(
            r"^folklore_disk_free_bytes (\S+)$", metrics.text().decode(), re.MULTILINE
        )
        assert float(free) == LITTLE_FREE - 1
        assert (
            await own_service(app).call(
                StoreRequest(memories=(Draft("A later fact."),))
            )
        ).stored
    finally:
        object.__setattr__(running, "where", "server")
        await health.close()


async def test_only_transactions_that_write_look_at_the_disk(database_url: str) -> None:
    looked: list[bool] = []
    database = Database(
        database_url,
        PoolLimits(minimum=0, maximum=2),
        require_space=lambda: looked.append(True),
    )
    await database.open()
    async with database.session() as session:
        await session.rows("server/migrations")
    assert looked == []
    async with database.transaction() as session:
        await session.rows("server/migrations")
    assert looked == [True]
    await database.close()
