"""Say what memories have to do with one another, and take it back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from folklore.db.stores.changes import Changing
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.memory.context import MemoryContext
from folklore.memory.locate import Places, locate
from folklore.memory.permissions import must_write, require
from folklore.memory.records.supersede import SUPERSEDES, Replacement, close, done, objection
from folklore.memory.secret_guard import guard_fields
from folklore.memory.validation import relation_type, share
from folklore.model import Caller, Relation

MAX_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """A relation to be there, with this strength, or not to be there."""

    relation: Relation
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """A relation that could not be made or removed, and why; `code` is that of the error it is by itself."""

    relation: Relation
    reason: str
    code: str


@dataclass(slots=True)
class Related:
    """What became of each; `updated` were there and took the new strength."""

    created: list[Relation] = field(default_factory=list)
    updated: list[Relation] = field(default_factory=list)
    removed: list[Relation] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


async def relate(
    library: MemoryContext, wishes: Sequence[Wish], *, caller: Caller, now: datetime, namespaces: Sequence[str] = ()
) -> Related:
    """Create, change and remove relations, one transaction a namespace; one that cannot be does not stop the others.

    A relation `supersedes` closes its target's validity, as storing with `supersedes` does. Memories are looked for in
    `namespaces`, else in all. Raises InvalidInput, Refused, NotFound, Conflict.
    """
    must_write(caller)
    if not 1 <= len(wishes) <= MAX_AT_ONCE:
        raise InvalidInput("relations", f"takes 1 to {MAX_AT_ONCE} a call, not {len(wishes)}.")
    outcome = Related()
    checked = _checked(wishes, outcome)
    ends = [id_ for wish in checked for id_ in (wish.relation.from_id, wish.relation.to_id)]
    guard_fields({"relation": [wish.relation.type for wish in wishes]}, library.secrets)
    places = await locate(library, list(dict.fromkeys(ends)), namespaces=namespaces, unforgotten=True)
    for name in sorted({notebook.name for notebook in places.of.values()}):
        require(caller, name, "writer")
    for namespace, group in sorted(_by_namespace(checked, places, outcome).items()):
        async with library.changes.of(namespace, caller=caller, now=now) as change:
            done_here = await _settle(change, group, now=now)
        outcome.created += done_here.created
        outcome.updated += done_here.updated
        outcome.removed += done_here.removed
        outcome.failed += done_here.failed
    return outcome


def _checked(wishes: Sequence[Wish], outcome: Related) -> list[Wish]:
    good: dict[tuple[UUID, str, UUID], Wish] = {}
    for wish in wishes:
        relation = wish.relation
        try:
            type_ = relation_type(relation.type, "type")
            strength = share(relation.strength, "strength")
        except InvalidInput as error:
            outcome.failed.append(Failed(relation, str(error), error.code))
            continue
        relation = Relation(relation.from_id, type_, relation.to_id, 1.0 if strength is None else strength)
        key = (relation.from_id, relation.type, relation.to_id)
        if relation.from_id == relation.to_id:
            outcome.failed.append(Failed(relation, "to: is the memory itself.", InvalidInput.code))
        elif key in good:
            outcome.failed.append(Failed(relation, "is given twice; the first one counts.", InvalidInput.code))
        elif wish.remove and type_ == SUPERSEDES:
            reason = f"`folklore undo {relation.to_id}` brings back what was superseded."
            outcome.failed.append(Failed(relation, reason, InvalidInput.code))
        else:
            good[key] = Wish(relation, wish.remove)
    return list(good.values())


def _by_namespace(wishes: Sequence[Wish], places: Places, outcome: Related) -> dict[UUID, list[Wish]]:
    grouped: dict[UUID, list[Wish]] = {}
    for wish in wishes:
        relation = wish.relation
        missing = [id_ for id_ in (relation.from_id, relation.to_id) if id_ not in places.of]
        if missing:
            outcome.failed.append(Failed(relation, f"There is no memory {missing[0]}.", NotFound.code))
            continue
        here, there = places.of[relation.from_id], places.of[relation.to_id]
        if here.id != there.id:
            reason = f"They are in two namespaces, {here.name} and {there.name}; relations stay within one."
            outcome.failed.append(Failed(relation, reason, Conflict.code))
        else:
            grouped.setdefault(here.id, []).append(wish)
    return grouped


async def _settle(change: Changing, wishes: Sequence[Wish], *, now: datetime) -> Related:
    outcome = Related()
    removing = [wish.relation for wish in wishes if wish.remove]
    if removing:
        gone = await change.unrelate(removing)
        for relation in removing:
            if (relation.from_id, relation.type, relation.to_id) in gone:
                outcome.removed.append(relation)
            else:
                outcome.failed.append(Failed(relation, "This relation was not there.", NotFound.code))
    replacing = [wish.relation for wish in wishes if not wish.remove and wish.relation.type == SUPERSEDES]
    await _supersede(change, replacing, outcome, now=now)
    making = [wish.relation for wish in wishes if not wish.remove and wish.relation.type != SUPERSEDES]
    if making:
        written = await change.relate(making)
        for relation in making:
            new = written.get((relation.from_id, relation.type, relation.to_id))
            if new is None:  # forgotten since we looked
                outcome.failed.append(Failed(relation, "One of the memories is gone.", NotFound.code))
            else:
                (outcome.created if new else outcome.updated).append(relation)
    return outcome


async def _supersede(change: Changing, relations: Sequence[Relation], outcome: Related, *, now: datetime) -> None:
    if not relations:
        return
    states = await change.states([id_ for relation in relations for id_ in (relation.from_id, relation.to_id)])
    due: dict[UUID, Replacement] = {}
    news = {relation.from_id for relation in relations}
    for relation in relations:
        item = Replacement(old=relation.to_id, new=relation.from_id, field="to")
        problem = objection(item, states)
        if problem is not None:
            outcome.failed.append(Failed(relation, str(problem), problem.code))
        elif done(item, states):
            outcome.updated.append(relation)
        elif item.old in due or item.old in news:
            reason = "One call says two things of it; say them apart."
            outcome.failed.append(Failed(relation, reason, InvalidInput.code))
        else:
            due[item.old] = item
            outcome.created.append(relation)
    await close(change, list(due.values()), now=now)
