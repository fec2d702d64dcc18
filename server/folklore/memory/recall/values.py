"""Values that the steps of a recall exchange: the question and the results of the branches."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from folklore.contract.recall import BranchHit, BranchList, ExplainedWord
from folklore.db.stores.namespaces import Listed
from folklore.db.stores.recall_rows import (
    NOTHING,
    Bm25,
    DenseQuery,
    Hits,
    Scope,
    TermForm,
)
from folklore.embedding import Embedder, Model
from folklore.errors import InvalidInput
from folklore.model import Degraded, Filters, Sort
from folklore.ranking.weights import Branch, Ranking
from folklore.text.query.parser import KeywordQuery
from folklore.text.query.question import QuestionWords

MAX_QUERY = 1_000_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its filters and ranking.

    Without `namespaces` all are searched, with a `project` its own first. With `literal`, a phrase must occur; else its
    words count, and its occurrence is a signal. `embedding` replaces the text's own vector of the active model,
    which is `embedding_model` if that is named. Expansion follows chains of `hops` relations of `least_strength`.
    `before` marks results that were given before, by a cursor for several questions.
    """

    query: str
    namespaces: Sequence[str] = ()
    project: str | None = None
    limit: int = 10
    filters: Filters = Filters()
    ranking: Ranking = field(default_factory=Ranking)
    branches: tuple[Branch, ...] = ("dense", "keyword")
    literal: bool = False
    sort: Sort = "score"
    max_tokens: int | None = None
    cursor: str | None = None
    before: frozenset[bytes] = frozenset()
    explain: bool = False
    embedding: Sequence[float] | None = None
    embedding_model: str | None = None
    boost_reflections: bool = False
    hops: int = 1
    least_strength: float = 0.0

    def __post_init__(self) -> None:
        """Raise InvalidInput for a query that is too long."""
        if len(self.query) > MAX_QUERY:
            raise InvalidInput(
                "query",
                f"must be at most {MAX_QUERY:,} characters, got {len(self.query):,}.",
            )


@dataclass(frozen=True)
class Search:
    """A question in its scope.

    `tokens` are its words between white space. `branches` are those with a weight. With `expression`, the keyword
    branch obeys the query's expression: `tsquery`, None until it is read, of terms with these `forms`. The embedder is
    that of the beginning: the active model may change meanwhile. `key` identifies the question in cursors; `before`
    marks the results of earlier pages.
    """

    question: Question
    text: str
    query: KeywordQuery
    tokens: Sequence[str]
    expression: bool
    namespaces: Listed
    scope: Scope
    languages: Sequence[str]
    branches: Sequence[Branch]
    embedder: Embedder | None
    key: object
    before: frozenset[bytes]
    forms: Sequence[TermForm] = ()
    tsquery: str | None = None

    @property
    def wanted(self) -> int:
        """The number of results to rank: those of earlier pages and of this one."""
        return len(self.before) + self.question.limit

    @property
    def sorted_by_score(self) -> bool:
        """True if results come in the order of their scores: not those of ranks alone, and not literal ones."""
        return self.ranking.fusion != "rrf" and not self.question.literal

    @property
    def ranking(self) -> Ranking:
        """The numbers of the ranking."""
        return self.question.ranking

    @cached_property
    def words(self) -> QuestionWords:
        """The words of the question as they are looked for in texts."""
        return QuestionWords.of(self.tokens)


@dataclass(frozen=True, slots=True)
class BranchResult:
    """Result of a branch: its list, and what it read of the question.

    That is for the dense branch the vector in a `model`, and the cosine of an `unrelated` text with it, for the keyword
    branch the weighted words, as `bm25`.
    """

    hits: Hits = NOTHING
    milliseconds: float = 0.0
    model: Model | None = None
    query: DenseQuery | None = None
    unrelated: float = 0.0
    bm25: Bm25 | None = None


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Results of the branches for a question; one that failed is missing from `hits` and named in `degraded`."""

    search: Search
    hits: Mapping[Branch, Hits]
    degraded: tuple[Degraded, ...]
    dense: BranchResult
    keyword: BranchResult

    def lists(self) -> tuple[BranchList, ...]:
        """Return the lists of the branches as they are explained."""
        lists = []
        for branch, hits in self.hits.items():
            rows = []
            columns = zip(hits.ids, hits.scores, hits.raw, strict=True)
            for rank, (id_, score, raw) in enumerate(columns, start=1):
                rows.append(BranchHit(id_, rank, score, raw))
            if branch == "dense":
                path: str = hits.path
                milliseconds = self.dense.milliseconds
            else:
                path = "tsvector" if self.search.expression else "postings"
                milliseconds = self.keyword.milliseconds
            lists.append(BranchList(branch, path, milliseconds, tuple(rows)))
        return tuple(lists)

    def explained_words(self) -> tuple[ExplainedWord, ...]:
        """Return the words of the question, the heaviest first."""
        bm25 = self.keyword.bm25
        if bm25 is None:
            return ()
        explained = []
        for word, count in bm25.query.documents.items():
            weight = bm25.weights.get(word, 0.0)
            explained.append(ExplainedWord(word, count, weight))
        explained.sort(key=lambda item: -item.weight)
        return tuple(explained)

    def coverage(self) -> dict[UUID, float]:
        """Return the share of the question's weight that the words of each keyword hit cover, 0 to 1."""
        bm25 = self.keyword.bm25
        hits = self.hits.get("keyword", NOTHING)
        if bm25 is None or bm25.total_weight <= 0:
            return {}
        return {
            id_: min(raw / bm25.total_weight, 1.0)
            for id_, raw in zip(hits.ids, hits.raw, strict=True)
        }

    def counts(self, ids: Iterable[UUID]) -> dict[str, int]:
        """Return how many of these memories each branch found: dense, keyword, both, neither."""
        dense = set(self.hits.get("dense", NOTHING).ids)
        keyword = set(self.hits.get("keyword", NOTHING).ids)
        counts = Counter[str]()
        for id_ in ids:
            if id_ in dense and id_ in keyword:
                counts["both"] += 1
            elif id_ in dense:
                counts["dense"] += 1
            elif id_ in keyword:
                counts["keyword"] += 1
            else:
                counts["neither"] += 1
        return dict(counts)
