"""All chores, in the order in which one pass does them: each finds what those before it left."""

from __future__ import annotations

from collections.abc import Mapping

from folklore.jobs import consolidation, embeddings, expiry, indexes, quality, retention, statistics
from folklore.jobs.job import Chore

# A chore that is added here runs in the server, shows in `folklore upkeep status` and can be run by hand.
ALL: tuple[Chore, ...] = (
    embeddings.CHORE,
    expiry.CHORE,
    retention.CHORE,
    quality.CHORE,
    consolidation.CHORE,
    statistics.CHORE,
    indexes.CHORE,
)


def named() -> Mapping[str, Chore]:
    """The chores by name."""
    return {chore.name: chore for chore in ALL}
