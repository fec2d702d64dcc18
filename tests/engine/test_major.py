"""Data of an older major version of Postgres: upgraded whole at the next start, or left as it was, whatever happens."""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from folklore.app import App
from folklore.backup.contents import Contents, read_contents
from folklore.backup.programs import Programs
from folklore.backup.upgrade import upgrade_engine
from folklore.config import Settings
from folklore.contract.memories import (
    Changes,
    ForgetRequest,
    RelateRequest,
    RelationChange,
    StoreRequest,
    UpdateRequest,
)
from folklore.contract.people import CreateTokenRequest
from folklore.db.database import Moment
from folklore.db.databases import address_of
from folklore.engine import Engine, OlderData
from folklore.engine.binaries import MAJOR
from folklore.engine.files import EnginePaths
from folklore.engine.upgrade import require_none
from folklore.errors import DiskFull, EngineFailed
from folklore.model import Draft
from folklore.runtime import start_engine
from tests.backup.test_backup import rows
from tests.doors import own_service
from tests.engine import needs_proc
from tests.engine.test_engine import processes, query
from tests.older_engine import OLDER, older_engine
from tests.waiting import STUCK, eventually

pytestmark = [pytest.mark.strain, needs_proc]

STARTED = """
import sys
from pathlib import Path
from folklore.engine import Engine
from folklore.runtime import start_engine
print(start_engine(Engine(Path(sys.argv[1]))))
"""
# Starts the engine and kills its own process group at the given call of a function, before or after its work.
KILLED = """
import asyncio, os, signal, sys
from importlib import import_module
from pathlib import Path
from folklore.engine import Engine
from folklore.runtime import start_engine

home, place, moment, call = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
module, _, path = place.partition(":")
owner = import_module(module)
*parents, name = path.split(".")
for parent in parents:
    owner = getattr(owner, parent)
original, calls = getattr(owner, name), 0

def end():
    os.killpg(0, signal.SIGKILL)

def counted():
    global calls
    calls += 1
    return calls == call

def plain(*arguments, **options):
    last = counted()
    if last and moment == "before":
        end()
    result = original(*arguments, **options)
    if last:
        end()
    return result

async def awaited(*arguments, **options):
    last = counted()
    if last and moment == "before":
        end()
    if last and moment == "during":
        asyncio.get_running_loop().call_later(0.15, end)
    result = await original(*arguments, **options)
    if last:
        end()
    return result

setattr(owner, name, awaited if asyncio.iscoroutinefunction(original) else plain)
print(start_engine(Engine(home)))
"""

RENAME = "pathlib:Path.rename"
PROGRAMS = "folklore.backup.programs:Programs"
# The renames: what initdb made, the offer of the new data, the old data, the new data.
STEPS = [
    ("folklore.engine.upgrade:new_room", "after", 1),
    (
        "folklore.engine.launcher:Server.bring_up",
        "before",
        2,
    ),  # the first is of the refused start
    ("folklore.engine.launcher:Server.bring_up", "after", 2),
    ("folklore.engine.launcher:Server.bring_up", "after", 3),
    (f"{PROGRAMS}.copy_roles", "during", 1),
    (f"{PROGRAMS}.copy", "before", 1),
    (f"{PROGRAMS}.copy", "during", 1),
    (f"{PROGRAMS}.copy", "after", 1),
    (f"{PROGRAMS}.vacuum", "after", 1),
    ("folklore.engine.launcher:Engine.end", "after", 1),
    (RENAME, "before", 2),
    (RENAME, "after", 2),
    (RENAME, "before", 3),
    (RENAME, "after", 3),
    (RENAME, "after", 4),
    ("folklore.engine.upgrade:complete", "after", 1),
    (
        "pathlib:Path.write_text",
        "before",
        3,
    ),  # engine.id of the new data, which the start checks
]
OFTEN = [STEPS[6], STEPS[13]]


