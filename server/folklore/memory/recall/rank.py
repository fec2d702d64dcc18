"""The steps of a ranking after the branches: candidates, relevance, reranking, diversity, newest first, confidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from uuid import UUID

from folklore.db.stores.recall_rows import Candidate, CandidateQuery
from folklore.embedding import Model, Reranker
from folklore.errors import RerankerUnavailable, Unavailable
from folklore.lazy import NDArray, numpy as np
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.recall.pool import Candidates
from folklore.memory.recall.values import Retrieval, Search
from folklore.model import Degraded
from folklore.ranking import diversity, numbers
from folklore.ranking.features import Parts, group_of, signals_of
from folklore.ranking.fusion import (
    behind_best,
    best_first,
    leads,
    reciprocal_rank_fusion,
    reranked,
)
from folklore.ranking.subjects import COMPARED, REPLACED, likeness_of, subject_words
from folklore.ranking.trained import Weights, weights_for
from folklore.telemetry import stage
from folklore.text.clean import clean
from folklore.text.words import separated

log = get_logger(__name__)

_REFLECTION = "reflection"
# Kinds of memories that may be turns of a dialogue; those of the others, as of decisions, state something.
_TURNS = ("note", "episodic")
# Characters of a text that is on one subject alone, and of one whose words are compared: one other word changes
# the vector of a few.
_ONE_SUBJECT = 300
_FEW_WORDS = 80
_OCCASION = timedelta(days=1).total_seconds()
# Characters of a question that a reranker reads.
_RERANKED_QUESTION = 4_000


@dataclass(frozen=True, slots=True)
class RankedList:
    """The results of a question in order with their scores, one more than wanted if there is one, and how they came.

    `parts` are the features of all candidates times their weights, by row. `representatives` are the candidates that may
    be results, best first, with their relevance: those that are left out are surplus reflections, and near-duplicates,
    which are the `variants` of the newest one, newest first. `redundancy` is that of the results, whose keys are in the
    order of the answer; it is 0 for a newer one that was moved in from beyond them. `scores` and `confidence` are of
    those that are in the answer or on the next page. Of two on one subject the newer `replaces` the older.
    """

    search: Search
    candidates: Candidates
    parts: Parts
    representatives: Mapping[UUID, float]
    variants: Mapping[UUID, Sequence[UUID]]
    redundancy: Mapping[UUID, float]
    replaces: Mapping[UUID, Sequence[UUID]]
    scores: Mapping[UUID, float]
    confidence: Mapping[UUID, float]
    weights: Weights
    degraded: tuple[Degraded, ...]

    @property
    def retrieval(self) -> Retrieval:
        """The results of the branches."""
        return self.candidates.retrieval

    @property
    def fits(self) -> bool:
        """True if any result may be an answer, and where confidence does not count."""
        if not self.confidence:
            return True
        return max(self.confidence.values()) >= self.weights.floor

    def parts_of(self, id_: UUID) -> dict[str, float]:
        """Return the parts of the relevance of a candidate."""
        row = self.candidates.rows[id_]
        return {name: float(values[row]) for name, values in self.parts.items()}


async def rank(
    memory: MemoryContext, retrieval: Retrieval, weights: Weights | None = None
) -> RankedList:
    """Return the results of the branches, ranked by the weights of their model if no others are given.

    One statement; one more where neighbours of a result were not read.
    """
    search = retrieval.search
    weights = weights or _weights_of(retrieval.dense.model)
    with stage("recall.rank"):
        candidates, degraded = await read_pool(memory, retrieval)
        parts, trained_relevance = _parts(candidates, weights)
        representatives, variants = _representatives(candidates, parts)
        if memory.reranker is not None and "dense" in retrieval.hits:
            representatives, failed = await _rerank(
                memory.reranker, candidates, representatives
            )
            degraded += failed
        redundancy, replaces = _diverse(candidates, representatives)
        results = list(redundancy)
        if search.question.literal:
            scores = dict.fromkeys(results[: search.wanted + 1], 0.0)
            confidence = dict[UUID, float]()
        else:
            if not search.ranking.min_score:
                results = results[: search.wanted + 1]
            confidence = await _confidences(memory, candidates, results, weights)
            scores = _scores(candidates, trained_relevance, confidence, weights)
    degraded = retrieval.degraded + degraded
    return RankedList(
        search=search,
        candidates=candidates,
        parts=parts,
        representatives=representatives,
        variants=variants,
        redundancy=redundancy,
        replaces=replaces,
        scores=scores,
        confidence=confidence,
        weights=weights,
        degraded=degraded,
    )


def _weights_of(model: Model | None) -> Weights:
    """Return the weights that were trained with the vectors of a model, or without any."""
    if model is None:
        return weights_for("none")
    if model.contextual:
        return weights_for("contextual")
    return weights_for("bundled")


async def read_candidates(
    memory: MemoryContext, search: Search, query: CandidateQuery
) -> tuple[Mapping[UUID, Candidate], tuple[Degraded, ...]]:
    """Read candidates whole, and the reason if it was done without the table of vectors. One statement, or two."""
    try:
        return await memory.statements.candidates(search.scope, query), ()
    except Unavailable as error:
        if query.near is None:
            raise
        # The primary has the vectors.
        without_vectors = replace(query, near=None)
        rows = await memory.statements.candidates(search.scope, without_vectors)
        return rows, (Degraded("dense", error.message),)


async def read_pool(
    memory: MemoryContext, retrieval: Retrieval
) -> tuple[Candidates, tuple[Degraded, ...]]:
    """Read the candidates, and the neighbours of the best ones unless ranks alone count. One statement."""
    search = retrieval.search
    ranking = search.ranking
    lists = []
    spaces: set[UUID] = set()
    for branch, hits in retrieval.hits.items():
        lists.append((ranking.scale(branch), hits.ids))
        spaces |= hits.spaces
    rrf = reciprocal_rank_fusion(lists, ranking.rrf_k)
    ids = best_first(rrf, rrf)
    ranks_alone = ranking.fusion == "rrf" or search.question.literal
    query = CandidateQuery(
        spaces=spaces,
        ids=ids,
        spreading=(),
        reach=0,
        related=False,
        near=retrieval.dense.query,  # None where the branch failed: the table of vectors may be locked
    )
    if not ranks_alone:
        query = replace(
            query,
            spreading=ids[: max(numbers.SURROUNDED, search.wanted)],
            reach=2,
            related=ranking.relations > 0,
        )
    with stage("recall.pool", candidates=len(ids)):
        if not ids:
            return Candidates(retrieval, {}), ()
        rows, degraded = await read_candidates(memory, search, query)
    return Candidates(retrieval, rows, rrf, frozenset(query.spreading)), degraded


def _parts(
    candidates: Candidates, weights: Weights
) -> tuple[Parts, NDArray[np.float64]]:
    """Return the parts of the relevance (n,), and the sum by the trained weights alone, of which scores are made."""
    search = candidates.retrieval.search
    ranking = search.ranking
    if ranking.fusion == "rrf":
        rrf = candidates.rrf
        best = max(rrf.values(), default=1.0) or 1.0
        shares = np.array([rrf[id_] / best for id_ in candidates.all])
        return {"reciprocal ranks": shares}, np.zeros(len(rrf))

    pool = candidates.pool()
    by_feature = weights.relevance_of(pool)
    parts = {}
    for name, values in by_feature.items():
        parts[name] = values * ranking.scale(group_of(name))
    rows = [candidate.row for candidate in candidates.all.values()]
    parts |= signals_of(ranking, pool, rows, search.tokens, search.scope.now)
    return parts, np.sum(list(by_feature.values()), axis=0)


def _representatives(
    candidates: Candidates, parts: Parts
) -> tuple[Mapping[UUID, float], Mapping[UUID, Sequence[UUID]]]:
    """Return the candidates that may be results, best first, with their relevance, and their variants.

    All but surplus reflections and near-duplicates: the newest of each group represents the others, its variants, with
    the greatest relevance of all.
    """
    ranking = candidates.retrieval.search.ranking
    sums = np.sum(list(parts.values()), axis=0).tolist()
    relevance = dict(zip(candidates.all, sums, strict=True))
    order = _with_few_reflections(best_first(relevance, candidates.rrf), candidates)
    if ranking.fusion == "rrf" or ranking.mmr_lambda >= 1.0:
        return {id_: relevance[id_] for id_ in order}, {}

    groups = diversity.group_near_duplicates(
        order,
        opening_of=lambda id_: candidates.held[id_].opening,
        text_of=lambda id_: candidates.all[id_].content,
        time_of=candidates.time_of,
    )
    representatives = {}
    variants = {}
    for newest, others in groups.items():
        representatives[newest] = max(relevance[id_] for id_ in (newest, *others))
        if others:
            variants[newest] = others
    return representatives, variants


def _with_few_reflections(
    order: Sequence[UUID], candidates: Candidates
) -> Sequence[UUID]:
    """Return the order without reflections beyond their share, but at least one; all if there is nothing else."""
    reflections = [id_ for id_ in order if candidates.all[id_].kind == _REFLECTION]
    if len(reflections) == len(order):
        return order
    most = max(int(candidates.retrieval.search.wanted * numbers.REFLECTIONS), 1)
    left_out = set(reflections[most:])
    return [id_ for id_ in order if id_ not in left_out]


async def _rerank(
    reranker: Reranker, candidates: Candidates, representatives: Mapping[UUID, float]
) -> tuple[Mapping[UUID, float], tuple[Degraded, ...]]:
    """Return the candidates with the first ones sorted by the reranker; unchanged, with the reason, if it fails.

    Before diversity: a reranker judges each text alone and would bring duplicates back together.
    """
    question = clean(candidates.retrieval.search.text[:_RERANKED_QUESTION]).text.strip()
    ids = list(representatives)
    texts = [candidates.text(id_) for id_ in ids[: reranker.pool]]
    try:
        scores = await reranker.scores(question, texts)
    except RerankerUnavailable as error:
        log.warning("not_reranked", reason=error.message)
        return representatives, (Degraded("rerank", error.message),)
    order, relevance = reranked(np.array(list(representatives.values())), scores)
    in_order = [ids[index] for index in order]
    return dict(zip(in_order, relevance.tolist(), strict=True)), ()


def _diverse(
    candidates: Candidates, representatives: Mapping[UUID, float]
) -> tuple[dict[UUID, float], dict[UUID, list[UUID]]]:
    """Return the redundancy of the results, in the order of the answer, and the older ones that each newer one replaces.

    Best first, but of two on one subject the newer one first.
    """
    search = candidates.retrieval.search
    ranking = search.ranking
    redundancy = _picked(candidates, representatives)
    if ranking.fusion == "rrf" or search.question.literal:
        return redundancy, {}

    newer_by_older: dict[UUID, list[UUID]] = {}
    olders_by_newer: dict[UUID, list[UUID]] = {}
    # A newer one may rank up to so many places below the results.
    compared = list(representatives)[: len(redundancy) + numbers.SURROUNDED]
    for older, newer in _pairs_on_subject(candidates, compared, redundancy):
        newer_by_older.setdefault(older, []).append(newer)
        if _is_replacement(candidates, older, newer):
            olders_by_newer.setdefault(newer, []).append(older)
    for ids in (*newer_by_older.values(), *olders_by_newer.values()):
        ids.sort(key=candidates.time_of, reverse=True)

    order = diversity.newest_first(list(redundancy), newer_by_older)
    results = order[: len(redundancy)]
    return {id_: redundancy.get(id_, 0.0) for id_ in results}, olders_by_newer


def _picked(
    candidates: Candidates, representatives: Mapping[UUID, float]
) -> dict[UUID, float]:
    """Return the results in the order in which relevance and redundancy pick them, with their redundancy."""
    ids = list(representatives)
    search = candidates.retrieval.search
    ranking = search.ranking
    if ranking.min_score:
        limit = len(ids)  # one below it leaves its rank to the next one
    else:
        limit = search.wanted + 1
    if ranking.fusion == "rrf":
        pick = diversity.maximal_marginal_relevance
    else:
        pick = diversity.discounted_relevance
    relevance = np.array(list(representatives.values()))
    vectors = candidates.vectors[candidates.rows_of(ids)]
    picked = pick(relevance, vectors @ vectors.T, limit, ranking.mmr_lambda)
    return {ids[index]: redundancy for index, redundancy in picked}


def _is_replacement(candidates: Candidates, older: UUID, newer: UUID) -> bool:
    """Return True if an answer may say that the newer of two on one subject replaces the older.

    In another namespace, the older may hold there. Two nearly equal texts of one day, such as those of two machines,
    have an order, and both may hold.
    """
    older_namespace = candidates.all[older].row["namespace_id"]
    if candidates.all[newer].row["namespace_id"] != older_namespace:
        return False
    newer_by = candidates.time_of(newer) - candidates.time_of(older)
    return newer_by.total_seconds() > _OCCASION


def _pairs_on_subject(
    candidates: Candidates, ids: Sequence[UUID], results: Collection[UUID]
) -> Iterator[tuple[UUID, UUID]]:
    """Yield pairs of candidates on one subject, the older one and the newer one.

    One from beyond the results must be newer by a day. Memories of one session are no versions of each other, nor are
    turns of two dialogues.
    """
    ids = [id_ for id_ in ids if len(candidates.all[id_].content) <= _ONE_SUBJECT]
    times = np.array([candidates.time_of(id_).timestamp() for id_ in ids])
    is_result = np.array([id_ in results for id_ in ids], dtype=bool)
    least = np.where(is_result, 0.0, _OCCASION)
    newer_by = times[None, :] - times[:, None]  # (older, newer)
    newer_by = np.where(newer_by > least[None, :], newer_by, 0.0)
    if not newer_by.any():
        return

    on_one_subject = _on_one_subject(candidates, ids, newer_by)
    for older_index, newer_index in np.argwhere(on_one_subject).tolist():
        older = candidates.all[ids[older_index]]
        newer = candidates.all[ids[newer_index]]
        if _may_be_versions(candidates, older, newer):
            yield older.id, newer.id


def _may_be_versions(
    candidates: Candidates, older: Candidate, newer: Candidate
) -> bool:
    """Return False for two that both hold, two of one session and turns of dialogues."""
    if _both_hold(older, newer):
        return False
    if older.in_session is None or newer.in_session is None:
        return True
    if older.in_session.session == newer.in_session.session:
        return False
    return not (_is_turn(candidates, older) and _is_turn(candidates, newer))


def _is_turn(candidates: Candidates, candidate: Candidate) -> bool:
    """Return True for a turn of a dialogue: it has others of its session beside it and is of no kind that states."""
    if candidate.in_session is None or candidate.kind not in _TURNS:
        return False
    direct_neighbours = candidates.beside[candidates.rows[candidate.id], :2]
    return candidate.in_session.position > 0 or bool((direct_neighbours >= 0).any())


def _same_subject(retrieval: Retrieval) -> float:
    """Return the cosine from which two texts are on the same subject, with the model of the question's vector."""
    model = retrieval.dense.model
    unrelated = retrieval.dense.unrelated
    if model is None or not model.contextual:
        return numbers.SAME_SUBJECT
    return unrelated + (1.0 - unrelated) * numbers.SAME_SUBJECT_IN_CONTEXT


