"""Candidates of a question as the features see them: the words that each holds, its nearness, its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from folklore.db.stores.recall_rows import NOTHING, Candidate
from folklore.lazy import NDArray, numpy as np
from folklore.memory.recall.values import Retrieval, Search
from folklore.ranking import diversity
from folklore.ranking.features import Pool
from folklore.ranking.statistics import inverse_document_frequency
from folklore.text.query.question import QuestionWords, plain, with_parts
from folklore.text.words import is_question

# Characters per lexeme, about, of a text that has no vector and so no measured length.
_CHARACTERS_PER_LEXEME = 8
# Between the content of a memory and the rest of its text.
_END = " \0 "


class WordMatch(NamedTuple):
    """Match of a candidate with a question: words held, weight of pairs in sequence; of a long text its passage.

    `anywhere` are the words that the whole of a long text holds, `words` those of the passage; `sequence` is that of
    the passage with most. `opening` are the first words of the memory.
    """

    words: Sequence[bool]
    sequence: float
    passage: tuple[int, int] | None
    anywhere: Sequence[bool]
    opening: str = ""


@dataclass(frozen=True)
class Candidates:
    """Candidates, a row for each, and what they hold of the question, whose words have a `rarity`.

    Of those in `surrounded`, the memories before and after in the session are candidates too.
    """

    all: Mapping[UUID, Candidate]
    matches: Mapping[UUID, WordMatch]
    rarity: NDArray[np.float64]
    surrounded: Collection[UUID]

    @cached_property
    def rows(self) -> Mapping[UUID, int]:
        """The row of each candidate."""
        return {id_: row for row, id_ in enumerate(self.all)}

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors (n, dimensions), from big-endian half floats; zero where one is pending."""
        vectors = [candidate.vector for candidate in self.all.values()]
        size = next((len(vector) for vector in vectors if vector is not None), 2)
        content = b"".join(bytes(size) if vector is None else vector for vector in vectors)
        matrix = np.frombuffer(content, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
        matrix /= np.maximum(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), np.float32(1e-9))[:, None]
        return matrix

    @cached_property
    def words(self) -> NDArray[np.bool_]:
        """The words of the question (n, words) that each holds."""
        return self.matrix([match.words for match in self.matches.values()])

    def matrix(self, rows: Sequence[Sequence[bool]]) -> NDArray[np.bool_]:
        """Return words of the question (n, words), a row for each candidate."""
        return np.array(rows, dtype=bool).reshape(len(rows), len(self.rarity))

    @cached_property
    def beside(self) -> NDArray[np.int64]:
        """The rows (n, 4) of the neighbours one place before and after in the session, and two; -1 for none."""
        get = {item.place: row for row, item in enumerate(self.all.values()) if item.place is not None}.get
        found = []
        for candidate in self.all.values():
            if candidate.place is None:
                found.append((-1, -1, -1, -1))
            else:
                of, at = candidate.place
                found.append(
                    (get((of, at - 1), -1), get((of, at + 1), -1), get((of, at - 2), -1), get((of, at + 2), -1))
                )
        return np.array(found, dtype=np.int64).reshape(len(found), 4)

    def text(self, id_: UUID) -> str:
        """Return the text of a candidate, of a long one its best passage."""
        content, passage = self.all[id_].content, self.matches[id_].passage
        return content if passage is None else content[slice(*passage)]

    def time_of(self, id_: UUID) -> datetime:
        """Return the time of a candidate: when it was true, or else when it was stored."""
        row = self.all[id_].row
        time: datetime = row["occurred_at"] or row["created_at"]
        return time

    def near(self, ids: Sequence[UUID]) -> NDArray[np.float32]:
        """Return the vectors of some candidates."""
        return self.vectors[[self.rows[id_] for id_ in ids]]


def candidates_of(
    search: Search,
    retrieval: Retrieval,
    all_: Mapping[UUID, Candidate],
    surrounded: Sequence[UUID],
    previous: Mapping[UUID, WordMatch] = {},
) -> Candidates:
    """Return candidates with what they hold of the question, which of some is known by `previous`."""
    words, rarity = QuestionWords.of(search.pieces), _rarity(search, retrieval)
    matches = {id_: previous.get(id_) or _held(words, rarity, candidate) for id_, candidate in all_.items()}
    return Candidates(all_, matches, rarity, frozenset(surrounded))


