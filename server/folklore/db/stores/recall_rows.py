"""Results of the statements of a recall: hits, readings, measures, samples, candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.database import Row
from folklore.db.rows import memory_of
from folklore.model import Filters, Memory


@dataclass(frozen=True, slots=True)
class Hits:
    """What one branch found, best first.

    `scores` order the list and lie around 0, the mean of the scope. `raw` is what a score was before length was taken
    off: the cosine, or how much of the question's weight (inverse document frequency) a memory holds. `path` is the way
    the vectors were searched. `held` are the lexemes a memory holds, one bit each in the order of their weights (the
    first 62); only words are held.
    """

    ids: tuple[UUID, ...]
    scores: tuple[float, ...]
    raw: tuple[float, ...]
    path: Literal["exact", "hnsw"] = "exact"
    held: tuple[int, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row], path: Literal["exact", "hnsw"] = "exact") -> Hits:
        """From the rows of a branch."""
        if not rows:
            return cls((), (), (), path)
        ids, scores, raw, *held = zip(*rows, strict=True)  # in the order that the statements name them
        return cls(ids, scores, raw, path, *held)


NOTHING = Hits((), (), ())


@dataclass(frozen=True, slots=True)
class Measures:
    """The number of memories in a scope and their mean length in lexemes; `size` is the logarithm of length + 30."""

    total: int
    mean_length: float
    mean_size: float
    size_variance: float

    @classmethod
    def of(cls, row: Row) -> Measures:
        """Make them from their row of recall_lexemes.sql."""
        return cls(row["documents"], row["mean_length"] or 0.0, row["mean_size"] or 0.0, row["size_variance"] or 0.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a scope's vectors (n, dimensions) in one model, with the sizes (n,) of their texts.

    `many`: the scope holds 1,000 memories or more. `texts` is a sample of them, if requested and there are many.
    `indexed`: the scope is one namespace, and an HNSW index covers its vectors.
    """

    vectors: NDArray[np.float32]
    sizes: NDArray[np.float32]
    many: bool
    indexed: bool
    texts: Sequence[str] | None

    @classmethod
    def of(cls, row: Row) -> Sample:
        """Make it from the row of recall_sample.sql."""
        sample: bytes = row["vectors"] or b""
        # Two bytes of length; then halfvec's wire form: its dimension, a reserved field, and big-endian half floats.
        dimensions = int.from_bytes(sample[2:4], "big")
        drawn = np.frombuffer(sample, dtype=[("length", ">i2"), ("head", ">i4"), ("vector", ">f2", (dimensions,))])
        return cls(
            drawn["vector"].astype(np.float32),
            np.log(drawn["length"].astype(np.float32) + 30),
            row["many"],
            bool(row["indexed"]),
            row["texts"],
        )


@dataclass(frozen=True, slots=True)
class Spelling:
    """A word as it is spelled, which is how tags are kept: its stem, the pieces of the question it comes from, and how
    many memories hold it without the stem."""

    stem: str
    places: Sequence[int]
    documents: int


