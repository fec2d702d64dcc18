"""Lists of memories in order of time, in pages."""

from collections.abc import Sequence
from dataclasses import dataclass

from folklore.contract.memories import ListRequest
from folklore.db.stores.memories import ListingOrder
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory.context import RequestContext, budget, names_by_id
from folklore.memory.context.filters import resolve_filters
from folklore.memory.context.pagination import list_cursor, list_key_of, without_clock
from folklore.model import Answer, Filters, Recalled, Sort


async def list_memories(context: RequestContext, request: ListRequest) -> Answer:
    """List memories, newest first unless `sort` says otherwise. Raises InvalidInput, NotFound."""
    filters = resolve_filters(request.filters, context)
    namespaces = await context.memory.find_namespaces(request.namespaces)
    options = PageOptions(
        request.namespaces,
        request.limit,
        request.sort,
        request.cursor,
        request.max_tokens,
    )
    return await list_page(context, namespaces, filters, options)


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Options of a page of a list: names, the size and the order of a page, and the cursor of the page before."""

    requested: tuple[str, ...]
    limit: int
    sort: Sort = "time_desc"
    cursor: str | None = None
    max_tokens: int | None = None


async def list_page(
    context: RequestContext,
    namespaces: Sequence[NamespaceInfo],
    filters: Filters,
    options: PageOptions,
) -> Answer:
    """List one page of these namespaces; `score` sorts by importance and recency. One statement.

    A cursor belongs to the names that were asked for: where none was, further namespaces may come meanwhile.
    """
    names = names_by_id(namespaces)
    question = (options.requested, without_clock(filters), options.sort)
    order = ListingOrder.of(options.sort)
    after = list_key_of(options.cursor, question)
    listing = await context.memory.memories.list(
        names, filters, limit=options.limit, now=context.now, order=order, after=after
    )
    results, left_out = budget.within_budget(
        list(map(Recalled, listing.memories)), options.max_tokens
    )
    more = listing.more or left_out
    next_cursor = None
    if more:
        next_cursor = list_cursor(listing.keys[len(results) - 1], question)
    is_empty = not listing.memories and not options.cursor
    return Answer(
        memories=tuple(results),
        searched=tuple(names.values()),
        truncated=more,
        cursor=next_cursor,
        note="Nothing matches." if is_empty else None,
    )
