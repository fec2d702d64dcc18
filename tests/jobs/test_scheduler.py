"""The scheduler: one runner for each job at a time, also if one is killed, is cancelled, fails or loses its lease."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
import httpx
import pytest

from folklore.app import App
from folklore.checks import Doubt
from folklore.config import EmbeddingSettings, JobsSettings, Settings
from folklore.contract.health import StatusRequest
from folklore.contract.jobs import JobsInfo
from folklore.db.database import Database
from folklore.db.stores.upkeep.jobs import Jobs
from folklore.errors import DatabaseUnavailable
from folklore.jobs.definitions import BY_NAME, JOBS
from folklore.jobs.job import Job, JobRun
from folklore.jobs.scheduler import Lease, Scheduler, cancel
from folklore.memory import Facts
from folklore.memory.context import MemoryContext
from folklore.memory.health.checkup import _jobs
from tests.background_jobs import DAY, BackgroundJobs
from tests.commands import CommandLine, command_line
from tests.doors import own_service
from tests.embedders import ByLetter, Down, Waiting
from tests.person import NOON, Person
from tests.servers import serving
from tests.waiting import STUCK

__all__ = ["command_line"]

HOUR = timedelta(hours=1)
EMBEDDINGS = BY_NAME["embeddings"]


@pytest.fixture
async def pending(database: Database) -> None:
    """A hundred memories without embeddings."""
    await Person(MemoryContext.of(database, Down())).keep(
        *(f"pending text {place}" for place in range(100))
    )


@pytest.fixture
def model() -> Waiting:
    """A model that answers after `model.go.set()`."""
    return Waiting()


@pytest.fixture
def waiting(database: Database, pending: None, model: Waiting) -> BackgroundJobs:
    """Jobs whose model waits."""
    return BackgroundJobs(database, MemoryContext.of(database, model))


async def test_of_two_runners_at_once_one_works_and_the_other_skips_the_job(
    waiting: BackgroundJobs, model: Waiting
) -> None:
    first = asyncio.create_task(waiting.runner("first").run(EMBEDDINGS))
    await model.asked.wait()

    second = await waiting.runner("second").run(EMBEDDINGS)
    model.go.set()

    assert second.outcome == "busy"
    assert (await first).done == {"embedded": 100}
    assert sum(map(len, model.calls)) == 100


async def test_several_runners_that_find_the_same_job_due_run_it_once(
    database: Database, pending: None
) -> None:
    embedder = ByLetter()
    jobs = BackgroundJobs(database, MemoryContext.of(database, embedder))

    every = await asyncio.gather(
        *(jobs.runner(f"runner {place}").run_due([EMBEDDINGS]) for place in range(5))
    )

    outcomes = [report.outcome for reports in every for report in reports]
    assert outcomes.count("done") == 1
    assert sum(map(len, embedder.calls)) == 100


async def test_a_run_is_recorded_and_the_job_is_due_again_after_its_interval(
    database: Database, jobs: BackgroundJobs
) -> None:
    await jobs.runner().run_due([EMBEDDINGS])

    state = (await Jobs(database).all())["embeddings"]
    assert (state.outcome, state.finished_at, state.next_due) == (
        "done",
        NOON,
        NOON + HOUR,
    )
    assert state.holder is None
    assert await jobs.runner().run_due([EMBEDDINGS]) == []
    jobs.now = NOON + HOUR
    assert [report.outcome for report in await jobs.runner().run_due([EMBEDDINGS])] == [
        "done"
    ]


async def test_a_job_that_ran_in_the_future_is_due_and_says_so(
    database: Database,
    jobs: BackgroundJobs,
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = list(JOBS)
    jobs.now = NOON + 40 * DAY
    await jobs.runner().run_due(every)
    jobs.now = NOON

    info = JobsInfo(
        tuple((await Jobs(database).all()).values()),
        tuple(job.name for job in every),
        NOON,
    )
    reports = await jobs.runner().run_due(every)
    again = await jobs.runner().run_due(every)

    assert [info.is_ahead(job.name) for job in every] == [True] * len(every)
    assert [report.job for report in reports] == [job.name for job in every]
    assert again == []
    assert "job_of_the_future" in capsys.readouterr().out
    with pytest.raises(Doubt, match="lies in the future: a clock was ahead"):
        await _jobs(info)


async def test_a_run_of_a_server_whose_clock_differs_a_little_is_not_repeated(
    jobs: BackgroundJobs,
) -> None:
    jobs.now = NOON + DAY / 1440
    await jobs.runner().run_due([EMBEDDINGS])
    jobs.now = NOON

    assert await jobs.runner().run_due([EMBEDDINGS]) == []


async def test_a_lease_of_the_future_holds_nobody_off(
    database: Database, jobs: BackgroundJobs
) -> None:
    late = NOON + 40 * DAY
    await Jobs(database).claim(
        job="embeddings",
        holder="killed",
        now=late,
        until=late + DAY / 720,
        longest=late + DAY,
        forced=True,
    )

    [report] = await jobs.runner().run_due([EMBEDDINGS])

    assert report.outcome == "done"


async def test_the_job_of_a_killed_runner_is_free_when_its_lease_expires(
    database: Database, waiting: BackgroundJobs, model: Waiting, folklore: CommandLine
) -> None:
    """The process is killed while it waits for an embedding service that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = os.environ | folklore.environment
        environment |= {
            "FOLKLORE_EMBEDDING__PROVIDER": "openai",
            "FOLKLORE_EMBEDDING__URL": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            "FOLKLORE_EMBEDDING__MODEL": "silent",
            "FOLKLORE_EMBEDDING__DIMENSIONS": "8",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "folklore", "jobs", "run", "embeddings"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        async with asyncio.timeout(STUCK):
            while (
                state := (await Jobs(database).all()).get("embeddings")
            ) is None or state.holder is None:
                await asyncio.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    assert state.leased_until is not None
    model.go.set()

    waiting.now = state.leased_until - timedelta(seconds=1)
    assert (await waiting.run(EMBEDDINGS)).outcome == "busy"
    (row,) = [
        row
        for row in (await folklore.json("jobs", "status"))["jobs"]
        if row["job"] == "embeddings"
    ]
    assert row["state"] == "running"
    waiting.now = state.leased_until + timedelta(seconds=1)
    assert await waiting("embeddings") == {"embedded": 100}


async def test_a_server_shows_that_a_long_run_goes_on_and_cancels_it_when_its_client_leaves(
    database: Database, pending: None, settings: Settings
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        model = EmbeddingSettings(
            provider="openai", url=url, model="silent", dimensions=8
        )
        update = {"embedding": model, "jobs": JobsSettings(enabled=False)}
        async with (
            serving(settings.model_copy(update=update)) as address,
            httpx.AsyncClient(base_url=address, timeout=STUCK) as http,
            asyncio.timeout(STUCK),
        ):
            request = http.build_request(
                "POST", "/api/run_jobs", json={"jobs": ["embeddings"]}
            )
            first = await http.send(request, stream=True)
            assert await anext(first.aiter_raw()) == b" "
            await first.aclose()
            while (state := (await Jobs(database).all())["embeddings"]).outcome is None:
                await asyncio.sleep(0.01)
            second = await http.send(request, stream=True)
            silent.close()
            [report] = json.loads(await second.aread())["result"]

    assert (state.outcome, state.holder, state.next_due) == (
        "cancelled",
        None,
        state.finished_at,
    )
    assert report["outcome"] == "failed"


async def test_a_failed_job_is_recorded_and_does_not_stop_the_others(
    database: Database, jobs: BackgroundJobs
) -> None:
    async def broken(run: JobRun) -> None:
        run.count(begun=1)
        raise KeyError("the text of a memory")

    reports = await jobs.runner().run_due(
        [Job("broken", "", DAY, broken), BY_NAME["expiry"]]
    )

    assert [report.outcome for report in reports] == ["failed", "done"]
    state = (await Jobs(database).all())["broken"]
    assert (state.outcome, state.done) == ("failed", {"begun": 1})
    assert state.error is not None
    assert state.error.startswith("KeyError at test_scheduler.py:")
    assert "memory" not in state.error
    assert state.next_due == NOON + timedelta(minutes=10)


async def test_the_lease_is_renewed_during_the_run(
    database: Database, waiting: BackgroundJobs, model: Waiting
) -> None:
    moments = iter(NOON + timedelta(seconds=place) for place in range(10_000))
    lease = Lease(timedelta(seconds=30), renewed_every=0.01)
    run = asyncio.create_task(
        waiting.runner("first", lease, lambda: next(moments)).run(EMBEDDINGS)
    )
    await model.asked.wait()

    async with asyncio.timeout(STUCK):
        while (
            until := (await Jobs(database).all())["embeddings"].leased_until
        ) is None or until < NOON + DAY / 720:
            await asyncio.sleep(0.01)
    model.go.set()

    assert (await run).outcome == "done"


async def test_a_runner_that_lost_its_lease_stops_and_records_nothing(
    database: Database, waiting: BackgroundJobs, model: Waiting
) -> None:
    run = asyncio.create_task(
        waiting.runner("slow", Lease(renewed_every=0.05)).run(EMBEDDINGS)
    )
    await model.asked.wait()
    late = NOON + HOUR
    notes = await Jobs(database).claim(
        job="embeddings",
        holder="other",
        now=late,
        until=late + HOUR,
        longest=late + HOUR,
        forced=False,
    )

    async with asyncio.timeout(STUCK):
        report = await run

    assert notes == "{}"
    assert report.outcome == "lost"
    state = (await Jobs(database).all())["embeddings"]
    assert (state.holder, state.outcome) == ("other", None)


async def test_a_task_that_ignores_a_cancellation_is_cancelled_again() -> None:
    ignored = 0

    async def stubborn() -> None:
        nonlocal ignored
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ignored += 1
                if ignored > 1:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(STUCK):
        await cancel(task)

    assert (task.done(), ignored) == (True, 2)


async def test_the_scheduler_connects_only_after_a_request(
    jobs: BackgroundJobs,
) -> None:
    connections = 0
    connected = asyncio.Event()
    used = asyncio.Event()
    pending = asyncio.Event()

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Database, MemoryContext]]:
        nonlocal connections
        connections += 1
        connected.set()
        yield jobs.database, jobs.context

    scheduler = Scheduler(connect, jobs.options, frozenset(), "session", lambda: NOON)
    task = asyncio.create_task(scheduler.run_forever(used, pending, first=0, every=0))
    for expected in (1, 2):
        used.set()
        async with asyncio.timeout(STUCK):
            await connected.wait()
        connected.clear()
        assert connections == expected
    await asyncio.wait({task}, timeout=0.1)
    assert connections == 2
    await cancel(task)


