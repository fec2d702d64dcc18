"""One server over one data directory: bring it up through whatever happened before, and bring it down."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from folklore.engine import cluster
from folklore.engine.account import Account, open_programs, open_way
from folklore.engine.binaries import Binaries, Outcome
from folklore.engine.endpoint import DATABASE, SOCKET_LOCK, choose, recorded
from folklore.engine.lock import is_locked, try_lock
from folklore.engine.log import failure, note, older, rotate
from folklore.engine.paths import Place
from folklore.engine.pidfile import disown, read_pid, read_pid_file
from folklore.engine.probe import Answer, State, ask, execute
from folklore.engine.processes import may_serve, servers, serves

RECOVERY_SECONDS = 600.0  # how long a server may say that it is starting up
PG_CTL_SECONDS = 60  # how long pg_ctl waits; a server that recovers for longer is asked by ourselves
QUIET_SECONDS = 60.0  # how long a server may say nothing
UNREACHABLE_SECONDS = 1.0  # how long a living server may go without a socket before it is replaced
LAUNCHES = 3
NAP, LONGEST_NAP = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Server:
    """All methods but `ask` expect the caller to hold the engine's lock."""

    place: Place
    binaries: Binaries
    account: Account | None

    def ask(self, database: str = "postgres") -> Answer:
        """Only questions to the `folklore` database count as use; see `watch`."""
        return ask(self.binaries, recorded(self.place), self.place, database)

    def is_gone(self) -> bool:
        """No process of a server that we launched is left. Windows has no such lock, so there it is asked."""
        if os.name == "nt":
            return self.ask().state is State.ABSENT
        return not is_locked(self.place.alive)

    def bring_up(self, shared_buffers: str) -> None:
        """Join the server, wait for it, replace it or launch it, until the database answers."""
        began = heard = time.monotonic()
        launches, nap = 0, NAP
        while (answer := self.ask(DATABASE)).state is not State.READY:
            now = time.monotonic()
            match answer.state:
                case State.NO_DATABASE:
                    self._create_database()
                case State.BUSY:
                    heard = now
                case State.ABSENT | State.STRANGER if launches < LAUNCHES:
                    if self._launch(shared_buffers):
                        launches, heard = launches + 1, time.monotonic()
                    elif now - heard > UNREACHABLE_SECONDS:
                        self._evict()
            if now - heard > QUIET_SECONDS or now - began > RECOVERY_SECONDS:
                raise failure(self._complaint(answer), self.place.log, answer.words)
            time.sleep(nap)
            nap = min(nap * 1.3, LONGEST_NAP)

    def halt(self) -> bool:
        """Shut down and wait for the last process to end; false if no server runs.

        Fast (sessions are rolled back), and immediate if the last checkpoint takes a minute: that is a crash, but one
        that loses nothing.
        """
        written = read_pid_file(self.place.data)
        if written is None or not (serves(written.pid, self.place) or self.ask().state is State.READY):
            return False
        sockets = Path(written.socket_directory)
        if self._pg_ctl("stop", "-m", "fast", "-t", str(PG_CTL_SECONDS)).code != 0:
            self._pg_ctl("stop", "-m", "immediate", "-t", "10")
        self._await_end()
        if sockets != self.place.sockets:
            with suppress(OSError):
                sockets.rmdir()
        return True

    def _launch(self, shared_buffers: str) -> bool:
        """Start a server unless processes of another one live; false if they do.

        The server and all its children inherit the locked descriptor, so the kernel holds the lock until the last of
        them has ended: an answer that no recycled or foreign process id can spoil, and that reaches across containers.
        """
        alive = try_lock(self.place.alive)
        if alive is None:
            return False
        try:
            self._prepare(shared_buffers)
            outcome = self._pg_ctl(
                *("start", "-t", str(PG_CTL_SECONDS), "-l", os.path.relpath(self.place.log, self.place.engine)),
                *("-o", f"-c cluster_name={self.place.tag}"),  # tells `ps` whose server this is
                kept_descriptors=(alive,) if os.name != "nt" else (),
            )
        finally:
            os.close(alive)
        if outcome.code not in (0, None) and "did not start in time" not in outcome.said:
            raise failure("The embedded engine did not start.", self.place.log, outcome.said)
        return True

    def _prepare(self, shared_buffers: str) -> None:
        place = self.place
        for log in (place.log, older(place.log)):
            log.touch(mode=0o600)
            if self.account:
                self.account.give(log)
        rotate(place.log)
        if self.account:
            if place.data.exists() and place.data.stat().st_uid == 0:  # root copied or restored it
                self.account.give_all(place.engine)
            self._note_opened(open_programs(self.binaries.folder, self.account))
            self._note_opened([*open_way(place.engine, self.account), *open_way(place.log, self.account)])
        cluster.ensure(place, self.binaries, self.account)
        listen = choose(place, self.account)
        if self.account:
            self._note_opened(open_way(Path(listen.host), self.account))
        cluster.configure(place, listen, shared_buffers, self.account)
        if os.name != "nt":
            self._disown_stale(Path(listen.host))

    def _disown_stale(self, sockets: Path) -> None:
        """Nothing of ours lives, so process ids left in lock files are strangers' (or of a server started by hand)."""
        place = self.place
        written, listening = read_pid(place.data / "postmaster.pid"), read_pid(sockets / SOCKET_LOCK)
        if written is not None and not may_serve(written, place):
            disown(place.data)
        if listening is not None and not may_serve(listening, place):
            (sockets / SOCKET_LOCK).unlink()

    def _note_opened(self, folders: list[Path]) -> None:
        for folder in folders:
            note(self.place.log, f"let the unprivileged user who runs the engine for root pass through {folder}")

    def _create_database(self) -> None:
        endpoint = recorded(self.place)
        if endpoint and self.ask().state is State.READY:  # and the data directory is ours
            execute(self.binaries, endpoint, f"create database {DATABASE}")

    def _evict(self) -> None:
        """End a server of ours that lives but cannot be reached, or what is left of one."""
        if not self.halt():
            for process in servers(self.place):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGQUIT)

    def _complaint(self, answer: Answer) -> str:
        if answer.state is State.ABSENT and not self.is_gone():
            return f"A server that cannot be reached from here (in another container?) uses {self.place.data}."
        return "The embedded engine does not come up."

    def _await_end(self) -> None:
        give_up = time.monotonic() + QUIET_SECONDS
        while not self.is_gone():
            if time.monotonic() > give_up:
                raise failure(f"The server that uses {self.place.data} does not end.", self.place.log)
            time.sleep(NAP)

    def _pg_ctl(self, action: str, *arguments: str, kept_descriptors: tuple[int, ...] = ()) -> Outcome:
        """pg_ctl hands paths to a shell; relative to the engine's directory they hold no character that it reads."""
        return self.binaries.run(
            "pg_ctl",
            *(action, "--silent", "--wait", "--pgdata", self.place.data.name, *arguments),
            account=self.account,
            cwd=self.place.engine,
            timeout=PG_CTL_SECONDS + 30,
            captured=os.name != "nt",  # a server can keep the pipe of its pg_ctl open there
            kept_descriptors=kept_descriptors,
        )
