"""Launcher of the embedded engine: starts, joins and stops the one server over a data directory."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import folklore
from folklore.engine import cluster, files, upgrade
from folklore.engine.account import (
    Account,
    account_for,
    make_programs_readable,
    make_reachable,
)
from folklore.engine.binaries import (
    MAJOR,
    Binaries,
    Outcome,
    find_binaries,
    short_environment,
)
from folklore.engine.endpoint import (
    DATABASE,
    SOCKET_LOCK,
    choose_endpoint,
    recorded_endpoint,
)
from folklore.engine.files import NO_SPACE, EnginePaths, engine_failure, read_pid_file
from folklore.engine.lock import is_locked, locked, try_lock
from folklore.engine.probe import (
    Answer,
    Recovery,
    State,
    is_server,
    may_be_server,
    probe,
    psql,
    server_processes,
)
from folklore.engine.upgrade import Copied
from folklore.errors import EngineFailed
from folklore.phases import phase

PG_CTL_SECONDS = 60  # limit for pg_ctl's own wait for the end of a server
START_SECONDS = 5  # the same for its begin: what takes longer is waited for in bring_up
_RECOVERY_SECONDS = 600.0  # limit for a server that answers that it is starting up
_SILENCE_SECONDS = 60.0  # limit for a server that does not answer
_STUCK_SECONDS = 10.0  # a server whose recovery does nothing is replaced; after a crash its processes end in 5 s
_UNREACHABLE_SECONDS = (
    1.0  # a living server without a socket is replaced after this time
)
_LAUNCHES = 3
_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
_UPGRADE_MINUTES = 60.0  # the new server of a killed upgrade ends after this time

# Longer than the longest recovery, during which a starting client holds the lock.
LOCK_SECONDS = _RECOVERY_SECONDS + 60

# Postgres truncates paths at 1,023 bytes without a warning. Its own names below the home are shorter than 73 bytes.
_LONGEST_HOME = 950
# Errors of a home that cannot hold files: too long, a file, on a read-only disk.
_UNUSABLE_HOME = frozenset(
    {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EROFS}
)
_OTHER_HOME = "Set FOLKLORE_HOME to a short path on a local disk, or FOLKLORE_DATABASE_URL to a Postgres of yours."

_WATCHER = "import sys; sys.path.insert(0, sys.argv[1]); from folklore.engine.watcher import main; main()"


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """State of an engine. `sessions` counts other clients; `version` is that of the data while no server runs."""

    running: bool
    dsn: str | None
    data_directory: Path
    version: str | None
    pid: int | None
    log: Path
    sessions: int


@dataclass(frozen=True, slots=True)
class Engine:
    """Embedded Postgres below `home`, shared by all processes with the same `home`.

    It outlives the process that started it, and stops after `idle_minutes` without a session (0: never). The settings
    of the process that started it apply. Every method blocks, so call it in a thread, and raises EngineFailed. Without
    `may_create` it is an engine that was started before: an empty one in its place would go unnoticed.
    """

    home: Path
    idle_minutes: float = 30.0
    shared_buffers: str = field(default_factory=cluster.cache_size)
    may_create: bool = True

    def start(self, *, new: bool = False) -> str:
        """Join the running engine, or create the data directory and start it; return the DSN of its database.

        `new` accepts that the data which was here is missing, or that other data is in its place.
        """
        with self._server() as server:
            if not self.may_create:
                cluster.refuse_lost_data(server.paths, may_create=False)
            create_files(server)
            with (
                phase("Starting the embedded Postgres"),
                locked(server.paths.lock, LOCK_SECONDS),
            ):
                settle(server)
                if new and server.probe(DATABASE).state is not State.READY:
                    server.paths.identity.unlink(missing_ok=True)
                server.bring_up(self.shared_buffers)
                ensure_watcher(server, self.idle_minutes)
                return server.dsn

    def stop(self) -> bool:
        """Stop the engine for all its clients; return false if it was not running."""
        with self._server() as server:
            if not server.paths.lock.exists():
                return False
            with locked(server.paths.lock, LOCK_SECONDS):
                return server.halt()

    def upgrade(self, copy: Callable[[Copied, Copied], None]) -> Path | None:
        """Copy data of an older major version into a data directory of this one, and put that in its place.

        `copy` copies every database from the first server to the second, and raises an error unless all are equal.
        Return the directory of the old data, which is kept; None if the data is not of an older version. The engine is
        stopped. A process that is killed leaves the old data in use, or the next start completes the change.
        """
        with self._server() as server:
            create_files(server)
            with locked(server.paths.lock, LOCK_SECONDS):
                settle(server)
                version = cluster.version_on_disk(server.paths)
                if version is None or version == str(MAJOR):
                    return None
                return self._upgrade(server, version, copy)

    def _upgrade(
        self, server: Server, version: str, copy: Callable[[Copied, Copied], None]
    ) -> Path:
        paths = server.paths
        programs = upgrade.older_programs(paths, version)
        upgrade.require_room(paths)
        server.end()  # an older Folklore may have started it
        room = upgrade.new_room(paths, server.account)
        older = Server(
            paths.with_private_socket(room), programs, server.account, int(version)
        )
        newer = Engine(
            room, idle_minutes=_UPGRADE_MINUTES, shared_buffers=self.shared_buffers
        )
        try:
            with phase("Starting both servers"):
                older.bring_up(self.shared_buffers)
                # it stops the server if this process is killed
                ensure_watcher(server, self.idle_minutes)
                address = newer.start()
            copy(Copied(older.dsn, programs), Copied(address, server.binaries))
            newer.end()
            older.end()
            upgrade.offer(paths, room, server.account)
        finally:
            settle(server)
        return upgrade.kept_data(paths)[-1]

    def old_data(self) -> list[Path]:
        """Return the data directories that upgrades have replaced."""
        return upgrade.kept_data(EnginePaths(self.home))

    def drop_old(self) -> dict[Path, int]:
        """Delete the data directories that upgrades have replaced; return them with their bytes."""
        with self._server() as server, locked(server.paths.lock, LOCK_SECONDS):
            settle(server)
            if cluster.version_on_disk(server.paths) != str(MAJOR):
                raise EngineFailed(
                    f"There is no data of Postgres {MAJOR} in {server.paths.data}, so the old data is not deleted.",
                    hint="See `folklore db status`.",
                )
            return upgrade.drop_kept(server.paths)

    def end(self) -> None:
        """Stop the engine of an upgrade, and wait until no process of it is left."""
        with self._server() as server:
            if server.paths.alive.exists():
                with locked(server.paths.lock, LOCK_SECONDS):
                    server.end()

    def status(self) -> EngineStatus:
        """Return the state without creating a file, waiting for a lock or counting as use."""
        with self._server() as server:
            paths = server.paths
            answer = server.probe()
            running = answer.state is State.READY
            recorded = read_pid_file(paths.data)
            endpoint = recorded_endpoint(paths)
            return EngineStatus(
                running=running,
                dsn=endpoint.dsn if running and endpoint else None,
                data_directory=paths.data,
                version=answer.version or cluster.version_on_disk(paths),
                pid=recorded.pid if running and recorded else None,
                log=paths.log,
                sessions=answer.sessions,
            )

    @contextmanager
    def _server(self) -> Iterator[Server]:
        """Give the server; turn errors of files and programs within the block into EngineFailed."""
        paths = EnginePaths(self.home)
        try:
            yield Server(
                paths, find_binaries(), account_for(paths), may_create=self.may_create
            )
        except PermissionError as error:
            raise EngineFailed(
                f"The embedded engine may not use its files: {error}.",
                hint=f"Run as the owner of {paths.engine}, or choose another FOLKLORE_HOME.",
            ) from error
        except (OSError, subprocess.SubprocessError) as error:
            if isinstance(error, OSError) and error.errno in _UNUSABLE_HOME:
                reason = f"The embedded engine cannot keep its files in {paths.home}: {error.strerror}."
                raise EngineFailed(reason, hint=_OTHER_HOME) from error
            raise engine_failure(
                f"The embedded engine cannot work: {error}.", paths
            ) from error


@dataclass(frozen=True, slots=True)
class Server:
    """Postgres server over one data directory. All methods but `probe` need the engine's lock."""

    paths: EnginePaths
    binaries: Binaries
    account: Account | None
    major: int = MAJOR
    may_create: bool = True

    @property
    def dsn(self) -> str:
        """Address of the database of a server that runs."""
        endpoint = recorded_endpoint(self.paths)
        assert endpoint is not None
        return endpoint.dsn

    def probe(self, database: str = "postgres") -> Answer:
        """Return the server's state. Only a connection to the database `folklore` counts as use of the engine."""
        return probe(self.binaries, recorded_endpoint(self.paths), self.paths, database)

    def has_ended(self) -> bool:
        """Return true if no process of a server that we launched is left."""
        return not is_locked(self.paths.alive)

    def bring_up(self, shared_buffers: str) -> None:
        """Join, await, replace or launch the server until the database answers."""
        began = last_sign = time.monotonic()
        launches = 0
        pause = _PAUSE
        recovery = Recovery(self.paths)
        while (answer := self.probe(DATABASE)).state is not State.READY:
            now = time.monotonic()
            match answer.state:
                case State.NO_DATABASE:
                    self._create_database()
                case State.BUSY:
                    if recovery.shows_work(answer):
                        last_sign = now
                    elif now - last_sign > _STUCK_SECONDS * (launches + 1):
                        self._pg_ctl("stop", "-m", "immediate", "-t", "10")
                case State.ABSENT | State.FOREIGN if launches < _LAUNCHES:
                    if self._launch(shared_buffers):
                        launches = launches + 1
                        last_sign = time.monotonic()
                    elif now - last_sign > _UNREACHABLE_SECONDS:
                        self._evict()
            if now > min(last_sign + _SILENCE_SECONDS, began + _RECOVERY_SECONDS):
                raise engine_failure(self._reason(answer), self.paths, answer.message)
            time.sleep(pause)
            pause = min(pause * 1.3, _LONGEST_PAUSE)

    def halt(self) -> bool:
        """Shut the server down and wait until its last process has ended; return false if no server runs.

        The shutdown is fast (sessions are rolled back), or immediate if the last checkpoint takes longer than a minute:
        the next start then recovers from the log as after a crash, and no commit is lost.
        """
        recorded = read_pid_file(self.paths.data)
        if recorded is None or not (
            is_server(recorded.pid, self.paths) or self.probe().state is State.READY
        ):
            return False
        sockets = Path(recorded.socket_directory)
        if self._pg_ctl("stop", "-m", "fast", "-t", str(PG_CTL_SECONDS)).code != 0:
            self._pg_ctl("stop", "-m", "immediate", "-t", "10")
        deadline = time.monotonic() + _SILENCE_SECONDS
        while not self.has_ended():
            if time.monotonic() > deadline:
                raise engine_failure(
                    f"The server that uses {self.paths.data} does not end.", self.paths
                )
            time.sleep(_PAUSE)
        if sockets != self.paths.sockets:
            with suppress(OSError):
                sockets.rmdir()
        return True

    def end(self) -> None:
        """Shut the server down if it runs, and wait until no process of it is left, orphans included."""
        deadline = time.monotonic() + _SILENCE_SECONDS
        while not self.halt() and not self.has_ended():
            if time.monotonic() > deadline:
                raise engine_failure(self._reason(self.probe()), self.paths)
            self._evict()
            time.sleep(_PAUSE)

    def _launch(self, shared_buffers: str) -> bool:
        """Start a server; return false if processes of another one are alive.

        The server and all its children inherit the descriptor of the lock `alive`, so the kernel holds that lock until
        the last of them ends. A reused process id cannot falsify this, and it works across containers.
        """
        cluster.refuse_lost_data(self.paths, may_create=self.may_create)
        alive = try_lock(self.paths.alive)
        if alive is None:
            return False
        try:
            self._prepare(shared_buffers)
            log = os.path.relpath(self.paths.log, self.paths.engine)
            outcome = self._pg_ctl(
                *("start", "-t", str(START_SECONDS), "-l", log),
                *(
                    "-o",
                    f"-c cluster_name={self.paths.tag}",
                ),  # shown by `ps`, see probe.is_server
                descriptors=(alive,),
            )
        finally:
            os.close(alive)
        if (
            outcome.code not in (0, None)
            and "did not start in time" not in outcome.output
        ):
            raise engine_failure(
                "The embedded engine did not start.", self.paths, outcome.output
            )
        return True

    def _prepare(self, shared_buffers: str) -> None:
        paths = self.paths
        account = self.account
        for log in (paths.log, paths.older_log):
            log.touch(mode=0o600)
            if account:
                account.chown(log)
        files.rotate_log(paths)
        if account:
            # root copied or restored it
            if paths.data.exists() and paths.data.stat().st_uid == 0:
                account.chown_tree(paths.engine)
            self._log_opened(make_programs_readable(self.binaries.folder, account))
            self._log_opened(
                [
                    *make_reachable(paths.engine, account),
                    *make_reachable(paths.log, account),
                ]
            )
        cluster.ensure_data(
            paths, self.binaries, account, self.major, may_create=self.may_create
        )
        listen = choose_endpoint(paths, account)
        if account:
            self._log_opened(make_reachable(Path(listen.host), account))
        cluster.configure(paths, listen, shared_buffers, account)
        self._invalidate_stale_pids(Path(listen.host))

    def _invalidate_stale_pids(self, sockets: Path) -> None:
        """Remove process ids from lock files, unless they are of a server that was started by hand.

        No process of a server that we launched is alive here, so other ids belong to unrelated processes. A power
        failure leaves files without an id, which Postgres refuses; that of the data may also be of a server that is
        being started by hand, and then Postgres refuses a second one by its shared memory.
        """
        listening = files.read_pid(sockets / SOCKET_LOCK)
        recorded = files.read_pid(self.paths.data / "postmaster.pid")
        if recorded is not None and not may_be_server(recorded, self.paths):
            files.invalidate_pid(self.paths.data)
        elif recorded is None and not server_processes(self.paths):
            (self.paths.data / "postmaster.pid").unlink(missing_ok=True)
        if (
            not server_processes(self.paths)
            if listening is None
            else not may_be_server(listening, self.paths)
        ):
            (sockets / SOCKET_LOCK).unlink(missing_ok=True)

    def _log_opened(self, folders: list[Path]) -> None:
        for folder in folders:
            files.append_to_log(
                self.paths,
                f"let the unprivileged user who runs the engine for root pass through {folder}",
            )

    def _create_database(self) -> None:
        endpoint = recorded_endpoint(self.paths)
        # it serves our data directory
        if endpoint and self.probe().state is State.READY:
            outcome = psql(
                self.binaries, endpoint, "postgres", f"create database {DATABASE}"
            )
            # of anything else, the next probe shows the success
            if NO_SPACE in outcome.output:
                raise engine_failure(
                    "The database could not be created.", self.paths, outcome.output
                )

    def _evict(self) -> None:
        """End our server that is alive but cannot be reached, or its remaining processes."""
        if not self.halt():
            for process in server_processes(self.paths):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGQUIT)

    def _reason(self, answer: Answer) -> str:
        if answer.state is State.ABSENT and not self.has_ended():
            return f"A server that cannot be reached from here (in another container?) uses {self.paths.data}."
        return "The embedded engine does not answer."

    def _pg_ctl(
        self, action: str, *arguments: str, descriptors: tuple[int, ...] = ()
    ) -> Outcome:
        """Run pg_ctl in the engine's directory: it passes paths to a shell, and relative ones need no quoting."""
        return self.binaries.run(
            "pg_ctl",
            *(
                action,
                "--silent",
                "--wait",
                "--pgdata",
                self.paths.data.name,
                *arguments,
            ),
            account=self.account,
            cwd=self.paths.engine,
            timeout=PG_CTL_SECONDS + 30,
            descriptors=descriptors,
        )


