"""Candidates of a question as the features see them: the words that each holds, its nearness, its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from folklore.db.stores.recall_rows import NOTHING, Candidate, Passages
from folklore.lazy import NDArray, numpy as np
from folklore.memory.recall.corpus_statistics import rarities
from folklore.memory.recall.values import Retrieval
from folklore.model import order_time
from folklore.ranking import diversity
from folklore.ranking.features import CueFacts, Pool
from folklore.text.cues import as_text
from folklore.text.query.question import (
    HeldInText,
    QuestionWords,
    joined_names,
    plain,
    with_parts,
)
from folklore.text.words import is_question

# Characters per lexeme, about, of a text without a vector; most characters of texts that are kept in plain form.
_CHARACTERS_PER_LEXEME = 8
_KEPT_CHARACTERS = 4_000
# Positions of neighbours in a session.
_STEPS = (-1, 1, -2, 2)
_NO_CUES = HeldInText((), 0.0)
# Between the content of a memory and the rest of its text.
_END = " \0 "


class WordsHeld(NamedTuple):
    """Words of a question that a candidate holds, and the weight of pairs in sequence; of a long text its passage.

    `anywhere` are the words that the whole of a long text holds, `in_text` those of the passage; `sequence` is that of
    the passage with most. `opening` are the first words of the memory. `in_cues` are the words that its cues hold, none
    without any; `cue_sequence` is the weight of pairs there.
    """

    in_text: Sequence[bool]
    sequence: float
    anywhere: Sequence[bool]
    passage: tuple[int, int] | None = None
    opening: str = ""
    in_cues: Sequence[bool] = ()
    cue_sequence: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """Candidates, a row for each, and what they hold of the question; of some, `previous` has that.

    `rrf` are their fused ranks in the branches. Of those in `surrounded`, the memories before and after in the session
    are candidates too.
    """

    retrieval: Retrieval
    all: Mapping[UUID, Candidate]
    rrf: Mapping[UUID, float] = field(default_factory=dict)
    surrounded: Collection[UUID] = frozenset()
    previous: Mapping[UUID, WordsHeld] = field(default_factory=dict)

    @cached_property
    def rarity(self) -> NDArray[np.float64]:
        """The rarity (words,) of the question's words among the memories."""
        search = self.retrieval.search
        bm25 = self.retrieval.keyword.bm25
        if bm25 is None:
            return np.zeros(len(search.words.distinct))
        of_tokens = rarities(bm25.query, len(search.tokens))
        return np.array([of_tokens[word.position] for word in search.words.distinct])

    @cached_property
    def held(self) -> Mapping[UUID, WordsHeld]:
        """The words of the question that each candidate holds."""
        unknown = {
            id_: candidate
            for id_, candidate in self.all.items()
            if id_ not in self.previous
        }
        words = self.retrieval.search.words
        held = _words_held(words, self.rarity, list(unknown.values()))
        further = dict(zip(unknown, held, strict=True))
        return {id_: self.previous.get(id_) or further[id_] for id_ in self.all}

    @cached_property
    def rows(self) -> Mapping[UUID, int]:
        """The row of each candidate."""
        return {id_: row for row, id_ in enumerate(self.all)}

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The unit vectors (n, dimensions), from big-endian half floats; zero where one is pending."""
        vectors = [candidate.vector for candidate in self.all.values()]
        size = max((len(vector) for vector in vectors if vector is not None), default=2)
        zeros = bytes(size)
        content = b"".join([vector or zeros for vector in vectors])
        half_floats = np.frombuffer(content, dtype=">f2")
        matrix = half_floats.reshape(len(vectors), size // 2).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
        matrix /= np.maximum(lengths, np.float32(1e-9))[:, None]
        return matrix

    @cached_property
    def in_text(self) -> NDArray[np.bool_]:
        """The words of the question (n, words) that the text of each holds, a long one in its best passage."""
        return self._matrix([held.in_text for held in self.held.values()])

    @cached_property
    def in_cues(self) -> NDArray[np.bool_]:
        """The words of the question (n, words) that the cues of each hold."""
        none = [False] * len(self.rarity)
        return self._matrix([held.in_cues or none for held in self.held.values()])

    def _matrix(self, rows: Sequence[Sequence[bool]]) -> NDArray[np.bool_]:
        return np.array(rows, dtype=bool).reshape(len(rows), len(self.rarity))

    @cached_property
    def beside(self) -> NDArray[np.int64]:
        """The rows (n, 4) of the neighbours one before and one after in the session, and two; -1 for none."""
        # Looked up by plain tuples, which equal a SessionPosition and are made faster.
        row_at: dict[object, int] = {}
        for row, candidate in enumerate(self.all.values()):
            row_at[candidate.in_session] = row
        neighbours = []
        for candidate in self.all.values():
            if candidate.in_session is None:
                neighbours.append([-1] * len(_STEPS))
            else:
                session, position = candidate.in_session
                rows = [row_at.get((session, position + step), -1) for step in _STEPS]
                neighbours.append(rows)
        return np.array(neighbours, dtype=np.int64).reshape(len(self.all), len(_STEPS))

    def text(self, id_: UUID) -> str:
        """Return the text of a candidate, of a long one its best passage."""
        content = self.all[id_].content
        passage = self.held[id_].passage
        if passage is None:
            return content
        begin, end = passage
        return content[begin:end]

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
        search = self.retrieval.search
        words = search.words.distinct
        held_by_each = self.held.values()
        hits = self.retrieval.hits.get("keyword", NOTHING)
        scores = dict(zip(hits.ids, hits.scores, strict=True))
        asks = [is_question(candidate.content) for candidate in self.all.values()]
        return Pool(
            keyword=np.array([scores.get(id_, 0.0) for id_ in self.all]),
            fetched=search.ranking.fetch(search.wanted),
            cosines=self._cosines(),
            vectors=self.vectors,
            question=self.question,
            unrelated=self.retrieval.dense.unrelated,
            in_text=self.in_text,
            anywhere=self._matrix([held.anywhere for held in held_by_each]),
            rarity=self.rarity,
            letters=np.array([word.weight for word in words]),
            names=np.array([word.name for word in words], dtype=bool),
            sequence=np.array([held.sequence for held in held_by_each]),
            pairs=search.words.pair_weight,
            dates=self._nearness_of_dates(),
            lengths=np.array(list(map(_length_of, self.all.values())), float),
            asks=np.array(asks, dtype=bool),
            beside=self.beside,
            related=list(self._related()),
            cues=self._cue_facts(),
        )

    def _nearness_of_dates(self) -> NDArray[np.float64] | None:
        """Return how near the date of each candidate (n,) is to one of the question; None if it has none."""
        words = self.retrieval.search.words
        if not words.dates:
            return None
        return np.array([words.nearness(self.date_of(id_)) for id_ in self.all])

    @property
    def question(self) -> NDArray[np.float32] | None:
        """The vector of the question, None if vectors cannot be compared with it."""
        query = self.retrieval.dense.query
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
        above_unrelated = (cosines - unrelated) / (1.0 - unrelated)
        has_vector = vectors.any(axis=1)
        return np.where(has_vector, above_unrelated, 0.0)

    def _cue_facts(self) -> CueFacts | None:
        """Return what the cues of each candidate hold, None where none has any."""
        cosines = [item.cue_cosine for item in self.all.values()]
        cued = [bool(item.row["cues"]) for item in self.all.values()]
        if not any(cued) and all(cosine is None for cosine in cosines):
            return None
        sequence = [held.cue_sequence for held in self.held.values()]
        return CueFacts(
            cued=np.array(cued, dtype=bool),
            cosines=self._cue_cosines(cosines),
            in_cues=self.in_cues,
            sequence=np.array(sequence),
        )

    def _cue_cosines(self, cosines: Sequence[float | None]) -> NDArray[np.float64]:
        """Return the cosine (n,) of the cues of each candidate with the question, 0 without any."""
        values = np.zeros(len(cosines))
        if self.question is None:
            return values
        unrelated = self.retrieval.dense.unrelated
        for row, cosine in enumerate(cosines):
            if cosine is not None:
                values[row] = (cosine - unrelated) / (1.0 - unrelated)
        return values

    def _related(self) -> Iterator[tuple[int, int, float]]:
        for row, candidate in enumerate(self.all.values()):
            for other, strength in candidate.linked:
                if other in self.rows:
                    yield row, self.rows[other], strength


def _length_of(candidate: Candidate) -> int:
    """Return the length of a text in lexemes; of one without a vector an estimate."""
    return candidate.length or len(candidate.content) // _CHARACTERS_PER_LEXEME + 1


def _words_held(
    words: QuestionWords,
    rarity: NDArray[np.float64],
    candidates: Sequence[Candidate],
) -> list[WordsHeld]:
    """Return what each memory holds of a question. Summary, tags, paths and author count as text."""
    texts: list[str] = []
    openings = []
    for candidate in candidates:
        of_content, opening = _plain_texts(candidate)
        texts += of_content
        openings.append(opening)
        if candidate.row["cues"]:
            texts.append(_plain_cues(tuple(candidate.row["cues"])))

    held = iter(words.held_by(texts))
    words_held = []
    for candidate, opening in zip(candidates, openings, strict=True):
        passages = candidate.passages
        number_of_texts = 1 if passages is None else len(passages.ranges)
        in_content = list(islice(held, number_of_texts))
        in_cues = next(held) if candidate.row["cues"] else _NO_CUES
        if passages is None:
            words_held.append(_held_in_text(in_content[0], in_cues, opening))
        else:
            words_held.append(
                _held_in_passages(in_content, in_cues, opening, passages, rarity)
            )
    return words_held


def _plain_texts(candidate: Candidate) -> tuple[Sequence[str], str]:
    """Return the plain text of a memory, of a long one those of its passages, and its first words."""
    row = candidate.row
    content = candidate.content
    others = " ".join(
        (_END, row["summary"] or "", *row["tags"], *row["paths"], row["author"])
    )
    if candidate.passages is not None:
        ranges = candidate.passages.ranges
        texts = [_plain(content[begin:end], others) for begin, end in ranges]
        _, end_of_first = ranges[0]
        return texts, diversity.opening(plain(content[:end_of_first]))
    if len(content) <= _KEPT_CHARACTERS:
        text, opening = _plain_and_opening(content, others)
    else:
        # Not kept: a few long texts would fill the memory of the process.
        text, opening = _plain_and_opening.__wrapped__(content, others)
    return [text], opening


def _held_in_text(held: HeldInText, in_cues: HeldInText, opening: str) -> WordsHeld:
    return WordsHeld(
        in_text=held.words,
        sequence=held.sequence,
        anywhere=held.words,
        opening=opening,
        in_cues=in_cues.words,
        cue_sequence=in_cues.sequence,
    )


def _held_in_passages(
    held: Sequence[HeldInText],
    in_cues: HeldInText,
    opening: str,
    passages: Passages,
    rarity: NDArray[np.float64],
) -> WordsHeld:
    """Return what a long text holds, of its words those of the passage that holds most, by rarity, and is nearest."""
    words_of_each = [of_passage.words for of_passage in held]
    shares = np.array(words_of_each, dtype=bool) @ rarity / max(rarity.sum(), 1e-9)
    best = int((shares + passages.cosines).argmax())
    return WordsHeld(
        in_text=words_of_each[best],
        sequence=max(of_passage.sequence for of_passage in held),
        anywhere=[any(of_word) for of_word in zip(*words_of_each, strict=True)],
        passage=passages.ranges[best],
        opening=opening,
        in_cues=in_cues.words,
        cue_sequence=in_cues.sequence,
    )


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
