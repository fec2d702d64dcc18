"""Relations between memories: written, changed and removed."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from folklore.contract.memories import (
    FailedRelation,
    RelateRequest,
    RelateResult,
    RelationChange,
)
from folklore.db.stores.changes import NamespaceTransaction
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound
from folklore.memory.context import RequestContext, locate
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.context.validation import relation_type, share
from folklore.memory.records.cues import add_cues, cues_of, embed_cues, learned_of
from folklore.memory.records.supersede import (
    SUPERSEDES,
    Replacement,
    is_done,
    refusal,
    write_replacements,
)
from folklore.model import Relation, SupersededMemory
from folklore.permissions import require, require_writable

# A checked relation, and True if it is to be removed.
_Change = tuple[Relation, bool]


async def relate(context: RequestContext, request: RelateRequest) -> RelateResult:
    """Write, change and remove relations, one transaction for each namespace; a failed one does not stop the others.

    A relation `supersedes` hides its target, like storing with `supersedes`, and gives its cues to a memory without any.
    Memories are looked up in `namespaces`,
    else in all. Raises InvalidInput, Refused, NotFound, Conflict.
    """
    require_writable(context.caller)
    memory = context.memory
    result = RelateResult()
    changes = _checked(request.relations, result)
    ends = [
        id_ for relation, _ in changes for id_ in (relation.from_id, relation.to_id)
    ]
    guard_fields(
        {"relation": [change.type for change in request.relations]}, memory.secrets
    )
    located = await locate(
        memory,
        list(dict.fromkeys(ends)),
        namespaces=request.namespaces,
        unforgotten=True,
    )
    for name in sorted({namespace.name for namespace in located.values()}):
        require(context.caller, name, "writer")
    for namespace, group in sorted(_by_namespace(changes, located, result).items()):
        async with memory.changes.of(
            namespace, caller=context.caller, now=context.now
        ) as transaction:
            changed = await _write(transaction, group, result)
        await embed_cues(memory, namespace, changed)
    return result


def _fail(result: RelateResult, relation: Relation, error: FolkloreError) -> None:
    result.failed.append(FailedRelation(relation, str(error), error.code))


def _key(relation: Relation) -> tuple[UUID, str, UUID]:
    return relation.from_id, relation.type, relation.to_id


def _checked(
    requested: Sequence[RelationChange], result: RelateResult
) -> list[_Change]:
    checked: dict[tuple[UUID, str, UUID], _Change] = {}
    for item in requested:
        try:
            change = _check(item)
        except InvalidInput as error:
            _fail(
                result,
                Relation(item.from_id, item.type, item.to_id, item.strength),
                error,
            )
            continue
        if checked.setdefault(_key(change[0]), change) is not change:
            _fail(
                result,
                change[0],
                InvalidInput(
                    "relations", "hold this relation twice; the first one applies."
                ),
            )
    return list(checked.values())


def _check(item: RelationChange) -> _Change:
    type_ = relation_type(item.type, "type")
    strength = share(item.strength, "strength")
    if item.from_id == item.to_id:
        raise InvalidInput("to", "is the memory itself.")
    if item.remove and type_ == SUPERSEDES:
        raise InvalidInput(
            "remove", f"`folklore undo {item.to_id}` restores a superseded memory."
        )
    return Relation(item.from_id, type_, item.to_id, strength), item.remove


def _by_namespace(
    changes: Sequence[_Change],
    located: Mapping[UUID, NamespaceInfo],
    result: RelateResult,
) -> dict[UUID, list[_Change]]:
    grouped: dict[UUID, list[_Change]] = {}
    for relation, remove in changes:
        ends = (relation.from_id, relation.to_id)
        if missing := [id_ for id_ in ends if id_ not in located]:
            _fail(result, relation, NotFound(f"There is no memory {missing[0]}."))
            continue
        one, other = (located[id_] for id_ in ends)
        if one.id != other.id:
            error = Conflict(
                f"The memories are in two namespaces, {one.name} and {other.name}; relations stay in one."
            )
            _fail(result, relation, error)
        else:
            grouped.setdefault(one.id, []).append((relation, remove))
    return grouped


async def _write(
    transaction: NamespaceTransaction, changes: Sequence[_Change], result: RelateResult
) -> list[UUID]:
    """Write changes and return the memories whose cues changed."""
    await _remove(
        transaction, [relation for relation, remove in changes if remove], result
    )
    relations = [relation for relation, remove in changes if not remove]
    inherited = await _supersede(
        transaction,
        [relation for relation in relations if relation.type == SUPERSEDES],
        result,
    )
    await _add(
        transaction,
        [relation for relation in relations if relation.type != SUPERSEDES],
        result,
    )
    return inherited


async def _remove(
    transaction: NamespaceTransaction,
    relations: Sequence[Relation],
    result: RelateResult,
) -> None:
    if not relations:
        return
    existed = await transaction.unrelate(relations)
    for relation in relations:
        if _key(relation) in existed:
            result.removed.append(relation)
        else:
            _fail(result, relation, NotFound("This relation did not exist."))


async def _add(
    transaction: NamespaceTransaction,
    relations: Sequence[Relation],
    result: RelateResult,
) -> None:
    if not relations:
        return
    new = await transaction.relate(relations)
    for relation in relations:
        if _key(relation) not in new:  # forgotten since it was located
            _fail(result, relation, NotFound("One of the memories was forgotten."))
        else:
            (result.created if new[_key(relation)] else result.updated).append(relation)


async def _supersede(
    transaction: NamespaceTransaction,
    relations: Sequence[Relation],
    result: RelateResult,
) -> list[UUID]:
    """Write replacements and return the memories that took over cues."""
    if not relations:
        return []
    states = await transaction.states(
        [id_ for relation in relations for id_ in (relation.from_id, relation.to_id)],
        whole=True,
    )
    replacements: dict[UUID, Replacement] = {}
    new = {relation.from_id for relation in relations}
    for relation in relations:
        item = Replacement(
            old=relation.to_id, new=relation.from_id, field="to", new_field="from"
        )
        if error := refusal(item, states):
            _fail(result, relation, error)
        elif is_done(item, states):
            result.updated.append(relation)
        elif item.old in replacements or item.old in new:
            _fail(
                result,
                relation,
                InvalidInput(
                    "to", "takes part in two replacements.", hint="Use two calls."
                ),
            )
        else:
            replacements[item.old] = item
            result.created.append(relation)
            old = states[item.old]
            content = str(old.held["content"])
            result.superseded.append(SupersededMemory(old.id, content, old.author))
    await write_replacements(transaction, list(replacements.values()))
    inherited: dict[UUID, list[str]] = {}
    learned: dict[UUID, list[str]] = {}
    for item in replacements.values():
        inherited.setdefault(item.new, []).extend(cues_of(states[item.old]))
        learned.setdefault(item.new, []).extend(learned_of(states[item.old]))
    return await add_cues(transaction, inherited, inherited, learned)
