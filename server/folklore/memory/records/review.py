"""Review: memories that want a person's decision, and how a decision to keep them is remembered.

Near-duplicates and contradictions that are both kept are related by `distinct_from`; a memory that was reviewed has the
day in its metadata. Both are plain values that the whole team sees, and that an export carries.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

from folklore.db.stores.review import ReviewStatements
from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext
from folklore.memory.requests import DISTINCT, REVIEWED, ReviewRequest
from folklore.memory.results import Review, ReviewItem

MAX_LIMIT = 1_000
CONTRADICTS = "contradicts"
# As a store looks for similar memories: this near, among the newest ones, and among older ones that share a rare word.
_NEAREST, _NEWEST = 0.92, 3_000
# Memories whose near-duplicates one call looks for: three million distances at most.
_PAGE = 1_000


async def read_review(context: RequestContext, request: ReviewRequest) -> Review:
    """Return memories of a namespace that want a decision for one reason. At most four statements.

    Near-duplicates come in pages of 1,000 memories, from the newest on: the work grows with the number of memories, not
    with its square. Raises InvalidInput, NotFound.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}, got {request.limit}.")
    if not 1 <= request.unused_days <= 36_500:
        raise InvalidInput("unused_days", f"must be between 1 and 36500, got {request.unused_days}.")
    name = context.namespace() if request.namespace is None else request.namespace
    [namespace] = await context.memory.find_namespaces([name])
    statements = ReviewStatements(context.memory.database)
    after: UUID | None = None
    similarity: dict[frozenset[UUID], float] = {}
    groups: list[tuple[UUID, ...]]
    if request.reason == "similar":
        ids = await statements.page(namespace.id, after=request.after, most=_PAGE, now=context.now)
        after = ids[-1] if len(ids) == _PAGE else None
        similarity = await _similar(context, namespace.id, ids)
        found = {id_ for pair in similarity for id_ in pair}
        for pair in await statements.settled(namespace.id, list(found), (DISTINCT, CONTRADICTS)) if found else ():
            similarity.pop(pair, None)
        groups = _ordered(sorted(similarity, key=lambda pair: -similarity[pair]))
    elif request.reason == "contradiction":
        pairs = await statements.contradictions(namespace.id, CONTRADICTS, kept=DISTINCT, most=request.limit)
        groups = _ordered(dict.fromkeys(map(frozenset, pairs)))
    else:
        before = context.now - timedelta(days=request.unused_days)
        unused = await statements.unused(
            namespace.id, before=before, reviewed=REVIEWED, most=request.limit, now=context.now
        )
        groups = [(id_,) for id_ in unused]
    wanted = dict.fromkeys(id_ for group in groups for id_ in group)
    read = {memory.id: memory for _, memory in await context.memory.memories.get([namespace.id], list(wanted))}
    items = [
        ReviewItem(request.reason, tuple(read[id_] for id_ in group), similarity.get(frozenset(group)))
        for group in groups
        if read.keys() >= set(group)
    ]
    return Review(namespace.name, tuple(items), after)


async def _similar(context: RequestContext, namespace: UUID, ids: list[UUID]) -> dict[frozenset[UUID], float]:
    """Return the pairs of near-duplicates of these memories; none without a model."""
    model = await context.memory.active_model.known()
    if model is None or not ids:
        return {}
    found = await context.memory.embeddings.similar(
        namespace, ids, model.id, nearest=_NEAREST, newest=_NEWEST, now=context.now
    )
    return {frozenset((id_, near.id)): near.similarity for id_, others in found.items() for near in others}


def _ordered(pairs: Iterable[frozenset[UUID]]) -> list[tuple[UUID, ...]]:
    """Return pairs with the older memory first: ids sort by time."""
    return [tuple(sorted(pair)) for pair in pairs]
