"""Candidates of a question as the features see them: the words that each holds, its nearness, its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from folklore.db.stores.recall_rows import NOTHING, Candidate
from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.memory.recall.values import Found, Search
from folklore.ranking.features import Pool
from folklore.ranking.numbers import BESIDE
from folklore.ranking.statistics import inverse_document_frequency
from folklore.text.question import QuestionWords, plain
from folklore.text.words import is_question

# Weight of the cosine against words in the choice of a passage.
_COSINE = 0.5
# Characters per lexeme, about, of a text that has no vector and so no measured length.
_CHARACTERS_PER_LEXEME = 8
# A session and a position in it.
_Place = tuple[tuple[UUID, str], int]


class Held(NamedTuple):
    """Match of a candidate with a question: words held, weight of pairs in sequence; of a long text its passage.

    `anywhere` are the words that the whole of a long text holds, `words` those of the passage; `sequence` is that of
    the passage with most.
    """

    words: Sequence[bool]
    sequence: float
    passage: tuple[int, int] | None
    anywhere: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates, their vectors (n, dimensions) by `rows`, and what they hold of the question.

    Of those in `surrounded`, the memories before and after in the session are candidates too.
    """

    all: Mapping[UUID, Candidate]
    rows: Mapping[UUID, int]
    vectors: NDArray[np.float32]
    held: Mapping[UUID, Held]
    surrounded: Collection[UUID]

    def text(self, id_: UUID) -> str:
        """Return the text of a candidate, of a long one its best passage."""
        content, passage = self.all[id_].content, self.held[id_].passage
        return content if passage is None else content[slice(*passage)]

    def time_of(self, id_: UUID) -> datetime:
        """Return the time of a candidate: when it was true, or else when it was stored."""
        row = self.all[id_].row
        time: datetime = row["occurred_at"] or row["created_at"]
        return time

    def words(self, ids: Sequence[UUID]) -> NDArray[np.bool_]:
        """Return the words of the question (n, words) that some candidates hold."""
        return np.array([self.held[id_].words for id_ in ids] or np.zeros((0, 0)), dtype=bool)

    def near(self, ids: Sequence[UUID]) -> NDArray[np.float32]:
        """Return the vectors of some candidates."""
        return self.vectors[[self.rows[id_] for id_ in ids]]


def candidates_of(search: Search, all_: Mapping[UUID, Candidate], surrounded: Collection[UUID]) -> Candidates:
    """Return candidates with what they hold of the question."""
    words = QuestionWords.of(search.pieces)
    held = {id_: _held(words, candidate) for id_, candidate in all_.items()}
    rows = {id_: row for row, id_ in enumerate(all_)}
    vectors = unit_rows([candidate.vector for candidate in all_.values()])
    return Candidates(all_, rows, vectors, held, frozenset(surrounded))


def rarity_of_words(search: Search, found: Found) -> NDArray[np.float64]:
    """Return the rarity (words,) of the question's words among the memories: that of the rarest lexeme of its piece."""
    rarest, read = [0.0] * len(search.pieces), found.keyword.words
    if read is not None:
        for lexeme, places in read.query.places.items():
            rarity = inverse_document_frequency(read.query.documents.get(lexeme, 0), read.query.corpus.total)
            for place in places:
                rarest[place] = max(rarest[place], rarity)
    return np.array([rarest[word.place] for word in QuestionWords.of(search.pieces).words])


def pool_of(search: Search, found: Found, candidates: Candidates, ids: Sequence[UUID]) -> Pool:
    """Return some of the candidates as the features see them, in the order of `ids`."""
    words = QuestionWords.of(search.pieces)
    chosen = [candidates.all[id_] for id_ in ids]
    places: dict[_Place, int] = {item.place: place for place, item in enumerate(chosen) if item.place is not None}
    beside = tuple(_beside(chosen, places, distance) for distance in (1, 2))
    vectors = candidates.near(ids)
    listed = found.hits.get("keyword", NOTHING)
    scores = dict(zip(listed.ids, listed.scores, strict=True))
    numbers = {id_: place for place, id_ in enumerate(ids)}
    return Pool(
        keyword=np.array([scores.get(id_, 0.0) for id_ in ids]),
        cosines=_cosines(found, chosen, vectors),
        together=_together(found, vectors, beside[0]),
        held=candidates.words(ids),
        anywhere=np.array([candidates.held[id_].anywhere for id_ in ids] or np.zeros((0, 0)), dtype=bool),
        rarity=rarity_of_words(search, found),
        letters=np.array([word.weight for word in words.words]),
        names=np.array([word.name for word in words.words], dtype=bool),
        sequence=np.array([candidates.held[id_].sequence for id_ in ids]),
        pairs=words.pair_weight,
        dates=np.array([words.nearness(candidates.time_of(id_)) for id_ in ids]) if words.dates else None,
        lengths=np.array([_length(candidate) for candidate in chosen], dtype=float),
        asks=np.array([is_question(candidate.content) for candidate in chosen], dtype=bool),
        beside=beside,
        related=[
            (place, numbers[other], strength)
            for place, candidate in enumerate(chosen)
            for other, strength in candidate.linked
            if other in numbers
        ],
    )


