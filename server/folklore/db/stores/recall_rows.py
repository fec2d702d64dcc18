"""Parameters and results of the statements of a recall."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from folklore.db.database import Row
from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.model import Filters


@dataclass(frozen=True, slots=True)
class Hits:
    """The list of one branch, best first.

    `scores` order the list; they are relative to the mean of the scope, with the effect of length removed. `raw` is the
    cosine, or the weight of the question's words that a memory holds. `path` names the search over vectors. `words` has
    a bit for each of the first 62 lexemes, in the order of their weights, that a memory holds; for words only.
    """

    ids: tuple[UUID, ...]
    scores: tuple[float, ...]
    raw: tuple[float, ...]
    path: Literal["exact", "hnsw"] = "exact"
    words: tuple[int, ...] = ()

    @classmethod
    def of(cls, rows: Sequence[Row], path: Literal["exact", "hnsw"] = "exact") -> Hits:
        """Make them from the rows of a branch, whose columns have this order."""
        if not rows:
            return cls((), (), (), path)
        ids, scores, raw, *words = zip(*rows, strict=True)
        return cls(ids, scores, raw, path, *words)

    def merged(self, other: Hits, most: int) -> Hits:
        """Return the best of two lists without common memories, whose scores are of one kind."""
        if not other.ids:
            return self
        rows = sorted(
            (*zip(self.ids, self.scores, self.raw, self.words, strict=True),
             *zip(other.ids, other.scores, other.raw, other.words, strict=True)),
            key=lambda row: -row[1],
        )  # fmt: skip
        ids, scores, raw, words = zip(*rows[:most], strict=True)
        return replace(self, ids=ids, scores=scores, raw=raw, words=words)


NOTHING = Hits((), (), ())


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The number of memories in a scope and their mean length in lexemes; size is ln(length + 30)."""

    total: int
    mean_length: float
    mean_size: float = 0.0
    size_variance: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of a scope's vectors (n, dimensions) in one model, with the sizes (n,) of their texts.

    A long text has two: one of the whole and one of its first passage. `passages` estimates how many vectors a memory
    has, `length_ratio` how long what is compared with a question is on average, against whole texts: 1 and 1 if no text
    is long. `many`: the scope holds 1,000 memories or more. `texts` is a sample of them, if requested and there are
    many. `indexed`: the scope is one namespace, and an HNSW index covers its vectors.
    """

    vectors: NDArray[np.float32]
    sizes: NDArray[np.float32]
    passages: float
    length_ratio: float
    many: bool
    indexed: bool
    texts: Sequence[str] | None

    @classmethod
    def of(cls, row: Row) -> Sample:
        """Make it from the row of recall/sample.sql."""
        sample: bytes = row["vectors"] or b""
        # Six bytes; then halfvec's wire form: its dimension, a reserved field, and big-endian half floats.
        dimensions = int.from_bytes(sample[6:8], "big")
        fields = [("passage", ">i2"), ("passages", ">i2"), ("length", ">i2"), ("head", ">i4")]
        drawn = np.frombuffer(sample, dtype=[*fields, ("vector", ">f2", (dimensions,))])
        length = drawn["length"].astype(np.float32)
        passages, length_ratio = _passages(drawn["passage"] == 0, drawn["passages"], length)
        return cls(
            drawn["vector"].astype(np.float32),
            np.log(length + 30),
            passages,
            length_ratio,
            row["many"],
            bool(row["indexed"]),
            row["texts"],
        )


def _passages(
    whole: NDArray[np.bool_], passages: NDArray[np.int16], length: NDArray[np.float32]
) -> tuple[float, float]:
    """Return the vectors of a memory, and the length of what is compared against that of whole texts, on average.

    The rows (n,) are those of whole texts, and of the first passages of long ones.
    """
    if whole.all():
        return 1.0, 1.0
    long_ = whole & (passages > 0)
    compared = length[whole & ~long_].sum() + long_.sum() * length[~whole].mean()
    return float(1 + passages[whole].mean()), float(compared / max(length[whole].sum(), 1.0))


@dataclass(frozen=True, slots=True)
class LexemeQuery:
    """Pieces of a question and date terms to be read in these languages; documents are counted up to `bound`.

    `saturation` and `prior` are BM25's constants, on which the sums of the lexemes depend.
    """

    pieces: Sequence[str]
    date_terms: Sequence[str]
    languages: Sequence[str]
    bound: int
    saturation: float
    prior: float


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A question's vector (dimensions,) in one model, and the line of similarities over size, if it was measured.

    A memory scores cosine - slope * size; the best of its n passages, deviation * sqrt(2 ln n) less. `score_of_best`
    returns the score that a share of all memories exceed. `indexed`: an HNSW index covers the scope. `total` is the
    number of memories in scope, None if unknown, and `passages` the number of vectors that one has on average.
    """

    model: UUID
    vector: NDArray[np.float32]
    slope: float = 0.0
    deviation: float = 0.0
    score_of_best: Callable[[float], float] | None = None
    indexed: bool = False
    total: int | None = None
    passages: float = 1.0


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Candidates to be read whole, `ids`, and the memories linked to any of `spreading`.

    Linked are memories at most `reach` places away in a session and, if `related`, those with a relation. `near` gives
    the model, the question's vector and the slope of the dense branch; without it, vectors are not read.
    """

    ids: Sequence[UUID]
    spreading: Sequence[UUID]
    reach: int
    related: bool
    near: DenseQuery | None


@dataclass(frozen=True, slots=True)
class Spelling:
    """A further lexeme of a word: as it is spelled, which is how tags are kept, or in another language.

    `stem` is its commonest lexeme, `places` are the pieces of the question that it comes from, and `documents` counts
    the memories that hold it without the stem.
    """

    stem: str
    places: Sequence[int]
    documents: int


@dataclass(frozen=True, slots=True)
class FunctionWords:
    """Words of a piece as they are spelled, after '=', and the languages in which all of them are function words."""

    words: tuple[str, ...]
    languages: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexemes:
    """The lexemes of some pieces of a question, with their document frequencies.

    `places` are the pieces that a lexeme comes from, from 0. `sums` has for each lexeme the sum of its scores before
    weighting over all memories, and of its scores times size. `spelled` has the other lexemes of the same words; the
    numbers of their stems include theirs. `functions` has the pieces of function words.
    """

    documents: Mapping[str, int]
    places: Mapping[str, Sequence[int]]
    sums: Mapping[str, tuple[float, float]]
    spelled: Mapping[str, Spelling] = field(default_factory=dict)
    functions: Mapping[int, FunctionWords] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Lexemes:
        """Make them from the rows of recall/lexemes.sql without that of the empty lexeme; it counts places from 1."""
        documents: dict[str, int] = {}
        places: dict[str, Sequence[int]] = {}
        sums: dict[str, tuple[float, float]] = {}
        spelled: dict[str, Spelling] = {}
        functions: dict[int, FunctionWords] = {}
        for row in sorted(rows, key=lambda row: row["stem"] is not None):
            lexeme, stem, count = row["lexeme"], row["stem"], row["documents"]
            scores, pieces = (row["evidence"] or 0.0, row["sized"] or 0.0), [place - 1 for place in row["places"]]
            if row["function_in"] is not None:
                for piece in pieces:
                    words = functions[piece].words if piece in functions else ()
                    functions[piece] = FunctionWords((*words, lexeme), frozenset(row["function_in"]))
            elif stem is None:
                documents[lexeme], sums[lexeme] = count, scores
                if pieces:
                    places[lexeme] = pieces
            elif lexeme not in documents:  # else another piece has this lexeme
                spelled[lexeme] = Spelling(stem, pieces, count)
                documents[stem] += count
                sums[stem] = sums[stem][0] + scores[0], sums[stem][1] + scores[1]
        return cls(documents, places, sums, spelled, functions)


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """The lexemes of a question in a scope, with their document frequencies, places and sums (see Lexemes).

    `stems` has further lexemes of a word, with the stem that represents them. `functions` are the words of a question
    of function words alone, after '='.
    """

    documents: Mapping[str, int]
    corpus: CorpusStatistics
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    sums: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stems: Mapping[str, str] = field(default_factory=dict)
    functions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Bm25:
    """A question as the keyword statements score it: weights by lexeme, spelled words among them, BM25's constants.

    `total_weight` is the weight of the whole question, also of words that no memory holds. `mean_score` and
    `score_slope` are the line of its scores over size. `repetitions` are factors on the weights of words that the
    question repeats, contained in these three.
    """

    weights: Mapping[str, float]
    total_weight: float
    query: QueryStatistics
    saturation: float
    prior: float
    mean_score: float = 0.0
    score_slope: float = 0.0
    repetitions: Mapping[str, float] = field(default_factory=dict)

    @property
    def scored_weights(self) -> dict[str, float]:
        """The weights times the factors of repeated words."""
        return {lexeme: weight * self.repetitions.get(lexeme, 1.0) for lexeme, weight in self.weights.items()}


@dataclass(frozen=True, slots=True)
class TermForm:
    """Form of a term of an expression: its lexemes in order, their positions, and their document frequencies.

    `spelled`: the words as they are spelled. Of these `stems` are the stems, as recall/terms.sql returns them.
    """

    term: int
    spelled: bool
    lexemes: tuple[str, ...]
    positions: tuple[int, ...]
    documents: tuple[int, ...]
    stems: tuple[str | None, ...] = ()


class Passages(NamedTuple):
    """The passages of a long text, in order: their characters, lengths in lexemes, and cosines with the question."""

    ranges: Sequence[tuple[int, int]]
    lengths: Sequence[int]
    cosines: Sequence[float]

    @classmethod
    def of(cls, passages: Sequence[tuple[int, int, int]], cosines: Sequence[float]) -> Passages:
        """Make them from columns of recall/pool.sql."""
        return cls([(begin, end) for begin, end, _ in passages], [length for _, _, length in passages], cosines)


class Candidate(NamedTuple):
    """A memory that may be in the answer; `row` holds all of it. (A NamedTuple: most of sixty are discarded.)

    `place` is (namespace and session, position); `length` is in lexemes, None without a vector; `linked` has the
    candidates with a relation to it, and the strengths; `vector` is big-endian half floats. A short text has no
    `passages`.
    """

    id: UUID
    row: Row
    namespace: str
    content: str
    kind: str
    place: tuple[tuple[UUID, str], int] | None
    length: int | None
    linked: Sequence[tuple[UUID, float]]
    vector: bytes | None
    passages: Passages | None = None

    @classmethod
    def of(cls, row: Row, namespace: str) -> Candidate:
        """Make it from a row of recall/pool.sql."""
        session, position, ids, vector = row["session"], row["position"], row["sources"], row["vector"]
        return cls(
            row["id"],
            row,
            namespace,
            row["content"],
            row["kind"],
            None if session is None or position is None else ((row["namespace_id"], session), position),
            row["length"],
            () if ids is None else list(zip(ids, row["strengths"], strict=True)),
            # halfvec's wire form begins with its dimension and a reserved field, two bytes each.
            None if vector is None else vector[4:],
            None if row["passages"] is None else Passages.of(row["passages"], row["cosines"]),
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces that a question searches, by id, its filters, and the current time."""

    namespaces: Mapping[UUID, str]
    filters: Filters
    now: datetime
