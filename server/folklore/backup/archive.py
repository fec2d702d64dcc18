"""Backup files: a ZIP archive with the output of pg_dump and a manifest, complete or not there at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from folklore.backup.contents import Contents
from folklore.engine import lock_open, release, sync, try_lock
from folklore.errors import InvalidInput

SUFFIX = ".backup"
RESTORE_POINT = "before-restore"  # the names of backups that a restore makes begin so
_FORMAT = 2  # 1 may have digests of the rows with all their columns
_LARGEST_MEMBER = 16 << 20  # of those that are read whole
_DUMP = "folklore.dump"
_MANIFEST = "manifest.json"
_ANSWERS = "answers.json"
_ENCRYPTED = ".age"  # members of backups that earlier versions encrypted
_VERIFIED = ".verified"
_PART = ".part"
_CHUNK = 1 << 20
# Errors of reading a file; RuntimeError: encrypted, or packed otherwise.
_BROKEN = (zipfile.BadZipFile, KeyError, ValidationError, EOFError, RuntimeError)
_DECRYPT = "Decrypt its members with age: docs/how-to/back-up.md, `Encrypted by an earlier version`."


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup: its time, versions and size in the database, and the contents that a copy must have.

    `encrypted`: an earlier version encrypted it, and has the questions and answers in a member of their own.
    """

    created_at: AwareDatetime
    folklore: str
    postgres: str
    major: int
    pgvector: str
    bytes: int
    model: str | None
    contents: Contents
    encrypted: bool = False
    folklore_backup: int = _FORMAT


_adapter = cache(TypeAdapter)
_Answers = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Archive:
    """A backup file and its manifest. `name` is what errors call it."""

    path: Path
    manifest: Manifest
    name: str

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> Archive:
        """Read the manifest of a backup file. Raises InvalidInput."""
        name = name or str(path)
        try:
            with zipfile.ZipFile(path) as file:
                manifest = _adapter(Manifest).validate_json(_small(file, _MANIFEST))
        except OSError as error:
            hint = "`folklore backups list` shows the backups."
            raise InvalidInput(
                "FILE", f"{name} cannot be read ({error.strerror}).", hint=hint
            ) from error
        except _BROKEN:
            raise InvalidInput(
                "FILE", f"{name} is no complete backup of Folklore."
            ) from None
        if manifest.folklore_backup > _FORMAT:
            raise InvalidInput(
                "FILE",
                f"{name} was written by a newer Folklore.",
                hint="Upgrade this installation.",
            )
        return cls(path, manifest, name)

    @property
    def verified_at(self) -> datetime | None:
        """The time at which a copy was restored from this file and compared; None if it has changed since."""
        if self.changed:
            return None
        return self._marked[0]

    @property
    def changed(self) -> bool:
        """True if the file is not the one that was verified. It is read whole, once as long as it is the same file."""
        _, content = self._marked
        return content is not None and content != self.digest()

    @property
    def is_restore_point(self) -> bool:
        """True if a restore made this backup of what it replaced."""
        return self.path.name.startswith(RESTORE_POINT)

    def digest(self) -> str:
        """Return the size and the SHA-256 of the file."""
        status = self.path.stat()
        return _digest(self.path, status.st_size, status.st_mtime_ns, status.st_ino)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size

    def mark_verified(self, digest: str) -> None:
        """Record that the file with this digest was verified now."""
        with _replaced(self._mark) as out:
            out.write(f"{datetime.now(UTC).isoformat()} {digest}\n".encode())

    def delete(self) -> None:
        """Delete the file and its mark."""
        self._mark.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def dump(self) -> AbstractContextManager[BinaryIO]:
        """Open the output of pg_dump; the last read fails if a byte has changed. Raises InvalidInput."""
        return self._member(_DUMP)

    def contents(self) -> Contents:
        """Return what a copy must have. Raises InvalidInput."""
        described = self.manifest.contents
        if not self.manifest.encrypted:
            return described
        with self._member(_ANSWERS) as source:
            answers = _adapter(_Answers).validate_json(source.read(_LARGEST_MEMBER))
        return replace(described, answers=answers)

    @contextmanager
    def _member(self, member: str) -> Iterator[BinaryIO]:
        try:
            with zipfile.ZipFile(self.path) as file:
                if member + _ENCRYPTED in file.namelist():
                    raise InvalidInput(
                        "FILE",
                        f"{self.name} was encrypted by an earlier version of Folklore.",
                        hint=_DECRYPT,
                    )
                with file.open(member) as source:
                    yield cast("BinaryIO", source)
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise InvalidInput("FILE", f"{self.name} is damaged ({error}).") from error

    @property
    def _mark(self) -> Path:
        return self.path.with_name(self.path.name + _VERIFIED)

    @property
    def _marked(self) -> tuple[datetime | None, str | None]:
        """The time in the mark, and the digest, which a mark of an earlier version lacks."""
        try:
            time, _, content = (
                self._mark.read_text(encoding="ascii").strip().partition(" ")
            )
            return datetime.fromisoformat(time), content or None
        except (OSError, ValueError):
            return None, None


