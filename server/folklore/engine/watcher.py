"""The watcher: a small process beside the engine that stops it when nobody has used it for a while.

It runs with nothing but the standard library (`python -I -S`), holds nothing of the client that spawned it, and ends
when the engine is gone. There is one per engine: it holds the lock `Place.watch`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import folklore
from folklore.engine.account import account_for
from folklore.engine.binaries import Binaries, environment
from folklore.engine.lock import is_locked, release, try_lock
from folklore.engine.log import note, rotate
from folklore.engine.paths import Place
from folklore.engine.probe import State
from folklore.engine.server import Server

LOOK_SECONDS = 2.0  # how often it looks whether the engine is gone: two system calls
ASK_SECONDS = 60.0  # how often it asks for sessions at most
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from folklore.engine.watcher import main; main()"


def ensure_watcher(server: Server, idle_minutes: float) -> None:
    """Spawn the watcher if there is none. Call it with the engine's lock held."""
    if idle_minutes <= 0 or not sys.executable or is_locked(server.place.watch):
        return
    arguments = [str(Path(folklore.__file__).parents[1]), str(server.place.home), str(server.binaries.folder)]
    with server.place.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", "-c", _BOOT, *arguments, str(idle_minutes)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log if os.name != "nt" else subprocess.DEVNULL,
            env=environment(),
            cwd=server.place.engine if os.name == "nt" else "/",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    if os.name == "nt":
        process.returncode = 0  # it is nobody's child there; this only keeps Popen from warning that it still runs
    else:
        process.wait()  # for its first half only, see main()


def main() -> None:
    """Take the lock, leave the parent behind, then watch."""
    _, home, folder, idle_minutes = sys.argv[1:]
    place = Place(Path(home))
    account = account_for(place)
    if account and sys.platform != "win32":
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
    if try_lock(place.watch) is None:
        return
    if sys.platform != "win32" and os.fork():
        os._exit(0)  # the lock lives on in the child, which init reaps: no client is left with a zombie
    Watcher(Server(place, Binaries(Path(folder)), account=None), float(idle_minutes) * 60).run()


class Watcher:
    """Counts the time without sessions. A login between two looks counts as use, however short it was."""

    def __init__(self, server: Server, idle_seconds: float) -> None:
        self._server = server
        self._idle_seconds = idle_seconds
        self._ask_seconds = min(max(idle_seconds / 10, 0.1), ASK_SECONDS)
        self._asked = self._used = time.monotonic()
        self._logins = -1

    def run(self) -> None:
        with suppress(FileNotFoundError):  # the whole home was deleted; Postgres ends by itself then
            while not self._is_over():
                time.sleep(min(self._ask_seconds, LOOK_SECONDS))

    def _is_over(self) -> bool:
        """Decide under the engine's lock: whoever starts an engine sees a watcher that stays, or none."""
        lock = try_lock(self._server.place.lock)
        if lock is None:
            return False
        try:
            return self._server.is_gone() or (self._is_idle() and self._stop())
        finally:
            release(lock)

    def _is_idle(self) -> bool:
        now = time.monotonic()
        if now - self._asked >= self._ask_seconds:
            self._asked = now
            rotate(self._server.place.log)
            answer = self._server.ask()
            if answer.state is not State.READY or answer.sessions or answer.logins != self._logins:
                self._used, self._logins = now, answer.logins
            return now - self._used >= self._idle_seconds
        return False

    def _stop(self) -> bool:
        note(self._server.place.log, f"no session for {self._idle_seconds / 60:g} minutes: stopping")
        self._server.halt()
        return True
