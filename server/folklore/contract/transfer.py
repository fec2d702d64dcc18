"""Export and import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from folklore.contract.argument_types import NamespaceNames, Words
from folklore.contract.requests import Part, Request
from folklore.errors import FolkloreError, Refused
from folklore.model import Number

_FAILURES_SHOWN = 20
_NAMES_COUNTED = 50  # a file may hold as many names as lines


@dataclass(frozen=True, slots=True)
class Failure:
    """The number of a line that was left out, its file and line if it has any, and the reason, without its text."""

    line: int
    message: str
    place: str = ""


@dataclass(slots=True)
class Report:
    """Counts of an import so far. `skipped` counts by type of line, `ignored_fields` by field, `namespaces` memories.

    `ignored_at` is the first place of each ignored field.
    `removed` memories were forgotten because their section is no longer in its file. `refused` lines hold a secret,
    `redacted` ones held one. `without_vector` memories have a pending embedding. `unlinked` memories have a successor,
    and `untied` relations and revisions a memory, that is neither stored nor in the file.
    """

    lines: int = 0
    bytes: int = 0
    headers: int = 0
    stored: int = 0
    overwritten: int = 0
    duplicates: int = 0
    removed: int = 0
    namespaces: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    ignored_fields: dict[str, int] = field(default_factory=dict)
    ignored_at: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    refusals: list[Failure] = field(default_factory=list)
    redacted: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    without_vector: int = 0
    unlinked: int = 0
    relations: int = 0
    revisions: int = 0
    untied: int = 0
    seconds: Number = 0.0

    @property
    def settled(self) -> int:
        """Memories that are stored now, by this import or before."""
        return self.stored + self.overwritten + self.duplicates

    @property
    def rate(self) -> float:
        """Settled memories per second."""
        return self.settled / self.seconds if self.seconds else 0.0

    def replace(self, counts: dict[str, Any]) -> None:
        """Take over the counts of a server, which went on from these."""
        for name, value in counts.items():
            if name in ("refusals", "failures"):
                value = [Failure(**failure) for failure in value]
            setattr(self, name, value)

    def settle(
        self, namespace: str, *, new: int, overwritten: int, duplicates: int
    ) -> None:
        """Count memories of one namespace that are stored now."""
        self.stored += new
        self.overwritten += overwritten
        self.duplicates += duplicates
        self.namespaces[namespace] = (
            self.namespaces.get(namespace, 0) + new + overwritten + duplicates
        )

    def skip(self, type_: str) -> None:
        """Count a line of a type that is not imported."""
        _count(self.skipped, type_)

    def ignore(self, name: str, place: str) -> None:
        """Count a line with a field that was left out."""
        _count(self.ignored_fields, name)
        if name in self.ignored_fields:
            self.ignored_at.setdefault(name, place)

    def fail(self, line: int, error: FolkloreError, place: str = "") -> None:
        """Count a line that was left out, as refused if it holds a secret, and keep the first reasons."""
        if isinstance(error, Refused):
            self.refused += 1
            reasons = self.refusals
        else:
            self.failed += 1
            reasons = self.failures
        if len(reasons) < _FAILURES_SHOWN:
            reasons.append(Failure(line, str(error), place))


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < _NAMES_COUNTED:
        counts[name] = counts.get(name, 0) + 1


OnConflict = Literal["skip", "overwrite", "fail"]


class ExportRequest(Request):
    """Export namespaces, or all that the caller may read; the result is a stream of JSON Lines."""

    namespaces: NamespaceNames = ()
    embeddings: bool = False


class PagesRead(Part):
    """Pages of one origin that were read before an import.

    `origin` names what was imported, the same for every import of it. The pages are all of the origin that `below`
    names, or that are in the folders named there (none: all). `ids` are those of all sections; the sections of `unread`
    pages are not known.
    """

    origin: str
    below: Words
    ids: frozenset[UUID]
    unread: frozenset[str]


class ImportRequest(Request):
    """Import lines into `namespace`, or each into the namespace that it names. Its counts are added to `report`."""

    namespace: str | None = None
    on_conflict: OnConflict = "skip"
    dry_run: bool = False
    pages: PagesRead | None = None
    report: Report = Field(default_factory=Report)
