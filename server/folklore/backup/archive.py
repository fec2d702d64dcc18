"""Backup files: a ZIP archive with the output of pg_dump and a manifest, complete or not there at all."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from folklore.backup.contents import Contents
from folklore.backup.encryption import Key
from folklore.errors import InvalidInput, NotFound

SUFFIX = ".backup"
_FORMAT = 1
_DUMP, _MANIFEST, _ANSWERS = "folklore.dump", "manifest.json", "answers.json"
_ENCRYPTED = ".age"
_VERIFIED = ".verified"
_SET_KEY = "Set it to the file with the key: FOLKLORE_BACKUP__KEY=FILE."


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup: its time, versions and size in the database, and the contents that a copy must have.

    An encrypted backup has the questions and answers, which repeat words of memories, in a member of its own.
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


@cache
def _manifests() -> TypeAdapter[Manifest]:
    return TypeAdapter(Manifest)


@cache
def _answers() -> TypeAdapter[Mapping[str, tuple[str, ...]]]:
    return TypeAdapter(Mapping[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class Archive:
    """A backup file and its manifest."""

    path: Path
    manifest: Manifest

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Read the manifest of a backup file. Raises NotFound, InvalidInput."""
        try:
            with zipfile.ZipFile(path) as file:
                manifest = _manifests().validate_json(file.read(_MANIFEST))
        except FileNotFoundError:
            raise NotFound(f"There is no file {path}.", hint="`folklore backups list` shows the backups.") from None
        except OSError as error:
            raise InvalidInput("FILE", f"{path} cannot be read ({error.strerror}).") from error
        except (
            zipfile.BadZipFile,
            KeyError,
            ValidationError,
            EOFError,
            RuntimeError,
        ):  # the last: encrypted, or packed otherwise
            raise InvalidInput("FILE", f"{path} is no complete backup of Folklore.") from None
        if manifest.folklore_backup > _FORMAT:
            raise InvalidInput("FILE", f"{path} was written by a newer Folklore.", hint="Upgrade this installation.")
        return cls(path, manifest)

    @property
    def verified_at(self) -> datetime | None:
        """The time at which a copy was restored from this file and compared."""
        try:
            return datetime.fromisoformat(self._mark.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            return None

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size

    def mark_verified(self) -> None:
        """Record that this file was verified now."""
        with _replaced(self._mark) as out:
            out.write(f"{datetime.now(UTC).isoformat()}\n".encode())

    def delete(self) -> None:
        """Delete the file and its mark."""
        self._mark.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    @contextmanager
    def dump(self, key: Key | None) -> Iterator[BinaryIO]:
        """Open the output of pg_dump; the last read fails if a byte has changed. Raises InvalidInput."""
        with self._member(_DUMP, key) as source:
            yield source

    def contents(self, key: Key | None) -> Contents:
        """Return what a copy must have. Raises InvalidInput."""
        described = self.manifest.contents
        if not self.manifest.encrypted:
            return described
        with self._member(_ANSWERS, key) as source:
            return replace(described, answers=_answers().validate_json(source.read()))

    @contextmanager
    def _member(self, name: str, key: Key | None) -> Iterator[BinaryIO]:
        try:
            with zipfile.ZipFile(self.path) as file:
                if not self.manifest.encrypted:
                    with file.open(name) as source:
                        yield cast("BinaryIO", source)
                    return
                if key is None:
                    raise InvalidInput("backup.key", f"is needed for {self.path}, which is encrypted.", hint=_SET_KEY)
                with file.open(name + _ENCRYPTED) as source, key.decrypting(cast("BinaryIO", source)) as plain:
                    yield plain
        except (zipfile.BadZipFile, KeyError, EOFError) as error:
            raise InvalidInput("FILE", f"{self.path} is damaged ({error}).") from error

    @property
    def _mark(self) -> Path:
        return self.path.with_name(self.path.name + _VERIFIED)


async def write_archive(
    path: Path,
    dump: Callable[[BinaryIO], Awaitable[object]],
    manifest: Callable[[], Awaitable[Manifest]],
    key: Key | None = None,
) -> Archive:
    """Write a backup file, encrypted if there is a key; it gets its name when it is complete and on the disk.

    Raises InvalidInput.
    """
    with _replaced(path) as out, zipfile.ZipFile(out, "w") as file:
        with _new_member(file, _DUMP, key) as member:
            await dump(member)
        described = await manifest()
        if key is not None:
            with _new_member(file, _ANSWERS, key) as member:
                member.write(_answers().dump_json(described.contents.answers))
            described = replace(described, contents=replace(described.contents, answers={}), encrypted=True)
        file.writestr(_MANIFEST, _manifests().dump_json(described, indent=1))
    return Archive(path, described)


@contextmanager
def _new_member(file: zipfile.ZipFile, name: str, key: Key | None) -> Iterator[BinaryIO]:
    with file.open(name if key is None else name + _ENCRYPTED, "w", force_zip64=True) as member:
        if key is None:
            yield cast("BinaryIO", member)
        else:
            with key.encrypting(cast("BinaryIO", member)) as plain:
                yield plain


def archives(folder: Path) -> list[Archive]:
    """Return the backups of a folder, newest first; files that are no complete backup are left out."""
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            found.append(Archive.read(path))
        except (InvalidInput, NotFound):
            continue
    return sorted(found, key=lambda archive: archive.manifest.created_at, reverse=True)


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """Open a new file for the owner alone, which replaces `path` when the block has succeeded."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput("FILE", f"{path} cannot be written ({error.strerror}).") from error
    try:
        with os.fdopen(descriptor, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
        if os.name != "nt":  # the rename survives a power failure
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
    finally:
        part.unlink(missing_ok=True)
