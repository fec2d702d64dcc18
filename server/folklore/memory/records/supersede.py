"""Supersede: a newer memory replaces an older one, which recall hides. An undo restores it, and so does forgetting the
newer one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.changes import Closing, NamespaceTransaction, Patch, State
from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound
from folklore.model import Relation

SUPERSEDES = "supersedes"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The memory `new` supersedes `old`; `field` is the name in errors, `new_field` that of the new memory."""

    old: UUID
    new: UUID
    field: str
    reason: str | None = None
    new_field: str = "id"


def refusal(
    replacement: Replacement, states: Mapping[UUID, State]
) -> FolkloreError | None:
    """Return the error that forbids a replacement, or None."""
    field = replacement.field
    for id_ in (replacement.old, replacement.new):
        if id_ not in states:
            return NotFound(
                f"{field}: there is no memory {id_} in this namespace.",
                hint="Recall it to see its id.",
            )
    old = states[replacement.old]
    new = states[replacement.new]
    if old.id == new.id:
        return InvalidInput(
            field,
            "names the memory itself.",
            hint="The text is known already: leave this out.",
        )
    if old.forgotten_at is not None:
        return Conflict(
            f"{field}: the memory {old.id} was forgotten.",
            hint="Leave it out, or undo its forgetting.",
        )
    if is_done(replacement, states):
        return None
    if old.superseded_at is not None:
        by = old.superseded_by or "another memory"
        return Conflict(
            f"{field}: the memory {old.id} was superseded by {by} already.",
            hint="Supersede that one.",
        )
    if new.forgotten_at is not None or new.superseded_at is not None:
        return Conflict(
            f"{replacement.new_field}: the memory {new.id} was itself forgotten or superseded."
        )
    return None


def is_done(replacement: Replacement, states: Mapping[UUID, State]) -> bool:
    """Return True if the replacement was made before."""
    return states[replacement.old].superseded_by == replacement.new


async def supersede(
    change: NamespaceTransaction, replacements: Mapping[int, Replacement]
) -> dict[int, FolkloreError]:
    """Supersede memories. A constant number of statements. Returns the errors of replacements that are not possible."""
    if not replacements:
        return {}
    ids: list[UUID] = []
    for item in replacements.values():
        ids += [item.old, item.new]
    states = await change.states(ids)
    errors = _errors(replacements, states)
    if errors:
        return errors
    due = [item for item in replacements.values() if not is_done(item, states)]
    await write_replacements(change, due)
    return {}


def _errors(
    replacements: Mapping[int, Replacement], states: Mapping[UUID, State]
) -> dict[int, FolkloreError]:
    errors: dict[int, FolkloreError] = {}
    successors: dict[UUID, UUID] = {}
    new = {item.new for item in replacements.values()}
    for index, item in replacements.items():
        if item.old in new and item.old != item.new:
            errors[index] = InvalidInput(
                item.field, f"{item.old} is stored by this call.", hint="Use two calls."
            )
        elif error := refusal(item, states):
            errors[index] = error
        elif successors.setdefault(item.old, item.new) != item.new:
            hint = "Keep one of them."
            errors[index] = InvalidInput(
                item.field, f"two memories would supersede {item.old}.", hint=hint
            )
    return errors


async def write_replacements(
    change: NamespaceTransaction, replacements: Sequence[Replacement]
) -> None:
    """Write replacements that were checked. Five statements with the audit lines."""
    by_old = {item.old: item for item in replacements}
    if not by_old:
        return
    reasons: dict[UUID, str] = {}
    closings = []
    relations = []
    for old, item in by_old.items():
        if item.reason is not None:
            reasons[old] = item.reason
        closing = Closing(old, superseded_at=change.now, superseded_by=item.new)
        closings.append(closing)
        relations.append(Relation(item.new, SUPERSEDES, old))
    fields = ["superseded_at", "superseded_by"]
    await change.record(list(by_old), "supersede", fields, reasons=reasons)
    await change.close(closings=closings)
    await change.relate(relations)


async def restore(
    change: NamespaceTransaction, hidden: Mapping[UUID, UUID], reason: str
) -> None:
    """Put superseded memories in force again, each given with its successor. Five statements with the audit lines."""
    if not hidden:
        return
    fields = ["superseded_at", "superseded_by"]
    await change.record(
        list(hidden), "restore", fields, reasons=dict.fromkeys(hidden, reason)
    )
    await change.unrelate(
        [Relation(new, SUPERSEDES, old) for old, new in hidden.items()]
    )
    await change.update(changes=[Patch(id_, dict.fromkeys(fields)) for id_ in hidden])