@pytest.fixture(scope="module")
def original(room: Path, one_model_for_the_session: None) -> Path:
    """Return a home with data of Postgres 16: memories with vectors, relations, history and a token."""
    home = room / "original"
    with older_engine(home) as dsn:
        asyncio.run(
            fill(
                Settings(
                    database_url=dsn,
                    home=room / "elsewhere",
                    author="tester",
                    namespace="notes",
                )
            )
        )
        lines = exported(home, dsn)
        (home / "lines").write_text(json.dumps(lines))
        (home / "rows").write_text(json.dumps(rows_of(dsn)))
    assert len(lines) > 20
    return home


async def fill(settings: Settings, count: int = 20) -> None:
    app = App(settings)
    try:
        for first in range(0, count, 20):
            numbers = range(first, first + 20)
            drafts = tuple(
                Draft(f"Invoice {number} goes to Zürich, in 東京 too.", tags=("x",))
                for number in numbers
            )
            ids = [
                memory.id
                for memory in (
                    await own_service(app).call(StoreRequest(memories=drafts))
                ).stored
            ]
            await own_service(app).call(
                RelateRequest(relations=(RelationChange(from_id=ids[0], to_id=ids[1]),))
            )
            changed = Changes.model_validate({"content": f"Invoice {ids[2]} is paid."})
            await own_service(app).call(UpdateRequest(id=ids[2], changes=changed))
            await own_service(app).call(ForgetRequest(ids=(ids[3],)))
        await own_service(app).call(
            CreateTokenRequest(name="ci", grants=("notes:reader",))
        )
    finally:
        await app.close()


@pytest.fixture
def home(room: Path, original: Path) -> Iterator[Path]:
    home = room / f"home-{time.monotonic_ns()}"
    subprocess.run(["cp", "-a", original, home], check=True)
    yield home
    Engine(home).stop()


def exported(home: Path, url: str = "") -> list[str]:
    """Return the lines of an export with vectors, by a process that starts the engine."""
    file = home / "all.jsonl"
    file.unlink(missing_ok=True)
    subprocess.run(
        [sys.executable, "-m", "folklore", "export", "--embeddings", file],
        env=os.environ | {"FOLKLORE_HOME": str(home), "FOLKLORE_DATABASE_URL": url},
        check=True,
        capture_output=True,
        timeout=STUCK,
    )
    return file.read_text().splitlines()[1:]  # without the header, which has the time


def lines_of(home: Path) -> list[str]:
    """Return the lines that the data of Postgres 16 had."""
    return list(json.loads((home / "lines").read_text()))


def rows_of(dsn: str) -> dict[str, list[str]]:
    """Return every row of every table."""
    return asyncio.run(rows(dsn))


def old_data(home: Path) -> list[Path]:
    return Engine(home).old_data()


def version(home: Path) -> str:
    return (EnginePaths(home).data / "PG_VERSION").read_text().strip()


def left_over(home: Path) -> list[str]:
    """Return the names of what an upgrade makes and removes."""
    return [
        path.name
        for path in EnginePaths(home).engine.glob("*")
        if path.name.startswith(("upgrade-", "data."))
    ]


def assert_upgraded(home: Path) -> None:
    """Assert that the next start has every row, and that the old data is kept once."""
    assert rows_of(start_engine(Engine(home))) == json.loads(
        (home / "rows").read_text()
    )
    assert version(home) == str(MAJOR)
    (kept,) = old_data(home)
    assert (kept / "PG_VERSION").read_text().strip() == str(OLDER)
    eventually(lambda: left_over(home) == [kept.name])


def assert_unchanged(home: Path) -> None:
    """Assert that the old data is in its place, and that nothing was left."""
    assert version(home) == str(OLDER)
    assert left_over(home) == []
    eventually(lambda: processes(str(home)) == [])


