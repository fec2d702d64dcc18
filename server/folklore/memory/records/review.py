"""Review: memories that want a person's decision, and how a decision to keep them is remembered.

Near-duplicates and contradictions that are both kept are related by `distinct_from`; a memory that was reviewed has the
day in its metadata. Both are plain values that the whole team sees, and that an export carries.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from itertools import chain
from operator import attrgetter
from uuid import UUID

from folklore.contract.review import (
    DISTINCT,
    REVIEWED,
    Review,
    ReviewItem,
    ReviewReason,
    ReviewRequest,
)
from folklore.db.stores.models import KnownModel
from folklore.db.stores.review import ReviewStatements
from folklore.embedding import Model
from folklore.memory.context import RequestContext
from folklore.memory.records.similar import NEAREST, NEWEST, near_duplicates

CONTRADICTS = "contradicts"
# Relations of near-duplicates that were decided on.
SETTLED = (DISTINCT, CONTRADICTS)
# Memories whose near-duplicates one call looks for: 1.5 million distances, about 0.3 s, at most.
_PAGE = 500
# Memories alone or in pairs, with their similarity, and the memory to continue after.
_Groups = tuple[Mapping[frozenset[UUID], float | None], UUID | None]


async def read_review(context: RequestContext, request: ReviewRequest) -> Review:
    """Return memories of a namespace that want a decision for one reason. At most five statements.

    Near-duplicates come in pages of 500 memories, from the newest on: the work grows with the number of memories, not
    with its square. Raises InvalidInput, NotFound.
    """
    namespace = await context.memory.find_namespace(
        request.namespace or context.namespace()
    )
    find = _FINDERS[request.reason]
    groups, cursor = await find(context, namespace.id, request)
    ids = list(dict.fromkeys(chain.from_iterable(groups)))
    rows = await context.memory.memories.get([namespace.id], ids)
    read = {memory.id: memory for _, memory in rows}
    items = []
    for group, similarity in groups.items():
        if read.keys() >= group:
            memories = sorted([read[id_] for id_ in group], key=attrgetter("age"))
            items.append(ReviewItem(request.reason, tuple(memories), similarity))
    return Review(namespace.name, tuple(items), cursor)


async def _near_duplicates(
    context: RequestContext, namespace: UUID, request: ReviewRequest
) -> _Groups:
    statements = ReviewStatements(context.memory.database)
    ids = await statements.page(
        namespace=namespace, after=request.after, most=_PAGE, now=context.now
    )
    pairs = await _similar(context, namespace, ids)
    if pairs:
        both = list(frozenset[UUID]().union(*pairs))
        settled = await statements.settled(namespace=namespace, ids=both, types=SETTLED)
        for pair in settled:
            pairs.pop(frozenset(pair), None)
    best = sorted(pairs, key=lambda pair: -pairs[pair])
    is_full = len(ids) == _PAGE
    return {pair: pairs[pair] for pair in best}, ids[-1] if is_full else None


async def _contradictions(
    context: RequestContext, namespace: UUID, request: ReviewRequest
) -> _Groups:
    pairs = await ReviewStatements(context.memory.database).contradictions(
        namespace=namespace, contradicts=CONTRADICTS, kept=DISTINCT, most=request.limit
    )
    return dict.fromkeys(map(frozenset, pairs)), None


async def _unused(
    context: RequestContext, namespace: UUID, request: ReviewRequest
) -> _Groups:
    limit = context.now - timedelta(days=request.unused_days)
    ids = await ReviewStatements(context.memory.database).unused(
        namespace=namespace,
        before=limit,
        day=limit.date().isoformat(),
        reviewed=REVIEWED,
        most=request.limit,
        now=context.now,
    )
    return {frozenset((id_,)): None for id_ in ids}, None


async def _without_cues(
    context: RequestContext, namespace: UUID, request: ReviewRequest
) -> _Groups:
    # As the owner: a token does not read the ledger of injections, of which this gives no more than an order.
    ids = await ReviewStatements(context.memory.root.database).without_cues(
        namespace=namespace, most=request.limit, now=context.now
    )
    return {frozenset((id_,)): None for id_ in ids}, None


_FINDERS: Mapping[ReviewReason, Callable[[RequestContext, UUID, ReviewRequest], Awaitable[_Groups]]] = {
    "similar": _near_duplicates, "contradiction": _contradictions, "unused": _unused, "cues": _without_cues,
}  # fmt: skip


async def _similar(
    context: RequestContext, namespace: UUID, ids: list[UUID]
) -> dict[frozenset[UUID], float]:
    """Return the pairs of near-duplicates of these memories; none without a model."""
    model = await comparing_model(context)
    if model is None or not ids:
        return {}
    neighbours = await context.memory.embeddings.neighbours(
        namespace, ids, model.id, newest=NEWEST, now=context.now, similar=NEAREST
    )
    pairs = {}
    for id_, others in near_duplicates(neighbours).items():
        for near in others:
            pairs[frozenset((id_, near.id))] = near.similarity
    return pairs


async def comparing_model(context: RequestContext) -> KnownModel | Model | None:
    """Return the model by whose embeddings memories are compared; None if embedding is switched off."""
    model: KnownModel | Model | None = await context.memory.active_model.known()
    if model is None and context.memory.embedder is not None:
        model = await context.memory.embedder.model()
    return model
