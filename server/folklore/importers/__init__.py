"""Importers: readers of other formats than Folklore's own, which a distribution of their own brings.

Such a distribution names its `Importer` as an entry point of the group `folklore.importers`, where `folklore import`
finds it (installed.py). It reads on the machine of the person who imports; what the server gets are lines in the format
of an export (`folklore.contract.lines`).

An importer may use this package, `folklore.contract.lines`, `folklore.errors` and `folklore.text`; and what tells it
where it runs: `folklore.config`, `folklore.proxies`, `folklore.client.project` and `folklore.client.code.git`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from folklore.contract.lines import Lines
from folklore.contract.transfer import OnConflict, PagesRead
from folklore.text import names

__all__ = [
    "FileFormat",
    "Format",
    "Importer",
    "OnConflict",
    "Options",
    "PagesRead",
    "PathFormat",
    "Target",
]


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of the user. `namespace` is that of everything; `mapping` has namespaces by the folders of projects.

    `project` is the namespace of the project that the command works in. Addresses on `private_hosts` may be read.
    `remote` is the setting, by which a project is named.
    """

    author: str
    project: str
    namespace: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    private_hosts: tuple[str, ...] = ()
    remote: str | None = None

    @property
    def private(self) -> str:
        """The namespace of the user alone."""
        return names.private(self.author)


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Target:
    """A part of a source, with its lines and its namespace; without one, it is left out for a reason.

    `memories` is the number of memories in it, None if they were not read yet. `pages` describes what the lines are a
    whole copy of, so that what is gone can be forgotten. `titles` are shown before an import of what no person wrote
    down as a note. `close` frees what the lines are read from.

    `folklore import` adds the rest. `stored` is the number of memories in the namespace, None if it does not exist.
    `readers` are the names that have a grant for it besides the author, `owners` those that may read everything.
    """

    source: str
    namespace: str | None
    lines: Lines = iter(())
    memories: int | None = None
    pages: PagesRead | None = None
    reason: str = ""
    titles: tuple[str, ...] = ()
    close: Callable[[], None] = _nothing
    stored: int | None = None
    readers: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of one file, which may be standard input. Its lines may name their namespaces."""

    read: Callable[[BinaryIO], Lines]
    on_conflict: OnConflict = "skip"


@dataclass(frozen=True, slots=True)
class PathFormat:
    """A format of a file or a folder, or with `of_addresses` of one or more addresses, with a target for each part.

    `targets` raises InvalidInput. `hint` says what to do if no target has a memory.
    """

    targets: Callable[[Sequence[str], Options], Sequence[Target]]
    on_conflict: OnConflict = "skip"
    of_addresses: bool = False
    hint: str = ""


Format = FileFormat | PathFormat


@dataclass(frozen=True, slots=True)
class Importer:
    """An importer: the formats that a distribution reads.

    `recognise` returns the format of a source by its name and content, None for an unknown one. `check` gets the format
    that a user named, and the source. Both raise InvalidInput for a file that is known and not read, with what it is.
    `describe` returns a sentence on a file of which no line could be read, None for an unknown one.
    """

    formats: Mapping[str, Format]
    recognise: Callable[[str], str | None]
    check: Callable[[str, str], None]
    describe: Callable[[Path], str | None]
