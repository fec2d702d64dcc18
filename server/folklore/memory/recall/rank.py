"""The steps of a ranking after the branches: fusion, features, score, reranking, diversity, confidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.stores.recall_rows import Candidate, CandidateQuery
from folklore.embedding.protocol import Reranker
from folklore.errors import RerankerUnavailable
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import Found, Search
from folklore.model import Degraded
from folklore.ranking.confidence import QuestionTerms, confidences
from folklore.ranking.diversity import (
    discounted_relevance,
    group_near_duplicates,
    maximal_marginal_relevance,
    newest_first,
    word_overlap,
)
from folklore.ranking.features import nearness_factors, recency, session_links, signal_factors, spread_share
from folklore.ranking.fusion import (
    BranchList,
    Fused,
    Scored,
    dense_weight,
    fuse,
    model_trust,
    reranked,
    score,
    top_score_significance,
)
from folklore.ranking.statistics import rarest_weights
from folklore.telemetry import stage
from folklore.text.clean import clean
from folklore.text.dates.date_terms import pieces_with_dates
from folklore.text.exact import ExactMatch
from folklore.text.words import is_question

log = get_logger(__name__)

# Greatest share of reflections in an answer: they speak about memories, and must not displace them.
_REFLECTIONS = 0.3
_REFLECTION = "reflection"
_LOWEST_PRIORITY = 4
# Two texts are on the same subject from this cosine or this overlap of words on, if the newer one holds this share of
# the question's words that the older one holds, and neither is longer than a statement (in characters): a long text is
# near to any other.
_SAME_SUBJECT, _SAME_WORDS, _COVERED, _STATEMENT = 0.66, 0.5, 0.5, 300
_OCCASION = timedelta(days=1)
# Characters of a question that a reranker reads.
_RERANKED_QUESTION = 4_000
# Characters per lexeme, about, of a text that has no vector and so no measured length.
_CHARACTERS_PER_LEXEME = 8


@dataclass(frozen=True, slots=True)
class Features:
    """The candidates and their features. `vectors` (n, dimensions) and `cosines` (n,) have a row each, by `rows`."""

    candidates: Mapping[UUID, Candidate]
    signals: Mapping[UUID, float]
    links: Sequence[tuple[UUID, UUID, float]]
    nearness: Mapping[UUID, float]
    rows: Mapping[UUID, int]
    vectors: NDArray[np.float32]
    cosines: NDArray[np.float32] | None

    def time_of(self, id_: UUID) -> datetime:
        """Return the time of a candidate: when it was true, or else when it was stored."""
        row = self.candidates[id_].row
        time: datetime = row["occurred_at"] or row["created_at"]
        return time


@dataclass(frozen=True, slots=True)
class Leading:
    """The best candidates, best first, with their relevance (n,); the scores of all.

    `variants` are near-duplicates of a candidate, newest first, which it represents.
    """

    order: list[UUID]
    relevance: NDArray[np.float64]
    variants: Mapping[UUID, Sequence[UUID]]
    scored: Scored[UUID]
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranked answer: the confidence of each result, best first, and the values that lead to it."""

    fused: Fused[UUID]
    features: Features
    leading: Leading
    redundancy: Mapping[UUID, float]
    confidence: Mapping[UUID, float]


def fuse_branches(search: Search, found: Found) -> Fused[UUID]:
    """Return the candidates of the branches with their own scores."""
    coverage = max(found.coverage().values(), default=0.0)
    lists: list[BranchList[UUID]] = []
    for branch, hits in found.hits.items():
        weight = search.ranking.weight(branch)
        if branch == "dense":
            factor = _dense_factor(search, found, coverage)
            lists.append(BranchList(branch, hits.ids, hits.scores, weight * factor, hits.raw))
        else:
            best = max(hits.scores, default=0.0)
            similarities = [coverage * value / best if best > 0 else 0.0 for value in hits.scores]
            lists.append(BranchList(branch, hits.ids, hits.scores, weight, similarities))
    return fuse(lists, search.ranking, search.ranking.fetch(search.wanted))


