"""Let a newer memory take an older one's place: closed, linked, hidden from recall, and undoable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.stores.changes import Changing, Closing, State
from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound
from folklore.model import Relation

SUPERSEDES = "supersedes"


@dataclass(frozen=True, slots=True)
class Replacement:
    """`new` takes the place of `old`; `field` is what to call it in an error."""

    old: UUID
    new: UUID
    field: str
    reason: str | None = None


def objection(replacement: Replacement, states: Mapping[UUID, State]) -> FolkloreError | None:
    """Why this cannot be, if it cannot."""
    field, old, new = replacement.field, states.get(replacement.old), states.get(replacement.new)
    if old is None or new is None:
        missing = replacement.old if old is None else replacement.new
        return NotFound(f"{field}: there is no memory {missing} in this namespace.", hint="Recall it to see its id.")
    if old.id == new.id:
        return InvalidInput(field, "a memory cannot supersede itself.", hint="Its text is the same: leave this out.")
    if old.forgotten_at is not None:
        return Conflict(f"{field}: the memory {old.id} was forgotten.", hint="Store the new one on its own.")
    if done(replacement, states):
        return None
    if old.superseded_at is not None:
        by = "another memory" if old.superseded_by is None else str(old.superseded_by)
        return Conflict(f"{field}: the memory {old.id} was superseded by {by} already.", hint="Supersede that one.")
    if new.forgotten_at is not None or new.superseded_at is not None:
        return Conflict(f"{field}: the memory {new.id} is itself not in force any more.")
    return None


def done(replacement: Replacement, states: Mapping[UUID, State]) -> bool:
    """Whether this very replacement has happened already, so that saying it again changes nothing."""
    return states[replacement.old].superseded_by == replacement.new


async def supersede(change: Changing, replacements: Sequence[Replacement], *, now: datetime) -> None:
    """Close the old ones and relate the new ones to them; a constant number of statements.

    Raises NotFound, Conflict, InvalidInput for the first that cannot be; then nothing of the transaction stays.
    """
    if not replacements:
        return
    states = await change.states([id_ for item in replacements for id_ in (item.old, item.new)])
    seen: dict[UUID, UUID] = {}
    fresh = {item.new for item in replacements}
    for item in replacements:
        if item.old in fresh and item.old != item.new:
            raise InvalidInput(item.field, f"{item.old} is itself stated by this call.", hint="Say the two apart.")
        if problem := objection(item, states):
            raise problem
        if seen.setdefault(item.old, item.new) != item.new:
            raise InvalidInput(item.field, f"two memories would supersede {item.old}.", hint="Let one of them do so.")
    await close(change, [item for item in replacements if not done(item, states)], now=now)


async def close(change: Changing, replacements: Sequence[Replacement], *, now: datetime) -> None:
    """Write replacements that nothing stands against. Three statements."""
    by_old = {item.old: item for item in replacements}
    if not by_old:
        return
    reasons = {item.old: item.reason for item in by_old.values() if item.reason is not None}
    await change.record(list(by_old), "supersede", ["superseded_at", "superseded_by"], reasons=reasons)
    await change.close([Closing(item.old, superseded_at=now, superseded_by=item.new) for item in by_old.values()])
    await change.relate([Relation(item.new, SUPERSEDES, item.old) for item in by_old.values()])
