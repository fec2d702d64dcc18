"""Words of a question with their document frequencies in a scope; what changes slowly is cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from cachetools import TLRUCache, TTLCache

from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import (
    Bm25,
    CorpusStatistics,
    FunctionWords,
    LexemeQuery,
    Lexemes,
    QueryStatistics,
)
from folklore.memory.recall.values import Search
from folklore.ranking.numbers import K1, B
from folklore.ranking.statistics import inverse_document_frequency, lexeme_weights
from folklore.ranking.weights import Ranking
from folklore.telemetry import stage
from folklore.text.dates.date_terms import date_terms

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext

# From so many memories on, those stored within a minute hardly change the statistics of a scope.
_LARGE = 1_000
_SECONDS, _SECONDS_OF_SMALL = 60.0, 2.0
_SCOPES = 64
# A lexeme of so many memories is common: its numbers hardly change while they are cached. Without this cache a recall
# among 3,000 memories of conversations took 5 % longer (median).
_COMMON = 100
_COMMON_PIECES = 5_000

Namespaces = frozenset[UUID]
# A lexeme of a piece, its document frequency, and the spellings that it represents: no memory may hold one yet, but one
# may be stored while it is cached.
CachedLexeme = tuple[str, int, tuple[str, ...]]
# The lexemes of a piece, and its function words.
CachedPiece = tuple[tuple[CachedLexeme, ...], FunctionWords | None]
# The languages in which pieces were read.
ReadAs = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CachedCorpus:
    """The statistics of a scope, and the pieces of questions there whose every lexeme is common."""

    statistics: CorpusStatistics
    common: dict[ReadAs, dict[str, CachedPiece]] = field(default_factory=dict)

    def learn(self, read_as: ReadAs, pieces: Sequence[str], read: Lexemes, bound: int) -> None:
        """Cache the pieces that have common lexemes only, counted to the end."""
        spelled: dict[tuple[int, str], list[str]] = {}
        for word, spelling in read.spelled.items():
            for place in spelling.places:
                spelled.setdefault((place, spelling.stem), []).append(word)
        found: list[list[CachedLexeme]] = [[] for _ in pieces]
        for lexeme, places in read.places.items():
            for place in places:
                found[place].append((lexeme, read.documents[lexeme], tuple(spelled.get((place, lexeme), ()))))
        known = self.common.setdefault(read_as, {})
        if len(known) > _COMMON_PIECES:
            known.clear()
        for place, (piece, lexemes) in enumerate(zip(pieces, found, strict=True)):
            if all(_COMMON <= documents < bound for _, documents, _ in lexemes):
                known[piece] = tuple(lexemes), read.functions.get(place)


def _expiry(_key: object, value: CachedCorpus, now: float) -> float:
    return now + (_SECONDS if value.statistics.total >= _LARGE else _SECONDS_OF_SMALL)


class StatisticsCache:
    """Statistics of the scopes of recent questions: of large ones for a minute, of small ones for two seconds.

    `vectors` has, by scope and model, about how many vectors the HNSW index has and how many of them are in scope.
    """

    def __init__(self) -> None:
        self.corpora: TLRUCache[Namespaces, CachedCorpus] = TLRUCache(_SCOPES, _expiry)
        self.vectors: TTLCache[tuple[Namespaces, UUID], tuple[int, int]] = TTLCache(_SCOPES, _SECONDS)

    def clear_small(self) -> None:
        """Forget the scopes that a store may just have changed."""
        for namespaces in [key for key, corpus in self.corpora.items() if corpus.statistics.total < _LARGE]:
            self.corpora.pop(namespaces, None)


async def read_words(memory: MemoryContext, statements: RecallStatements, search: Search) -> Bm25:
    """Return the weighted words of a question, those of an expression left out; at most one statement.

    The statement also measures the scope, unless its statistics are cached.
    """
    query, ranking = search.query, search.ranking
    pieces = () if search.expression else search.pieces
    terms = {} if search.expression else date_terms(query.bag)
    bound = ranking.count_bound(0 if search.expression else len(query.bag))
    namespaces = frozenset(search.scope.namespaces)
    corpus = memory.statistics.corpora.get(namespaces)
    read_as = tuple(search.languages)
    known = {} if corpus is None else corpus.common.get(read_as, {})
    unknown = [piece for piece in dict.fromkeys(pieces) if piece not in known]
    read = Lexemes({}, {})
    if unknown or terms or corpus is None:
        asked = LexemeQuery(unknown, list(terms), search.languages, bound)
        with stage("recall.words"):
            read, measured = await statements.lexemes(
                search.scope, asked, None if corpus is None else corpus.statistics
            )
        if corpus is None:
            corpus = memory.statistics.corpora[namespaces] = CachedCorpus(measured)
        corpus.learn(read_as, unknown, read, bound)
    query_statistics = _joined(pieces, unknown, read, known, bound, corpus.statistics)
    if search.scope.filters.as_of is not None:
        query_statistics = with_former(query_statistics, read)
    return weighted_words(query_statistics, ranking, bound, terms)


def with_former(query: QueryStatistics, read: Lexemes = Lexemes({}, {})) -> QueryStatistics:
    """Return the statistics with a document for words that no text holds now: a former text may hold them.

    Spellings among the lexemes that were `read` count too.
    """
    spelled = {word: spelling.stem for word, spelling in read.spelled.items() if word not in query.documents}
    documents = {lexeme: max(count, 1) for lexeme, count in query.documents.items()}
    return replace(query, documents=documents, stems=spelled | dict(query.stems))


def _joined(
    pieces: Sequence[str],
    unknown: Sequence[str],
    read: Lexemes,
    known: Mapping[str, CachedPiece],
    bound: int,
    corpus: CorpusStatistics,
) -> QueryStatistics:
    """Return the lexemes that were read and those that were cached, with places in the whole question."""
    functions = {unknown[place]: words for place, words in read.functions.items()}
    functions |= {piece: words for piece in pieces if piece in known and (words := known[piece][1]) is not None}
    left_out = _function_pieces(pieces, functions)
    places_of: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece not in left_out:
            places_of.setdefault(piece, []).append(place)
    asked = _asked(read, unknown, places_of)
    documents, places = dict(asked.documents), dict(asked.places)
    stems = {word: spelling.stem for word, spelling in asked.spelled.items()}
    for piece in places_of.keys() - set(unknown):
        for lexeme, count, spellings in known[piece][0]:
            documents[lexeme] = min(count, bound)
            places[lexeme] = sorted({*places.get(lexeme, ()), *places_of[piece]})
            stems |= dict.fromkeys(spellings, lexeme)
    stems = {word: stem for word, stem in stems.items() if word not in documents}
    alone = () if documents else tuple(dict.fromkeys(word for item in functions.values() for word in item.words))
    return QueryStatistics(documents, corpus, places, stems, alone)


def _asked(read: Lexemes, unknown: Sequence[str], places_of: Mapping[str, Sequence[int]]) -> Lexemes:
    """Return what was read of the pieces in `places_of`, and of date terms, with places in the whole question."""
    documents, places = dict[str, int](), dict[str, Sequence[int]]()
    for lexeme, count in read.documents.items():
        found = [unknown[piece] for piece in read.places.get(lexeme, ())]
        kept = sorted(place for piece in found for place in places_of.get(piece, ()))
        if kept:
            places[lexeme] = kept
        if kept or not found:
            documents[lexeme] = count
    spelled = {word: item for word, item in read.spelled.items() if item.documents and item.stem in documents}
    return Lexemes(documents, places, spelled)


def _function_pieces(pieces: Sequence[str], functions: Mapping[str, FunctionWords]) -> set[str]:
    """Return the pieces that are function words in the language of the question: that in which most pieces are.

    Elsewhere they may be words that few memories hold: English `war` is a function word in German, and `the` is rare in
    German memories.
    """
    counts = Counter(language for piece in pieces if piece in functions for language in functions[piece].languages)
    most = max(counts.values(), default=0)
    languages = {language for language, count in counts.items() if count == most}
    return {piece for piece, words in functions.items() if not languages.isdisjoint(words.languages)}


def weighted_words(query: QueryStatistics, ranking: Ranking, bound: int, terms: Mapping[str, float] = {}) -> Bm25:
    """Return the question as the keyword statements score it; `terms` are date terms with their shares."""
    corpus = query.corpus
    if query.functions:  # their frequencies are unknown; they are all that the question asks for
        rarest = inverse_document_frequency(0, corpus.total)
        weights = dict.fromkeys(query.functions, rarest)
        return Bm25(weights, rarest * len(weights), query, K1, B)
    weights = lexeme_weights(query.documents, total=corpus.total, budget=ranking.postings_budget, bound=bound)
    weights |= {term: weights[term] * share for term, share in terms.items() if term in weights}
    # A word counts as often as the question has it.
    for lexeme, places in query.places.items():
        if lexeme in weights:
            weights[lexeme] *= len(places)
    weights |= {word: weights[stem] for word, stem in query.stems.items() if stem in weights}
    # All words count, held by a memory or not, without the date terms.
    total_weight = sum(
        inverse_document_frequency(count, corpus.total) * len(query.places.get(lexeme, " "))
        for lexeme, count in query.documents.items()
        if not lexeme.startswith("@")
    )
    return Bm25(weights, total_weight, query, K1, B)
