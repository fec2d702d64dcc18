"""Parameters and results of the statements of a recall."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from folklore.db.database import Row
from folklore.lazy import NDArray, numpy as np
from folklore.model import Filters


@dataclass(frozen=True, slots=True)
class Hits:
    """The list of one branch, best first.

    `scores` order the list: cosines, or BM25. `raw` is the cosine, or the weight of the question's words that a memory
    holds, without its cues. `path` names the search over vectors. `lexeme_bits` has a bit for each lexeme that a memory
    holds of a question of function words alone. `spaces` are the namespaces that hold any. `crowded`: the nearest
    vectors are of few memories.
    """

    ids: tuple[UUID, ...]
    scores: tuple[float, ...]
    raw: tuple[float, ...]
    path: Literal["exact", "hnsw"] = "exact"
    lexeme_bits: tuple[int, ...] = ()
    spaces: frozenset[UUID] = frozenset()
    crowded: bool = False

    @classmethod
    def of(cls, rows: Sequence[Row], path: Literal["exact", "hnsw"] = "exact") -> Hits:
        """Make them from the rows of a branch, whose columns have this order."""
        if not rows:
            return cls((), (), (), path)
        ids, scores, raw, spaces, *bits = zip(*rows, strict=True)
        return cls(ids, scores, raw, path, bits[0] if bits else (), frozenset(spaces))

    def without(self, ids: Collection[UUID]) -> Hits:
        """Return the list without some memories."""
        rows = [
            row
            for row in zip(self.ids, self.scores, self.raw, strict=True)
            if row[0] not in ids
        ]
        if not rows:
            return NOTHING
        left, scores, raw = zip(*rows, strict=True)
        return replace(self, ids=left, scores=scores, raw=raw)

    def merged(self, other: Hits, most: int) -> Hits:
        """Return the best of two lists without common memories, whose scores are of one kind."""
        if not other.ids:
            return self
        rows = sorted(
            (
                *zip(self.ids, self.scores, self.raw, strict=True),
                *zip(other.ids, other.scores, other.raw, strict=True),
            ),
            key=lambda row: -row[1],
        )
        ids, scores, raw = zip(*rows[:most], strict=True)
        return replace(
            self, ids=ids, scores=scores, raw=raw, spaces=self.spaces | other.spaces
        )


NOTHING = Hits((), (), ())


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The number of memories in a scope and their mean length in lexemes."""

    total: int
    mean_length: float


class Indexed(NamedTuple):
    """The number of vectors in the HNSW index of texts, about; 0 without one. And if there is one of cues."""

    vectors: int
    of_cues: bool


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A question's vector (dimensions,) in one model.

    The HNSW index is asked for at most `visited` vectors of the scope; 0: for none. So is that of cues, if there is
    one. `total` memories are in scope, None if unknown. `crowded`: the nearest vectors there are known to be of
    few memories.
    """

    model: UUID
    vector: NDArray[np.float32]
    visited: int = 0
    total: int | None = None
    cues_indexed: bool = False
    crowded: bool = False


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Candidates to be read whole, `ids` in the namespaces `spaces`, and the memories linked to any of `spreading`.

    Linked are memories at most `reach` positions away in a session and, if `related`, those with a relation. `near` gives
    the model and the question's vector; without it, vectors are not read.
    """

    spaces: Collection[UUID]
    ids: Sequence[UUID]
    spreading: Sequence[UUID]
    reach: int
    related: bool
    near: DenseQuery | None


class CueForms(NamedTuple):
    """The forms of a word in cues, as they are indexed, and how many memories hold it in their cues, about."""

    lexemes: Sequence[str]
    documents: int


class CueWeight(NamedTuple):
    """The forms of a word in cues, as they are indexed, and the weight of the word there."""

    lexemes: Sequence[str]
    weight: float


