"""What else a question may want: what its results are tied to, and what names the same. Asked for, and marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from folklore.db.stores.recall_rows import Scope
from folklore.memory.context import MemoryContext
from folklore.model import Recalled
from folklore.ranking.weights import Expansion
from folklore.text.entities.finder import find_entities

_MOST = 25
_MOST_TAGS = 64
_ENTITY = "entity:"


async def expanded(
    library: MemoryContext, scope: Scope, results: Sequence[Recalled], by: Collection[Expansion]
) -> list[Recalled]:
    """At most 25 memories in scope beyond the results, best first, each marked with what brought it.

    `relations`: bridges, tied to two results or more, by the sum of the strengths. `entities`: those tagged with an
    entity (`entity:person:sarah`) that a result is tagged with or names. One statement.
    """
    tags: dict[str, None] = {}
    if "entities" in by:
        for result in results:
            tags |= dict.fromkeys(tag for tag in result.memory.tags if tag.startswith(_ENTITY))
            tags |= dict.fromkeys(entity.tag for entity in find_entities(result.memory.content))
    return await library.statements.expand(
        scope,
        ids=[result.memory.id for result in results],
        bridges="relations" in by,
        tags=list(tags)[:_MOST_TAGS],
        most=_MOST,
    )
