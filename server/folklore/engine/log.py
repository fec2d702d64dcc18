"""The engine's log file: what Postgres and the launcher wrote, shown when something fails."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from folklore.errors import EngineFailed

SHOWN_LINES = 15
SHOWN_BYTES = 8_192
ROTATE_AT_BYTES = 10 * 1024 * 1024

_ANOTHER_POSTGRES = "or set FOLKLORE_DATABASE_URL to a Postgres 15+ with pgvector 0.8+"
_HINTS = (
    (("No space left", "File too large", "Disk quota"), "Free some disk space, then start again."),
    (("shared memory", "Cannot allocate memory"), "Lower the engine's shared_buffers or give the machine more memory."),
)


def note(log: Path, text: str) -> None:
    """Record what the launcher itself did, in the form of Postgres' own lines."""
    with log.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC [{os.getpid()}] folklore: {text}\n")


def tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - SHOWN_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return "(no log yet)"
    return "\n".join(lines[-SHOWN_LINES:]) or "(the log is empty)"


def rotate(log: Path) -> None:
    """Keep one older file. Copied and emptied, not renamed: the running server appends through an open descriptor."""
    if log.exists() and log.stat().st_size > ROTATE_AT_BYTES:
        shutil.copyfile(log, older(log))
        os.truncate(log, 0)


def older(log: Path) -> Path:
    return log.with_name(log.name + ".1")


def failure(what: str, log: Path, output: str = "") -> EngineFailed:
    """The error that shows what the tools said and how the log ends."""
    said = "".join(f"\n{line}" for line in output.strip().splitlines()[-SHOWN_LINES:])
    message = f"{what}{said}\nThe log {log} ends with:\n{tail(log)}\n"
    for signs, hint in _HINTS:
        if any(sign in message for sign in signs):
            return EngineFailed(message, hint=hint)
    return EngineFailed(message, hint=f"Mend what the log names, {_ANOTHER_POSTGRES}.")