def pool_of(search: Search, retrieval: Retrieval, candidates: Candidates) -> Pool:
    """Return the candidates as the features see them."""
    words, members, rows = QuestionWords.of(search.pieces), candidates.all.values(), candidates.rows
    matches = candidates.matches.values()
    hits = retrieval.hits.get("keyword", NOTHING)
    scores = dict(zip(hits.ids, hits.scores, strict=True))
    return Pool(
        keyword=np.array([scores.get(id_, 0.0) for id_ in rows]),
        cosines=_cosines(retrieval, candidates),
        vectors=candidates.vectors,
        question=_comparable(retrieval, candidates),
        unrelated=retrieval.dense.unrelated,
        matches=candidates.words,
        anywhere=candidates.matrix([item.anywhere for item in matches]),
        rarity=candidates.rarity,
        letters=np.array([word.weight for word in words.words]),
        names=np.array([word.name for word in words.words], dtype=bool),
        sequence=np.array([item.sequence for item in matches]),
        pairs=words.pair_weight,
        dates=np.array([words.nearness(candidates.time_of(id_)) for id_ in rows]) if words.dates else None,
        lengths=np.array([item.length or len(item.content) // _CHARACTERS_PER_LEXEME + 1 for item in members], float),
        asks=np.array([is_question(candidate.content) for candidate in members], dtype=bool),
        beside=candidates.beside,
        related=[
            (place, rows[other], strength)
            for place, candidate in enumerate(members)
            for other, strength in candidate.linked
            if other in rows
        ],
    )


def _rarity(search: Search, retrieval: Retrieval) -> NDArray[np.float64]:
    """Return the rarity (words,) of the question's words among the memories: that of the rarest lexeme of its piece."""
    rarest, read = [0.0] * len(search.pieces), retrieval.keyword.words
    if read is not None:
        for lexeme, places in read.query.places.items():
            rarity = inverse_document_frequency(read.query.documents.get(lexeme, 0), read.query.corpus.total)
            for place in places:
                rarest[place] = max(rarest[place], rarity)
    return np.array([rarest[word.place] for word in QuestionWords.of(search.pieces).words])


def _held(words: QuestionWords, rarity: NDArray[np.float64], candidate: Candidate) -> WordMatch:
    """Return what a memory holds, of a long text the passage that holds most, by rarity, and is nearest.

    Summary, tags and author count as text.
    """
    row, content = candidate.row, candidate.content
    others = " ".join((_END, row["summary"] or "", *row["tags"], row["author"]))
    if candidate.passages is None:
        text = plain(with_parts(content) + others)
        return _held_by(words, text, None, diversity.opening(text.partition(_END)[0]))
    ranges, cosines = candidate.passages.ranges, candidate.passages.cosines
    matches = [_held_by(words, plain(with_parts(content[slice(*range_)]) + others), range_) for range_ in ranges]
    matrix = np.array([item.words for item in matches], dtype=bool)
    best = matches[int((matrix @ rarity / max(rarity.sum(), 1e-9) + cosines).argmax())]
    sequence = max(item.sequence for item in matches)
    anywhere = [any(column) for column in zip(*(item.words for item in matches), strict=True)]
    return WordMatch(best.words, sequence, best.passage, anywhere, diversity.opening(plain(content[: ranges[0][1]])))


def _held_by(words: QuestionWords, text: str, passage: tuple[int, int] | None, opening: str = "") -> WordMatch:
    words_held = [word.start in text for word in words.words]
    return WordMatch(words_held, words.in_sequence(text) if True in words_held else 0.0, passage, words_held, opening)


def _comparable(retrieval: Retrieval, candidates: Candidates) -> NDArray[np.float32] | None:
    """Return the vector of the question, None if vectors cannot be compared with it."""
    query = retrieval.dense.query
    if "dense" not in retrieval.hits or query is None or candidates.vectors.shape[1] != len(query.vector):
        return None
    return query.vector


def _cosines(retrieval: Retrieval, candidates: Candidates) -> NDArray[np.float64]:
    """Return the cosine (n,) of each candidate with the question, that of its nearest passage if it has any."""
    question, vectors, unrelated = _comparable(retrieval, candidates), candidates.vectors, retrieval.dense.unrelated
    if question is None:
        return np.zeros(len(vectors))
    cosines: NDArray[np.float64] = (vectors @ question).astype(float)
    for place, candidate in enumerate(candidates.all.values()):
        if candidate.passages is not None:
            cosines[place] = max(cosines[place], *candidate.passages.cosines)
    return np.where(vectors.any(axis=1), (cosines - unrelated) / (1.0 - unrelated), 0.0)