def settle(server: Server) -> None:
    """Complete the upgrade that a killed process left, or remove what it left. The caller holds the engine's lock.

    An upgrade that fails does the same at its end.
    """
    paths = server.paths
    rooms = upgrade.upgrade_rooms(paths)
    if not rooms and not paths.upgraded.exists():
        return
    # else it is the server of other clients
    if cluster.version_on_disk(paths) != str(MAJOR):
        server.end()
    for room in rooms:
        Engine(room).end()
    upgrade.complete(paths)
    for room in rooms:
        shutil.rmtree(room, ignore_errors=True)


def ensure_watcher(server: Server, idle_minutes: float) -> None:
    """Start the watcher unless one runs. The caller holds the engine's lock.

    It is a process with the standard library only (`python -I -S`), and inherits nothing from the client.
    """
    paths = server.paths
    if idle_minutes <= 0 or not sys.executable or is_locked(paths.watch):
        return
    arguments = [
        str(Path(folklore.__file__).parents[1]),
        str(paths.home),
        str(server.binaries.folder),
    ]
    with paths.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", "-c", _WATCHER, *arguments, str(idle_minutes)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=short_environment(),
            cwd="/",
            start_new_session=True,
        )
    process.wait()  # it forks and exits, see watcher.main


def create_files(server: Server) -> None:
    paths = server.paths
    account = server.account
    length = len(os.fsencode(paths.home))
    if length > _LONGEST_HOME:
        raise EngineFailed(
            f"The home directory's path is too long for Postgres: {length:,} bytes, not at most {_LONGEST_HOME}.",
            hint=_OTHER_HOME,
        )
    paths.log.parent.mkdir(parents=True, exist_ok=True)
    paths.engine.mkdir(mode=0o700, exist_ok=True)
    if account and paths.engine.stat().st_uid == 0:
        account.chown(paths.engine)
    for path in (paths.lock, paths.alive, paths.watch):
        path.touch(mode=0o600)
        if account:  # the watcher, which does not run as root, opens them too
            account.chown(path)
