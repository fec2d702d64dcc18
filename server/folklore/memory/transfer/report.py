"""What became of an import: counts, and the reasons why lines were left out."""

from __future__ import annotations

from dataclasses import dataclass, field

FAILURES_SHOWN = 20
NAMES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Failure:
    """A line that could not be taken, and why; never its text."""

    line: int
    message: str


@dataclass(slots=True)
class Report:
    """What became of the lines so far. `skipped` and `ignored` count by type of line and by name of field.

    `unlinked` memories were superseded by one that is neither here nor in the file; `untied` relations and revisions
    belong to memories that are neither. `refused` lines hold a secret, `redacted` ones did.
    """

    stored: int = 0
    overwritten: int = 0
    duplicates: int = 0
    without_vector: int = 0
    unlinked: int = 0
    relations: int = 0
    revisions: int = 0
    untied: int = 0
    failed: int = 0
    refused: int = 0
    redacted: int = 0
    lines: int = 0
    bytes: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    refusals: list[Failure] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> int:
        """Memories that are here now, whether they were before or not."""
        return self.stored + self.overwritten + self.duplicates

    @property
    def rate(self) -> float:
        """Memories settled a second."""
        return self.settled / self.seconds if self.seconds else 0.0

    def skip(self, kind: str) -> None:
        """Count a line of a type that is no memory."""
        _count(self.skipped, kind)

    def ignore(self, name: str) -> None:
        """Count a line with a field that was left out."""
        _count(self.ignored, name)

    def fail(self, line: int, message: str) -> None:
        """Count a line that could not be taken; the first few are kept to be shown."""
        self.failed += 1
        if len(self.failures) < FAILURES_SHOWN:
            self.failures.append(Failure(line, message))

    def refuse(self, line: int, message: str) -> None:
        """Count a line that is left out because it holds a secret; the first few are kept to be shown."""
        self.refused += 1
        if len(self.refusals) < FAILURES_SHOWN:
            self.refusals.append(Failure(line, message))


def _count(counts: dict[str, int], name: str) -> None:
    if name in counts or len(counts) < NAMES_SHOWN:  # a file may invent as many as it has lines
        counts[name] = counts.get(name, 0) + 1
