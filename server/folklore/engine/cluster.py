"""Data directory of the engine: created completely or not at all, checked, and configured before every start."""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from folklore.engine import endpoint
from folklore.engine.account import Account, check_user_has_name
from folklore.engine.binaries import MAJOR, Binaries
from folklore.engine.endpoint import Endpoint
from folklore.engine.files import EnginePaths, engine_failure, sync
from folklore.errors import DataMissing, EngineFailed
from folklore.phases import phase

_CREATION_SECONDS = 5.0

# In data that an upgrade made: the identifier of the data it was copied from, and a digest of the latter's last state.
REPLACED_FILE = "folklore.replaced"

_INITDB_SECONDS = 300
_CONTROL_SECONDS = 30
_SETTINGS_FILE = "folklore.conf"
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "''", "\n": "\\n"})

# Bounds of the cache, in MB: the first serves 100,000 memories, the second a million. Pages are taken as data is read.
_LEAST_CACHE = 256
_MOST_CACHE = 2048
# Memory that a container may take at most, by cgroup 2 and 1.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

# Parallel queries and index builds take memory from /dev/shm; containers often have only 64 MB of it.
_ENOUGH_SHARED_MEMORY = 512 * 1024 * 1024


class OlderData(EngineFailed, has_code=False):
    """Data directory of an older major version of Postgres, which an upgrade copies into a new one."""


def version_on_disk(paths: EnginePaths) -> str | None:
    """Return the major version of the data; None without data."""
    try:
        return (paths.data / "PG_VERSION").read_text("ascii").strip()
    except FileNotFoundError:
        return None


