"""Memories that want a person's decision: statements of the review, each over one namespace."""

from uuid import UUID

from folklore.db.store import Store, column, pairs


class ReviewStatements(Store):
    """The statements of the review."""

    page = column(UUID, "fresh")
    settled = pairs(UUID, UUID, "fresh")
    contradictions = pairs(UUID, UUID, "fresh")
    unused = column(UUID, "fresh")
    without_cues = column(UUID, "fresh")
