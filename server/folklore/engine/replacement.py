"""Replacement of a data directory by one of another major version: complete at every moment, whatever is killed.

The new data lies in `EnginePaths.next`, in the home of an engine of its own, until a file there decides that it takes
the place of the old. From then on every start finishes what is missing; before, the old data counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from folklore.engine.files import EnginePaths

_DECISION = "decided.json"
_KEPT = "data.postgres-"


def decide(paths: EnginePaths, major: str) -> None:
    """Let the data of `EnginePaths.next` take the place of the data of `major`. Both servers have ended."""
    decision = {"major": major, "control": _control(paths.data)}
    fresh = paths.next / f"{_DECISION}.new"
    with fresh.open("w", encoding="ascii") as file:
        json.dump(decision, file)
        file.flush()
        os.fsync(file.fileno())
    _sync(paths.next)
    fresh.replace(paths.next / _DECISION)
    _sync(paths.next)


def finish(paths: EnginePaths) -> None:
    """Finish a decided replacement, and keep the old data next to the new. No server uses either."""
    try:
        decision = json.loads((paths.next / _DECISION).read_text("ascii"))
    except FileNotFoundError:
        return
    new = EnginePaths(paths.next)
    if new.data.exists():
        if paths.data.exists():
            if _control(paths.data) != decision["control"]:  # an older Folklore wrote to it since: begin anew
                shutil.rmtree(paths.next)
                return
            paths.data.rename(_free_name(paths, decision["major"]))
        _take(new.identity, paths.identity)
        _take(new.password, paths.password)
        new.data.rename(paths.data)
        _sync(paths.engine)
        _sync(paths.home)
    shutil.rmtree(paths.next)


def kept(paths: EnginePaths) -> list[Path]:
    """Return the data directories that replacements have kept."""
    return sorted(paths.engine.glob(f"{_KEPT}*"))


def _free_name(paths: EnginePaths, major: str) -> Path:
    names = (paths.engine / f"{_KEPT}{major}{f'-{number}' if number else ''}" for number in range(len(kept(paths)) + 1))
    return next(name for name in names if not name.exists())


def _take(source: Path, target: Path) -> None:
    """Replace a file by a copy: the source stays until all is finished."""
    with suppress(FileNotFoundError):
        fresh = target.with_name(f"{target.name}.new")
        shutil.copyfile(source, fresh)
        shutil.copymode(source, fresh)
        if os.name != "nt" and os.geteuid() == 0:
            os.chown(fresh, source.stat().st_uid, source.stat().st_gid)
        fresh.replace(target)


def _control(data: Path) -> str:
    """Return a digest of the file that changes with every checkpoint and start of a server."""
    return hashlib.sha256((data / "global" / "pg_control").read_bytes()).hexdigest()


def _sync(folder: Path) -> None:
    """Make renames in a folder survive a power failure."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
