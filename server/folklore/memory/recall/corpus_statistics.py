"""Statistics of a scope and of a question's words in it; those of the scope change slowly and are cached."""

from __future__ import annotations

import asyncio
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
from folklore.embedding.protocol import Model
from folklore.errors import Unavailable
from folklore.memory.recall.values import ScopeSample, Search, Statistics
from folklore.ranking.statistics import (
    LengthLine,
    estimated_documents,
    inverse_document_frequency,
    lexeme_weights,
    repetition_factor,
    score_line,
)
from folklore.ranking.weights import Branch, Ranking
from folklore.telemetry import stage
from folklore.text.dates.date_terms import date_terms
from folklore.text.words import SampledFrequencies

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext

# From so many memories on, those stored within a minute hardly change the statistics of a scope.
_LARGE = 1_000
_SECONDS, _SECONDS_OF_SMALL, _SECONDS_OF_FREQUENCIES = 60.0, 2.0, 3600.0
_SCOPES = 64
# A lexeme of so many memories is common: its numbers hardly change while they are cached. Without this cache a recall
# among 3,000 memories of conversations took 5 % longer (median).
_COMMON = 100
_COMMON_PIECES = 5_000

Namespaces = frozenset[UUID]
# A lexeme of a piece, its document frequency, its sums, and the spellings that it represents: no memory may hold one
# yet, but one may be stored while it is cached.
CachedLexeme = tuple[str, int, tuple[float, float], tuple[str, ...]]
# The lexemes of a piece, and its function words.
CachedPiece = tuple[tuple[CachedLexeme, ...], FunctionWords | None]
# The languages in which pieces were read, and BM25's constants, on which sums depend.
ReadAs = tuple[tuple[str, ...], float, float]


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
                words = tuple(spelled.get((place, lexeme), ()))
                found[place].append((lexeme, read.documents[lexeme], read.sums[lexeme], words))
        known = self.common.setdefault(read_as, {})
        if len(known) > _COMMON_PIECES:
            known.clear()
        for place, (piece, lexemes) in enumerate(zip(pieces, found, strict=True)):
            if all(_COMMON <= documents < bound for _, documents, _, _ in lexemes):
                known[piece] = tuple(lexemes), read.functions.get(place)


def _expiry(_key: object, value: CachedCorpus | ScopeSample, now: float) -> float:
    large = value.statistics.total >= _LARGE if isinstance(value, CachedCorpus) else value.frequencies is not None
    return now + (_SECONDS if large else _SECONDS_OF_SMALL)


class StatisticsCache:
    """Statistics of the scopes of recent questions: of large ones for a minute, of small ones for two seconds."""

    def __init__(self) -> None:
        self.corpora: TLRUCache[Namespaces, CachedCorpus] = TLRUCache(_SCOPES, _expiry)
        self.samples: TLRUCache[tuple[Namespaces, UUID], ScopeSample] = TLRUCache(_SCOPES, _expiry)
        self.frequencies: TTLCache[Namespaces, SampledFrequencies] = TTLCache(_SCOPES, _SECONDS_OF_FREQUENCIES)

    def clear_small(self) -> None:
        """Forget the scopes that a store may just have changed."""
        for namespaces in [key for key, corpus in self.corpora.items() if corpus.statistics.total < _LARGE]:
            self.corpora.pop(namespaces, None)
        for key in [key for key, sample in self.samples.items() if sample.frequencies is None]:
            self.samples.pop(key, None)


async def read_statistics(memory: MemoryContext, search: Search) -> Statistics:
    """Return the statistics of the scope for the dense branch; at most two statements, at the same time.

    Where no document frequencies of the scope are known, the words of the question are read too: the weights of the
    question's vector come from them. Otherwise the keyword branch reads them. An error is part of the value.
    """
    if search.embedder is None or "dense" not in search.branches:
        return Statistics()
    try:
        model = await search.embedder.model()
    except Unavailable as error:
        return Statistics(unavailable={"dense": error})
    namespaces = frozenset(search.scope.namespaces)
    corpus = memory.statistics.corpora.get(namespaces)
    sample = memory.statistics.samples.get((namespaces, model.id))
    if corpus is not None and sample is not None and sample.frequencies is not None:
        return Statistics(corpus.statistics, model, sample)
    words, drawn = await asyncio.gather(
        read_words(memory, memory.statements, search),
        _read_sample(memory, search, model, sample),
        return_exceptions=True,
    )
    statistics = Statistics(model=model)
    if isinstance(words, Bm25):
        statistics = replace(statistics, corpus=words.query.corpus, words=None if search.expression else words)
    if isinstance(drawn, ScopeSample):
        statistics = replace(statistics, sample=drawn)
    return replace(statistics, unavailable=unavailable({"keyword": words, "dense": drawn}))


