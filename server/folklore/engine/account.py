"""The unprivileged account that runs the server when the client is root, because Postgres refuses root."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from folklore.engine.paths import Place
from folklore.errors import EngineFailed

# An account that is meant for databases comes first: daemons without any rights often share `nobody`, and could then
# reach the server's socket.
_CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """Ids to run and own files with."""

    uid: int
    gid: int

    def give(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def give_all(self, root: Path) -> None:
        self.give(root)
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                self.give(Path(folder, name))


def account_for(place: Place) -> Account | None:
    """None when the client may run the server itself; as root, whoever owns the data, else an unprivileged account."""
    if os.name == "nt" or os.geteuid() != 0:
        return None
    for path in (place.data, place.engine):
        if path.exists() and (owner := path.stat()).st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
    return _named_owner(place.home) or _unprivileged()


def _named_owner(home: Path) -> Account | None:
    """Root in somebody's own home serves as that person, who can then join without root. initdb wants a name."""
    import pwd

    try:
        owner = pwd.getpwuid(home.stat().st_uid)
    except (KeyError, FileNotFoundError):
        return None
    return Account(owner.pw_uid, owner.pw_gid) if owner.pw_uid != 0 else None


def _unprivileged() -> Account:
    import pwd

    for name in _CANDIDATES:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid != 0:
            return Account(found.pw_uid, found.pw_gid)
    raise EngineFailed(
        f"Postgres does not run as root, and there is no account named {' or '.join(_CANDIDATES)} to run it.",
        hint="Start Folklore as an ordinary user, or set FOLKLORE_DATABASE_URL.",
    )


def check_named() -> None:
    """initdb refuses a user id without a name (containers started with an arbitrary one): say so before it does."""
    if os.name == "nt":
        return
    import pwd

    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise EngineFailed(
            f"Postgres needs a name for user id {os.geteuid()}, and /etc/passwd has none.",
            hint="Add a line for it to /etc/passwd, or set FOLKLORE_DATABASE_URL.",
        ) from None


def open_way(target: Path, account: Account) -> list[Path]:
    """Let the account pass through the parents of `target` (pass, not read); return the directories this opened."""
    parents = {*target.parents, *target.resolve().parents}
    return [folder for folder in sorted(parents) if _let_pass(folder, account)]


def open_programs(folder: Path, account: Account) -> list[Path]:
    """Let the account reach the programs, and read them if they were unpacked under a strict umask."""
    package = folder.parent.parent
    opened = open_way(package, account)
    for root in (package, package.with_name(f"{package.name}.libs")):
        readable = stat.S_IROTH | stat.S_IXOTH
        if root.exists() and root.stat().st_mode & readable != readable:
            for path in (*root.rglob("*"), root):  # the root last: it says that all below it is done
                mode = stat.S_IMODE(path.stat().st_mode)
                path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))
            opened.append(root)
    return opened


def _let_pass(folder: Path, account: Account) -> bool:
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == account.uid and mode & stat.S_IXUSR:
        return False
    wanted = stat.S_IXGRP if status.st_gid == account.gid else stat.S_IXOTH
    if mode & wanted:
        return False
    folder.chmod(mode | wanted)
    return True
