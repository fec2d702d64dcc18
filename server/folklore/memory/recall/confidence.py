"""Confidence of each result of an answer, from the words of the question that it covers and from its cosine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from folklore.memory.recall.values import Found, Search
from folklore.ranking.confidence import QuestionTerms, confidences
from folklore.text.dates.date_terms import pieces_with_dates


def answer_confidences(
    search: Search,
    found: Found,
    results: Sequence[UUID],
    cosines: Sequence[float],
    links: Iterable[tuple[UUID, UUID, float]],
) -> list[float]:
    """Return the confidence of each result, half of it that of the best among those wanted and one more.

    Words that a neighbour holds count (`links` are (from, to, strength)): a reply follows what it answers.
    """
    hits, terms, among = found.hits.get("keyword"), _question_terms(search, found), search.wanted + 1
    if hits is None or terms is None or terms.total <= 0:
        return confidences([None] * len(results), cosines, among=among)
    own = dict(zip(hits.ids, hits.words, strict=True))
    neighbours = dict.fromkeys(results, 0)
    for from_, to, _ in links:
        if to in neighbours:
            neighbours[to] |= own.get(from_, 0)
    return confidences([terms.coverage(own.get(id_, 0), neighbours[id_]) for id_ in results], cosines, among=among)


def _question_terms(search: Search, found: Found) -> QuestionTerms | None:
    words = found.keyword.words
    if words is None:
        return None
    query = words.query
    dated: set[str] = set()
    if any(lexeme[:1] == "@" for lexeme in query.documents):
        dates = pieces_with_dates(search.pieces)
        dated = {lexeme for lexeme, places in query.places.items() if places and dates.issuperset(places)}
    return QuestionTerms.of(words.weights, query.documents, dated, query.corpus.total, query.stems)
