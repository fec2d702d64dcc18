"""Explanation of an answer: every term of each score, and the work of each branch."""

from __future__ import annotations

from uuid import UUID

from folklore.memory.recall.rank import Ranked
from folklore.memory.recall.values import Found, Search
from folklore.model import JsonObject


def explain_result(id_: UUID, found: Found, ranked: Ranked) -> JsonObject:
    """Explain one result: relevance = (own * signals + neighbours) * nearness.

    Each branch gives rank, score, raw score and, as `evidence`, its standardised score.
    """
    fused, scored, features = ranked.fused, ranked.leading.scored, ranked.features
    branches = {}
    for branch, hits in found.hits.items():
        if id_ in hits.ids:
            place = hits.ids.index(id_)
            branches[branch] = {
                "rank": place + 1,
                "score": round(hits.scores[place], 4),
                "raw": round(hits.raw[place], 4),
                "evidence": round(fused.standardised[branch][id_], 3),
            }
    return {
        "branches": branches,
        "rrf": round(fused.rrf.get(id_, 0.0), 5),
        "own": round(fused.own.get(id_, 0.0), 3),
        "signals": round(features.signals.get(id_, 1.0), 3),
        "neighbours": round(scored.spread.get(id_, 0.0), 3),
        "nearness": round(features.nearness.get(id_, 1.0), 3),
        "relevance": round(scored.relevance[id_], 3),
        "redundancy": round(ranked.redundancy[id_], 3),
    }


def explain_answer(search: Search, found: Found) -> JsonObject:
    """Explain the answer: path, number of hits and milliseconds of each branch; lexemes, their frequency and weight."""
    milliseconds = {"dense": found.dense.milliseconds, "keyword": found.keyword.milliseconds}
    value: dict[str, object] = {
        branch: {
            "path": hits.path if branch == "dense" else "tsvector" if search.expression else "postings",
            "hits": len(hits.ids),
            "milliseconds": round(milliseconds[branch], 2),
        }
        for branch, hits in found.hits.items()
    }
    if (words := found.keyword.words) is not None:
        value["lexemes"] = {
            lexeme: {"documents": count, "weight": round(words.weights.get(lexeme, 0.0), 3)}
            for lexeme, count in words.query.documents.items()
        }
    return value
