"""List memories in order of time, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, scope_of
from folklore.memory.pagination import as_said, page_cursor, page_of
from folklore.memory.recall.token_budget import within_budget
from folklore.model import Answer, Filters, Recalled, Sort

MAX_LIMIT = 1_000


async def list_memories(
    library: MemoryContext,
    notebooks: Sequence[NamespaceInfo],
    filters: Filters,
    *,
    limit: int,
    now: datetime,
    sort: Sort = "time_desc",
    cursor: str | None = None,
    max_tokens: int | None = None,
    asked: Sequence[str] = (),
) -> Answer:
    """Memories within the filters, newest first unless `sort` says otherwise; `score` is by importance and recency.

    What does not fit in `max_tokens` is on a later page. A cursor belongs to the namespaces `asked` for by name: where
    none is, others may come meanwhile. One statement.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {limit}.")
    names = scope_of(notebooks)
    question = (tuple(asked), as_said(filters), sort)
    listing = await library.memories.list(
        names,
        filters,
        limit=limit,
        now=now,
        by="trending" if sort == "score" else "updated" if sort.startswith("updated") else "happened",
        ascending=sort.endswith("_asc"),
        after=page_of(cursor, question),
    )
    kept, cut = within_budget([Recalled(memory) for memory in listing.memories], max_tokens)
    more = listing.more or len(kept) < len(listing.memories)
    return Answer(
        memories=tuple(kept),
        searched=tuple(names.values()),
        truncated=more or cut,
        cursor=page_cursor(listing.places[len(kept) - 1], question) if more else None,
        note=None if listing.memories or cursor else "Nothing matches.",
    )
