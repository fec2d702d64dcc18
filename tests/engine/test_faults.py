"""Embedded engine after faults: each test causes one, with real processes."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from folklore.engine import Engine
from folklore.engine.account import account_for
from folklore.engine.binaries import find_binaries
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import Server
from folklore.engine.probe import State, state_of_refusal
from folklore.errors import EngineFailed
from tests.engine import needs_proc
from tests.engine.test_engine import (
    AS_ROOT,
    PROGRAM,
    START,
    client,
    outcome,
    pid_of,
    processes,
    query,
)
from tests.waiting import eventually

pytestmark = [pytest.mark.strain, needs_proc]
BUSY_FOR_EVER = """
import asyncpg
async def work():
    connection = await asyncpg.connect(Engine(home).start())
    print("connected", flush=True)
    await connection.execute("do $$ begin loop end loop; end $$")
asyncio.run(work())
"""


@pytest.fixture(scope="module")
def stopped_home(room: Path) -> Path:
    """Return a home with a table of one row, whose engine was stopped."""
    home = room / "original"
    query(Engine(home).start(), "create table kept as select 42 as x", "checkpoint")
    Engine(home).stop()
    return home


@pytest.fixture
def home(room: Path, stopped_home: Path) -> Iterator[Path]:
    home = room / f"home-{time.monotonic_ns()}"
    subprocess.run(["cp", "-a", stopped_home, home], check=True)
    yield home
    Engine(home).stop()


@pytest.fixture
def new_home(room: Path) -> Iterator[Path]:
    home = room / f"new-{time.monotonic_ns()}"
    yield home
    Engine(home).stop()


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def kept(dsn: str) -> Any:
    return query(dsn, "select x from kept")


def stays(condition: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while condition():
        if time.monotonic() > deadline:
            return True
        time.sleep(0.02)
    return False


def is_running(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except FileNotFoundError:
        return False


def crash(home: Path) -> None:
    pid = pid_of(home)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_running(pid))


def state(home: Path) -> State:
    paths = EnginePaths(home)
    return Server(paths, find_binaries(), account_for(paths)).probe().state


def refusal(engine: Engine) -> EngineFailed:
    with pytest.raises(EngineFailed) as caught:
        engine.start()
    return caught.value


def leave_pid_file_behind(home: Path, pid: int) -> None:
    """Write pid files as a power failure or the end of a container leaves them, with the id of another process."""
    files = [
        home / "engine/data/postmaster.pid",
        home / "engine/run/.s.PGSQL.5432.lock",
    ]
    Engine(home).start()
    contents = [file.read_bytes().partition(b"\n")[2] for file in files]
    Engine(home).stop()
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(str(pid).encode() + b"\n" + content)
        owner = file.parent.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def test_data_survives_a_crash(home: Path) -> None:
    dsn = Engine(home).start()
    query(dsn, "insert into kept select 1 where false", "update kept set x = 43")

    crash(home)

    assert kept(Engine(home).start()) == 43


def test_an_orphan_that_survives_the_crash_does_not_keep_the_engine_down(
    home: Path,
) -> None:
    """A busy backend does not notice the end of its postmaster and keeps the shared memory."""
    busy = client(home, BUSY_FOR_EVER)
    assert busy.stdout is not None
    busy.stdout.readline()
    eventually(lambda: processes("DO", EnginePaths(home).tag))
    (orphan,) = processes("DO", EnginePaths(home).tag)
    crash(home)
    assert is_running(orphan)

    assert kept(Engine(home).start()) == 42
    assert not is_running(orphan)
    end(busy)


@pytest.mark.parametrize("first_starter", ["killed", "outlasting pg_ctl"])
def test_a_start_during_recovery_waits_and_joins(
    home: Path, first_starter: str
) -> None:
    rows = 400_000
    query(
        Engine(home).start(),
        f"create table much as select repeat('x', 200) from generate_series(1, {rows})",
    )
    crash(home)
    first = client(
        home,
        "from folklore.engine import launcher; launcher.START_SECONDS = 1\n" + START,
    )
    eventually(lambda: processes("startup", EnginePaths(home).tag))
    (recovery,) = processes("startup", EnginePaths(home).tag)
    with frozen(recovery):
        eventually(lambda: state(home) is State.BUSY)
        if first_starter == "killed":
            end(first)

        second = client(home)
        assert stays(lambda: second.poll() is None, seconds=1.5)

    assert outcome(second) == Engine(home).status().dsn
    if first_starter != "killed":
        assert outcome(first) == Engine(home).status().dsn
    assert query(Engine(home).start(), "select count(*) from much") == rows


@pytest.mark.parametrize("failing", ["startup", "checkpointer"])
def test_a_server_whose_recovery_failed_is_replaced(home: Path, failing: str) -> None:
    """Postgres restarts by itself after a crash; if a process fails or hangs that recovers it, it waits forever."""
    query(
        Engine(home).start(),
        "create table much as select repeat('x', 200) from generate_series(1, 400000)",
    )
    busy = client(home, BUSY_FOR_EVER)
    eventually(lambda: processes("DO", EnginePaths(home).tag))
    (backend,) = processes("DO", EnginePaths(home).tag)
    os.kill(backend, signal.SIGKILL)
    eventually(lambda: processes("startup", EnginePaths(home).tag))
    (recovery,) = processes("startup", EnginePaths(home).tag)
    with frozen(recovery):
        eventually(lambda: processes("checkpointer", EnginePaths(home).tag))
        (failed,) = processes(failing, EnginePaths(home).tag)
        os.kill(failed, signal.SIGABRT if failing == "startup" else signal.SIGSTOP)

    assert kept(Engine(home).start()) == 42
    end(busy)


def test_a_start_waits_for_a_server_that_hangs(home: Path) -> None:
    Engine(home).start()
    pid = pid_of(home)

    with frozen(pid):
        joining = client(home)
        assert stays(lambda: joining.poll() is None, seconds=1)

    outcome(joining)
    assert pid_of(home) == pid


def test_the_engine_recovers_after_a_backend_was_killed(home: Path) -> None:
    busy = client(home, BUSY_FOR_EVER)
    assert busy.stdout is not None
    busy.stdout.readline()
    eventually(lambda: processes("DO", EnginePaths(home).tag))
    # as the kernel does when memory runs out
    os.kill(processes("DO", EnginePaths(home).tag)[0], signal.SIGKILL)
    busy.communicate()

    # A start may find the server still ready, because the postmaster has not noticed the death yet. The next start then
    # waits for the recovery.
    def recovered() -> bool:
        try:
            return bool(kept(Engine(home).start()) == 42)
        except (
            asyncpg.CannotConnectNowError,
            asyncpg.ConnectionDoesNotExistError,
            OSError,
        ):
            return False

    eventually(recovered)


@pytest.mark.parametrize("action", ["start", "stop"])
def test_an_unrelated_process_named_by_a_stale_pid_file_survives(
    home: Path, action: str
) -> None:
    # the same user: Postgres ignores processes of others
    owner = (home / "engine" / "data").stat().st_uid
    unrelated = subprocess.Popen(["sleep", "600"], user=owner)
    leave_pid_file_behind(home, unrelated.pid)

    if action == "start":
        assert kept(Engine(home).start()) == 42
        assert pid_of(home) != unrelated.pid
        assert Engine(home).stop() is True
    else:
        assert Engine(home).stop() is False

    assert unrelated.poll() is None
    unrelated.kill()
    unrelated.wait()


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"garbage\n"])
def test_lock_files_that_a_power_failure_has_emptied_do_not_keep_the_engine_down(
    home: Path, content: bytes
) -> None:
    leave_pid_file_behind(home, 0)
    for file in (
        home / "engine/data/postmaster.pid",
        home / "engine/run/.s.PGSQL.5432.lock",
    ):
        file.write_bytes(content)

    assert kept(Engine(home).start()) == 42


def test_another_engine_named_by_a_stale_pid_file_survives(
    home: Path, new_home: Path
) -> None:
    """As after a copy of a whole home: the file names the socket of the other engine, too."""
    Engine(new_home).start()
    other = pid_of(new_home)
    leave_pid_file_behind(home, other)
    shutil.copyfile(
        new_home / "engine/data/postmaster.pid", home / "engine/data/postmaster.pid"
    )

    assert Engine(home).status().running is False
    assert Engine(home).stop() is False
    assert kept(Engine(home).start()) == 42
    assert pid_of(home) != other
    assert Engine(home).stop() is True
    assert pid_of(new_home) == other


def test_a_server_whose_socket_was_deleted_is_replaced(home: Path) -> None:
    """As after a temporary directory was cleaned, or XDG_RUNTIME_DIR was removed with the last login."""
    Engine(home).start()
    before = pid_of(home)
    (home / "engine/run/.s.PGSQL.5432").unlink()

    assert kept(Engine(home).start()) == 42
    assert pid_of(home) != before
    assert not is_running(before)


def test_a_home_moved_under_a_running_server_is_never_served_by_two(home: Path) -> None:
    Engine(home).start()
    before = pid_of(home)
    moved = home.with_name(home.name + "-moved")
    home.rename(moved)

    try:
        assert kept(Engine(moved).start()) == 42
        assert not is_running(before)
    finally:
        assert Engine(moved).stop() is True


def test_a_server_started_by_hand_is_joined(home: Path) -> None:
    paths = EnginePaths(home)
    binaries = find_binaries()
    arguments = (
        "start",
        "--wait",
        "--silent",
        "-D",
        "data",
        "-l",
        "../logs/engine.log",
    )
    Engine(home).start()
    Engine(home).stop()
    binaries.run(
        "pg_ctl", *arguments, account=account_for(paths), cwd=paths.engine, timeout=60
    )

    before = pid_of(home)
    assert kept(Engine(home).start()) == 42
    assert pid_of(home) == before

    (paths.data / "postmaster.pid").write_bytes(b"")
    refusal(Engine(home))  # which starts no second one
    assert is_running(before)
    os.kill(before, signal.SIGQUIT)
    eventually(lambda: not processes(paths.tag, str(home)))


def test_an_engine_without_free_connections_is_joined(home: Path) -> None:
    query(Engine(home).start(), "alter system set max_connections = 8")
    Engine(home).stop()
    dsn = Engine(home).start()
    before = pid_of(home)

    async def crowd() -> str:
        sessions = [await asyncpg.connect(dsn) for _ in range(8)]
        try:
            with pytest.raises(asyncpg.TooManyConnectionsError):
                await asyncpg.connect(dsn)
            return await asyncio.to_thread(Engine(home).start)
        finally:
            for session in sessions:
                await session.close()

    assert asyncio.run(crowd()) == dsn
    assert pid_of(home) == before


LITTLE_ROOM = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000))  # the first file of the write-ahead log needs 16 MB
try:
    Engine(home).start()
except EngineFailed as error:
    print(error.hint)
"""


