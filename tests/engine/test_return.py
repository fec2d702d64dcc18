"""The engine stops, or its data vanishes, while a server runs."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator

import pytest

from folklore.app import App, running
from folklore.config import load_settings
from folklore.contract.memories import StoreRequest
from folklore.contract.recall import RecallRequest
from folklore.engine import Engine
from folklore.errors import DataMissing
from folklore.model import Draft
from folklore.runtime import job_database
from folklore.server.application.health import Health
from tests.doors import own_service
from tests.engine.test_engine import temporary_room
from tests.person import contents

QUAY = Draft("the quay is closed")
OPEN = Draft("and open again")


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """An application over an engine of its own, with one memory."""
    with temporary_room() as room:
        home = room / "home"
        async with running(
            load_settings(home=home, author="tester", namespace="notes")
        ) as app:
            try:
                await store(app, QUAY)
                yield app
            finally:
                await asyncio.to_thread(Engine(home).stop)


async def store(app: App, draft: Draft) -> list[str]:
    return [
        item.status
        for item in (
            await own_service(app).call(StoreRequest(memories=(draft,)))
        ).stored
    ]


async def test_a_call_starts_an_engine_that_was_stopped(app: App) -> None:
    assert await asyncio.to_thread(Engine(app.settings.home).stop)
    answer = await own_service(app).call(RecallRequest(query="quay"))
    await asyncio.to_thread(Engine(app.settings.home).stop)

    assert contents(answer) == [QUAY.content]
    assert await store(app, OPEN) == ["stored"]


@pytest.mark.parametrize("lost", ["home", "home/engine/data"])
async def test_nothing_is_acknowledged_while_the_data_is_gone(
    app: App, lost: str
) -> None:
    home = app.settings.home
    folder = home.parent / lost
    aside = home.parent / "aside"
    health = Health(app)
    database = (await app.ready()).database
    folder.rename(aside)
    try:
        with pytest.raises(
            DataMissing,
            match=rf"data directory {home}/engine/data (was removed|is missing)",
        ):
            await store(app, OPEN)
        response = await health.ready(None)  # type: ignore[arg-type]
        assert (response.status_code, b'"data_missing"' in response.body) == (503, True)
        with pytest.raises(DataMissing):
            async with job_database(app.settings, await app.ready()):
                pass
        assert home.exists() == (lost != "home")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        await health.close()

    assert await store(app, OPEN) == ["stored"]
    with pytest.raises(DataMissing, match="removed"):
        async with database.transaction():
            folder.rename(aside)
    aside.rename(folder)


async def test_data_that_was_put_back_as_a_copy_is_used_again(app: App) -> None:
    data = app.settings.home / "engine" / "data"
    copied = data.with_name("copied")
    await asyncio.to_thread(Engine(app.settings.home).stop)
    subprocess.run(["cp", "-a", data, copied], check=True)
    shutil.rmtree(data)
    copied.rename(data)

    assert await store(app, OPEN) == ["stored"]
    assert QUAY.content in contents(
        await own_service(app).call(RecallRequest(query="quay"))
    )
