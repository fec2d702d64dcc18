"""How sure each result of an answer is: the words that it and those beside it hold together, and its cosine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from folklore.memory.recall.branches import Found
from folklore.ranking.confidence import Asked, calibrated
from folklore.text.dates.date_terms import pieces_with_dates


def assured(
    results: Sequence[UUID],
    cosines: Sequence[float],
    found: Found,
    beside: Iterable[tuple[UUID, UUID, float]],
    *,
    among: int,
) -> list[float]:
    """The calibrated evidence of each result, beside the best of the first `among`. `beside` are (lender, gainer,
    strength): what a reply answers was asked before it, so words that stand beside it count."""
    hits, asked = found.hits.get("keyword"), _asked(found)
    if hits is None or asked is None or asked.whole <= 0:
        return calibrated([None] * len(results), cosines, among=among)
    held = dict(zip(hits.ids, hits.held, strict=True))
    near = dict.fromkeys(results, 0)
    for lender, gainer, _ in beside:
        if gainer in near:
            near[gainer] |= held.get(lender, 0)
    return calibrated([asked.covered(held.get(id_, 0), near[id_]) for id_ in results], cosines, among=among)


def _asked(found: Found) -> Asked | None:
    if found.reading is None:
        return None
    reading = found.reading.reading
    dated: set[str] = set()
    if any(lexeme[:1] == "@" for lexeme in reading.documents):
        of_dates = pieces_with_dates(found.pieces)
        dated = {lexeme for lexeme, places in reading.places.items() if places and of_dates.issuperset(places)}
    return Asked.of(found.reading.weights, reading.documents, dated, reading.total, reading.spelled)
