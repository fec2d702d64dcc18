"""Lists of memories in order of time, in pages."""

from collections.abc import Sequence
from dataclasses import dataclass

from folklore.contract.memories import ListRequest
from folklore.db.stores.memories import ListingOrder
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory.context import RequestContext, budget, names_by_id
from folklore.memory.context.filters import resolve_filters
from folklore.memory.context.pagination import page_cursor, page_of, without_clock
from folklore.model import Answer, Filters, Recalled, Sort


async def list_memories(context: RequestContext, request: ListRequest) -> Answer:
    """List memories, newest first unless `sort` says otherwise. Raises InvalidInput, NotFound."""
    filters = resolve_filters(request.filters, context)
    namespaces = await context.memory.find_namespaces(request.namespaces)
    page = ListPage(
        request.namespaces,
        request.limit,
        request.sort,
        request.cursor,
        request.max_tokens,
    )
    return await list_page(context, namespaces, filters, page)


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list: the names asked for, its size, its order, and the cursor of the page before."""

    requested: tuple[str, ...]
    limit: int
    sort: Sort = "time_desc"
    cursor: str | None = None
    max_tokens: int | None = None


async def list_page(
    context: RequestContext,
    namespaces: Sequence[NamespaceInfo],
    filters: Filters,
    page: ListPage,
) -> Answer:
    """List one page of these namespaces; `score` sorts by importance and recency. One statement.

    A cursor belongs to the names that were asked for: where none was, further namespaces may come meanwhile.
    """
    names = names_by_id(namespaces)
    question = (page.requested, without_clock(filters), page.sort)
    order = ListingOrder.of(page.sort)
    cursor = page_of(page.cursor, question)
    listing = await context.memory.memories.list(
        names, filters, limit=page.limit, now=context.now, order=order, cursor=cursor
    )
    results, left_out = budget.within_budget(
        list(map(Recalled, listing.memories)), page.max_tokens
    )
    more = listing.more or left_out
    next_cursor = None
    if more:
        next_cursor = page_cursor(listing.places[len(results) - 1], question)
    is_empty = not listing.memories and not page.cursor
    return Answer(
        memories=tuple(results),
        searched=tuple(names.values()),
        truncated=more,
        cursor=next_cursor,
        note="Nothing matches." if is_empty else None,
    )
