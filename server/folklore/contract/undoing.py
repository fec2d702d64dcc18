"""The changes of a memory that are in force: an undo takes one back, an undo of that undo brings it back."""

from collections.abc import Sequence
from dataclasses import dataclass

from folklore.model import Revision


@dataclass(frozen=True, slots=True)
class Effect:
    """A `change` of a memory, and the last `revision` about it: itself, its undo, the undo of that undo, and so on.

    `change` is None for the store of the memory, which is no revision; `revision` is then the forget that took it back.
    `undone`: the change is not in force.
    """

    revision: Revision
    change: Revision | None
    undone: bool

    @property
    def cause(self) -> Revision:
        """The change, or the forget that took back the store."""
        return self.change or self.revision

    @property
    def is_undo(self) -> bool:
        """True if the last revision took back the change; a forget that took back the store is a change itself."""
        return self.undone and self.change is not None


def effects(revisions: Sequence[Revision]) -> list[Effect]:
    """Return each change of a memory once, with the last revision about it; in the order of these, as of `revisions`.

    `revisions` are all of the memory, the last one first. A move to another namespace is no change.
    """
    by_number = {revision.revision: revision for revision in revisions}
    # Those that a later revision is about, too: an undo, and what it takes back.
    taken_back: set[int] = set()
    found = []
    for revision in revisions:
        if revision.revision in taken_back or revision.action == "move":
            continue
        # from undo to undo, each of which takes back the one before, to the change itself
        change: Revision | None = revision
        undone = False
        while change is not None and change.undoes is not None:
            taken_back.add(change.undoes)
            change = by_number.get(change.undoes)
            undone = not undone
        found.append(Effect(revision, change, undone))
    return found


def changes_in_force(revisions: Sequence[Revision]) -> list[Effect]:
    """Return the changes that an undo can take back, the last first; a forget that took back the store is one."""
    found = []
    for effect in effects(revisions):
        is_in_force = effect.change is not None and not effect.undone
        if is_in_force or effect.revision.undoes_store:
            found.append(effect)
    return found


def last_undo(revisions: Sequence[Revision]) -> Effect | None:
    """Return the last undo in force, unless another change followed it."""
    for effect in effects(revisions):
        if effect.undone:
            return None if _changed_since(effect, revisions) else effect
    return None


def _changed_since(effect: Effect, revisions: Sequence[Revision]) -> bool:
    """Return whether a change, not an undo, followed the last revision about an effect."""
    for revision in revisions:
        is_change = revision.undoes is None and revision.action != "move"
        if is_change and revision.revision > effect.revision.revision:
            return True
    return False