async def test_the_scheduler_survives_an_unavailable_database(
    jobs: BackgroundJobs,
) -> None:
    used = asyncio.Event()
    pending = asyncio.Event()
    connected = asyncio.Event()
    tries = 0

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Database, MemoryContext]]:
        nonlocal tries
        tries += 1
        if tries == 1:
            used.set()
            raise DatabaseUnavailable("The database does not answer.")
        connected.set()
        yield jobs.database, jobs.context

    scheduler = Scheduler(connect, jobs.options, frozenset(), "session", lambda: NOON)
    task = asyncio.create_task(scheduler.run_forever(used, pending, first=0, every=0))
    used.set()
    async with asyncio.timeout(STUCK):
        await connected.wait()

    assert tries == 2
    await cancel(task)


async def test_a_server_makes_pending_embeddings_at_its_first_run_and_when_a_status_shows_some(
    app: App,
    database: Database,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "folklore.jobs.scheduler.Scheduler.run_forever.__kwdefaults__",
        {"first": 0.0, "every": 3600.0},
    )
    jobs.now = datetime.now(UTC)
    await jobs("embeddings")  # due again in an hour
    person = Person(MemoryContext.of(database, None))

    async def embedded(most: int) -> None:
        async with asyncio.timeout(STUCK):
            while await connection.fetchval("select count(*) from embeddings") < most:
                await asyncio.sleep(0.05)

    await person.keep("left by a process that was killed")
    app.start_jobs()
    await app.open(Facts(app.caller, app.now(), app.zone, app.namespace))
    await embedded(1)
    await person.keep("imported by a command")
    assert (
        await own_service(app).call(StatusRequest(check_model=False))
    ).pending_embeddings == 1
    await embedded(2)
    await app.close()