Dump = Callable[[BinaryIO], Awaitable[object]]
Describe = Callable[[], Awaitable[Manifest]]


async def write_archive(path: Path, dump: Dump, manifest: Describe) -> Archive:
    """Write a backup file; it gets its name when it is complete and on the disk.

    Raises InvalidInput, also if there is a file of this name.
    """
    with _new_file(path) as out:
        described = await write_to(out, dump, manifest)
    return Archive(path, described, str(path))


async def write_to(out: BinaryIO, dump: Dump, manifest: Describe) -> Manifest:
    """Write a backup to a file or a pipe; what is cut lacks the manifest, and is refused by a restore."""
    with zipfile.ZipFile(out, "w") as file:
        with file.open(_DUMP, "w", force_zip64=True) as member:
            await dump(cast("BinaryIO", member))
        described = await manifest()
        file.writestr(_MANIFEST, _adapter(Manifest).dump_json(described, indent=1))
    return described


@contextmanager
def received(source: BinaryIO, folder: Path) -> Iterator[Archive]:
    """Yield the backup that comes through a pipe: a file for the owner alone in `folder`, as long as it is needed.

    Raises InvalidInput.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    remove_parts(folder)
    part, descriptor = _new_part(folder / f"piped{SUFFIX}")
    try:
        with os.fdopen(descriptor, "w+b") as file:
            shutil.copyfileobj(source, file, _CHUNK)
            file.flush()
            archive = Archive.read(part, "what the pipe gave")
            yield archive
            archive.delete()
    finally:
        part.unlink(missing_ok=True)


def archives(folder: Path) -> list[Archive]:
    """Return the backups of a folder, newest first; files that are no complete backup are left out."""
    backups = []
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(InvalidInput):
            backups.append(Archive.read(path))
    return sorted(
        backups, key=lambda archive: archive.manifest.created_at, reverse=True
    )


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """Open a new file for the owner alone, which replaces `path` when the block has succeeded.

    It is locked until then, so that only the file of a killed process is removed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part, descriptor = _new_part(path)
    except OSError as error:
        raise InvalidInput(
            "FILE", f"{path} cannot be written ({error.strerror})."
        ) from error
    try:
        with os.fdopen(descriptor, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
        sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _new_part(path: Path) -> tuple[Path, int]:
    """Create a file next to `path`, and lock it; another one if it was removed in between."""
    while True:
        part = path.with_name(f".{path.stem}{SUFFIX}.{secrets.token_hex(4)}{_PART}")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        lock_open(descriptor)
        if part.exists():
            return part, descriptor
        os.close(descriptor)


def remove_parts(folder: Path) -> None:
    """Remove the incomplete files that killed processes have left in a folder."""
    for part in folder.glob(f".*{SUFFIX}.????????{_PART}"):
        with suppress(OSError):  # a file system without locks
            if (descriptor := try_lock(part)) is not None:
                part.unlink()
                release(descriptor)


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file under a name that no file has, neither now nor when it is complete."""
    remove_parts(path.parent)
    with _replaced(path) as out:
        _require_none(path)
        yield out
        _require_none(path)


def _require_none(path: Path) -> None:
    if path.exists():
        raise InvalidInput(
            "FILE",
            f"{path} exists, and is not replaced.",
            hint="Name a new file, or delete that one.",
        )


def _small(file: zipfile.ZipFile, name: str) -> bytes:
    """Read a member of bounded size, whatever the archive says. Raises BadZipFile, KeyError."""
    if file.getinfo(name).compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
    ):
        raise zipfile.BadZipFile(name)  # others are unpacked without a bound
    with file.open(name) as member:
        return member.read(_LARGEST_MEMBER)


@lru_cache(256)
def _digest(path: Path, size: int, _modified: int, _inode: int) -> str:
    with path.open("rb") as file:
        return f"{size} {hashlib.file_digest(file, 'sha256').hexdigest()}"