def test_an_initdb_that_fails_half_way_does_not_block_the_next_start(
    new_home: Path,
) -> None:
    assert (
        outcome(client(new_home, LITTLE_ROOM))
        == "Free some disk space, then start again."
    )
    assert not (new_home / "engine" / "data").exists()

    assert query(Engine(new_home).start(), "select 1") == 1
    assert list((new_home / "engine").glob("data.new-*")) == []


@pytest.mark.skipif(not AS_ROOT, reason="only root can make a small file system")
def test_a_full_disk_is_reported_and_a_later_start_succeeds(new_home: Path) -> None:
    """Runs in a mount namespace of its own, whose end removes the file system."""
    program = """
import subprocess
def start():
    try: Engine(home).start(); print("up")
    except EngineFailed as error: print(error.code, error.hint, "No space left on device" in error.message)
start()
subprocess.run(["mount", "-o", "remount,size=300m", home], check=True)
start()
print(Engine(home).stop())
"""
    new_home.mkdir()
    script = 'mount -t tmpfs -o size=20m none "$1" && exec "$2" -c "$3" "$1"'
    command: list[str | Path] = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        new_home,
    ]
    command += [sys.executable, PROGRAM + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")

    assert done.stdout.splitlines() == [
        "disk_full Free some disk space, then start again. True",
        "up",
        "True",
    ], done.stderr


def test_a_starter_killed_during_initdb_does_not_block_the_next_start(
    new_home: Path,
) -> None:
    first = client(new_home)
    eventually(lambda: list((new_home / "engine").glob("data.new-*/base/1")))
    end(first)

    assert query(Engine(new_home).start(), "select 1") == 1
    Engine(new_home).stop()
    Engine(new_home).start()
    assert list((new_home / "engine").glob("data.new-*")) == []


def test_data_of_another_major_version_is_rejected(home: Path) -> None:
    (home / "engine" / "data" / "PG_VERSION").write_text("17\n")

    assert (
        "written by Postgres 17; this Folklore carries Postgres 18"
        in refusal(Engine(home)).message
    )


def test_a_directory_with_other_files_is_rejected_and_kept(new_home: Path) -> None:
    file = new_home / "engine" / "data" / "thesis.txt"
    file.parent.mkdir(parents=True)
    file.write_text("years of work")

    assert "holds files but no Postgres data" in refusal(Engine(new_home)).message
    assert file.read_text() == "years of work"


@pytest.mark.parametrize("amount", ["100TB", "lots"])
def test_a_server_that_does_not_start_shows_its_log(home: Path, amount: str) -> None:
    error = refusal(Engine(home, shared_buffers=amount))

    assert str(home / "logs" / "engine.log") in error.message.splitlines()[0]
    assert "FATAL" in error.message
    assert len(error.message.splitlines()) < 40
    assert error.hint
    assert kept(Engine(home).start()) == 42


def test_a_long_log_is_rotated(home: Path) -> None:
    log = home / "logs" / "engine.log"
    log.write_bytes(b"x" * 11_000_000)

    Engine(home).start()

    assert log.stat().st_size < 100_000
    assert (home / "logs" / "engine.log.1").stat().st_size == 11_000_000


@pytest.mark.parametrize(
    "complaint",
    [
        "connection to server failed: could not fork new process for connection: Cannot allocate memory",
        "connection to server failed: FATAL:  out of memory",
        "connection to server failed: timeout expired",
        "ERROR:  could not open file: Too many open files in system",
    ],
)
def test_a_server_without_resources_is_not_classified_as_dead(complaint: str) -> None:
    assert state_of_refusal(complaint) is State.SILENT


@pytest.mark.parametrize("left", ["nothing", "an empty directory", "no engine"])
def test_data_that_is_lost_is_an_error_and_not_an_empty_memory(
    home: Path, left: str
) -> None:
    Engine(home).start()
    Engine(home).stop()
    paths = EnginePaths(home)
    lost = paths.engine if left == "no engine" else paths.data
    lost.rename(home / "aside")
    if left == "an empty directory":
        paths.data.mkdir(mode=0o700)

    error = refusal(Engine(home))
    assert "held memories" in error.message
    assert "folklore restore" in str(error.hint)

    shutil.rmtree(lost, ignore_errors=True)
    (home / "aside").rename(lost)
    assert kept(Engine(home).start()) == 42


def test_a_new_engine_begins_where_data_is_lost_only_when_asked(home: Path) -> None:
    Engine(home).start()
    Engine(home).stop()
    shutil.rmtree(EnginePaths(home).data)

    dsn = Engine(home).start(new=True)

    assert query(dsn, "select count(*) from pg_tables where tablename = 'kept'") == 0
    Engine(home).stop()
    Engine(home).start()


def test_data_of_another_engine_is_an_error(home: Path, new_home: Path) -> None:
    for one in (home, new_home):
        Engine(one).start()
        Engine(one).stop()
    shutil.rmtree(EnginePaths(home).data)
    EnginePaths(new_home).data.rename(EnginePaths(home).data)

    error = refusal(Engine(home))
    assert "not what was here before" in error.message
    assert Engine(home).start(new=True)