def test_the_next_start_upgrades_the_data_and_an_export_has_the_same_lines(
    home: Path,
) -> None:
    assert exported(home) == lines_of(home)
    assert_upgraded(home)
    dsn = Engine(home).start()
    assert str(query(dsn, "show server_version")).startswith(f"{MAJOR}.")
    assert (
        query(dsn, "select count(*) from grants join tokens on tokens.id = token_id")
        == 1
    )
    assert (
        query(dsn, "select count(*) from pg_roles where rolname = 'folklore_app'") == 1
    )
    # without a token, by the policies
    assert query(dsn, "set role folklore_app", "select count(*) from memories") == 0
    assert query(dsn, "select reltuples from pg_class where relname = 'memories'") == 20
    Engine(home).stop()
    assert exported(home) == lines_of(home)


def test_every_database_and_role_comes_over_and_scratch_ones_do_not(home: Path) -> None:
    with older_engine(home) as dsn:
        connect = address_of(dsn, "postgres")
        query(
            connect,
            "create database folklore_before_0123abcd template folklore",
            "create database folklore_scratch_0123abcd",
            "create database notes",
            "alter database notes set work_mem = '7MB'",
            "create role sarah login password 'hunter2' valid until '2030-01-01'",
            "alter role sarah set statement_timeout = '7s'",
            "grant folklore_app to sarah",
            "create table others as select 42 as x",
        )
        query(connect, "alter system set work_mem = '9MB'")
        # Postgres 17 has it no more
        query(connect, "alter system set old_snapshot_threshold = '1h'")
        query(
            address_of(dsn, "notes"),
            "create table kept as select 42 as x",
            "alter table kept owner to sarah",
        )

    dsn = start_engine(Engine(home))

    names = query(
        dsn,
        "select array_agg(datname order by datname) from pg_database where not datistemplate",
    )
    assert names == ["folklore", "folklore_before_0123abcd", "notes", "postgres"]
    assert (
        query(
            address_of(dsn, "folklore_before_0123abcd"), "select count(*) from memories"
        )
        == 20
    )
    assert query(address_of(dsn, "postgres"), "select x from others") == 42
    assert query(dsn, "show work_mem") == "9MB"
    notes = address_of(dsn, "notes")
    assert query(notes, "show work_mem") == "7MB"
    assert (
        query(notes, "select tableowner::text from pg_tables where tablename = 'kept'")
        == "sarah"
    )
    assert query(notes, "select pg_has_role('sarah', 'folklore_app', 'member')") is True
    assert (
        query(
            notes,
            "select rolpassword like 'SCRAM-SHA-256$%' from pg_authid where rolname = 'sarah'",
        )
        is True
    )