def unit_rows(vectors: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Return vectors as unit rows (n, dimensions), from big-endian half floats; zero where one is pending."""
    size = next((len(vector) for vector in vectors if vector is not None), 2)
    joined = b"".join(bytes(size) if vector is None else vector for vector in vectors)
    matrix = np.frombuffer(joined, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    matrix /= np.maximum(lengths, np.float32(1e-9))[:, None]
    return matrix


def _held(words: QuestionWords, candidate: Candidate) -> Held:
    """Return what a memory holds, of a long text the passage that holds most and is nearest.

    Summary, tags and author count as text.
    """
    row = candidate.row
    others = " ".join((row["summary"] or "", *row["tags"], row["author"]))
    if candidate.passages is None:
        return _held_by(words, plain(f"{candidate.content} {others}"), None)
    ranges, cosines = candidate.passages.ranges, candidate.passages.cosines
    found = [_held_by(words, plain(f"{candidate.content[slice(*range_)]} {others}"), range_) for range_ in ranges]
    total = max(words.weight, 1e-9)
    values = [
        (sum(word.weight for word, holds in zip(words.words, item.words, strict=True) if holds) + item.sequence) / total
        + _COSINE * cosine
        for item, cosine in zip(found, cosines, strict=True)
    ]
    anywhere = [any(column) for column in zip(*(item.words for item in found), strict=True)]
    best, sequence = found[values.index(max(values))], max(item.sequence for item in found)
    return best._replace(anywhere=anywhere, sequence=sequence)


def _held_by(words: QuestionWords, text: str, passage: tuple[int, int] | None) -> Held:
    held = [word.start in text for word in words.words]
    return Held(held, words.in_sequence(text), passage, held)


def _cosines(found: Found, chosen: Sequence[Candidate], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine (n,) of each candidate with the question, that of its nearest passage if it has any."""
    question = _question(found, vectors)
    if question is None:
        return np.zeros(len(chosen))
    cosines: NDArray[np.float64] = (vectors @ question).astype(float)
    for place, candidate in enumerate(chosen):
        if candidate.passages is not None:
            cosines[place] = max(cosines[place], *candidate.passages.cosines)
    cosines = (cosines - found.dense.unrelated) / (1.0 - found.dense.unrelated)
    return np.where(np.abs(vectors).max(axis=1) > 0, cosines, 0.0)


def _together(found: Found, vectors: NDArray[np.float32], beside: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return the cosine (n,) of the question with each memory and half of its direct neighbours."""
    question = _question(found, vectors)
    if question is None:
        return np.zeros(len(vectors))
    joined = vectors.copy()
    for of, other in beside:
        joined[of] += BESIDE * vectors[other]
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", joined, joined)), 1e-9)
    cosines: NDArray[np.float64] = (joined @ question / lengths - found.dense.unrelated) / (1.0 - found.dense.unrelated)
    return cosines.astype(float)


def _question(found: Found, vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the vector of the question, None if vectors cannot be compared with it."""
    query = found.dense.query
    comparable = "dense" in found.hits and query is not None and vectors.shape[1] == len(query.vector)
    return query.vector if comparable and query is not None else None


def _beside(chosen: Sequence[Candidate], places: Mapping[_Place, int], distance: int) -> list[tuple[int, int]]:
    """Return the neighbours so many places away in a session, as (of, neighbour)."""
    links = []
    for of, candidate in enumerate(chosen):
        if candidate.place is not None:
            session, position = candidate.place
            near = (places.get((session, at)) for at in (position - distance, position + distance))
            links += [(of, other) for other in near if other is not None]
    return links


def _length(candidate: Candidate) -> int:
    return candidate.length if candidate.length is not None else len(candidate.content) // _CHARACTERS_PER_LEXEME + 1
