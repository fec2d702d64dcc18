"""Confidence of the results of a recall, their order by it, and the few weak ones that an answer shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate, chain
from uuid import UUID

from folklore.db.stores.recall_rows import Candidate, CandidateQuery
from folklore.lazy import numpy as np
from folklore.memory.context import MemoryContext
from folklore.memory.recall.rank import Diverse, Features, Leading, read_candidates, unit_rows
from folklore.memory.recall.values import Found, Search
from folklore.ranking.confidence import NEIGHBOUR, confidence, match_of, rounded, share
from folklore.text.question import QuestionWords, plain

# Results without confidence in an answer, and the weight of an adjacent memory's vector in that of a memory.
_MOST_WEAK, _CONTEXT = 3, 0.5


async def confident_results(
    memory: MemoryContext,
    search: Search,
    found: Found,
    features: Features,
    leading: Leading,
    diverse: Diverse,
) -> tuple[dict[UUID, float], Mapping[UUID, float]]:
    """Return the results with their scores, in order, and all confidences: those wanted, and one more if there is one.

    Results of a lower level of confidence come after those of a higher one, unless a reranker sorted them. Without
    `min_score` three weak ones are left, the most relevant.
    """
    ranking, order = search.ranking, list(diverse.redundancy)
    if search.question.literal:
        return dict.fromkeys(order[: search.wanted + 1], 0.0), {}
    features = await _with_adjacent(
        memory, search, found, features, order if ranking.min_score else order[: search.wanted]
    )
    exact = confidences_of(search, found, features, order)
    for older, others in diverse.newer.items():
        # What replaces an answer is one.
        exact |= {id_: max(exact[id_], exact[older]) for id_ in others if id_ in exact and older in exact}
    scores = {id_: rounded(value) for id_, value in exact.items()}
    if ranking.min_score:
        scores = {id_: score_ for id_, score_ in scores.items() if score_ >= ranking.min_score}
    wanted = list(scores)[: search.wanted]
    further = list(scores)[search.wanted : search.wanted + 1]
    if search.sorted_by_score:
        shown = wanted if ranking.min_score is not None else _with_few_weak(wanted, scores)
        if len(shown) < len(wanted):
            further = []
        wanted = shown[: leading.reranked] + sorted(shown[leading.reranked :], key=lambda id_: -scores[id_])
        # The order of a reranker is the better one: a result has the score of a lower one that has more.
        falling = accumulate((scores[id_] for id_ in reversed(wanted)), max)
        scores |= dict(zip(reversed(wanted), falling, strict=True))
    return {id_: scores[id_] for id_ in [*wanted, *further]}, exact


def _with_few_weak(order: Sequence[UUID], scores: Mapping[UUID, float]) -> list[UUID]:
    """Return the order without weak matches but the first three."""
    weak = [id_ for id_ in order if match_of(scores[id_]) == "weak"][_MOST_WEAK:]
    return [id_ for id_ in order if id_ not in weak]


def confidences_of(search: Search, found: Found, features: Features, ids: Sequence[UUID]) -> dict[UUID, float]:
    """Return the confidence that each of these candidates answers the question, a long text by its best passage.

    A reply follows what it answers: the memories before and after it in its session count too.
    """
    words = QuestionWords.of(search.pieces)
    at = {candidate.place: id_ for id_, candidate in features.candidates.items() if candidate.place is not None}
    adjacent = {id_: _adjacent(features.candidates[id_], at) for id_ in ids}
    texts = {id_: _searched_texts(features.candidates[id_]) for id_ in {*ids, *chain(*adjacent.values())}}
    cosines = _plain_cosines(found, features, adjacent)
    values = {}
    for id_ in ids:
        neighbours = list(chain.from_iterable(texts[other] for other in adjacent[id_]))
        values[id_] = max(
            _confidence(words, text, neighbours, features.time_of(id_), cosines.get(id_)) for text in texts[id_]
        )
    return values


def _confidence(
    words: QuestionWords, text: str, neighbours: Sequence[str], when: datetime, cosine: float | None
) -> float:
    held, named = words.held(text, neighbours, when, NEIGHBOUR)
    return confidence(
        share(held, words.weight),
        share(words.in_sequence(text), words.pair_weight),
        cosine,
        unnamed=words.has_names and not named,
    )


async def _with_adjacent(
    memory: MemoryContext, search: Search, found: Found, features: Features, results: Sequence[UUID]
) -> Features:
    """Return the features with the memories before and after each result; at most one statement.

    Which were read before depends on the ranking, and so on other memories; confidence must not.
    """
    at = {candidate.place for candidate in features.candidates.values()}
    lacking = []
    for id_ in results:
        place = features.candidates[id_].place
        if place is not None and id_ not in features.surrounded:
            session, position = place
            if (position > 0 and (session, position - 1) not in at) or (session, position + 1) not in at:
                lacking.append(id_)
    if not lacking:
        return features
    near = None if features.cosines is None else found.dense.query
    query = CandidateQuery(ids=lacking, spreading=lacking, reach=1, related=False, near=near)
    read, _ = await read_candidates(memory, search, query)
    further = {id_: candidate for id_, candidate in read.items() if id_ not in features.candidates}
    vectors = unit_rows([candidate.vector for candidate in further.values()])
    if vectors.shape[1] != features.vectors.shape[1]:  # none has one
        vectors = np.zeros((len(further), features.vectors.shape[1]), dtype=np.float32)
    return replace(
        features,
        candidates={**features.candidates, **further},
        rows={**features.rows, **{id_: len(features.rows) + place for place, id_ in enumerate(further)}},
        vectors=np.concatenate([features.vectors, vectors]),
    )


def _adjacent(candidate: Candidate, at: Mapping[tuple[tuple[UUID, str], int], UUID]) -> list[UUID]:
    """Return the candidates directly before and after one in its session."""
    if candidate.place is None:
        return []
    session, position = candidate.place
    return [at[session, near] for near in (position - 1, position + 1) if (session, near) in at]


def _searched_texts(candidate: Candidate) -> list[str]:
    """Return the text of a memory, or those of its passages, with its other fields, in plain form."""
    row, given = candidate.row, candidate.passages
    passages = [candidate.content] if given is None else [candidate.content[slice(*range_)] for range_ in given.ranges]
    others = (row["summary"] or "", *row["tags"], row["source"] or "", row["author"])
    return [plain(" ".join((passage, *others))) for passage in passages]


def _plain_cosines(found: Found, features: Features, adjacent: Mapping[UUID, Sequence[UUID]]) -> dict[UUID, float]:
    """Return the cosine of each memory with the question, 0 for an unrelated text; nothing without a vector.

    The vector of a memory is added to half of those of the adjacent ones.
    """
    question = found.dense.plain
    if features.cosines is None or question is None or not adjacent:
        return {}
    rows, vectors = features.rows, features.vectors
    weights = np.zeros((len(adjacent), len(vectors)), dtype=np.float32)
    for place, (id_, others) in enumerate(adjacent.items()):
        weights[place, rows[id_]] = 1.0
        weights[place, [rows[other] for other in others]] = _CONTEXT
    joined = weights @ vectors
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", joined, joined)), 1e-9)
    cosines = (joined @ question / lengths - found.dense.unrelated) / (1.0 - found.dense.unrelated)
    embedded = np.abs(vectors[[rows[id_] for id_ in adjacent]]).max(axis=1).tolist()
    return {id_: cosine for id_, cosine, has in zip(adjacent, cosines.tolist(), embedded, strict=True) if has}
