"""The data directory: made whole or not at all, checked, and configured before every start."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from folklore.engine import endpoint
from folklore.engine.account import Account, check_named
from folklore.engine.binaries import MAJOR, Binaries
from folklore.engine.endpoint import Endpoint
from folklore.engine.log import failure
from folklore.engine.paths import Place
from folklore.errors import EngineFailed

INITDB_SECONDS = 300
SETTINGS_FILE = "folklore.conf"

# Parallel queries and index builds take memory from /dev/shm; containers often have 64 MB of it.
_LITTLE_SHARED_MEMORY = 512 * 1024 * 1024


def version_on_disk(place: Place) -> str | None:
    try:
        return (place.data / "PG_VERSION").read_text("ascii").strip()
    except FileNotFoundError:
        return None


def ensure(place: Place, binaries: Binaries, account: Account | None) -> None:
    """Make the data directory if there is none; refuse one that is not ours to use."""
    for abandoned in place.engine.glob("data.new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    version = version_on_disk(place)
    if version is None:
        _refuse_anything_else(place)
        _create(place, binaries, account)
    elif version != str(MAJOR):
        raise EngineFailed(
            f"The data in {place.data} was written by Postgres {version}; this Folklore carries Postgres {MAJOR}.",
            hint=f"Export it with the version of Folklore that wrote it, move {place.data} away and import it here.",
        )


def _refuse_anything_else(place: Place) -> None:
    if place.data.exists() and any(place.data.iterdir()):
        raise EngineFailed(
            f"{place.data} holds files but no Postgres data.",
            hint="Move that directory away, then start again.",
        )


def _create(place: Place, binaries: Binaries, account: Account | None) -> None:
    """initdb into a sibling, then rename: an initdb that fails or is killed half way leaves nothing in the way.

    The sibling's name is new each time, because an initdb whose client was killed may still be writing into its own.
    """
    if account is None:
        check_named()
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=place.engine))
    try:
        if account:
            account.give(fresh)
        _initdb(fresh, place, binaries, account)
        if place.data.exists():
            place.data.rmdir()
        fresh.rename(place.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    _sync(place.engine)


def _initdb(fresh: Path, place: Place, binaries: Binaries, account: Account | None) -> None:
    outcome = binaries.run(
        "initdb",
        *("--pgdata", fresh.name, "--username", endpoint.USER),
        *("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
        *("--data-checksums", "--no-instructions", "--set", "huge_pages=off"),
        *(("--sync-method", "syncfs") if sys.platform == "linux" else ()),  # one sync, not 1,000: 0.05 s, not 0.3 – 4 s
        *_authentication(place, account),
        account=account,
        cwd=place.engine,  # with a relative name no character of the path meets a shell
        timeout=INITDB_SECONDS,
    )
    if outcome.code != 0:
        raise failure(f"The engine's data directory could not be made in {place.engine}.", place.log, outcome.said)
    with (fresh / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(f"\ninclude = '{SETTINGS_FILE}'  # rewritten by Folklore at every start\n")


def _authentication(place: Place, account: Account | None) -> tuple[str, ...]:
    """Trust on the socket: its directory is 0700, so only the owner and root get there. `peer` would refuse root."""
    if not endpoint.OVER_TCP:
        return ("--auth-local", "trust", "--auth-host", "reject")
    endpoint.make_password(place, account)
    return ("--auth-local", "reject", "--auth-host", "scram-sha-256", "--pwfile", str(place.password))


def configure(place: Place, listen: Endpoint, shared_buffers: str, account: Account | None) -> None:
    """Write our settings; what a person sets with `alter system` stays stronger."""
    settings = _listening(listen) | {
        "shared_buffers": shared_buffers,
        "dynamic_shared_memory_type": _dynamic_shared_memory(),
        "huge_pages": "off",  # in Kubernetes a missing allowance for them is a crash, not an error
        "max_connections": "160",  # 20 clients × a pool of 6, background jobs, and some
        "jit": "off",  # compiling costs more than our queries
        "max_wal_size": "256MB",
        "autovacuum": "on",
        # After a first import, index-only scans and good plans are a few seconds away, not a minute.
        "autovacuum_naptime": "5s",
        "fsync": "on",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        "lc_messages": "C",  # the probe reads them
    }
    fresh = place.data / f"{SETTINGS_FILE}.new"  # replaced at once: half of it could open the server to others
    fresh.write_bytes(b"".join(os.fsencode(f"{name} = {_quoted(value)}\n") for name, value in settings.items()))
    if account:
        account.give(fresh)
    fresh.replace(place.data / SETTINGS_FILE)


def _listening(listen: Endpoint) -> dict[str, str]:
    if endpoint.OVER_TCP:
        return {"listen_addresses": listen.host, "port": str(listen.port), "unix_socket_directories": ""}
    directory = '"' + listen.host.replace('"', '""') + '"'  # the setting is a list: quoted, a comma is a letter
    return {
        "listen_addresses": "",
        "port": str(listen.port),
        "unix_socket_directories": directory,
        "unix_socket_permissions": "0700",
    }


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return f"'{escaped}'"


def _dynamic_shared_memory() -> str:
    if os.name == "nt":
        return "windows"
    try:
        status = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return "posix" if os.uname().sysname != "Linux" else "mmap"
    return "posix" if status.f_bavail * status.f_frsize >= _LITTLE_SHARED_MEMORY else "mmap"


def _sync(folder: Path) -> None:
    """Make the rename survive a power cut, as initdb did for all below it."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
