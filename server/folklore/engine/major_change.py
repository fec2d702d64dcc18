"""Change of the major version: the old data on its own programs, reachable by this process alone, and a new engine."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from folklore.engine import cluster, replacement
from folklore.engine.binaries import find_binaries
from folklore.engine.endpoint import recorded_endpoint
from folklore.engine.files import EnginePaths
from folklore.engine.launcher import LOCK_SECONDS, Engine, Server
from folklore.engine.lock import locked


@dataclass(frozen=True, slots=True)
class MajorChange:
    """Two running servers, and the engine's lock, which keeps other processes waiting.

    Every method blocks. `folder` is for files of the change; it is deleted with its end.
    """

    major: str
    old_dsn: str
    new_dsn: str
    folder: Path
    _old: Server
    _new: Engine
    _held: ExitStack

    @classmethod
    def begin(cls, engine: Engine) -> MajorChange | None:
        """Start both servers; return None if the data has this package's version by now. Raises EngineFailed.

        What a killed change has left is ended and deleted first.
        """
        with engine.server() as main, ExitStack() as held:
            paths = main.paths
            held.enter_context(locked(paths.lock, LOCK_SECONDS))
            replacement.finish(paths)
            version = cluster.version_on_disk(paths)
            if version is None or not cluster.is_older(version):
                return None
            old = Server(EnginePaths(engine.home, private=True), find_binaries(int(version)), main.account)
            new = Engine(paths.next, idle_minutes=0, shared_buffers=engine.shared_buffers)
            old.halt()
            _discard(new)
            held.callback(_discard, new)
            held.callback(old.halt)
            old.bring_up(engine.shared_buffers)
            endpoint = recorded_endpoint(old.paths)
            assert endpoint is not None
            return cls(version, endpoint.dsn, new.start(), paths.next, old, new, held.pop_all())

    def complete(self) -> None:
        """Put the new data in the place of the old, which is kept."""
        with self._new.server():
            self._old.halt()
            self._new.stop()
            replacement.decide(self._old.paths, self.major)
            replacement.finish(self._old.paths)

    def end(self) -> None:
        """Stop what runs, delete what is not in place, and let other processes go on."""
        with self._new.server():
            self._held.close()


def _discard(new: Engine) -> None:
    """Stop an engine and delete its home. A decided replacement has moved the data out of it."""
    if new.home.exists():
        new.stop()
        shutil.rmtree(new.home)
