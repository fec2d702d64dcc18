"""The steps of a ranking after the branches: fusion, features, score, reranking, diversity."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from folklore.db.stores.recall_rows import Candidate, CandidateQuery
from folklore.embedding.protocol import Reranker
from folklore.errors import RerankerUnavailable, Unavailable
from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import Found, Search
from folklore.model import Degraded
from folklore.ranking.diversity import (
    discounted_relevance,
    group_near_duplicates,
    maximal_marginal_relevance,
    newest_first,
    share_words,
)
from folklore.ranking.features import (
    best_passage,
    nearness_factors,
    recency,
    session_links,
    signal_factors,
    spread_share,
)
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
from folklore.text.exact import ExactMatch
from folklore.text.passages import coverages
from folklore.text.words import is_question, separated

log = get_logger(__name__)

# Greatest share of reflections in an answer: they speak about memories, and must not displace them.
_REFLECTIONS = 0.3
_REFLECTION = "reflection"
_LOWEST_PRIORITY = 4
# Two texts are on the same subject from this cosine or this overlap of words on, if the newer one holds this share of
# the question's words that the older one holds, and neither is longer than a statement (in characters): a long text is
# near to any other.
_SAME_SUBJECT, _SAME_WORDS, _COVERED, _STATEMENT = 0.66, 0.5, 0.5, 300
# Characters of a text whose words are compared too: one other word changes the vector of a few.
_FEW_WORDS = 80
# Words of a question that have a bit.
_BITS = 62
_OCCASION = timedelta(days=1).total_seconds()
# Characters of a question that a reranker reads.
_RERANKED_QUESTION = 4_000
# Characters per lexeme, about, of a text that has no vector and so no measured length.
_CHARACTERS_PER_LEXEME = 8


class Passage(NamedTuple):
    """A passage of a long text: its characters, and the share of the question's weight that its words cover."""

    characters: tuple[int, int]
    coverage: float


@dataclass(frozen=True, slots=True)
class Features:
    """The candidates and their features. `vectors` (n, dimensions) and `cosines` (n,) have a row each, by `rows`.

    Of the candidates in `surrounded`, the memories before and after in the session are candidates too. `passages` has
    the best one of each long text.
    """

    candidates: Mapping[UUID, Candidate]
    signals: Mapping[UUID, float]
    links: Sequence[tuple[UUID, UUID, float]]
    nearness: Mapping[UUID, float]
    rows: Mapping[UUID, int]
    vectors: NDArray[np.float32]
    cosines: NDArray[np.float32] | None
    surrounded: Collection[UUID]
    passages: Mapping[UUID, Passage]
    degraded: tuple[Degraded, ...] = ()

    def text(self, id_: UUID) -> str:
        """Return the text of a candidate, of a long one its best passage."""
        content = self.candidates[id_].content
        return content[slice(*self.passages[id_].characters)] if id_ in self.passages else content

    def time_of(self, id_: UUID) -> datetime:
        """Return the time of a candidate: when it was true, or else when it was stored."""
        row = self.candidates[id_].row
        time: datetime = row["occurred_at"] or row["created_at"]
        return time


