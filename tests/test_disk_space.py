"""A disk that is nearly full: writes are refused before Postgres ends, and reads go on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from folklore.app import App
from folklore.db.database import Database, PoolLimits
from folklore.engine.disk import LEAST_FREE, require_space
from folklore.errors import DiskFull
from folklore.http.health import Health
from folklore.memory.requests import ForgetRequest, RecallRequest, StoreRequest
from folklore.model import Draft
from tests.person import contents


@pytest.fixture
async def full(app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> App:
    """An application with one memory over a disk that is nearly full."""
    await app.service.call(StoreRequest(memories=(Draft("We deploy from Frankfurt."),)))
    usage = shutil.disk_usage(tmp_path)._replace(free=LEAST_FREE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr((await app.ready()).database, "require_space", lambda: require_space(tmp_path))
    return app


async def test_writes_are_refused_with_the_disk_and_its_space_and_reads_go_on(full: App, tmp_path: Path) -> None:
    with pytest.raises(DiskFull, match=rf"The disk of {tmp_path} has 100 MB free, and a write needs 100 MB"):
        await full.service.call(StoreRequest(memories=(Draft("A later fact."),)))

    answer = await full.service.call(RecallRequest(query="where do we deploy from?"))
    assert contents(answer) == ["We deploy from Frankfurt."]
    with pytest.raises(DiskFull):
        await full.service.call(ForgetRequest(ids=(answer.memories[0].memory.id,)))


async def test_writes_are_accepted_as_soon_as_there_is_space(full: App, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DiskFull):
        await full.service.call(StoreRequest(memories=(Draft("A later fact."),)))
    monkeypatch.undo()

    assert (await full.service.call(StoreRequest(memories=(Draft("A later fact."),)))).stored


async def test_readyz_names_a_full_disk(full: App) -> None:
    health = Health(full)
    assert b'"degraded":["disk_full"]' in (await health.ready(None)).body  # type: ignore[arg-type]
    await health.close()


async def test_only_transactions_that_write_look_at_the_disk(database_url: str) -> None:
    looked: list[bool] = []
    database = Database(database_url, PoolLimits(minimum=0, maximum=2), require_space=lambda: looked.append(True))
    await database.open()
    async with database.session() as session:
        await session.rows("server/migrations")
    assert looked == []
    async with database.transaction() as session:
        await session.rows("server/migrations")
    assert looked == [True]
    await database.close()
