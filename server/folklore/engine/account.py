"""Unprivileged account that runs the server if the client is root, because Postgres refuses to run as root."""

import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from folklore.engine.files import EnginePaths
from folklore.errors import EngineFailed

# `postgres` first: daemons often share `nobody`, and any process of the account can connect to the server.
_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """User id and group id that run the server and own its files."""

    uid: int
    gid: int

    def chown(self, path: Path) -> None:
        """Make this account the owner of a file or directory."""
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def chown_tree(self, root: Path) -> None:
        """Make this account the owner of a directory and all its contents."""
        self.chown(root)
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                self.chown(Path(folder, name))


def account_for(paths: EnginePaths) -> Account | None:
    """Return the account that must run the server; None if the client itself may run it.

    For root it is the owner of the data, else the owner of the home (a user who can later join without root), else an
    unprivileged account of the system. Raises EngineFailed if the system has none.
    """
    if os.geteuid() != 0:
        return None
    for path in (paths.data, paths.engine):
        if path.exists() and (owner := path.stat()).st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
    return _home_owner(paths.home) or _system_account()


def check_user_has_name() -> None:
    """Raise EngineFailed if the user id has no name, as in some containers: initdb would refuse it."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise EngineFailed(
            f"Postgres needs a name for user id {os.geteuid()}, and /etc/passwd has none.",
            hint="Add a line for it to /etc/passwd, or set FOLKLORE_DATABASE_URL.",
        ) from None


def make_reachable(target: Path, account: Account) -> list[Path]:
    """Let the account pass through the parents of `target`; return the directories whose mode changed."""
    parents = {*target.parents, *target.resolve().parents}
    return [folder for folder in sorted(parents) if _make_passable(folder, account)]


def make_programs_readable(folder: Path, account: Account) -> list[Path]:
    """Let the account reach and read the programs of Postgres, even if they were unpacked under a strict umask."""
    package = folder.parents[1]
    changed = make_reachable(package, account)
    readable = stat.S_IROTH | stat.S_IXOTH
    for root in (package, package.with_name(f"{package.name}.libs")):
        if root.exists() and root.stat().st_mode & readable != readable:
            for path in (
                *root.rglob("*"),
                root,
            ):  # the root last: its mode marks the tree as done
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(
                    mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
                )
            changed.append(root)
    return changed


def _home_owner(home: Path) -> Account | None:
    with suppress(KeyError, FileNotFoundError):
        owner = pwd.getpwuid(home.stat().st_uid)  # initdb needs an owner with a name
        return Account(owner.pw_uid, owner.pw_gid) if owner.pw_uid != 0 else None
    return None


def _system_account() -> Account:
    for name in _CANDIDATES:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return Account(entry.pw_uid, entry.pw_gid)
    raise EngineFailed(
        f"Postgres does not run as root, and the system has no account named {' or '.join(_CANDIDATES)}.",
        hint="Start Folklore as an ordinary user, or set FOLKLORE_DATABASE_URL.",
    )


def _make_passable(folder: Path, account: Account) -> bool:
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == account.uid and mode & stat.S_IXUSR:
        return False
    if status.st_gid == account.gid:
        needed = stat.S_IXGRP
    else:
        needed = stat.S_IXOTH
    if mode & needed:
        return False
    folder.chmod(mode | needed)
    return True
