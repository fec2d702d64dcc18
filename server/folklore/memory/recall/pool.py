"""Candidates of a question as the features see them: the words that each holds, its nearness, its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from typing import NamedTuple
from uuid import UUID

from folklore.db.stores.recall_rows import NOTHING, Candidate
from folklore.lazy import NDArray, numpy as np
from folklore.memory.recall.corpus_statistics import rarities
from folklore.memory.recall.values import Retrieval
from folklore.model import order_time
from folklore.ranking import diversity
from folklore.ranking.features import CueFacts, Pool
from folklore.text.cues import as_text
from folklore.text.query.question import (
    QuestionWords,
    joined_names,
    plain,
    with_parts,
)
from folklore.text.words import is_question

# Characters per lexeme, about, of a text without a vector; most characters of texts that are kept in plain form.
_CHARACTERS_PER_LEXEME = 8
_KEPT_CHARACTERS = 4_000
# Between the content of a memory and the rest of its text.
_END = " \0 "


class WordMatch(NamedTuple):
    """Match of a candidate with a question: words held, weight of pairs in sequence; of a long text its passage.

    `anywhere` are the words that the whole of a long text holds, `words` those of the passage; `sequence` is that of
    the passage with most. `opening` are the first words of the memory. `in_cues` are the words that its cues hold, none
    without any; `cue_sequence` is the weight of pairs there.
    """

    words: Sequence[bool]
    sequence: float
    anywhere: Sequence[bool]
    passage: tuple[int, int] | None = None
    opening: str = ""
    in_cues: Sequence[bool] = ()
    cue_sequence: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """Candidates, a row for each, and what they hold of the question; of some, `previous` has the match.

    `rrf` are their fused ranks in the branches. Of those in `surrounded`, the memories before and after in the session
    are candidates too.
    """

    retrieval: Retrieval
    all: Mapping[UUID, Candidate]
    rrf: Mapping[UUID, float] = field(default_factory=dict)
    surrounded: Collection[UUID] = frozenset()
    previous: Mapping[UUID, WordMatch] = field(default_factory=dict)

    @cached_property
    def rarity(self) -> NDArray[np.float64]:
        """The rarity (words,) of the question's words among the memories."""
        search = self.retrieval.search
        read = self.retrieval.keyword.words
        if read is None:
            rarest = [0.0] * len(search.pieces)
        else:
            rarest = rarities(read.query, len(search.pieces))
        return np.array([rarest[word.position] for word in search.words.words])

    @cached_property
    def matches(self) -> Mapping[UUID, WordMatch]:
        """The match of each candidate with the question."""
        words = self.retrieval.search.words
        rarity = self.rarity
        previous = self.previous
        return {
            id_: previous.get(id_) or _match(words, rarity, candidate)
            for id_, candidate in self.all.items()
        }

    @cached_property
    def rows(self) -> Mapping[UUID, int]:
        """The row of each candidate."""
        return {id_: row for row, id_ in enumerate(self.all)}

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors (n, dimensions), from big-endian half floats; zero where one is pending."""
        vectors = [candidate.vector for candidate in self.all.values()]
        size = next((len(vector) for vector in vectors if vector is not None), 2)
        content = b"".join(
            bytes(size) if vector is None else vector for vector in vectors
        )
        matrix = (
            np.frombuffer(content, dtype=">f2")
            .reshape(len(vectors), size // 2)
            .astype(np.float32)
        )
        matrix /= np.maximum(
            np.sqrt(np.einsum("ij,ij->i", matrix, matrix)), np.float32(1e-9)
        )[:, None]
        return matrix

    @cached_property
    def words(self) -> NDArray[np.bool_]:
        """The words of the question (n, words) that each holds."""
        return self._matrix([match.words for match in self.matches.values()])

    @cached_property
    def in_cues(self) -> NDArray[np.bool_]:
        """The words of the question (n, words) that the cues of each hold."""
        nothing = [False] * len(self.rarity)
        return self._matrix(
            [match.in_cues or nothing for match in self.matches.values()]
        )

    def _matrix(self, rows: Sequence[Sequence[bool]]) -> NDArray[np.bool_]:
        return np.array(rows, dtype=bool).reshape(len(rows), len(self.rarity))

    @cached_property
    def beside(self) -> NDArray[np.int64]:
        """The rows (n, 4) of the neighbours one place before and after in the session, and two; -1 for none."""
        places = [candidate.place for candidate in self.all.values()]
        row_at = {place: row for row, place in enumerate(places) if place is not None}
        neighbours = [
            [
                -1 if place is None else row_at.get((place[0], place[1] + step), -1)
                for step in (-1, 1, -2, 2)
            ]
            for place in places
        ]
        return np.array(neighbours, dtype=np.int64).reshape(len(places), 4)

    def text(self, id_: UUID) -> str:
        """Return the text of a candidate, of a long one its best passage."""
        content = self.all[id_].content
        passage = self.matches[id_].passage
        if passage is None:
            return content
        return content[slice(*passage)]

    def time_of(self, id_: UUID) -> datetime:
        """Return the time of a candidate for order and age."""
        row = self.all[id_].row
        return order_time(row["occurred_at"], row["created_at"], row["updated_at"])

    def date_of(self, id_: UUID) -> datetime:
        """Return the time that a candidate is about: when it was true, or else when it was stored."""
        row = self.all[id_].row
        date: datetime = row["occurred_at"] or row["created_at"]
        return date

    def rows_of(self, ids: Iterable[UUID]) -> list[int]:
        """Return the rows of some candidates."""
        return [self.rows[id_] for id_ in ids]

    def pool(self) -> Pool:
        """Return the candidates as the features see them."""
        question_words = self.retrieval.search.words
        members = self.all.values()
        word_matches = self.matches.values()
        hits = self.retrieval.hits.get("keyword", NOTHING)
        scores = dict(zip(hits.ids, hits.scores, strict=True))
        lengths = [
            item.length or len(item.content) // _CHARACTERS_PER_LEXEME + 1
            for item in members
        ]
        return Pool(
            keyword=np.array([scores.get(id_, 0.0) for id_ in self.all]),
            fetched=self.retrieval.search.ranking.fetch(self.retrieval.search.wanted),
            cosines=self._cosines(),
            vectors=self.vectors,
            question=self.question,
            unrelated=self.retrieval.dense.unrelated,
            matches=self.words,
            anywhere=self._matrix([match.anywhere for match in word_matches]),
            rarity=self.rarity,
            letters=np.array([word.weight for word in question_words.words]),
            names=np.array([word.name for word in question_words.words], dtype=bool),
            sequence=np.array([match.sequence for match in word_matches]),
            pairs=question_words.pair_weight,
            dates=self._nearness_of_dates(),
            lengths=np.array(lengths, float),
            asks=np.array([is_question(item.content) for item in members], dtype=bool),
            beside=self.beside,
            related=[*self._related()],
            cues=self._cue_facts(),
        )

    def _nearness_of_dates(self) -> NDArray[np.float64] | None:
        """Return how near the date of each candidate (n,) is to one of the question; None if it has none."""
        question_words = self.retrieval.search.words
        if not question_words.dates:
            return None
        return np.array(
            [question_words.nearness(self.date_of(id_)) for id_ in self.all]
        )

    @property
    def question(self) -> NDArray[np.float32] | None:
        """The vector of the question, None if vectors cannot be compared with it."""
        query = self.retrieval.dense.vector
        if query is None or self.vectors.shape[1] != len(query.vector):
            return None
        return query.vector

    def _cosines(self) -> NDArray[np.float64]:
        """Return the cosine (n,) of each candidate with the question, that of its nearest passage if it has any."""
        question = self.question
        vectors = self.vectors
        unrelated = self.retrieval.dense.unrelated
        if question is None:
            return np.zeros(len(vectors))
        cosines: NDArray[np.float64] = (vectors @ question).astype(float)
        for row, candidate in enumerate(self.all.values()):
            if candidate.passages is not None:
                cosines[row] = max(cosines[row], *candidate.passages.cosines)
        return np.where(
            vectors.any(axis=1), (cosines - unrelated) / (1.0 - unrelated), 0.0
        )

    def _cue_facts(self) -> CueFacts | None:
        """Return what the cues of each candidate hold, None where none has any."""
        cosines = [item.cue_cosine for item in self.all.values()]
        cued = [bool(item.row["cues"]) for item in self.all.values()]
        if not any(cued) and all(cosine is None for cosine in cosines):
            return None
        sequence = [match.cue_sequence for match in self.matches.values()]
        return CueFacts(
            cued=np.array(cued, dtype=bool),
            cosines=self._cue_cosines(cosines),
            matches=self.in_cues,
            sequence=np.array(sequence),
        )

    def _cue_cosines(self, cosines: Sequence[float | None]) -> NDArray[np.float64]:
        """Return the cosine (n,) of the cues of each candidate with the question, 0 without any."""
        unrelated = self.retrieval.dense.unrelated
        if self.question is None:
            return np.zeros(len(cosines))
        return np.array(
            [
                0.0 if cosine is None else (cosine - unrelated) / (1.0 - unrelated)
                for cosine in cosines
            ]
        )

    def _related(self) -> Iterator[tuple[int, int, float]]:
        for row, candidate in enumerate(self.all.values()):
            for other, strength in candidate.linked:
                if other in self.rows:
                    yield row, self.rows[other], strength


def _match(
    words: QuestionWords, rarity: NDArray[np.float64], candidate: Candidate
) -> WordMatch:
    """Return what a memory holds, of a long text the passage that holds most, by rarity, and is nearest.

    Summary, tags, paths and author count as text.
    """
    row = candidate.row
    content = candidate.content
    in_cues, cue_sequence = _held_by_cues(words, row["cues"])
    others = " ".join(
        (_END, row["summary"] or "", *row["tags"], *row["paths"], row["author"])
    )
    if candidate.passages is None:
        form = (
            _plain_and_opening
            if len(content) <= _KEPT_CHARACTERS
            else _plain_and_opening.__wrapped__
        )
        text, opening = form(content, others)
        held, sequence = _held(words, text)
        return WordMatch(held, sequence, held, None, opening, in_cues, cue_sequence)
    ranges = candidate.passages.ranges
    cosines = candidate.passages.cosines
    passages = [
        _held(words, _plain(content[slice(*range_)], others)) for range_ in ranges
    ]
    matrix = np.array([held for held, _ in passages], dtype=bool)
    anywhere = [
        any(column) for column in zip(*(held for held, _ in passages), strict=True)
    ]
    best = int((matrix @ rarity / max(rarity.sum(), 1e-9) + cosines).argmax())
    opening = diversity.opening(plain(content[: ranges[0][1]]))
    return WordMatch(
        passages[best][0],
        max(share for _, share in passages),
        anywhere,
        ranges[best],
        opening,
        in_cues,
        cue_sequence,
    )


def _held_by_cues(
    words: QuestionWords, cues: Sequence[str]
) -> tuple[Sequence[bool], float]:
    """Return the words that cues hold, none without any, and the weight of pairs in sequence."""
    if not cues:
        return (), 0.0
    return _held(words, _plain_cues(tuple(cues)))


# a tenth of a recall in a small project, whose questions meet the same memories
@lru_cache(2_000)
def _plain_and_opening(content: str, others: str) -> tuple[str, str]:
    text = _plain(content, others)
    return text, diversity.opening(text.partition(_END)[0])


def _plain(content: str, others: str) -> str:
    return plain(with_parts(content) + others + " " + joined_names(content + others))


@lru_cache(2_000)
def _plain_cues(phrases: tuple[str, ...]) -> str:
    return _plain(as_text(phrases), "")


def _held(words: QuestionWords, text: str) -> tuple[Sequence[bool], float]:
    text = words.as_in_question(text)
    held = [start in text for start in words.starts]
    return held, words.in_sequence(text) if True in held else 0.0