def _dense_factor(search: Search, found: Found, coverage: float) -> float:
    """Return the factor on the standardised scores of the dense branch."""
    model, words, line, hits = found.dense.model, found.keyword.words, found.dense.line, found.dense.hits
    factor = 1.0
    if model is not None:
        trust = model_trust(model.blurs_beyond, 0.0 if words is None else words.query.corpus.mean_length)
        factor = trust * dense_weight(model.weight, coverage)
    if line is not None and hits.scores:
        significance = search.ranking.significance
        factor *= top_score_significance(hits.scores[0], line.deviation, found.dense.total, significance)
    return factor


async def read_features(memory: MemoryContext, search: Search, found: Found, fused: Fused[UUID]) -> Features:
    """Read the best candidates and their neighbours, and return their features. One statement.

    With `fusion: rrf` there are no neighbours, and every factor is 1.
    """
    ranking, dense, plain = search.ranking, found.dense, search.ranking.fusion == "rrf"
    # A candidate beyond these could only come last, and would spread next to nothing.
    ids = fused.order if plain else fused.order[: ranking.fetch(search.wanted) + 1]
    query = CandidateQuery(
        ids=ids,
        spreading=() if plain else ids[: search.wanted],
        reach=0 if plain else len(ranking.neighbours),
        related=not plain and ranking.relations > 0,
        # Where the dense branch failed, the table of vectors may be locked.
        model=dense.model.id if dense.model is not None and "dense" in found.hits else None,
    )
    with stage("recall.pool", candidates=len(ids)):
        candidates = await memory.statements.candidates(search.scope, query) if ids else {}
    rows = {id_: row for row, id_ in enumerate(candidates)}
    vectors = _unit_rows([candidate.vector for candidate in candidates.values()])
    cosines = _cosines(found, vectors)
    if plain:
        return Features(candidates, dict.fromkeys(candidates, 1.0), (), {}, rows, vectors, cosines)
    own = {id_: candidate for id_, candidate in candidates.items() if id_ in fused.own}
    signals, links = _signals(search, found, own), _links(search, candidates)
    return Features(candidates, signals, links, _nearness(search, found, candidates, cosines), rows, vectors, cosines)