@dataclass(frozen=True, slots=True)
class Leading:
    """The best candidates, best first, with their relevance (n,); the scores of all; how many a reranker sorted.

    `variants` are near-duplicates of a candidate, newest first, which it represents.
    """

    order: list[UUID]
    relevance: NDArray[np.float64]
    variants: Mapping[UUID, Sequence[UUID]]
    scored: Scored[UUID]
    reranked: int = 0
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Diverse:
    """The results in order, with their redundancy; for a candidate the newer ones on its subject, newest first."""

    redundancy: Mapping[UUID, float]
    newer: Mapping[UUID, Sequence[UUID]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A ranked answer: the score of each result, best first, and the values that lead to it."""

    fused: Fused[UUID]
    features: Features
    leading: Leading
    redundancy: Mapping[UUID, float]
    scores: Mapping[UUID, float]
    confidence: Mapping[UUID, float]

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """The parts that failed after the branches."""
        return (*self.features.degraded, *self.leading.degraded)


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
        mean_length = 0.0 if words is None else words.query.corpus.mean_length
        trust = model_trust(model.blurs_beyond, mean_length * found.dense.length_ratio)
        factor = trust * dense_weight(model.weight, coverage)
    if line is not None and hits.scores:
        significance = search.ranking.significance
        factor *= top_score_significance(hits.scores[0], line.deviation, found.dense.total, significance)
    return factor


async def read_candidates(
    memory: MemoryContext, search: Search, query: CandidateQuery
) -> tuple[Mapping[UUID, Candidate], tuple[Degraded, ...]]:
    """Read candidates whole, and the reason if it was done without the table of vectors. One statement, or two."""
    try:
        return await memory.statements.candidates(search.scope, query), ()
    except Unavailable as error:
        if query.near is None:
            raise
        found = await memory.statements.candidates(search.scope, replace(query, near=None))
        return found, (Degraded("dense", error.message),)


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
        near=None if "dense" not in found.hits else dense.query,
    )
    with stage("recall.pool", candidates=len(ids)):
        candidates, degraded = await read_candidates(memory, search, query) if ids else ({}, ())
    rows = {id_: row for row, id_ in enumerate(candidates)}
    vectors = unit_rows([candidate.vector for candidate in candidates.values()])
    passages = _passages(found, candidates)
    cosines, lengths = _cosines(found, candidates, vectors)
    if plain:
        ones = dict.fromkeys(candidates, 1.0)
        return Features(candidates, ones, (), {}, rows, vectors, cosines, (), passages, degraded)
    own = {id_: candidate for id_, candidate in candidates.items() if id_ in fused.own}
    signals, links = _signals(search, found, own, passages), _links(search, candidates)
    nearness = _nearness(search, found, candidates, cosines, lengths)
    surrounded = query.spreading if query.reach > 0 else ()
    return Features(candidates, signals, links, nearness, rows, vectors, cosines, surrounded, passages, degraded)


def _passages(found: Found, candidates: Mapping[UUID, Candidate]) -> dict[UUID, Passage]:
    """Return the passage of each long candidate that answers the question best, by its words and its cosine."""
    words, best = found.keyword.words, {}
    for id_, candidate in candidates.items():
        if (given := candidate.passages) is not None:
            covered = coverages(candidate.content, given.ranges, {} if words is None else words.weights)
            place = best_passage(covered, given.cosines)
            best[id_] = Passage(given.ranges[place], covered[place])
    return best


def _cosines(
    found: Found, candidates: Mapping[UUID, Candidate], vectors: NDArray[np.float32]
) -> tuple[NDArray[np.float32] | None, list[int | None]]:
    """Return the cosine (n,) of each candidate with the question, and the lengths of the texts that were compared.

    `vectors` (n, dimensions) are those of whole texts. A long text counts with its nearest passage, if that has more
    than the best of so many has by chance. The cosines are None without the question's vector.
    """
    lengths = [candidate.length for candidate in candidates.values()]
    query = found.dense.query
    if "dense" not in found.hits or query is None or vectors.shape[1] != len(query.vector):
        return None, lengths
    cosines: NDArray[np.float32] = vectors @ query.vector
    for row, candidate in enumerate(candidates.values()):
        if (given := candidate.passages) is None:
            continue
        of_passages = np.array(given.cosines) - query.deviation * math.sqrt(2 * math.log(len(given.cosines)))
        sizes = np.log(np.array([candidate.length, *given.lengths], dtype=np.float32) + 30)
        place = int(np.argmax(np.append(cosines[row], of_passages) - query.slope * sizes))
        if place > 0:
            cosines[row], lengths[row] = of_passages[place - 1], given.lengths[place - 1]
    return cosines, lengths


def _nearness(
    search: Search,
    found: Found,
    candidates: Iterable[UUID],
    cosines: NDArray[np.float32] | None,
    lengths: Sequence[int | None],
) -> dict[UUID, float]:
    """Return the nearness of each candidate to the question; nothing without the question's vector."""
    if cosines is None:
        return {}
    line = (0.0, 0.0) if found.dense.line is None else (found.dense.line.slope, found.dense.line.expected)
    return dict(zip(candidates, nearness_factors(cosines, lengths, line, search.ranking.nearness), strict=False))


def _signals(
    search: Search, found: Found, candidates: Mapping[UUID, Candidate], passages: Mapping[UUID, Passage]
) -> dict[UUID, float]:
    """Return the factor of each candidate's signals, times the boost of reflections.

    In a long text the question's words are an exact match where they are together in one passage.
    """
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
            literal = exact.score(candidate.content)
            if (passage := passages.get(id_)) is not None:
                part = candidate.content[slice(*passage.characters)]
                literal = max(literal, exact.score(part), 2.0 * passage.coverage - 1.0)
            value["exact"] = literal
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
    texts = [features.text(id_) for id_ in leading.order[: reranker.pool]]
    try:
        scores = await reranker.scores(question, texts)
    except RerankerUnavailable as error:
        log.warning("not_reranked", reason=error.message)
        return replace(leading, degraded=(Degraded("rerank", error.message),))
    places, relevance = reranked(leading.relevance, scores)
    order = [leading.order[place] for place in places]
    return replace(leading, order=order, relevance=relevance, reranked=len(texts))


def diversify(search: Search, found: Found, leading: Leading, features: Features) -> Diverse:
    """Return the results, best first, but the newer one first on one subject."""
    ranking = search.ranking
    vectors = features.vectors[[features.rows[id_] for id_ in leading.order]]
    # A result below min_score leaves its place to the next one.
    limit = len(leading.order) if ranking.min_score else search.wanted + 1
    pick = maximal_marginal_relevance if ranking.fusion == "rrf" else discounted_relevance
    picked = pick(leading.relevance, vectors @ vectors.T, limit, ranking.mmr_lambda)
    redundancy = {leading.order[place]: value for place, value in picked}
    if ranking.fusion == "rrf" or search.question.literal:
        return Diverse(redundancy, {})
    newer = _newer_on_subject(found, leading, features, redundancy)
    order = newest_first(list(redundancy), newer)
    return Diverse({id_: redundancy.get(id_, 0.0) for id_ in order[: len(redundancy)]}, newer)


def _newer_on_subject(
    found: Found, leading: Leading, features: Features, results: Collection[UUID]
) -> dict[UUID, list[UUID]]:
    """Return the newer candidates on the subject of a candidate, newest first, where there are any.

    One from beyond the results must be newer by a day: two of one occasion, such as an import, have no order.
    """
    candidates = features.candidates
    ids = [id_ for id_ in leading.order if len(candidates[id_].content) <= _STATEMENT]
    times = np.array([features.time_of(id_).timestamp() for id_ in ids])
    apart = np.where([id_ in results for id_ in ids], 0.0, _OCCASION)
    later = times[None, :] - times[:, None] > apart[None, :]  # (older, newer)
    if not later.any():
        return {}
    vectors = features.vectors[[features.rows[id_] for id_ in ids]]
    possible = later & _covered(found, ids)
    alike = vectors @ vectors.T >= _SAME_SUBJECT
    words = [set(separated(text)) if len(text := candidates[id_].content) <= _FEW_WORDS else None for id_ in ids]
    short = np.array([held is not None for held in words])
    for older, place in np.argwhere(possible & ~alike & short[:, None] & short[None, :]).tolist():
        alike[older, place] = share_words(words[older] or set(), words[place] or set(), _SAME_WORDS)
    newer: dict[UUID, list[UUID]] = {}
    for older, place in np.argwhere(possible & alike).tolist():
        one, other = candidates[ids[older]], candidates[ids[place]]
        if not _in_one_session(one, other):
            newer.setdefault(one.id, []).append(other.id)
    for others in newer.values():
        others.sort(key=features.time_of, reverse=True)
    return newer


def _in_one_session(one: Candidate, other: Candidate) -> bool:
    return one.place is not None and other.place is not None and one.place[0] == other.place[0]


def _covered(found: Found, ids: Sequence[UUID]) -> NDArray[np.bool_]:
    """Return for every two ids (n, n) True if the second holds enough of the question's words that the first holds."""
    hits, words = found.hits.get("keyword"), found.keyword.words
    if hits is None or words is None:
        return np.ones((len(ids), len(ids)), dtype=bool)
    bits = dict(zip(hits.ids, hits.words, strict=True))
    each = np.array([bits.get(id_, 0) for id_ in ids], dtype=np.int64)
    weights = list(words.weights.values())[:_BITS]
    held = each[:, None] >> np.arange(len(weights)) & 1
    shared = held * weights @ held.T
    covered: NDArray[np.bool_] = shared >= _COVERED * shared.diagonal()[:, None] - 1e-9
    return covered


def unit_rows(vectors: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Return vectors as unit rows (n, dimensions), from big-endian half floats; zero where one is pending."""
    size = next((len(vector) for vector in vectors if vector is not None), 2)
    joined = b"".join(bytes(size) if vector is None else vector for vector in vectors)
    matrix = np.frombuffer(joined, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    matrix /= np.maximum(lengths, np.float32(1e-9))[:, None]
    return matrix