def unavailable(outcomes: Mapping[Branch, object]) -> dict[Branch, Unavailable]:
    """Return the errors of the branches that cannot run. Raises every other error."""
    for outcome in outcomes.values():
        if isinstance(outcome, BaseException) and not isinstance(outcome, Unavailable):
            raise outcome
    return {branch: outcome for branch, outcome in outcomes.items() if isinstance(outcome, Unavailable)}


async def _read_sample(memory: MemoryContext, search: Search, model: Model, known: ScopeSample | None) -> ScopeSample:
    """Return the sample of a scope, drawn by one statement unless it is known."""
    if known is not None:
        return known
    cache, namespaces = memory.statistics, frozenset(search.scope.namespaces)
    frequencies = cache.frequencies.get(namespaces)
    drawn = await memory.statements.sample(search.scope, model.id, texts=frequencies is None)
    if drawn.texts is not None:
        frequencies = cache.frequencies[namespaces] = SampledFrequencies.of(drawn.texts)
    line = LengthLine.through(drawn.vectors, drawn.sizes)
    frequencies = frequencies if drawn.many else None
    sample = ScopeSample(line, drawn.passages, drawn.length_ratio, frequencies, drawn.indexed)
    cache.samples[namespaces, model.id] = sample
    return sample


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
    read_as: ReadAs = (tuple(search.languages), ranking.saturation, ranking.length_prior)
    known = {} if corpus is None else corpus.common.get(read_as, {})
    unknown = [piece for piece in dict.fromkeys(pieces) if piece not in known]
    read = Lexemes({}, {}, {})
    if unknown or terms or corpus is None:
        asked = LexemeQuery(unknown, list(terms), search.languages, bound, ranking.saturation, ranking.length_prior)
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


def with_former(query: QueryStatistics, read: Lexemes = Lexemes({}, {}, {})) -> QueryStatistics:
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
    documents, places, sums = dict(asked.documents), dict(asked.places), dict(asked.sums)
    stems = {word: spelling.stem for word, spelling in asked.spelled.items()}
    for lexeme, count in asked.documents.items():
        if count >= bound:  # the documents that were not counted have the mean of the others
            factor = estimated_documents(count, total=corpus.total, bound=bound) / count
            score, sized = sums[lexeme]
            sums[lexeme] = score * factor, sized * factor
    for piece in places_of.keys() - set(unknown):
        for lexeme, count, held, spellings in known[piece][0]:
            documents[lexeme] = min(count, bound)
            places[lexeme] = sorted({*places.get(lexeme, ()), *places_of[piece]})
            sums[lexeme] = held
            stems |= dict.fromkeys(spellings, lexeme)
    stems = {word: stem for word, stem in stems.items() if word not in documents}
    alone = () if documents else tuple(dict.fromkeys(word for item in functions.values() for word in item.words))
    return QueryStatistics(documents, corpus, places, sums, stems, alone)


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
    return Lexemes(documents, places, {lexeme: read.sums[lexeme] for lexeme in documents}, spelled)


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
        return Bm25(weights, rarest * len(weights), query, ranking.saturation, ranking.length_prior)
    weights = lexeme_weights(query.documents, total=corpus.total, budget=ranking.postings_budget, bound=bound)
    weights |= {term: weights[term] * share for term, share in terms.items() if term in weights}
    weights |= {word: weights[stem] for word, stem in query.stems.items() if stem in weights}
    repetitions = _repetition_factors(query)
    # All words count, held by a memory or not, without the date terms.
    total_weight = sum(
        inverse_document_frequency(count, corpus.total) * repetitions.get(lexeme, 1.0)
        for lexeme, count in query.documents.items()
        if not lexeme.startswith("@")
    )
    mean, slope = score_line(
        {lexeme: weight * repetitions.get(lexeme, 1.0) for lexeme, weight in weights.items()},
        query.sums,
        total=corpus.total,
        mean_size=corpus.mean_size,
        size_variance=corpus.size_variance,
    )
    return Bm25(weights, total_weight, query, ranking.saturation, ranking.length_prior, mean, slope, repetitions)


def _repetition_factors(query: QueryStatistics) -> dict[str, float]:
    """Return the factors of the words that the question repeats, as they are spelled too."""
    factors = {lexeme: repetition_factor(len(places)) for lexeme, places in query.places.items() if len(places) > 1}
    return factors | {word: factors[stem] for word, stem in query.stems.items() if stem in factors}
