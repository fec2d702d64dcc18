"""From what the branches found to the answer in its order: fused, moved by signals, lent to, made diverse."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import Candidate, Scope
from folklore.embedding.protocol import Reranker
from folklore.memory.recall.branches import Found
from folklore.memory.recall.confidence import assured
from folklore.memory.recall.explain import Traced, explained
from folklore.memory.recall.rerank import reranked
from folklore.model import Recalled
from folklore.ranking.diversity import picked_with_redundancy
from folklore.ranking.near_duplicates import split_near_duplicates
from folklore.ranking.neighbours import guessed_length, room
from folklore.ranking.pool import Listed, fuse, lend
from folklore.ranking.signals import factors, recency
from folklore.ranking.standard_scores import dense_weight, rarest_weights, sharpness, standing
from folklore.ranking.weights import Ranking
from folklore.telemetry import stage
from folklore.text.exact import ExactMatch
from folklore.text.words import is_question

# So many beyond those wanted may lend to their neighbours.
_MORE_LENDERS = 5
# Of an answer at most this share are reflections: they speak about memories, and must not crowd them out.
_REFLECTIONS = 0.3
_REFLECTION = "reflection"
_LOWEST_PRIORITY = 4


async def ranked(
    reranker: Reranker | None,
    statements: RecallStatements,
    scope: Scope,
    found: Found,
    ranking: Ranking,
    question: str,
    wanted: int,
    *,
    explain: bool,
) -> list[Recalled]:
    """The `wanted` best and one more if there is one, best first. One statement, the last of its conversation."""
    fetched = ranking.fetch(wanted)
    coverage = found.coverage()
    lists = _lists(found, ranking, max(coverage.values(), default=0.0))
    fused = fuse(lists, ranking, fetched)
    if not fused.order:
        return []
    # A candidate beyond these could only come last, and what is not in the answer adds next to nothing to another.
    seeds = fused.order[: fetched + 1]
    with stage("recall.pool", candidates=len(seeds)):
        candidates = await statements.pool(
            scope,
            ids=seeds,
            lenders=seeds[: wanted + _MORE_LENDERS],
            reach=len(ranking.neighbours),
            related=ranking.relations > 0,
            # Where the dense branch failed, the table of vectors may be out of reach.
            model=found.model_id if "dense" in found.hits else None,
        )
        await statements.let_go()
    beside = list(_beside(candidates, candidates, ranking))
    rows = {id_: row for row, id_ in enumerate(candidates)}
    matrix = _matrix([candidate.raw_vector for candidate in candidates.values()])
    here = {id_: candidate for id_, candidate in candidates.items() if id_ in fused.own}
    moved = _factors(here, found, ranking, coverage, scope.now)
    cosines = _cosines(matrix, found)
    nearness = {} if cosines is None else _nearness(candidates, cosines, found, ranking)
    pool = lend(fused, here, moved, beside, nearness)
    order = _within_share(pool.order, candidates, wanted)
    leading, near_duplicates = list(order[: fetched + 1]), list[UUID]()
    if ranking.mmr_lambda < 1.0:
        leading, near_duplicates = split_near_duplicates(order, lambda id_: candidates[id_].content, fetched + 1)
    relevance = np.array([pool.relevance[id_] for id_ in leading])
    if reranker is not None and "dense" in found.hits:
        leading, relevance = await reranked(reranker, question, leading, relevance, candidates, found.degraded)
    vectors = matrix[[rows[id_] for id_ in leading]]
    # A result below min_score leaves its place to the next one.
    most = len(leading) if ranking.min_score > 0 else wanted + 1
    picked = picked_with_redundancy(relevance, vectors @ vectors.T, most, ranking.mmr_lambda)
    redundancy = {leading[place]: value for place, value in picked} | dict.fromkeys(near_duplicates, 1.0)
    answers = list(redundancy)
    near = [0.0 if cosines is None else float(cosines[rows[id_]]) for id_ in answers]
    results: list[Recalled] = []
    sure = assured(answers, near, found, beside, among=wanted + 1)
    for id_, evidence in zip(answers, sure, strict=True):
        if evidence >= ranking.min_score and len(results) <= wanted:
            terms = explained(id_, found, Traced(fused, pool, moved, nearness, redundancy[id_])) if explain else None
            results.append(Recalled(candidates[id_].memory, round(evidence, 3), terms))
    return results


def _lists(found: Found, ranking: Ranking, coverage: float) -> list[Listed[UUID]]:
    """What the branches brought, with what their evidence counts."""
    lists: list[Listed[UUID]] = []
    for branch, hits in found.hits.items():
        weight, trust = ranking.weight(branch), 1.0
        if branch == "dense":
            if found.model is not None:
                mean_length = 0.0 if found.reading is None else found.reading.reading.mean_length
                trust = sharpness(found.model.blurs_beyond, mean_length)
                weight *= dense_weight(found.model.weight, coverage) * trust
            if found.line is not None and hits.scores:
                weight *= standing(hits.scores[0], found.line.spread, found.total, ranking.standing)
            similarities: Sequence[float] = hits.raw
        else:
            best = max((score for score in hits.scores), default=0.0)
            similarities = [coverage * score / best if best > 0 else 0.0 for score in hits.scores]
        lists.append(Listed(branch, hits.ids, hits.scores, weight, similarities, trust))
    return lists


def _factors(
    candidates: Mapping[UUID, Candidate], found: Found, ranking: Ranking, coverage: Mapping[UUID, float], now: datetime
) -> dict[UUID, float]:
    """What its signals make of each candidate's own relevance."""
    signals = ranking.signals
    words: list[float] = []
    if found.reading is not None:
        words = rarest_weights(found.reading.reading.places, found.reading.weights, len(found.pieces))
    exact = ExactMatch.of(found.pieces, words or [0.0] * len(found.pieces))
    asked = {piece.strip(".,;:!?").casefold() for piece in found.pieces}
    values: list[dict[str, float | None]] = []
    for id_, candidate in candidates.items():
        value: dict[str, float | None] = {
            "importance": candidate.importance,
            "confidence": candidate.confidence,
        }
        if (priority := candidate.priority) is not None:
            value["priority"] = (_LOWEST_PRIORITY - priority) / (_LOWEST_PRIORITY - 1)
        if signals.exact > 0 and exact.total > 0:
            value["exact"] = exact.score(candidate.content)
        if signals.overlap > 0:
            value["overlap"] = coverage.get(id_, 0.0)
        if signals.tags > 0 and candidate.tags:
            parts = {part for tag in candidate.tags for part in (tag, *tag.replace("/", ":").split(":"))}
            value["tags"] = len(asked & parts) / max(len(asked), 1)
        if signals.recency > 0:
            value["recency"] = recency(candidate.used_at, now, signals.half_life)
        values.append(value)
    boost = ranking.reflection_boost
    return {
        id_: factor * (boost if candidates[id_].kind == _REFLECTION else 1.0)
        for id_, factor in zip(candidates, factors(signals, values), strict=True)
    }