def _both_hold(older: Candidate, newer: Candidate) -> bool:
    """Return True if a relation joins two memories that is no contradiction."""
    hold_with_older = older.row["both_hold"] or ()
    hold_with_newer = newer.row["both_hold"] or ()
    return newer.id in hold_with_older or older.id in hold_with_newer


def _on_one_subject(
    candidates: Candidates, ids: Sequence[UUID], newer_by: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which pairs are on one subject: a matrix with a row for the older and a column for the newer of a pair.

    `newer_by` has the seconds by which the newer is newer, 0 for a pair that is not asked about. The newer holds half of
    the question's words that the older holds, by rarity, and all of its identifiers that the older holds. Besides, the
    two are alike, by vectors, words or cues. Of two within a day, such as those of an import, the times say little:
    they must be nearly the same.
    """
    texts = [candidates.all[id_].content for id_ in ids]
    pairs = (newer_by > 0.0) & _covers_older(candidates, ids)
    pairs &= _names_identifiers_of_older(candidates, texts)
    if not pairs.any():
        return pairs

    vectors = candidates.vectors[candidates.rows_of(ids)]
    cosines = vectors @ vectors.T
    on_other_days = newer_by > _OCCASION
    least = np.where(
        on_other_days, _same_subject(candidates.retrieval), numbers.SIMILAR
    )
    alike: NDArray[np.bool_] = cosines >= least
    alike |= _alike_by_words(pairs & ~alike, texts)
    comparable = pairs & ~alike & on_other_days & (cosines >= COMPARED)
    cues = [tuple(candidates.all[id_].row["cues"]) for id_ in ids]
    alike |= _alike_by_cues(comparable, cosines, texts, cues)
    return pairs & alike


def _covers_older(candidates: Candidates, ids: Sequence[UUID]) -> NDArray[np.bool_]:
    """Return for which pairs (older, newer) the newer holds enough of the question's words that the older holds."""
    rows = candidates.rows_of(ids)
    words = candidates.in_text[rows] | candidates.in_cues[rows]
    weighted = words * candidates.rarity
    # Entry (i, j) is the rarity of the words that both hold, and the diagonal that of all which one holds.
    shared = weighted @ words.T.astype(float)
    of_older = shared.diagonal()[:, None]
    covers: NDArray[np.bool_] = shared >= numbers.COVERED * of_older - 1e-9
    return covers


def _names_identifiers_of_older(
    candidates: Candidates, texts: Sequence[str]
) -> NDArray[np.bool_]:
    """Return for which pairs (older, newer) the newer names each identifier of the question that the older names."""
    names_all = np.ones((len(texts), len(texts)), dtype=bool)
    for identifier in candidates.retrieval.search.words.identifiers:
        matches = [identifier.search(text.casefold()) for text in texts]
        is_named = np.array([match is not None for match in matches])
        names_all &= is_named[None, :] | ~is_named[:, None]
    return names_all


def _alike_by_words(
    pairs: NDArray[np.bool_], texts: Sequence[str]
) -> NDArray[np.bool_]:
    """Return which of the pairs have short texts of nearly the same words."""
    is_short = np.array([len(text) <= _FEW_WORDS for text in texts])
    compared = pairs & is_short[:, None] & is_short[None, :]

    @cache  # a text may be in many pairs
    def words_of(index: int) -> set[str]:
        return set(separated(texts[index]))

    alike = np.zeros_like(pairs)
    for older, newer in np.argwhere(compared).tolist():
        alike[older, newer] = diversity.share_words(
            words_of(older), words_of(newer), numbers.SAME_WORDS
        )
    return alike


def _alike_by_cues(
    pairs: NDArray[np.bool_],
    cosines: NDArray[np.float32],
    texts: Sequence[str],
    cues: Sequence[tuple[str, ...]],
) -> NDArray[np.bool_]:
    """Return which of the pairs are on one subject by their texts and cues.

    Pairs without cues are left out: two facts of one subject share as many words as a fact and its reversal.
    """
    has_cues = np.array([bool(phrases) for phrases in cues])
    compared = pairs & has_cues[:, None] & has_cues[None, :]
    alike = np.zeros_like(pairs)
    for older, newer in np.argwhere(compared).tolist():
        likeness = likeness_of(
            float(cosines[older, newer]),
            subject_words(texts[older], cues[older]),
            subject_words(texts[newer], cues[newer]),
        )
        alike[older, newer] = likeness >= REPLACED
    return alike


async def _confidences(
    memory: MemoryContext,
    candidates: Candidates,
    results: Sequence[UUID],
    weights: Weights,
) -> dict[UUID, float]:
    """Return the confidence that each result answers the question; at most one statement, for their neighbours.

    Which of those were read before depends on the ranking, and so on other memories; confidence must not.
    """
    neighbours = candidates.beside[candidates.rows_of(results), :2]
    further = await _read_neighbours(memory, candidates, results, neighbours)
    all_ids = list(candidates.all)
    members = {id_: candidates.all[id_] for id_ in results}
    for row in neighbours[neighbours >= 0]:
        id_ = all_ids[row]
        members[id_] = candidates.all[id_]
    for id_, candidate in further.items():
        members[id_] = candidates.all.get(id_, candidate)
    pool = Candidates(candidates.retrieval, members, previous=candidates.held).pool()
    # The results are the first rows.
    confidences = weights.confidence_of(pool).tolist()
    return dict(zip(results, confidences, strict=False))


async def _read_neighbours(
    memory: MemoryContext,
    candidates: Candidates,
    results: Sequence[UUID],
    neighbours: NDArray[np.int64],
) -> Mapping[UUID, Candidate]:
    """Read the direct neighbours of those results of which they may be missing. At most one statement."""
    lacking = []
    for id_, rows in zip(results, neighbours, strict=True):
        has_session = candidates.all[id_].in_session is not None
        is_surrounded = id_ in candidates.surrounded
        if has_session and not is_surrounded and (rows < 0).any():
            lacking.append(id_)
    if not lacking:
        return {}
    query = CandidateQuery(
        spaces={candidates.all[id_].row["namespace_id"] for id_ in lacking},
        ids=lacking,
        spreading=lacking,
        reach=1,
        related=False,
        near=candidates.retrieval.dense.query,
    )
    further, _ = await read_candidates(memory, candidates.retrieval.search, query)
    return further


def _scores(
    candidates: Candidates,
    trained_relevance: NDArray[np.float64],
    confidence: Mapping[UUID, float],
    weights: Weights,
) -> dict[UUID, float]:
    """Return the results with their scores: those wanted, and one more if there is one.

    Without `min_score`, an answer in which no confidence reaches the floor has the five most relevant results.
    """
    search = candidates.retrieval.search
    least = search.ranking.min_score
    most = search.wanted + 1
    if search.sorted_by_score:
        scores = _calibrated(candidates, trained_relevance, confidence, weights)
        greatest = max(confidence.values(), default=0.0)
        if least is None and greatest < weights.floor:
            most = min(most, numbers.MOST_WEAK)
    else:
        scores = dict(confidence)
    if least:
        scores = {id_: score for id_, score in scores.items() if score >= least}
    return dict(list(scores.items())[:most])


def _calibrated(
    candidates: Candidates,
    trained_relevance: NDArray[np.float64],
    confidence: Mapping[UUID, float],
    weights: Weights,
) -> dict[UUID, float]:
    """Return the calibrated probability that each result is right, to three digits."""
    words = candidates.retrieval.search.words
    if not words.distinct and not words.dates:
        return dict.fromkeys(confidence, 0.0)  # of signs alone, nothing can be said
    rows = candidates.rows_of(confidence)
    has_cues = [bool(item.row["cues"]) for item in candidates.all.values()]
    cued = np.array(has_cues, dtype=bool)
    cued_share = has_cues.count(True) / max(len(has_cues), 1)
    values = weights.scores_of(
        trained_relevance[rows],
        leads(trained_relevance)[rows],
        behind_best(trained_relevance, cued)[rows],
        np.array(list(confidence.values())),
        cued_share,
    )
    return dict(zip(confidence, values.round(3).tolist(), strict=True))
