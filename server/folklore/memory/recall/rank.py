"""The steps of a ranking after the branches: candidates, relevance, reranking, diversity, newest first, confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from uuid import UUID

from folklore.db.stores.recall_rows import Candidate, CandidateQuery
from folklore.embedding.protocol import Reranker
from folklore.errors import RerankerUnavailable, Unavailable
from folklore.lazy import NDArray, numpy as np
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.recall.pool import Candidates, candidates_of, pool_of
from folklore.memory.recall.values import Retrieval, Search
from folklore.model import Degraded
from folklore.ranking import diversity, numbers
from folklore.ranking.features import group_of
from folklore.ranking.fusion import best_first, reciprocal_rank_fusion, reranked
from folklore.ranking.signals import signals_of
from folklore.ranking.trained import Weights, weights_for
from folklore.telemetry import stage
from folklore.text.clean import clean
from folklore.text.query.question import QuestionWords
from folklore.text.words import separated

log = get_logger(__name__)

_REFLECTION = "reflection"
# Characters of a statement, which alone is on one subject, and of one whose words are compared: one other word changes
# the vector of a few.
_STATEMENT, _FEW_WORDS = 300, 80
_OCCASION = timedelta(days=1).total_seconds()
# Characters of a question that a reranker reads.
_RERANKED_QUESTION = 4_000


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The best candidates, best first, with their relevance (n,).

    `variants` are near-duplicates of a candidate, newest first, which it represents. `parts` are the features of all
    candidates times their weights, by row, `trained` their sum by the trained weights alone, of which scores are made.
    """

    order: list[UUID]
    relevance: NDArray[np.float64]
    variants: Mapping[UUID, Sequence[UUID]]
    parts: Mapping[str, NDArray[np.float64]]
    trained: NDArray[np.float64]
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedList:
    """The results of a question in order with their scores, one more than wanted if there is one, and how they came.

    `confidence` is that of each result alone, `redundancy` and `shortlist` are those of all candidates that were left.
    """

    rrf: Mapping[UUID, float]
    candidates: Candidates
    shortlist: Shortlist
    redundancy: Mapping[UUID, float]
    scores: Mapping[UUID, float]
    confidence: Mapping[UUID, float]
    weights: Weights
    degraded: tuple[Degraded, ...] = ()

    def parts_of(self, id_: UUID) -> dict[str, float]:
        """Return the parts of the relevance of a candidate."""
        row = self.candidates.rows[id_]
        return {name: float(values[row]) for name, values in self.shortlist.parts.items()}

    @property
    def fits(self) -> bool:
        """True if any result may be an answer, and where confidence does not count."""
        return not self.confidence or max(self.confidence.values()) >= self.weights.floor


async def rank(
    memory: MemoryContext, search: Search, retrieval: Retrieval, weights: Weights | None = None
) -> RankedList:
    """Return the results of the branches, ranked by the weights of their model if no others are given.

    One statement; one more where neighbours of a result were not read.
    """
    with stage("recall.rank"):
        rrf, candidates, degraded = await read_pool(memory, search, retrieval)
        weights = weights or weights_for(_model_of(retrieval))
        shortlist = _shortlist(search, retrieval, candidates, rrf, weights)
        if memory.reranker is not None and "dense" in retrieval.hits:
            shortlist = await _rerank(memory.reranker, search, shortlist, candidates)
        redundancy = _diverse(search, shortlist, candidates)
        results = list(redundancy)
        if search.question.literal:
            scores, confidence = dict.fromkeys(results[: search.wanted + 1], 0.0), dict[UUID, float]()
        else:
            results = results if search.ranking.min_score else results[: search.wanted + 1]
            confidence = await _confidences(memory, search, retrieval, candidates, results, weights)
            scores = _scores(search, candidates, shortlist, confidence, weights)
    degraded = (*degraded, *shortlist.degraded)
    return RankedList(rrf, candidates, shortlist, redundancy, scores, confidence, weights, degraded)