def ensure_data(
    paths: EnginePaths,
    binaries: Binaries,
    account: Account | None,
    major: int = MAJOR,
    *,
    may_create: bool = True,
) -> None:
    """Create the data directory unless it exists.

    Raises OlderData if it can be upgraded to this version, and EngineFailed if this version cannot use it. EngineFailed
    too if the data that was here is missing or replaced: an empty memory in its place would go unnoticed.
    """
    for abandoned in paths.engine.glob("data.new-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    version = version_on_disk(paths)
    if version is None:
        refuse_lost_data(paths, may_create=may_create)
        with phase("Creating the embedded database, once", _CREATION_SECONDS):
            _create(paths, binaries, account)
    elif version != str(major):
        reason = f"The data in {paths.data} was written by Postgres {version}; this Folklore carries Postgres {MAJOR}."
        if version.isdecimal() and int(version) < MAJOR:
            raise OlderData(reason, hint="Run `folklore db upgrade`.")
        raise EngineFailed(
            reason,
            hint="Install the version of Folklore that wrote it, or a newer one.",
        )
    _check_identity(paths, binaries, account)


def refuse_lost_data(paths: EnginePaths, *, may_create: bool) -> None:
    """Raise DataMissing if the data that was here is not, and EngineFailed if other files are in its place."""
    if version_on_disk(paths) is not None:
        return
    if may_create and paths.data.exists() and any(paths.data.iterdir()):
        raise EngineFailed(
            f"{paths.data} holds files but no Postgres data.",
            hint="Move that directory away, then start again.",
        )
    if paths.identity.exists() or not may_create:
        state = "empty" if paths.data.exists() else "missing"
        raise DataMissing(
            f"The data directory {paths.data} is {state}, and held memories.",
            hint="Put it back, for example by mounting its disk. If it is lost: `folklore db start --new`, then "
            "`folklore restore FILE` (`folklore backups list`).",
        )


def _check_identity(
    paths: EnginePaths, binaries: Binaries, account: Account | None
) -> None:
    """Record which data is here, or raise EngineFailed if it is other data than before."""
    identifier = _system_identifier(paths, binaries, account)
    try:
        record = paths.identity.read_text("ascii").strip()
    except FileNotFoundError:
        record = ""
    # the latter: an upgrade was killed after its last rename
    if not record or record == replaced_identity(paths):
        paths.identity.write_text(f"{identifier}\n", "ascii")
    elif record != identifier:
        raise EngineFailed(
            f"The data in {paths.data} is not what was here before: Postgres names it {identifier}, not {record}.",
            hint="Put the former data back, or accept this by `folklore db start --new`.",
        )


def replaced_identity(paths: EnginePaths) -> str | None:
    """Return the identifier of the data that this data has replaced; None if it was not made by an upgrade."""
    try:
        return (paths.data / REPLACED_FILE).read_text("ascii").split()[0]
    except (FileNotFoundError, IndexError):
        return None


def _system_identifier(
    paths: EnginePaths, binaries: Binaries, account: Account | None
) -> str:
    """Return the number that initdb gave to the data, the same in every copy of it."""
    outcome = binaries.run(
        "pg_controldata",
        "--pgdata",
        str(paths.data),
        account=account,
        timeout=_CONTROL_SECONDS,
    )
    for line in outcome.stdout.splitlines():
        name, _, value = line.partition(":")
        if name == "Database system identifier":
            return value.strip()
    raise engine_failure(
        f"The data in {paths.data} cannot be read.", paths, outcome.output
    )


def cache_size(limits: Sequence[Path] = _LIMITS) -> str:
    """Return the size of Postgres' cache, `shared_buffers`: an eighth of the memory of the machine or container."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit in limits:
        with suppress(OSError, ValueError):  # no container, or none with a limit
            memory = min(memory, int(limit.read_text()))
    return f"{min(max(memory // 8 // 2**20, _LEAST_CACHE), _MOST_CACHE)}MB"


def configure(
    paths: EnginePaths, listen: Endpoint, shared_buffers: str, account: Account | None
) -> None:
    """Write the settings of the server. Settings from `alter system` override them."""
    # the setting is a list: quotes keep a comma in one entry
    folder = '"' + listen.host.replace('"', '""') + '"'
    settings = {
        "listen_addresses": "",
        "port": str(listen.port),
        "unix_socket_directories": folder,
        "unix_socket_permissions": "0700",
        "shared_buffers": shared_buffers,
        "dynamic_shared_memory_type": _dynamic_shared_memory(),
        "huge_pages": "off",  # in Kubernetes a missing allowance for them is a crash, not an error
        "max_connections": "160",  # 20 clients × a pool of 6, background jobs, and some spare
        "jit": "off",  # compiling takes longer than our queries
        "max_wal_size": "256MB",
        "autovacuum": "on",
        # After a first import, index-only scans and good plans are available in seconds instead of a minute.
        "autovacuum_naptime": "5s",
        "fsync": "on",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        "log_checkpoints": "off",
        "lc_messages": "C",  # the probe reads them
    }
    # replaced atomically: half a file could open the server to others
    fresh = paths.data / f"{_SETTINGS_FILE}.new"
    fresh.write_bytes(
        b"".join(
            os.fsencode(f"{name} = '{value.translate(_ESCAPES)}'\n")
            for name, value in settings.items()
        )
    )
    if account:
        account.chown(fresh)
    fresh.replace(paths.data / _SETTINGS_FILE)


def _create(paths: EnginePaths, binaries: Binaries, account: Account | None) -> None:
    """Run initdb in a sibling directory, then rename it: an initdb that fails or is killed leaves no half directory.

    Each attempt has a new sibling, because an initdb whose client was killed may still be writing into its own.
    """
    if account is None:
        check_user_has_name()
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=paths.engine))
    try:
        if account:
            account.chown(fresh)
        _initdb(fresh, paths, binaries, account)
        if paths.data.exists():
            paths.data.rmdir()
        fresh.rename(paths.data)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    sync(paths.engine)  # the rename, as initdb did for the contents


# Options of initdb. Only the owner and root can enter the socket's directory; `peer` would reject root.
AUTHENTICATION = ("--auth-local", "trust", "--auth-host", "reject")


def _initdb(
    fresh: Path, paths: EnginePaths, binaries: Binaries, account: Account | None
) -> None:
    outcome = binaries.run(
        "initdb",
        *("--pgdata", fresh.name, "--username", endpoint.USER),
        *(
            "--encoding",
            "UTF8",
            "--locale",
            "C",
            "--locale-provider",
            "builtin",
            "--builtin-locale",
            "C.UTF-8",
        ),
        *("--data-checksums", "--no-instructions", "--set", "huge_pages=off"),
        # One sync for the file system instead of 1,000 for the files: 0.05 s instead of 0.3 – 4 s.
        *(("--sync-method", "syncfs") if sys.platform == "linux" else ()),
        *AUTHENTICATION,
        account=account,
        cwd=paths.engine,  # initdb passes its paths to a shell, and a relative name has no special character
        timeout=_INITDB_SECONDS,
    )
    if outcome.code != 0:
        raise engine_failure(
            f"The data directory could not be created in {paths.engine}.",
            paths,
            outcome.output,
        )
    with (fresh / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(
            f"\ninclude = '{_SETTINGS_FILE}'  # rewritten by Folklore at every start\n"
        )


def _dynamic_shared_memory() -> str:
    try:
        status = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return "posix" if os.uname().sysname != "Linux" else "mmap"
    if status.f_bavail * status.f_frsize >= _ENOUGH_SHARED_MEMORY:
        return "posix"
    return "mmap"
