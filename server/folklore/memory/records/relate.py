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
    ends: dict[UUID, None] = {}
    for relation, _ in changes:
        ends |= {relation.from_id: None, relation.to_id: None}
    types = [change.type for change in request.relations]
    guard_fields({"relation": types}, memory.secrets)
    located = await locate(
        memory, list(ends), namespaces=request.namespaces, unforgotten=True
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


def _checked(changes: Sequence[RelationChange], result: RelateResult) -> list[_Change]:
    checked: dict[tuple[UUID, str, UUID], _Change] = {}
    for item in changes:
        try:
            change = _check(item)
        except InvalidInput as error:
            requested = Relation(item.from_id, item.type, item.to_id, item.strength)
            _fail(result, requested, error)
            continue
        relation, _ = change
        if _key(relation) in checked:
            problem = "hold this relation twice; the first one applies."
            _fail(result, relation, InvalidInput("relations", problem))
        else:
            checked[_key(relation)] = change
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
        missing = [id_ for id_ in ends if id_ not in located]
        if missing:
            _fail(result, relation, NotFound(f"There is no memory {missing[0]}."))
            continue
        namespace = located[relation.from_id]
        other = located[relation.to_id]
        if namespace.id != other.id:
            problem = f"The memories are in two namespaces, {namespace.name} and {other.name}; relations stay in one."
            _fail(result, relation, Conflict(problem))
        else:
            grouped.setdefault(namespace.id, []).append((relation, remove))
    return grouped


async def _write(
    transaction: NamespaceTransaction, changes: Sequence[_Change], result: RelateResult
) -> list[UUID]:
    """Write changes and return the memories whose cues changed."""
    removed = []
    replacements = []
    added = []
    for relation, remove in changes:
        if remove:
            removed.append(relation)
        elif relation.type == SUPERSEDES:
            replacements.append(relation)
        else:
            added.append(relation)
    await _remove(transaction, removed, result)
    inheriting = await _supersede(transaction, replacements, result)
    await _add(transaction, added, result)
    return inheriting


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
        is_new = new.get(_key(relation))
        if is_new is None:  # forgotten since it was located
            _fail(result, relation, NotFound("One of the memories was forgotten."))
        elif is_new:
            result.created.append(relation)
        else:
            result.updated.append(relation)


async def _supersede(
    transaction: NamespaceTransaction,
    relations: Sequence[Relation],
    result: RelateResult,
) -> list[UUID]:
    """Write replacements and return the memories that took over cues."""
    if not relations:
        return []
    ends: list[UUID] = []
    for relation in relations:
        ends += [relation.from_id, relation.to_id]
    states = await transaction.states(ends, whole=True)
    replacements: dict[UUID, Replacement] = {}
    new = {relation.from_id for relation in relations}
    for relation in relations:
        item = Replacement(
            old=relation.to_id, new=relation.from_id, field="to", new_field="from"
        )
        error = refusal(item, states)
        if error is not None:
            _fail(result, relation, error)
        elif is_done(item, states):
            result.updated.append(relation)
        elif item.old in replacements or item.old in new:
            problem = "takes part in two replacements."
            twice = InvalidInput("to", problem, hint="Use two calls.")
            _fail(result, relation, twice)
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