def _model_of(retrieval: Retrieval) -> str:
    """Return the name of the weights for the vectors that were compared."""
    if "dense" not in retrieval.hits or retrieval.dense.model is None:
        return "none"
    return "contextual" if retrieval.dense.model.contextual else "bundled"


async def read_candidates(
    memory: MemoryContext, search: Search, query: CandidateQuery
) -> tuple[Mapping[UUID, Candidate], tuple[Degraded, ...]]:
    """Read candidates whole, and the reason if it was done without the table of vectors. One statement, or two."""
    try:
        return await memory.statements.candidates(search.scope, query), ()
    except Unavailable as error:
        if query.near is None or memory.answering is not None:  # the primary has the vectors
            raise
        found = await memory.statements.candidates(search.scope, replace(query, near=None))
        return found, (Degraded("dense", error.message),)


async def read_pool(
    memory: MemoryContext, search: Search, retrieval: Retrieval
) -> tuple[dict[UUID, float], Candidates, tuple[Degraded, ...]]:
    """Read the candidates, and the neighbours of the best ones unless ranks alone count; with their fused ranks.

    One statement.
    """
    lists = [(search.ranking.scale(branch), hits.ids) for branch, hits in retrieval.hits.items()]
    rrf = reciprocal_rank_fusion(lists, search.ranking.rrf_k)
    ids = best_first(rrf, rrf)
    plain = search.ranking.fusion == "rrf" or search.question.literal
    query = CandidateQuery(
        spaces=frozenset().union(*(hits.spaces for hits in retrieval.hits.values())),
        ids=ids,
        spreading=() if plain else ids[: max(numbers.SURROUNDED, search.wanted)],
        reach=0 if plain else 2,
        related=not plain and search.ranking.relations > 0,
        # Where the dense branch failed, the table of vectors may be locked.
        near=None if "dense" not in retrieval.hits else retrieval.dense.query,
    )
    with stage("recall.pool", candidates=len(ids)):
        read, degraded = await read_candidates(memory, search, query) if ids else ({}, ())
    return rrf, candidates_of(search, retrieval, read, query.spreading), degraded


def _shortlist(
    search: Search, retrieval: Retrieval, candidates: Candidates, rrf: Mapping[UUID, float], weights: Weights
) -> Shortlist:
    """Return the best candidates by relevance, one of each group of near-duplicates, with few reflections."""
    ranking, ids = search.ranking, list(candidates.all)
    trained = np.zeros(len(ids))
    if ranking.fusion == "rrf":
        best = max(rrf.values(), default=1.0) or 1.0
        parts = {"reciprocal ranks": np.array([rrf[id_] / best for id_ in ids])}
    else:
        pool, rows = pool_of(search, retrieval, candidates), [candidate.row for candidate in candidates.all.values()]
        products = weights.relevance_of(pool)
        trained = np.sum(list(products.values()), axis=0)
        parts = {name: values * ranking.scale(group_of(name)) for name, values in products.items()}
        parts |= signals_of(ranking, pool, rows, search.pieces, search.scope.now)
    relevance = dict(zip(ids, np.sum(list(parts.values()), axis=0).tolist(), strict=True))
    order = _with_few_reflections(best_first(relevance, rrf), candidates.all, search.wanted)
    groups: Mapping[UUID, Sequence[UUID]] = dict.fromkeys(order, ())
    if ranking.fusion != "rrf" and ranking.mmr_lambda < 1.0:
        opening = {id_: match.opening for id_, match in candidates.matches.items()}.__getitem__
        content = {id_: candidate.content for id_, candidate in candidates.all.items()}.__getitem__
        groups = diversity.group_near_duplicates(order, opening, content, candidates.time_of)
    best_of = [max(relevance[id_] for id_ in (newest, *others)) for newest, others in groups.items()]
    variants = {id_: others for id_, others in groups.items() if others}
    return Shortlist(list(groups), np.array(best_of), variants, parts, trained)


