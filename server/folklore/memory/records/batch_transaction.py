"""The transaction that writes a batch: memories, keys, what they supersede, relations, cues of known texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.changes import Inserted, KeyAnswer, NamespaceTransaction
from folklore.errors import ConcurrentChange, FolkloreError, InvalidInput, NotFound
from folklore.memory.context import RequestContext
from folklore.memory.records.batch import Batch, namespace_for, same_request
from folklore.memory.records.cues import add_cues
from folklore.memory.records.supersede import Replacement, supersede
from folklore.model import Relation


class _RefusedItems(Exception):
    """Errors of memories by their index in the batch. It rolls the transaction back; the others are written anew."""

    def __init__(self, errors: Mapping[int, FolkloreError]) -> None:
        super().__init__()
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Written:
    """The namespace of a batch, its name as it is called, and the outcome for each memory by its index.

    `cued` are the known memories that got further cues.
    """

    namespace: UUID
    name: str
    outcome: dict[int, Inserted]
    cued: Sequence[UUID]

    @property
    def new(self) -> list[UUID]:
        """The ids of the memories that were not known before."""
        return [item.id for item in self.outcome.values() if item.new]


async def write_batch(context: RequestContext, name: str, batch: Batch) -> Written:
    """Write a batch in one transaction, and return what was written.

    The transaction is repeated without memories in which the database shows a fault, and once if another process used
    one of the keys meanwhile. Raises the first error if no memory is left.
    """
    changes = context.memory.changes
    retried = False
    while True:
        target = namespace_for(name, batch.memories.values())
        exclusive = batch.changes_others
        try:
            async with changes.storing(
                target, caller=context.caller, now=context.now, exclusive=exclusive
            ) as change:
                outcome, cued = await _write(change, batch)
        except _RefusedItems as refused:
            batch.refuse(refused.errors)
        except ConcurrentChange:
            if retried:
                raise
            retried = True
        else:
            changes.statistics.stored(sum(item.new for item in outcome.values()))
            return Written(change.namespace, change.name, outcome, cued)


async def _write(
    change: NamespaceTransaction, batch: Batch
) -> tuple[dict[int, Inserted], list[UUID]]:
    """Write a batch with what follows from it; return the outcome by index, and the known memories with further cues."""
    keys = [item.draft.idempotency_key for item in batch.memories.values()]
    outcome = _answered(batch, await change.key_answers(keys))

    items, vectors = batch.without(outcome)
    rows = await change.insert(list(items.values()), vectors)
    stored = dict(zip(items, rows, strict=True))
    await change.remember_keys(_keys(batch, stored))

    errors = await supersede(change, _replacements(batch, stored))
    await _relate(change, batch, stored, errors)
    cued = await _add_cues(change, batch, stored)

    outcome |= stored
    new = [item.id for item in stored.values() if item.new]
    distinct = {item.id for item in outcome.values()}
    await change.audit("store", new, len(distinct))
    return {index: outcome[index] for index in batch.memories}, cued


async def _add_cues(
    change: NamespaceTransaction, batch: Batch, stored: Mapping[int, Inserted]
) -> list[UUID]:
    """Add the cues of known texts to their memories; return those that changed."""
    stated: dict[UUID, list[str]] = {}
    inherited: set[UUID] = set()
    learned: dict[UUID, list[str]] = {}
    for index, item in stored.items():
        draft = batch.memories[index].draft
        if item.new or not draft.cues:
            continue
        stated.setdefault(item.id, []).extend(draft.cues)
        if index in batch.inherited:
            inherited.add(item.id)
            learned.setdefault(item.id, []).extend(draft.learned_cues)
    return await add_cues(change, stated, inherited, learned)


def _keys(batch: Batch, stored: Mapping[int, Inserted]) -> dict[str, KeyAnswer]:
    """Return what answers the idempotency keys of these memories from now on."""
    answers = {}
    for index, item in stored.items():
        memory = batch.memories[index]
        key = memory.draft.idempotency_key
        if key is not None:
            answers[key] = KeyAnswer(item.id, memory.request)
    return answers


def _answered(batch: Batch, answers: Sequence[KeyAnswer | None]) -> dict[int, Inserted]:
    """Return the memories of requests that were answered before, by index. Refuses another request under a used key."""
    answered: dict[int, Inserted] = {}
    errors: dict[int, FolkloreError] = {}
    for index, answer in zip(batch.memories, answers, strict=True):
        if answer is None:
            continue
        if same_request(answer, batch.memories[index]):
            answered[index] = Inserted(answer.id, new=False)
        else:
            problem = f"was used before for another request, which the memory {answer.id} answered."
            errors[index] = batch.used_key(index, problem)
    if errors:
        raise _RefusedItems(errors)
    return answered


def _replacements(
    batch: Batch, stored: Mapping[int, Inserted]
) -> dict[int, Replacement]:
    """Return what the memories supersede, new or known, by index."""
    replacements = {}
    for index, item in stored.items():
        draft = batch.memories[index].draft
        if draft.supersedes is not None:
            replacements[index] = Replacement(
                old=draft.supersedes,
                new=item.id,
                field=batch.field(index, "supersedes"),
                reason=draft.supersede_reason,
            )
    return replacements


async def _relate(
    change: NamespaceTransaction,
    batch: Batch,
    items: Mapping[int, Inserted],
    errors: dict[int, FolkloreError],
) -> None:
    """Write the relations of the memories, new or known.

    Raises _RefusedItems for `errors`, those of superseding, and for relations that are not possible.
    """
    related: dict[tuple[UUID, str, UUID], tuple[int, Relation]] = {}
    for index, item in items.items():
        for link in batch.memories[index].draft.related:
            if link.id == item.id:
                hint = "Leave it out."
                errors[index] = InvalidInput(
                    batch.field(index, "related"), "names the memory itself.", hint=hint
                )
            related[item.id, link.type, link.id] = (
                index,
                Relation(item.id, link.type, link.id, link.strength),
            )
    if errors:
        raise _RefusedItems(errors)
    if not related:
        return
    relations = await change.relate([relation for _, relation in related.values()])
    for key in related.keys() - relations.keys():
        index, relation = related[key]
        errors[index] = NotFound(
            f"{batch.field(index, 'related')}: there is no memory {relation.to_id} in this namespace.",
            hint="Relations stay within one namespace.",
        )
    if errors:
        raise _RefusedItems(errors)