@dataclass(frozen=True, slots=True)
class Lexemes:
    """The lexemes of a question with their document frequency, and from which of its pieces they come, from 0.

    `sums`: what each says in all memories that were counted together, before weighing, and that times their size.
    `spelled` are the words whose spelling is no lexeme of any language here; the numbers of their stems have theirs in
    them.
    """

    documents: Mapping[str, int]
    places: Mapping[str, Sequence[int]]
    sums: Mapping[str, tuple[float, float]]
    spelled: Mapping[str, Spelling] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Lexemes:
        """From the rows of recall_lexemes.sql without that of the empty lexeme; it counts places from 1."""
        documents: dict[str, int] = {}
        places: dict[str, Sequence[int]] = {}
        sums: dict[str, tuple[float, float]] = {}
        spelled: dict[str, Spelling] = {}
        for row in sorted(rows, key=lambda row: row["stem"] is not None):
            lexeme, stem, count = row["lexeme"], row["stem"], row["documents"]
            said, from_pieces = (row["evidence"] or 0.0, row["sized"] or 0.0), [place - 1 for place in row["places"]]
            if stem is None:
                documents[lexeme], sums[lexeme] = count, said
                if from_pieces:
                    places[lexeme] = from_pieces
            elif lexeme not in documents:  # else another piece reads as this
                spelled[lexeme] = Spelling(stem, from_pieces, count)
                documents[stem] += count
                sums[stem] = sums[stem][0] + said[0], sums[stem][1] + said[1]
        return cls(documents, places, sums, spelled)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a question reads in a scope: its lexemes, among so many memories of that mean length and size.

    `spelled`: words as they are spelled, with the stem that stands for both.
    """

    documents: Mapping[str, int]
    total: int
    mean_length: float
    mean_size: float = 0.0
    size_variance: float = 0.0
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bm25:
    """What the keyword statements need to score: weights by lexeme, words as spelled among them, and BM25's constants.

    `mass` is the weight of the whole question, words that no memory holds included. `mean_score` and `score_slope` are
    the line of its scores over size.
    """

    weights: Mapping[str, float]
    mass: float
    reading: Reading
    saturation: float
    prior: float
    mean_score: float = 0.0
    score_slope: float = 0.0

    @property
    def stems(self) -> list[str | None]:
        """In the order of the weights the stem of a word as it is spelled, None of all others."""
        return [self.reading.spelled.get(lexeme) for lexeme in self.weights]


@dataclass(frozen=True, slots=True)
class Form:
    """One reading of a term: its lexemes in order, their places, and in how many memories each is.

    `stems` of words as they are spelled, as search_terms.sql has them; empty of any other reading.
    """

    term: int
    lexemes: tuple[str, ...]
    positions: tuple[int, ...]
    documents: tuple[int, ...]
    stems: tuple[str | None, ...] = ()


class Candidate:
    """A memory that may answer. Most never do, so the whole memory and its vector are made when asked for."""

    __slots__ = ("_namespace", "_row", "id", "place")

    def __init__(self, row: Row, namespace: str) -> None:
        self._row = row
        self._namespace = namespace
        self.id: UUID = row["id"]
        session, position = row["session"], row["position"]
        # (namespace, session), position in it; None without a session.
        self.place: tuple[tuple[UUID, str], int] | None = (
            None if session is None or position is None else ((row["namespace_id"], session), position)
        )

    @property
    def memory(self) -> Memory:
        """The memory whole."""
        return memory_of(self._row, self._namespace)

    @property
    def content(self) -> str:
        """Its text."""
        text: str = self._row["content"]
        return text

    @property
    def kind(self) -> str:
        """What kind of memory it is."""
        kind: str = self._row["kind"]
        return kind

    @property
    def tags(self) -> Sequence[str]:
        """Its tags."""
        tags: Sequence[str] = self._row["tags"]
        return tags

    @property
    def importance(self) -> float | None:
        """0 to 1, if anybody said."""
        value: float | None = self._row["importance"]
        return value

    @property
    def confidence(self) -> float | None:
        """0 to 1, if anybody said."""
        value: float | None = self._row["confidence"]
        return value

    @property
    def priority(self) -> int | None:
        """1 (first) to 4, if anybody said."""
        value: int | None = self._row["priority"]
        return value

    @property
    def used_at(self) -> datetime:
        """When it was last recalled, else stored."""
        used: datetime = self._row["last_recalled_at"] or self._row["created_at"]
        return used

    @property
    def length(self) -> int | None:
        """In lexemes; None where no vector says it."""
        length: int | None = self._row["length"]
        return length

    @property
    def ties(self) -> list[tuple[UUID, float]]:
        """The lenders it has a relation with, and how strong that is."""
        lenders = self._row["lenders"]
        return [] if lenders is None else list(zip(lenders, self._row["strengths"], strict=True))

    @property
    def raw_vector(self) -> bytes | None:
        """Its vector as big-endian half floats, or None where it is owed."""
        # halfvec's wire form begins with its dimension and a reserved field, two bytes each.
        raw: bytes | None = self._row["vector"]
        return None if raw is None else raw[4:]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a question is asked: namespaces by id, filters, the time it is now."""

    namespaces: Mapping[UUID, str]
    filters: Filters
    now: datetime
