"""List memories in order of time, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from folklore.db.namespaces import Notebook
from folklore.errors import InvalidInput
from folklore.memory.cursors import as_said, page_cursor, page_of
from folklore.memory.library import Library, scope_of
from folklore.model import Answer, Filters, Recalled, Sort

MAX_LIMIT = 1_000


async def list_memories(
    library: Library,
    notebooks: Sequence[Notebook],
    filters: Filters,
    *,
    limit: int,
    now: datetime,
    sort: Sort = "time_desc",
    cursor: str | None = None,
) -> Answer:
    """Memories within the filters, newest first unless `sort` says otherwise; `score` is by importance and recency.

    One statement.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {limit}.")
    names = scope_of(notebooks)
    question = (tuple(names.values()), as_said(filters), sort)
    listing = await library.memories.list(
        names,
        filters,
        limit=limit,
        now=now,
        by="trending" if sort == "score" else "updated" if sort.startswith("updated") else "happened",
        ascending=sort.endswith("_asc"),
        after=page_of(cursor, question),
    )
    return Answer(
        memories=tuple(Recalled(memory) for memory in listing.memories),
        searched=tuple(names.values()),
        truncated=listing.next is not None,
        cursor=None if listing.next is None else page_cursor(listing.next, question),
        note=None if listing.memories or cursor else "Nothing matches.",
    )