def _with_few_reflections(order: Sequence[UUID], candidates: Mapping[UUID, Candidate], wanted: int) -> Sequence[UUID]:
    """Return the order without reflections beyond their share, but at least one; all if there is nothing else."""
    reflections = [id_ for id_ in order if candidates[id_].kind == _REFLECTION]
    beyond = set() if len(reflections) == len(order) else set(reflections[max(int(wanted * numbers.REFLECTIONS), 1) :])
    return [id_ for id_ in order if id_ not in beyond] if beyond else order


async def _rerank(reranker: Reranker, search: Search, shortlist: Shortlist, candidates: Candidates) -> Shortlist:
    """Return the candidates with the first ones sorted by the reranker; unchanged, with the reason, if it fails.

    Before diversity: a reranker judges each text alone and would bring duplicates back together.
    """
    question = clean(search.text[:_RERANKED_QUESTION]).text.strip()
    texts = [candidates.text(id_) for id_ in shortlist.order[: reranker.pool]]
    try:
        scores = await reranker.scores(question, texts)
    except RerankerUnavailable as error:
        log.warning("not_reranked", reason=error.message)
        return replace(shortlist, degraded=(Degraded("rerank", error.message),))
    places, relevance = reranked(shortlist.relevance, scores)
    order = [shortlist.order[place] for place in places]
    return replace(shortlist, order=order, relevance=relevance)


def _diverse(search: Search, shortlist: Shortlist, candidates: Candidates) -> dict[UUID, float]:
    """Return the results, best first but the newer one first on one subject, with their redundancy."""
    ranking = search.ranking
    vectors = candidates.near(shortlist.order)
    # A result below min_score leaves its place to the next one.
    limit = len(shortlist.order) if ranking.min_score else search.wanted + 1
    pick = diversity.maximal_marginal_relevance if ranking.fusion == "rrf" else diversity.discounted_relevance
    picked = pick(shortlist.relevance, vectors @ vectors.T, limit, ranking.mmr_lambda)
    redundancy = {shortlist.order[place]: value for place, value in picked}
    if ranking.fusion == "rrf" or search.question.literal:
        return redundancy
    newer = _newer_on_subject(search, shortlist.order, candidates, redundancy)
    order = diversity.newest_first(list(redundancy), newer)
    return {id_: redundancy.get(id_, 0.0) for id_ in order[: len(redundancy)]}


def _newer_on_subject(
    search: Search, order: Sequence[UUID], candidates: Candidates, results: Collection[UUID]
) -> dict[UUID, list[UUID]]:
    """Return the newer candidates on the subject of a candidate, newest first, where there are any.

    One from beyond the results must be newer by a day. Turns of one session are no versions of each other.
    """
    ids = [id_ for id_ in order[: len(results) + numbers.SURROUNDED] if len(candidates.all[id_].content) <= _STATEMENT]
    times = np.array([candidates.time_of(id_).timestamp() for id_ in ids])
    apart = np.where([id_ in results for id_ in ids], 0.0, _OCCASION)
    lead = times[None, :] - times[:, None]  # (older, newer)
    lead = np.where(lead > apart[None, :], lead, 0.0)
    if not lead.any():
        return {}
    newer: dict[UUID, list[UUID]] = {}
    for older, place in np.argwhere(_replaced(search, candidates, ids, lead)).tolist():
        one, other = candidates.all[ids[older]], candidates.all[ids[place]]
        if one.place is None or other.place is None or one.place[0] != other.place[0]:
            newer.setdefault(one.id, []).append(other.id)
    for others in newer.values():
        others.sort(key=candidates.time_of, reverse=True)
    return newer


