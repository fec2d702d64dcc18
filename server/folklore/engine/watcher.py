"""Watcher: a small process that stops the engine after a time without sessions, and ends when the engine is gone.

One runs per engine, holding the lock `EnginePaths.watch`. It imports nothing but the standard library.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from folklore.engine.account import account_for
from folklore.engine.binaries import Binaries
from folklore.engine.files import EnginePaths, append_to_log, rotate_log
from folklore.engine.launcher import Server
from folklore.engine.lock import release, try_lock
from folklore.engine.probe import State

_LOOK_SECONDS = 2.0  # longest time between two looks at the lock `alive`, which take two system calls
_PROBE_SECONDS = 60.0  # longest time between two probes of the server


def main() -> None:
    """Take the lock, detach from the parent and watch. The arguments are those of `launcher.ensure_watcher`."""
    _, home, folder, idle_minutes = sys.argv[1:]
    paths = EnginePaths(Path(home))
    account = account_for(paths)
    if account:
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
    if try_lock(paths.watch) is None:
        return
    if os.fork():
        return  # the child keeps the lock and belongs to init, so no client is left with a zombie
    Watcher(
        Server(paths, Binaries(Path(folder)), account=None), float(idle_minutes) * 60
    ).run()


class Watcher:
    """Measures the time without sessions. A login between two probes counts as use, even if the session was short."""

    def __init__(self, server: Server, idle_seconds: float) -> None:
        self._server = server
        self._idle_seconds = idle_seconds
        self._probe_seconds = min(max(idle_seconds / 10, 0.1), _PROBE_SECONDS)
        self._probed = self._used = time.monotonic()
        self._logins = -1

    def run(self) -> None:
        """Watch until the engine is gone or was stopped."""
        # the home was deleted; Postgres then ends by itself
        with suppress(FileNotFoundError):
            while not self._is_over():
                time.sleep(min(self._probe_seconds, _LOOK_SECONDS))

    def _is_over(self) -> bool:
        """Decide under the engine's lock, so that a process that starts an engine never finds a watcher that is ending.

        Otherwise it would start no watcher of its own.
        """
        lock = try_lock(self._server.paths.lock)
        if lock is None:
            return False
        try:
            return self._server.has_ended() or (self._is_idle() and self._stop())
        finally:
            release(lock)

    def _is_idle(self) -> bool:
        now = time.monotonic()
        if now - self._probed < self._probe_seconds:
            return False
        self._probed = now
        rotate_log(self._server.paths)
        answer = self._server.probe()
        if (
            answer.state is not State.READY
            or answer.sessions
            or answer.logins != self._logins
        ):
            self._used = now
            self._logins = answer.logins
        return now - self._used >= self._idle_seconds

    def _stop(self) -> bool:
        minutes = self._idle_seconds / 60
        append_to_log(
            self._server.paths, f"no session for {minutes:g} minutes: stopping"
        )
        self._server.halt()
        return True
