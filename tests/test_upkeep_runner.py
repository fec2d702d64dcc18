"""One runner at a time, whatever happens: two at once, one that is killed, is cancelled, fails or loses its lease."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from folklore.app import App
from folklore.config import Settings, UpkeepSettings
from folklore.db.database import Database
from folklore.db.stores.jobs import Chores
from folklore.errors import DatabaseUnavailable
from folklore.jobs.all_jobs import named
from folklore.jobs.background import keep_up
from folklore.jobs.cancellation import stopped
from folklore.jobs.job import Chore, Job
from folklore.jobs.runner import Lease, Runner
from folklore.memory.context import MemoryContext
from tests.commands import CommandLine, command_line
from tests.embedders import Down, Waiting
from tests.housework import DAY, Housekeeper
from tests.person import NOON, Person

__all__ = ["command_line"]

HOUR = timedelta(hours=1)
EMBEDDINGS = named()["embeddings"]


@pytest.fixture
async def owing(database: Database) -> None:
    await Person(MemoryContext.of(database, Down())).keep(*(f"owing text {place}" for place in range(100)))


@pytest.fixture
def waiting() -> Waiting:
    """A model that answers once it may."""
    return Waiting()


async def test_of_two_runners_at_once_one_works_and_the_other_leaves_it_to_him(
    database: Database, owing: None, waiting: Waiting
) -> None:
    housekeeper = Housekeeper(database, MemoryContext.of(database, waiting))
    first = asyncio.create_task(housekeeper.runner("first").run(EMBEDDINGS))
    await waiting.asked.wait()

    second = await housekeeper.runner("second").run(EMBEDDINGS)
    waiting.go.set()

    assert second.outcome == "busy"
    assert (await first).done == {"embedded": 100}
    assert sum(map(len, waiting.calls)) == 100


async def test_many_that_find_the_same_chore_due_run_it_once(database: Database, owing: None) -> None:
    from tests.embedders import ByLetter

    embedder = ByLetter()
    housekeeper = Housekeeper(database, MemoryContext.of(database, embedder))

    every = await asyncio.gather(*(housekeeper.runner(f"runner {place}").run_due([EMBEDDINGS]) for place in range(5)))

    outcomes = [ran.outcome for some in every for ran in some]
    assert outcomes.count("done") == 1
    assert sum(map(len, embedder.calls)) == 100


async def test_what_was_done_is_kept_and_due_again_after_its_time(database: Database, housekeeper: Housekeeper) -> None:
    await housekeeper.runner().run_due([EMBEDDINGS])

    state = (await Chores(database).all())["embeddings"]
    assert (state.outcome, state.finished_at, state.next_due) == ("done", NOON, NOON + HOUR)
    assert state.holder is None
    assert await housekeeper.runner().run_due([EMBEDDINGS]) == []
    housekeeper.now = NOON + HOUR
    assert [ran.outcome for ran in await housekeeper.runner().run_due([EMBEDDINGS])] == ["done"]


async def test_a_killed_runners_chore_is_free_once_its_lease_is_over(
    database: Database, owing: None, folklore: CommandLine
) -> None:
    """A process that is killed while its model, an endpoint that never answers, keeps it waiting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = os.environ | folklore.environment
        environment |= {
            "FOLKLORE_EMBEDDING__PROVIDER": "openai",
            "FOLKLORE_EMBEDDING__URL": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            "FOLKLORE_EMBEDDING__MODEL": "silent",
            "FOLKLORE_EMBEDDING__DIMENSIONS": "8",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "folklore", "upkeep", "run", "embeddings"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with asyncio.timeout(60):
            while (state := (await Chores(database).all()).get("embeddings")) is None or state.holder is None:
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    assert state.leased_until is not None
    housekeeper = Housekeeper(database, MemoryContext.of(database, Waiting()))
    assert isinstance(housekeeper.library.embedder, Waiting)
    housekeeper.library.embedder.go.set()

    housekeeper.now = state.leased_until - timedelta(seconds=1)
    assert (await housekeeper.run(EMBEDDINGS)).outcome == "busy"
    (row,) = [row for row in (await folklore.json("upkeep", "status"))["chores"] if row["chore"] == "embeddings"]
    assert row["state"] == "running"
    housekeeper.now = state.leased_until + timedelta(seconds=1)
    assert await housekeeper("embeddings") == {"embedded": 100}


async def test_a_cancelled_run_gives_the_chore_back_and_the_next_goes_on(
    database: Database, owing: None, waiting: Waiting
) -> None:
    housekeeper = Housekeeper(database, MemoryContext.of(database, waiting))
    run = asyncio.create_task(housekeeper.runner("first").run(EMBEDDINGS))
    await waiting.asked.wait()

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run

    state = (await Chores(database).all())["embeddings"]
    assert (state.outcome, state.holder, state.next_due) == ("cancelled", None, NOON)
    waiting.go.set()
    assert [ran.done for ran in await housekeeper.runner("second").run_due([EMBEDDINGS])] == [{"embedded": 100}]


async def test_a_chore_that_fails_is_recorded_and_does_not_stop_the_others(
    database: Database, housekeeper: Housekeeper
) -> None:
    async def broken(job: Job) -> None:
        job.count(begun=1)
        raise KeyError("the text of a memory")

    ran = await housekeeper.runner().run_due([Chore("broken", "", DAY, broken), named()["expiry"]])

    assert [one.outcome for one in ran] == ["failed", "done"]
    state = (await Chores(database).all())["broken"]
    assert (state.outcome, state.done) == ("failed", {"begun": 1})
    assert state.error is not None
    assert state.error.startswith("KeyError at test_upkeep_runner.py:")
    assert "memory" not in state.error
    assert state.next_due == NOON + timedelta(minutes=10)


async def test_the_lease_is_renewed_while_the_work_goes_on(database: Database, owing: None, waiting: Waiting) -> None:
    moments = iter(NOON + timedelta(seconds=place) for place in range(10_000))
    housekeeper = Housekeeper(database, MemoryContext.of(database, waiting))
    lease = Lease(timedelta(seconds=30), beat=0.01)
    run = asyncio.create_task(housekeeper.runner("first", lease, lambda: next(moments)).run(EMBEDDINGS))
    await waiting.asked.wait()

    async with asyncio.timeout(10):
        while (until := (await Chores(database).all())["embeddings"].leased_until) is None or until < NOON + DAY / 720:
            await asyncio.sleep(0.01)
    waiting.go.set()

    assert (await run).outcome == "done"


async def test_who_lost_the_lease_stops_and_records_nothing(database: Database, owing: None, waiting: Waiting) -> None:
    housekeeper = Housekeeper(database, MemoryContext.of(database, waiting))
    run = asyncio.create_task(housekeeper.runner("slow", Lease(beat=0.05)).run(EMBEDDINGS))
    await waiting.asked.wait()
    late = NOON + HOUR
    taken = await Chores(database).claim("embeddings", "other", now=late, until=late + HOUR)

    async with asyncio.timeout(10):
        ran = await run

    assert taken == {}
    assert ran.outcome == "lost"
    state = (await Chores(database).all())["embeddings"]
    assert (state.holder, state.outcome) == ("other", None)


async def test_a_task_that_misses_a_cancellation_is_stopped_all_the_same() -> None:
    missed = 0

    async def deaf() -> None:
        nonlocal missed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                missed += 1
                if missed > 1:
                    raise

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await stopped(task)

    assert (task.done(), missed) == (True, 2)


async def test_the_background_looks_only_while_somebody_uses_the_server(housekeeper: Housekeeper) -> None:
    looks = 0
    looked = asyncio.Event()
    asked = asyncio.Event()

    @asynccontextmanager
    async def runner() -> AsyncIterator[Runner]:
        nonlocal looks
        looks += 1
        looked.set()
        yield housekeeper.runner()

    task = asyncio.create_task(keep_up(runner, [named()["expiry"]], asked, first=0, every=0))
    for expected in (1, 2):
        asked.set()
        async with asyncio.timeout(10):
            await looked.wait()
        looked.clear()
        assert looks == expected
    await asyncio.wait({task}, timeout=0.1)
    assert looks == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_background_outlasts_a_database_that_is_away(housekeeper: Housekeeper) -> None:
    asked, looked = asyncio.Event(), asyncio.Event()
    tries = 0

    @asynccontextmanager
    async def runner() -> AsyncIterator[Runner]:
        nonlocal tries
        tries += 1
        if tries == 1:
            asked.set()
            raise DatabaseUnavailable("away")
        looked.set()
        yield housekeeper.runner()

    task = asyncio.create_task(keep_up(runner, [], asked, first=0, every=0))
    asked.set()
    async with asyncio.timeout(10):
        await looked.wait()

    assert tries == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_server_does_the_chores_by_itself_over_connections_of_its_own(
    app: App, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.jobs.background.keep_up.__kwdefaults__", {"first": 0.0, "every": 0.05})
    await Person(MemoryContext.of(database, None)).keep("owing")

    app.start_upkeep()
    await app.context(app.caller, app.namespace)
    async with asyncio.timeout(20):
        while "indexes" not in (found := await Chores(database).all()) or found["indexes"].outcome is None:
            await asyncio.sleep(0.05)

    assert found["embeddings"].done == {"embedded": 1}
    assert set(found) == {"embeddings", "expiry", "retention", "statistics", "indexes"}, "the others are off"
    await app.close()


@pytest.mark.parametrize("change", [{"read_only": True}, {"upkeep": UpkeepSettings(enabled=False)}])
async def test_a_read_only_server_and_one_that_is_told_not_to_does_none(
    settings: Settings, change: dict[str, object]
) -> None:
    app = App(settings.model_copy(update=change))

    app.start_upkeep()

    assert app._upkeep is None
    await app.close()