def _cosines(vectors: NDArray[np.float32], found: Found) -> NDArray[np.float32] | None:
    """The cosine (n,) of each row (n, dimensions) with the question; None without its vector in their space."""
    if "dense" not in found.hits or found.vector is None or vectors.shape[1] != len(found.vector):
        return None
    cosines: NDArray[np.float32] = vectors @ found.vector
    return cosines


def _nearness(
    candidates: Mapping[UUID, Candidate], cosines: NDArray[np.float32], found: Found, ranking: Ranking
) -> dict[UUID, float]:
    """By what each candidate counts for how near it is, length taken off, as a share of the nearest: at least 1.

    One whose vector is owed lies in the middle.
    """
    slope, expected = (0.0, 0.0) if found.line is None else (found.line.slope, found.line.expected)
    lengths = np.array([-1 if candidate.length is None else candidate.length for candidate in candidates.values()])
    owed = lengths < 0
    beyond = np.where(owed, 0.0, cosines - slope * np.log(lengths + 30.0) - expected)
    nearest = float(beyond.max(initial=0.0))
    if nearest <= 0.0:
        return {}
    shares = np.where(owed, 0.5, np.maximum(beyond, 0.0) / nearest)
    return dict(zip(candidates, (1.0 + ranking.nearness * shares).tolist(), strict=True))


def _beside(
    candidates: Mapping[UUID, Candidate], lenders: Container[UUID], ranking: Ranking
) -> Iterator[tuple[UUID, UUID, float]]:
    """Which of the lenders may lend how much to whom: to neighbours in the session, and by a relation."""
    sessions: dict[tuple[UUID, str], list[tuple[int, UUID, float, bool]]] = {}
    for candidate in candidates.values():
        if candidate.place is not None:
            session, position = candidate.place
            id_ = candidate.id
            sessions.setdefault(session, []).append((position, id_, _room(candidate, ranking), id_ in lenders))
        for lender, strength in candidate.ties:
            yield lender, candidate.id, ranking.relations * strength
    strengths = ranking.neighbours
    for members in sessions.values():
        members.sort()
        for place, (position, one, room_of_one, one_lends) in enumerate(members):
            for other_position, other, room_of_other, other_lends in members[place + 1 :]:
                gap = other_position - position
                if gap > len(strengths):
                    break
                if gap > 0 and one_lends:
                    yield one, other, strengths[gap - 1] * room_of_other
                if gap > 0 and other_lends:
                    yield other, one, strengths[gap - 1] * room_of_one


def _room(gainer: Candidate, ranking: Ranking) -> float:
    return room(_length(gainer), ranking, asks=is_question(gainer.content))


def _length(candidate: Candidate) -> int:
    return guessed_length(candidate.content) if candidate.length is None else candidate.length


def _within_share(order: Sequence[UUID], candidates: Mapping[UUID, Candidate], wanted: int) -> Sequence[UUID]:
    """The order without the reflections beyond their share of the answer, but one; alone they crowd nobody out."""
    reflections = sum(candidates[id_].kind == _REFLECTION for id_ in order)
    if reflections in (0, len(order)):
        return order
    left = max(int(wanted * _REFLECTIONS), 1)
    kept = []
    for id_ in order:
        if candidates[id_].kind == _REFLECTION:
            left -= 1
            if left < 0:
                continue
        kept.append(id_)
    return kept


def _matrix(vectors: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Unit vectors as rows (n, dimensions), from big-endian half floats; zero where a vector is owed."""
    size = next((len(vector) for vector in vectors if vector is not None), 2)
    joined = b"".join(bytes(size) if vector is None else vector for vector in vectors)
    matrix = np.frombuffer(joined, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    matrix /= np.maximum(lengths, np.float32(1e-9))[:, None]
    return matrix