@dataclass(frozen=True, slots=True)
class QueryStatistics:
    """The lexemes of a question in a scope, with their document frequencies and the positions of their tokens.

    `stems` has further lexemes of a word, with the stem that represents them. `functions` are the words of a question
    of function words alone, after '='. `cues` has, by lexeme, the words that any memory holds in its cues.
    """

    documents: Mapping[str, int]
    corpus: CorpusStatistics
    positions: Mapping[str, Collection[int]] = field(default_factory=dict)
    stems: Mapping[str, str] = field(default_factory=dict)
    functions: Sequence[str] = ()
    cues: Mapping[str, CueForms] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bm25:
    """A question as the keyword statements score it: weights by lexeme, spelled words among them, BM25's constants.

    `cues` has, by lexeme, the weights of words in cues.
    `total_weight` is the weight of the whole question, also of words that no memory holds.
    """

    weights: Mapping[str, float]
    total_weight: float
    query: QueryStatistics
    k1: float
    b: float
    cues: Mapping[str, CueWeight] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TermForm:
    """Form of a term of an expression: its lexemes in order, and their positions.

    `spelled`: the words as they are spelled. Of these `stems` are the stems, as recall/terms returns them. `whole`: a
    name as one lexeme.
    """

    term: int
    spelled: bool
    whole: bool
    lexemes: tuple[str, ...]
    positions: tuple[int, ...]
    stems: tuple[str | None, ...] = ()


class Passages(NamedTuple):
    """The passages of a long text, in order: their characters, lengths in lexemes, and cosines with the question."""

    ranges: Sequence[tuple[int, int]]
    lengths: Sequence[int]
    cosines: Sequence[float]

    @classmethod
    def of(
        cls, passages: Sequence[tuple[int, int, int]], cosines: Sequence[float]
    ) -> Passages:
        """Make them from columns of recall/pool."""
        return cls(
            [(begin, end) for begin, end, _ in passages],
            [length for _, _, length in passages],
            cosines,
        )


class SessionPosition(NamedTuple):
    """The session of a memory, with its namespace, and the memory's position there."""

    session: tuple[UUID, str]
    position: int


class Candidate(NamedTuple):
    """A memory that may be in the answer; `row` holds all of it. (A NamedTuple: most of sixty are discarded.)

    `in_session` is None outside of a session; `length` is in lexemes, None without a vector; `linked` has the candidates
    with a relation to it, and the strengths; `vector` is big-endian half floats. A short text has no `passages`.
    `cue_cosine` is that of the cues with the question, None without any.
    """

    id: UUID
    row: Row
    namespace: str
    content: str
    kind: str
    in_session: SessionPosition | None
    length: int | None
    linked: Sequence[tuple[UUID, float]]
    vector: bytes | None
    passages: Passages | None = None
    cue_cosine: float | None = None

    @classmethod
    def of(cls, row: Row, namespace: str) -> Candidate:
        """Make it from a row of recall/pool."""
        session = row["session"]
        position = row["position"]
        in_session = None
        if session is not None and position is not None:
            in_session = SessionPosition((row["namespace_id"], session), position)
        ids = row["sources"]
        vector = row["vector"]
        return cls(
            row["id"],
            row,
            namespace,
            row["content"],
            row["kind"],
            in_session,
            row["length"],
            () if ids is None else list(zip(ids, row["strengths"], strict=True)),
            # halfvec's wire form begins with its dimension and a reserved field, two bytes each.
            None if vector is None else vector[4:],
            None
            if row["passages"] is None
            else Passages.of(row["passages"], row["cosines"]),
            row["nearness_of_cues"],
        )


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces that a question searches, by id, its filters, and the current time.

    `others`, if they are all namespaces but a few: the ids of these few, so that thousands are not sent. `few`, if the
    filters let through few memories: these, and their namespaces.
    """

    namespaces: Mapping[UUID, str]
    filters: Filters
    now: datetime
    others: Sequence[UUID] | None = None
    few: Mapping[UUID, UUID] | None = None

    @property
    def key(self) -> object:
        """The namespaces as a key of caches."""
        if self.others is None:
            return frozenset(self.namespaces)
        return (len(self.namespaces), *self.others)

    def within(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the rows of these namespaces: with `others`, one may be newer than they."""
        if self.others is None:
            return rows
        return [row for row in rows if row["namespace_id"] in self.namespaces]