def killed(home: Path, place: str, moment: str, call: int) -> None:
    """Start the engine in a process group that is killed at a call of a function."""
    process = subprocess.run(
        [sys.executable, "-c", KILLED, home, place, moment, str(call)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=STUCK,
        check=False,
        start_new_session=True,
    )
    assert process.returncode == -signal.SIGKILL, process.stdout + process.stderr


@pytest.mark.parametrize("step", OFTEN)
def test_an_upgrade_that_is_killed_is_completed_by_the_next_start(
    home: Path, step: tuple[str, str, int]
) -> None:
    killed(home, *step)
    assert_upgraded(home)


@pytest.mark.parametrize("step", STEPS)
def test_an_upgrade_killed_twice_at_any_step_is_completed(
    home: Path, step: tuple[str, str, int]
) -> None:
    killed(home, *step)
    if not old_data(home) and not EnginePaths(home).upgraded.exists():
        killed(home, RENAME, "after", 2)
    assert_upgraded(home)


def test_what_an_older_version_wrote_after_a_kill_is_kept(home: Path) -> None:
    killed(home, RENAME, "after", 2)
    assert EnginePaths(home).upgraded.exists()
    with older_engine(home) as dsn:
        query(dsn, "create table later as select 42 as x")

    dsn = start_engine(Engine(home))
    assert query(dsn, "select x from later") == 42
    query(dsn, "drop table later")
    assert_upgraded(home)


def test_data_that_came_between_two_renames_does_not_hide_the_upgraded(
    home: Path,
) -> None:
    killed(home, RENAME, "after", 3)
    paths = EnginePaths(home)
    paths.data.mkdir()
    shutil.copytree(old_data(home)[0] / "global", paths.data / "global")
    (paths.data / "global" / "pg_control").write_bytes(b"other")

    with pytest.raises(EngineFailed, match="Other data came to"):
        start_engine(Engine(home))

    shutil.rmtree(paths.data)
    assert_upgraded(home)


def test_two_starts_at_once_upgrade_once(home: Path) -> None:
    starting = [
        subprocess.Popen(
            [sys.executable, "-c", STARTED, home],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=STUCK) for process in starting]
    assert [process.returncode for process in starting] == [0, 0], said
    assert said[0][0].splitlines()[-1] == said[1][0].splitlines()[-1]
    assert_upgraded(home)


def test_a_copy_that_differs_is_refused_and_the_old_data_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Programs.copy

    async def lossy(
        self: Programs,
        dsn: str,
        snapshot: str,
        newer: Programs,
        target: str,
        *,
        create: bool,
    ) -> None:
        await copy(self, dsn, snapshot, newer, target, create=create)
        connection = await asyncpg.connect(address_of(target, "folklore"))
        await connection.execute("delete from relations")
        await connection.close()

    with monkeypatch.context() as patch:
        patch.setattr(Programs, "copy", lossy)
        with pytest.raises(
            EngineFailed, match=r"folklore differs: public.relations has 0 rows, not 1"
        ) as refused:
            start_engine(Engine(home))
    assert "folklore db upgrade" in (refused.value.hint or "")
    assert_unchanged(home)
    assert_upgraded(home)


def test_the_reasons_of_programs_that_fail_are_reported(home: Path) -> None:
    with older_engine(home) as dsn:
        query(
            dsn,
            "create function gone() returns int language c as '$libdir/vector', 'vector_in'",
        )
        query(
            dsn, "update pg_proc set probin = '$libdir/missing' where proname = 'gone'"
        )

    with pytest.raises(EngineFailed, match=r"pg_restore failed: .*\n?.*missing"):
        start_engine(Engine(home))
    assert_unchanged(home)


def test_the_upgrade_is_refused_without_room(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(home)._replace(free=500 << 20)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(
            DiskFull,
            match=r"has 500 MB free; the upgrade from Postgres 16 to 18 needs 5\d\d MB",
        ):
            start_engine(Engine(home))
    assert_unchanged(home)


def test_the_upgrade_is_refused_without_the_programs_of_the_old_version(
    home: Path,
) -> None:
    file = EnginePaths(home).data / "PG_VERSION"
    file.write_text("9\n")

    with pytest.raises(
        EngineFailed,
        match="written by Postgres 9, and its programs are not on this machine",
    ) as refused:
        start_engine(Engine(home))
    assert "apt install postgresql-9 postgresql-9-pgvector" in (
        refused.value.hint or ""
    )

    file.write_text(f"{OLDER}\n")
    assert_unchanged(home)


def test_data_of_a_newer_version_is_refused(home: Path) -> None:
    file = EnginePaths(home).data / "PG_VERSION"
    file.write_text("19\n")

    with pytest.raises(EngineFailed, match="written by Postgres 19") as refused:
        start_engine(Engine(home))
    assert not isinstance(refused.value, OlderData)
    file.write_text(f"{OLDER}\n")


def test_a_running_server_of_the_old_version_is_used_until_it_stops(home: Path) -> None:
    with older_engine(home):
        assert str(query(start_engine(Engine(home)), "show server_version")).startswith(
            f"{OLDER}."
        )
        assert upgrade_engine(Engine(home)) is not None  # which stops it
    assert_upgraded(home)


def test_the_command_upgrades_shows_and_drops_the_old_data(home: Path) -> None:
    done = printed(home, "upgrade")
    assert (done["upgraded"], len(done["kept"]), done["dropped"]) == (True, 1, [])
    assert printed(home, "status")["old_data"] == done["kept"]
    assert printed(home, "upgrade")["upgraded"] is False

    again = printed(home, "upgrade", "--drop-old")
    assert (again["kept"], again["dropped"]) == ([], done["kept"])
    assert left_over(home) == []


def printed(home: Path, *arguments: str) -> Any:
    """Run a command of `folklore db` in a process of its own; return what it prints, which is one document."""
    command = [sys.executable, "-m", "folklore", "db", *arguments, "--json"]
    environment = os.environ | {"FOLKLORE_HOME": str(home)}
    return json.loads(
        subprocess.run(
            command, env=environment, capture_output=True, timeout=STUCK, check=True
        ).stdout
    )


def test_what_an_upgrade_left_is_removed_under_a_running_server(room: Path) -> None:
    engine = Engine(room / "running")
    engine.start()
    pid = engine.status().pid
    (engine.home / "engine" / "upgrade-left" / "engine").mkdir(parents=True)

    with pytest.raises(EngineFailed, match="is being copied into the newer Postgres"):
        require_none(engine.home)
    engine.start()

    assert engine.status().pid == pid
    assert left_over(engine.home) == []
    require_none(engine.home)
    engine.stop()


def test_old_data_is_not_dropped_without_new(home: Path) -> None:
    upgrade_engine(Engine(home))
    shutil.rmtree(EnginePaths(home).data)

    with pytest.raises(EngineFailed, match="so the old data is not deleted"):
        Engine(home).drop_old()
    assert len(old_data(home)) == 1


def test_upgrades_killed_at_random_moments_are_completed(
    room: Path, one_model_for_the_session: None
) -> None:
    count = int(os.environ.get("TEST_UPGRADE_MEMORIES", "400"))
    kills = int(os.environ.get("TEST_UPGRADE_KILLS", "5"))
    large = room / "large"
    whole = room / "whole"
    with older_engine(large) as dsn:
        asyncio.run(
            fill(
                Settings(
                    database_url=dsn,
                    home=room / "elsewhere",
                    author="t",
                    namespace="notes",
                ),
                count,
            )
        )
        lines = exported(large, dsn)
        held = asyncio.run(contents_of(dsn))
    subprocess.run(["cp", "-a", large, whole], check=True)
    began = time.monotonic()
    start_engine(Engine(whole))
    seconds = time.monotonic() - began
    assert exported(whole) == lines
    size = sum(
        path.stat().st_size
        for path in EnginePaths(large).data.rglob("*")
        if path.is_file()
    )
    print(
        f"{count:,} memories, {len(lines):,} lines, {size / 2**20:.0f} MB: {seconds:.1f} s"
    )
    Engine(whole).stop()
    shutil.rmtree(whole)

    chance = random.Random(count)
    number = done = 0
    while done < kills:
        number += 1
        home = room / f"killed-{number}"
        subprocess.run(["cp", "-a", large, home], check=True)
        done += killed_at(
            home, chance.uniform(0.2, seconds * 0.9), servers_too=number % 2 == 1
        )
        assert asyncio.run(contents_of(start_engine(Engine(home)))) == held
        assert len(old_data(home)) == 1
        Engine(home).stop()
        shutil.rmtree(home, ignore_errors=True)


def killed_at(home: Path, seconds: float, *, servers_too: bool) -> bool:
    """Kill a start of the engine after some seconds, and all its servers too; return False if it ended before."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, home],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    ended = process.poll()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if servers_too:
        for pid in processes(str(home)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return ended is None


async def contents_of(dsn: str) -> Contents:
    moment = Moment(dsn)
    async with moment.reading():
        return await read_contents(moment)
