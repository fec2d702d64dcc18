"""Why a result stands where it does: every term of its score, and what each branch did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from folklore.memory.recall.branches import Found
from folklore.model import JsonObject
from folklore.ranking.pool import Fused, Pool


@dataclass(frozen=True, slots=True)
class Traced:
    """What the stages after the branches made of a result."""

    fused: Fused[UUID]
    pool: Pool[UUID]
    factors: Mapping[UUID, float]
    nearness: Mapping[UUID, float]
    redundancy: float


def explained(id_: UUID, found: Found, traced: Traced) -> JsonObject:
    """One result: rank, raw score and evidence in every branch, its RRF sum, and its own relevance (half of each, as
    shares of the best); what signals make of it, what neighbours lent, what nearness makes of both, the relevance, how
    far it repeats one above."""
    fused, pool = traced.fused, traced.pool
    branches = {}
    for branch, hits in found.hits.items():
        if id_ in hits.ids:
            place = hits.ids.index(id_)
            branches[branch] = {
                "rank": place + 1,
                "score": round(hits.scores[place], 4),
                "raw": round(hits.raw[place], 4),
                "evidence": round(fused.evidence[branch][id_], 3),
            }
    return {
        "branches": branches,
        "rrf": round(fused.rrf.get(id_, 0.0), 5),
        "own": round(fused.own.get(id_, 0.0), 3),
        "signals": round(traced.factors.get(id_, 1.0), 3),
        "neighbours": round(pool.gained.get(id_, 0.0), 3),
        "nearness": round(traced.nearness.get(id_, 1.0), 3),
        "relevance": round(pool.relevance[id_], 3),
        "redundancy": round(traced.redundancy, 3),
    }


def explanation(found: Found) -> JsonObject:
    """The whole answer: per branch the path, how many it brought and how long it took; the lexemes and their weight."""
    value: dict[str, object] = {
        branch: {
            "path": hits.path if branch == "dense" else "tsvector" if found.expression else "postings",
            "hits": len(hits.ids),
            "milliseconds": round(found.milliseconds.get(branch, 0.0), 2),
        }
        for branch, hits in found.hits.items()
    }
    if found.reading is not None:
        value["lexemes"] = {
            lexeme: {"documents": count, "weight": round(found.reading.weights.get(lexeme, 0.0), 3)}
            for lexeme, count in found.reading.reading.documents.items()
        }
    return value
