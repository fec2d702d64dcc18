"""The embedded engine as the rest of Folklore sees it."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from folklore.engine import cluster
from folklore.engine.account import Account, account_for
from folklore.engine.binaries import find_binaries
from folklore.engine.endpoint import recorded
from folklore.engine.lock import locked
from folklore.engine.log import failure
from folklore.engine.paths import Place
from folklore.engine.pidfile import read_pid_file
from folklore.engine.probe import State
from folklore.engine.server import RECOVERY_SECONDS, Server
from folklore.engine.watcher import ensure_watcher
from folklore.errors import EngineFailed

# Longer than the longest recovery, during which a starting client holds the lock.
LOCK_SECONDS = RECOVERY_SECONDS + 60

# Postgres cuts paths at 1,023 bytes without a word; its own below the home are shorter than the difference.
_LONGEST_HOME = 950
# What a home says that is no place for files: too long, a file, on a read-only disk.
_NO_PLACE = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EROFS})
_OTHER_PLACE = "Set FOLKLORE_HOME to a short path on a local disk, or FOLKLORE_DATABASE_URL to a Postgres of yours."


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """What is known of an engine; `sessions` counts other clients, `version` is the data's while nothing runs."""

    running: bool
    dsn: str | None
    data_directory: Path
    version: str | None
    pid: int | None
    log: Path
    sessions: int


@dataclass(frozen=True, slots=True)
class Engine:
    """A Postgres of one's own below `home`, shared by all processes with the same `home`.

    It outlives the process that started it, and stops by itself after `idle_minutes` without a session (0: never).
    Settings are those of the process that started it. Every method blocks: call it in a thread. Errors are
    `EngineFailed`. Nothing is ever printed.
    """

    home: Path
    idle_minutes: float = 30.0
    shared_buffers: str = "256MB"

    def start(self) -> str:
        """Join the engine, or start it (and make its data directory); return the DSN of its database."""
        place = self._place
        with _as_engine_failure(place):
            account = account_for(place)
            server = Server(place, find_binaries(), account)
            _make_room(place, account)
            with locked(place.lock, LOCK_SECONDS):
                server.bring_up(self.shared_buffers)
                ensure_watcher(server, self.idle_minutes)
                return self.dsn

    def stop(self) -> bool:
        """Stop the engine for everybody; false if it was not running."""
        place = self._place
        with _as_engine_failure(place):
            if not place.lock.exists():
                return False
            server = Server(place, find_binaries(), account_for(place))
            with locked(place.lock, LOCK_SECONDS):
                return server.halt()

    def status(self) -> EngineStatus:
        """Look without touching: makes no file, waits for no lock, does not count as use."""
        place = self._place
        with _as_engine_failure(place):
            answer = Server(place, find_binaries(), account_for(place)).ask()
            running = answer.state is State.READY
            written, endpoint = read_pid_file(place.data), recorded(place)
            return EngineStatus(
                running=running,
                dsn=endpoint.dsn() if running and endpoint else None,
                data_directory=place.data,
                version=answer.version or cluster.version_on_disk(place),
                pid=written.pid if running and written else None,
                log=place.log,
                sessions=answer.sessions,
            )

    @property
    def dsn(self) -> str:
        """Where the engine listens. The next start may choose elsewhere, so rather take what start() returns."""
        endpoint = recorded(self._place)
        if endpoint is None:
            raise EngineFailed("The embedded engine does not run.", hint="Start it with `folklore db start`.")
        return endpoint.dsn()

    @property
    def _place(self) -> Place:
        return Place.below(self.home)


def _make_room(place: Place, account: Account | None) -> None:
    length = len(os.fsencode(place.home))
    if length > _LONGEST_HOME:
        raise EngineFailed(
            f"The home directory's path is too long for Postgres: {length:,} bytes, not at most {_LONGEST_HOME}.",
            hint=_OTHER_PLACE,
        )
    place.log.parent.mkdir(parents=True, exist_ok=True)
    place.engine.mkdir(mode=0o700, exist_ok=True)
    if account and place.engine.stat().st_uid == 0:
        account.give(place.engine)
    for path in (place.lock, place.alive, place.watch):
        path.touch(mode=0o600)
        if account:  # the watcher, who is not root, opens them as well
            account.give(path)


@contextmanager
def _as_engine_failure(place: Place) -> Iterator[None]:
    """Foreign errors become ours here: files that may not be touched, programs that cannot be run."""
    try:
        yield
    except PermissionError as error:
        raise EngineFailed(
            f"The embedded engine may not use its files: {error}.",
            hint=f"Run as the owner of {place.engine}, or choose another FOLKLORE_HOME.",
        ) from error
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in _NO_PLACE:
            reason = f"The embedded engine cannot keep its files in {place.home}: {error.strerror}."
            raise EngineFailed(reason, hint=_OTHER_PLACE) from error
        raise failure(f"The embedded engine cannot work: {error}.", place.log) from error