def _replaced(
    search: Search, candidates: Candidates, ids: Sequence[UUID], lead: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which pairs (older, newer) are on one subject, the newer with a lead of some seconds above 0.

    It holds half of the question's words and all of its identifiers that the older holds. Of two within a day, such as
    those of an import, the times say little: they must be nearly the same.
    """
    vectors = candidates.near(ids)
    held = candidates.words[[candidates.rows[id_] for id_ in ids]]
    shared = (held * candidates.rarity) @ held.T.astype(float)
    possible: NDArray[np.bool_] = (lead > 0.0) & (shared >= numbers.COVERED * shared.diagonal()[:, None] - 1e-9)
    alike = vectors @ vectors.T >= np.where(lead > _OCCASION, numbers.SAME_SUBJECT, numbers.SIMILAR)
    texts = [candidates.all[id_].content for id_ in ids]
    for identifier in QuestionWords.of(search.pieces).identifiers:
        named = np.array([identifier.search(text.casefold()) is not None for text in texts])
        possible &= named[None] | ~named[:, None]
    words = cache(lambda place: set(separated(texts[place])))
    short = np.array([len(text) <= _FEW_WORDS for text in texts])
    for older, place in np.argwhere(possible & ~alike & short[:, None] & short[None, :]).tolist():
        alike[older, place] = diversity.share_words(words(older), words(place), numbers.SAME_WORDS)
    return possible & alike


async def _confidences(
    memory: MemoryContext,
    search: Search,
    retrieval: Retrieval,
    candidates: Candidates,
    results: Sequence[UUID],
    weights: Weights,
) -> dict[UUID, float]:
    """Return the confidence that each result answers the question; at most one statement, for their neighbours.

    Which of those were read before depends on the ranking, and so on other memories; confidence must not.
    """
    lacking = [
        id_
        for id_ in results
        if id_ not in candidates.surrounded
        and (place := candidates.all[id_].place) is not None
        and (candidates.beside[candidates.rows[id_], : 2 if place[1] else 1] < 0).any()
    ]
    read: Mapping[UUID, Candidate] = {}
    if lacking:
        near = None if "dense" not in retrieval.hits else retrieval.dense.query
        spaces = {candidates.all[id_].row["namespace_id"] for id_ in lacking}
        query = CandidateQuery(spaces, lacking, spreading=lacking, reach=1, related=False, near=near)
        read, _ = await read_candidates(memory, search, query)
    all_ids, beside = list(candidates.all), candidates.beside[[candidates.rows[id_] for id_ in results], :2]
    ids = dict.fromkeys([*results, *(all_ids[row] for row in beside[beside >= 0]), *read])
    all_ = {id_: candidates.all.get(id_) or read[id_] for id_ in ids}
    pool = pool_of(search, retrieval, candidates_of(search, retrieval, all_, (), candidates.matches))
    return dict(zip(results, weights.confidence_of(pool).tolist(), strict=False))


def _scores(
    search: Search, candidates: Candidates, shortlist: Shortlist, confidence: Mapping[UUID, float], weights: Weights
) -> dict[UUID, float]:
    """Return the results with their scores: those wanted, and one more if there is one.

    Without `min_score`, an answer in which no confidence reaches the floor has the five most relevant results.
    """
    ranking, order = search.ranking, list(confidence)
    if not order:
        return {}
    if not search.sorted_by_score:
        results = [id_ for id_ in order if confidence[id_] >= (ranking.min_score or 0.0)]
        return {id_: confidence[id_] for id_ in results[: search.wanted + 1]}
    best = np.sort(shortlist.trained)[::-1][:2]
    sums = shortlist.trained[[candidates.rows[id_] for id_ in order]]
    lead = sums - np.where(sums < best[0], best[0], best[-1] if len(best) > 1 else best[0] - numbers.ALONE)
    scores = weights.scores_of(sums, lead, np.array(list(confidence.values()))).round(3).tolist()
    if not QuestionWords.of(search.pieces).words:  # signs alone: nothing can be said of what answers them
        scores = [0.0] * len(order)
    if ranking.min_score:
        order = [id_ for id_, score in zip(order, scores, strict=True) if score >= ranking.min_score]
    elif ranking.min_score is None and max(confidence.values(), default=0.0) < weights.floor:
        order = order[: numbers.MOST_WEAK]
    return dict(zip(order[: search.wanted + 1], scores, strict=False))
