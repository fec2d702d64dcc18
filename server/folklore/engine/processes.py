"""Whether a process is a server of our data directory; no process is ever signalled without asking here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from folklore.engine.paths import Place


def serves(pid: int, place: Place) -> bool:
    """True if the process is certainly a postgres of this data directory, false if it is not or cannot be told."""
    if Path("/proc/self/exe").exists():
        return _serves_by_proc(pid, place)
    return os.name != "nt" and _serves_by_title(pid, place)


def may_serve(pid: int, place: Place) -> bool:
    """False if the process is certainly no server of this data directory: where /proc does not tell, no postgres."""
    if Path("/proc/self/exe").exists():
        return _serves_by_proc(pid, place)
    return os.name == "nt" or "postgres" in _title(pid)


def servers(place: Place) -> list[int]:
    """All processes of a server of this data directory, orphans included. Only where /proc tells; empty elsewhere."""
    proc = Path("/proc")
    if not (proc / "self/exe").exists():
        return []
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit() and serves(int(entry.name), place)]


def _serves_by_proc(pid: int, place: Place) -> bool:
    """Postgres works inside its data directory; compared as files, because the directory may have been renamed."""
    proc = Path(f"/proc/{pid}")
    try:
        program = (proc / "exe").readlink().name.removesuffix(" (deleted)")
        return program == "postgres" and (proc / "cwd").samefile(place.data)
    except OSError:  # ended, a zombie, or another user's
        return False


def _serves_by_title(pid: int, place: Place) -> bool:
    """macOS and the BSDs: the launcher puts the tag into the server's arguments, and Postgres into all its titles."""
    title = _title(pid)
    return "postgres" in title and place.tag in title


def _title(pid: int) -> str:
    listed = subprocess.run(  # noqa: S603
        ["ps", "-p", str(pid), "-o", "command="],  # noqa: S607
        capture_output=True,
        check=False,
    )
    return listed.stdout.decode("utf-8", "replace")