def _cosines(found: Found, vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the cosine (n,) of each row (n, dimensions) with the question; None without the question's vector."""
    question = found.dense.vector
    if "dense" not in found.hits or question is None or vectors.shape[1] != len(question):
        return None
    cosines: NDArray[np.float32] = vectors @ question
    return cosines


def _nearness(
    search: Search, found: Found, candidates: Mapping[UUID, Candidate], cosines: NDArray[np.float32] | None
) -> dict[UUID, float]:
    """Return the nearness of each candidate to the question; nothing without the question's vector."""
    if cosines is None:
        return {}
    line = (0.0, 0.0) if found.dense.line is None else (found.dense.line.slope, found.dense.line.expected)
    lengths = [candidate.length for candidate in candidates.values()]
    return dict(zip(candidates, nearness_factors(cosines, lengths, line, search.ranking.nearness), strict=False))


def _signals(search: Search, found: Found, candidates: Mapping[UUID, Candidate]) -> dict[UUID, float]:
    """Return the factor of each candidate's signals, times the boost of reflections."""
    signals, words, pieces = search.ranking.signals, found.keyword.words, search.pieces
    weights = [0.0] * len(pieces)
    if words is not None:
        weights = rarest_weights(words.query.places, words.weights, len(pieces))
    exact = ExactMatch.of(pieces, weights)
    spoken = {piece.strip(".,;:!?").casefold() for piece in pieces}
    coverage = found.coverage() if signals.overlap > 0 else {}
    values: list[dict[str, float | None]] = []
    for id_, candidate in candidates.items():
        value = _ratings(candidate)
        value["overlap"] = coverage.get(id_, 0.0)
        if signals.exact > 0 and exact.total > 0:
            value["exact"] = exact.score(candidate.content)
        if signals.tags > 0:
            parts = {part for tag in candidate.row["tags"] for part in (tag, *tag.replace("/", ":").split(":"))}
            value["tags"] = len(spoken & parts) / max(len(spoken), 1)
        if signals.recency > 0:
            used_at = candidate.row["last_recalled_at"] or candidate.row["created_at"]
            value["recency"] = recency(used_at, search.scope.now, signals.half_life)
        values.append(value)
    factors = dict(zip(candidates, signal_factors(signals, values), strict=True))
    reflections = [id_ for id_, candidate in candidates.items() if candidate.kind == _REFLECTION]
    return factors | {id_: factors[id_] * search.ranking.reflection_boost for id_ in reflections}


def _ratings(candidate: Candidate) -> dict[str, float | None]:
    row, priority = candidate.row, candidate.row["priority"]
    share = None if priority is None else (_LOWEST_PRIORITY - priority) / (_LOWEST_PRIORITY - 1)
    return {"importance": row["importance"], "confidence": row["confidence"], "priority": share}


def _links(search: Search, candidates: Mapping[UUID, Candidate]) -> list[tuple[UUID, UUID, float]]:
    """Return the links (from, to, strength) between the candidates, by relations and in sessions."""
    ranking = search.ranking
    links: list[tuple[UUID, UUID, float]] = []
    sessions: dict[object, list[tuple[int, UUID, float]]] = {}
    for id_, candidate in candidates.items():
        links.extend((from_, id_, ranking.relations * strength) for from_, strength in candidate.linked)
        if candidate.place is not None and ranking.neighbours:
            content, length = candidate.content, candidate.length
            if length is None:
                length = len(content) // _CHARACTERS_PER_LEXEME + 1
            session, position = candidate.place
            share = spread_share(length, ranking, asks=is_question(content))
            sessions.setdefault(session, []).append((position, id_, share))
    links.extend(session_links(sessions, ranking.neighbours))
    return links


def score_candidates(search: Search, fused: Fused[UUID], features: Features) -> Leading:
    """Return the best candidates by relevance, one of each group of near-duplicates, with few reflections."""
    ranking, candidates = search.ranking, features.candidates
    scored = score(fused, features.signals, features.links, features.nearness)
    most = ranking.fetch(search.wanted) + 1
    order = _with_few_reflections(scored.order, candidates, search.wanted)
    if ranking.fusion == "rrf":
        return Leading(list(order), np.array([scored.relevance[id_] for id_ in order]), {}, scored)
    if ranking.mmr_lambda == 1.0:
        groups: Mapping[UUID, Sequence[UUID]] = dict.fromkeys(order[:most], ())
    else:
        groups = group_near_duplicates(order, lambda id_: candidates[id_].content, features.time_of, most)
    relevance = [max(scored.relevance[id_] for id_ in (newest, *others)) for newest, others in groups.items()]
    return Leading(list(groups), np.array(relevance), {id_: ids for id_, ids in groups.items() if ids}, scored)


def _with_few_reflections(order: Sequence[UUID], candidates: Mapping[UUID, Candidate], wanted: int) -> Sequence[UUID]:
    """Return the order without reflections beyond their share, but at least one; all if there is nothing else."""
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


async def rerank(reranker: Reranker, search: Search, leading: Leading, features: Features) -> Leading:
    """Return the candidates with the first ones sorted by the reranker; unchanged, with the reason, if it fails.

    Before diversity: a reranker judges each text alone and would bring duplicates back together.
    """
    question = clean(search.text[:_RERANKED_QUESTION]).text.strip()
    texts = [features.candidates[id_].content for id_ in leading.order[: reranker.pool]]
    try:
        scores = await reranker.scores(question, texts)
    except RerankerUnavailable as error:
        log.warning("not_reranked", reason=error.message)
        return replace(leading, degraded=(Degraded("rerank", error.message),))
    places, relevance = reranked(leading.relevance, scores)
    return replace(leading, order=[leading.order[place] for place in places], relevance=relevance)


def diversify(search: Search, found: Found, leading: Leading, features: Features) -> Mapping[UUID, float]:
    """Return the ids of the results with their redundancy, best first, but the newer one first on one subject."""
    ranking = search.ranking
    vectors = features.vectors[[features.rows[id_] for id_ in leading.order]]
    # A result below min_score leaves its place to the next one.
    limit = len(leading.order) if ranking.min_score > 0 else search.wanted + 1
    pick = maximal_marginal_relevance if ranking.fusion == "rrf" else discounted_relevance
    picked = pick(leading.relevance, vectors @ vectors.T, limit, ranking.mmr_lambda)
    redundancy = {leading.order[place]: value for place, value in picked}
    if ranking.fusion == "rrf" or search.question.literal:
        return redundancy
    order = newest_first(list(redundancy), _newer_on_subject(found, leading, features, redundancy))
    return {id_: redundancy.get(id_, 0.0) for id_ in order[: len(redundancy)]}


def _newer_on_subject(
    found: Found, leading: Leading, features: Features, results: Collection[UUID]
) -> dict[UUID, list[UUID]]:
    """Return the newer candidates on the subject of a candidate, newest first, where there are any.

    One from beyond the results must be newer by a day: two of one occasion, such as an import, have no order.
    """
    candidates = features.candidates
    ids = [id_ for id_ in leading.order if len(candidates[id_].content) <= _STATEMENT]
    vectors = features.vectors[[features.rows[id_] for id_ in ids]]
    bits, weights = _bits(found)
    newer: dict[UUID, list[UUID]] = {}
    overlap = word_overlap([candidates[id_].content for id_ in ids])
    for first, second in np.argwhere((vectors @ vectors.T >= _SAME_SUBJECT) | (overlap >= _SAME_WORDS)).tolist():
        id_, other = ids[first], ids[second]
        apart = features.time_of(other) - features.time_of(id_)
        if apart <= (timedelta() if other in results else _OCCASION):
            continue
        held = bits.get(id_, 0)
        enough = _weight(held & bits.get(other, 0), weights) >= _COVERED * _weight(held, weights)
        if enough and not _in_one_session(candidates[id_], candidates[other]):
            newer.setdefault(id_, []).append(other)
    for others in newer.values():
        others.sort(key=features.time_of, reverse=True)
    return newer


def _in_one_session(one: Candidate, other: Candidate) -> bool:
    return one.place is not None and other.place is not None and one.place[0] == other.place[0]


def _bits(found: Found) -> tuple[Mapping[UUID, int], Sequence[float]]:
    """Return the words of the question that each keyword hit holds, as bits, and the weight of each bit."""
    hits, words = found.hits.get("keyword"), found.keyword.words
    if hits is None or words is None:
        return {}, ()
    return dict(zip(hits.ids, hits.words, strict=True)), list(words.weights.values())


def _weight(bits: int, weights: Sequence[float]) -> float:
    return sum(weight for place, weight in enumerate(weights) if bits >> place & 1)


def confident_results(
    search: Search, found: Found, features: Features, redundancy: Mapping[UUID, float]
) -> dict[UUID, float]:
    """Return the results of sufficient confidence, in order: those wanted, and one more if there is one."""
    ids, cosines = list(redundancy), features.cosines
    similarities = [0.0 if cosines is None else float(cosines[features.rows[id_]]) for id_ in ids]
    values = _answer_confidences(search, found, ids, similarities, features.links)
    sufficient = [pair for pair in zip(ids, values, strict=True) if pair[1] >= search.ranking.min_score]
    return dict(sufficient[: search.wanted + 1])


def _answer_confidences(
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


def _unit_rows(vectors: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Return vectors as unit rows (n, dimensions), from big-endian half floats; zero where one is pending."""
    size = next((len(vector) for vector in vectors if vector is not None), 2)
    joined = b"".join(bytes(size) if vector is None else vector for vector in vectors)
    matrix = np.frombuffer(joined, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    matrix /= np.maximum(lengths, np.float32(1e-9))[:, None]
    return matrix
