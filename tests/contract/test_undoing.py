"""Undos and redos of a memory are those of an editor, whatever the order of changes."""

from uuid import UUID

from hypothesis import given, strategies

from folklore.contract.undoing import Effect, changes_in_force, last_undo
from folklore.model import Revision
from tests.person import NOON


def revision(number: int, action: str, undoes: int | None = None) -> Revision:
    return Revision(UUID(int=1), number, action, "ann", NOON, {}, undoes=undoes)


def number_of(effect: Effect | None) -> int | None:
    return effect.cause.revision if effect else None


class Editor:
    """What editors do: a stack of changes, and a stack of what was undone since the last change."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.undone: list[int] = []

    def change(self, number: int) -> None:
        self.done.append(number)
        self.undone.clear()

    def undo(self) -> None:
        self.undone.append(self.done.pop())

    def redo(self) -> None:
        self.done.append(self.undone.pop())


STEPS = strategies.sampled_from(["change", "undo", "redo", "move"])


@given(strategies.lists(STEPS, max_size=30))
def test_undos_and_redos_are_those_of_an_editor(steps: list[str]) -> None:
    editor = Editor()
    revisions: list[Revision] = []  # the last first
    for number, step in enumerate(steps, start=1):
        if step in ("undo", "redo"):
            changes = changes_in_force(revisions)
            effect = (
                last_undo(revisions) if step == "redo" else next(iter(changes), None)
            )
            expected = editor.undone if step == "redo" else editor.done
            assert number_of(effect) == (expected[-1] if expected else None)
            if effect is None:
                continue
            revisions.insert(0, revision(number, "undo", effect.revision.revision))
            getattr(editor, step)()
        elif step == "change":
            revisions.insert(0, revision(number, "update"))
            editor.change(number)
        else:
            revisions.insert(0, revision(number, "move"))
        in_force = [effect.cause.revision for effect in changes_in_force(revisions)]
        assert sorted(in_force) == sorted(editor.done)


def test_a_redo_of_former_versions_has_the_action_of_the_change() -> None:
    revisions = [
        revision(3, "update", undoes=2),
        revision(2, "undo", undoes=1),
        revision(1, "update"),
    ]

    [effect] = changes_in_force(revisions)

    assert (effect.revision, effect.cause) == (revisions[0], revisions[2])
    assert last_undo(revisions) is None


def test_the_undo_of_a_store_can_be_undone_and_nothing_before_the_store() -> None:
    forget = revision(1, "forget", undoes=0)
    restored = [revision(2, "undo", undoes=1), forget]

    assert number_of(last_undo([forget])) == 1
    assert [effect.revision for effect in changes_in_force([forget])] == [forget]
    assert changes_in_force(restored) == []
    assert last_undo(restored) is None