async def test_a_server_runs_the_jobs_that_are_not_optional(
    app: App, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "folklore.jobs.scheduler.Scheduler.run_forever.__kwdefaults__",
        {"first": 0.0, "every": 0.05},
    )
    await Person(MemoryContext.of(database, None)).keep("pending")

    app.start_jobs()
    await app.open(Facts(app.caller, app.now(), app.zone, app.namespace))
    async with asyncio.timeout(STUCK):
        while (
            "indexes" not in (states := await Jobs(database).all())
            or states["indexes"].outcome is None
        ):
            await asyncio.sleep(0.05)

    assert states["embeddings"].done == {"embedded": 1}
    assert set(states) == {
        "embeddings",
        "expiry",
        "retention",
        "postings",
        "statistics",
        "indexes",
    }
    await app.close()


def test_the_settings_choose_the_optional_jobs(settings: Settings) -> None:
    app = App(settings.model_copy(update={"jobs": JobsSettings(optional=("quality",))}))

    names = [job.name for job in app.scheduler.scheduled]

    assert names == [
        "embeddings",
        "expiry",
        "retention",
        "postings",
        "quality",
        "statistics",
        "indexes",
    ]


@pytest.mark.parametrize(
    "change", [{"read_only": True}, {"jobs": JobsSettings(enabled=False)}]
)
async def test_a_server_that_is_read_only_or_has_jobs_disabled_runs_none(
    settings: Settings, change: dict[str, object]
) -> None:
    app = App(settings.model_copy(update=change))

    app.start_jobs()

    assert "folklore-jobs" not in {task.get_name() for task in asyncio.all_tasks()}
    await app.close()
