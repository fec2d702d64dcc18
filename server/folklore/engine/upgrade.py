"""Upgrade of the data to another major version: its programs, its room, and the renames that put new data in place.

upgrade-*/        the engine that takes over the databases, removed at the end
data.upgraded     its complete data, while `data` is the old one or is missing
data.16-TIME      the old data, kept until it is dropped
"""

import hashlib
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from folklore.disk import free_space
from folklore.engine.account import Account
from folklore.engine.binaries import MAJOR, Binaries, installed_binaries
from folklore.engine.cluster import REPLACED_FILE, version_on_disk
from folklore.engine.files import EnginePaths, append_to_log, sync
from folklore.errors import DiskFull, EngineFailed

# Bytes that the upgrade needs in addition to the size of the data: the write-ahead log, and what stays free.
_LOG_BYTES = 256 << 20
_LEFT_FREE = 256 << 20

_ROOM = "upgrade-"

_NEEDED = ("postgres", "pg_ctl", "pg_controldata", "pg_dump", "pg_dumpall", "psql")


@dataclass(frozen=True, slots=True)
class Copied:
    """Server that an upgrade copies from or to: the address of its database `folklore`, and its programs."""

    dsn: str
    programs: Binaries


def older_programs(paths: EnginePaths, version: str) -> Binaries:
    """Return the programs of the data's major version: the package's, or those of this system. Raises EngineFailed."""
    if (
        version.isdecimal()
        and int(version) < MAJOR
        and (programs := installed_binaries(int(version), _NEEDED))
    ):
        return programs
    raise EngineFailed(
        f"The data in {paths.data} was written by Postgres {version}, and its programs are not on this machine.",
        hint=f"Install them (Debian: `apt install postgresql-{version} postgresql-{version}-pgvector`), then run "
        "`folklore db upgrade`.",
    )


def require_room(paths: EnginePaths) -> None:
    """Raise DiskFull unless the disk has room for a copy of the data."""
    needed = _size(paths.data) - _size(paths.data / "pg_wal") + _LOG_BYTES + _LEFT_FREE
    free = free_space(paths.engine)
    if free < needed:
        raise DiskFull(
            f"The disk of {paths.engine} has {free / 2**20:,.0f} MB free; the upgrade from Postgres "
            f"{version_on_disk(paths)} to {MAJOR} needs {needed / 2**20:,.0f} MB.",
            hint="Free some space, then run `folklore db upgrade`. The data is as it was.",
        )


def new_room(paths: EnginePaths, account: Account | None) -> Path:
    """Create the folder for the engine that takes over the databases. Each attempt has a new one.

    An initdb or pg_ctl whose client was killed may still be working in that of an earlier attempt.
    """
    room = Path(tempfile.mkdtemp(prefix=_ROOM, dir=paths.engine))
    if account:
        account.chown(room)
    return room


def upgrade_rooms(paths: EnginePaths) -> list[Path]:
    """Return the folders of upgrades."""
    return sorted(paths.engine.glob(f"{_ROOM}*"))


def require_none(home: Path) -> None:
    """Check that no upgrade of this home runs, or was killed. Raises EngineFailed."""
    if upgrade_rooms(EnginePaths(home)):
        hint = (
            "Wait some minutes, and try again. If that is interrupted, it begins anew."
        )
        raise EngineFailed(
            "The data is being copied into the newer Postgres of this Folklore, once.",
            hint=hint,
        )


def offer(paths: EnginePaths, room: Path, account: Account | None) -> None:
    """Give the new data its place next to the old. From here on, the change is completed. Both servers have ended."""
    new_data = EnginePaths(room).data
    record = new_data / REPLACED_FILE
    record.write_text(
        f"{paths.identity.read_text('ascii').strip()}\n{_state(paths.data)}\n", "ascii"
    )
    if account:
        account.chown(record)
    sync(record)
    sync(new_data)
    new_data.rename(paths.upgraded)
    sync(paths.engine)


def complete(paths: EnginePaths) -> None:
    """Put new data in the place of the old, which is kept. No server uses either.

    New data that is older than the last write into the old is removed: an older Folklore used that after a kill.
    """
    if not paths.upgraded.exists():
        return
    _, state = (paths.upgraded / REPLACED_FILE).read_text("ascii").split()
    if paths.data.exists() and any(paths.data.iterdir()):
        if _state(paths.data) != state:
            _discard(paths, state)
            return
        paths.data.rename(
            paths.engine
            / f"data.{version_on_disk(paths)}-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        )
    elif paths.data.exists():
        paths.data.rmdir()
    paths.upgraded.rename(paths.data)
    sync(paths.engine)
    append_to_log(paths, f"upgraded the data to Postgres {MAJOR}")


def _discard(paths: EnginePaths, state: str) -> None:
    """Remove new data that is not of the last state of the old. Raises EngineFailed if the old is not in its place."""
    if any(_state(path) == state for path in kept_data(paths)):
        raise EngineFailed(
            f"Other data came to {paths.data} while that of an upgrade was being put there.",
            hint="Move that directory away, then start again: the upgrade is completed.",
        )
    room = Path(tempfile.mkdtemp(prefix=_ROOM, dir=paths.engine))
    # a kill during the removal leaves a room, which is no offer
    paths.upgraded.rename(room / "data")
    shutil.rmtree(room)


def kept_data(paths: EnginePaths) -> list[Path]:
    """Return the data directories that upgrades have replaced, the latest last."""
    return sorted(
        paths.engine.glob("data.[0-9]*-*"), key=lambda path: path.name.partition("-")[2]
    )


def drop_kept(paths: EnginePaths) -> dict[Path, int]:
    """Delete the data directories that upgrades have replaced; return them with their bytes."""
    dropped = {path: _size(path) for path in kept_data(paths)}
    for path in dropped:
        shutil.rmtree(path)
    return dropped


def _state(data: Path) -> str:
    """Return a digest of the control file, which every start and stop of a server changes."""
    return hashlib.sha256((data / "global" / "pg_control").read_bytes()).hexdigest()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # a server that still runs has removed it
            total += path.lstat().st_size
    return total
