"""Words of a question with their document frequencies in a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from folklore.db.stores.postings import PostingStore
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import Bm25, FunctionWords, QueryStatistics, Scope
from folklore.db.stores.recall_words import Analysed, ScopeWords
from folklore.errors import FolkloreError
from folklore.memory.recall.values import Search
from folklore.ranking.numbers import K1, B
from folklore.ranking.statistics import inverse_document_frequency, lexeme_weights
from folklore.ranking.weights import Ranking
from folklore.telemetry import stage
from folklore.text.dates.date_terms import date_terms
from folklore.text.languages import detect
from folklore.text.query.question import without_contractions

if TYPE_CHECKING:
    from folklore.memory.context import MemoryContext

# A question that reads the words of so many fresh memories has them packed.
_FRESH = 1_000


async def read_pieces(
    memory: MemoryContext,
    statements: RecallStatements,
    scope: Scope,
    pieces: Sequence[str],
    languages: Sequence[str],
    *,
    terms: Sequence[str] = (),
    budget: int = Ranking().postings_budget,
) -> tuple[dict[str, Sequence[Analysed]], ScopeWords]:
    """Return the lexemes of pieces of a question, and them and other `terms` in scope. One statement."""
    cache, read_as = memory.statistics.pieces, tuple(languages)
    analysed = {piece: found for piece in pieces if (found := cache.get((read_as, piece))) is not None}
    unknown = [piece for piece in dict.fromkeys(pieces) if piece not in analysed]
    known = {item.lexeme for found in analysed.values() for item in found}
    words = await statements.words(scope, unknown, [*known, *terms], languages, budget)
    for piece, found in zip(unknown, words.analysed, strict=True):
        analysed[piece] = cache[read_as, piece] = found
    return analysed, words


async def read_words(memory: MemoryContext, statements: RecallStatements, search: Search) -> tuple[Bm25, ScopeWords]:
    """Return the weighted words of a question, and them in scope. One statement."""
    ranking, terms, typed = search.ranking, date_terms(search.query.bag), search.pieces
    pieces = [without_contractions(piece) for piece in typed]
    pieces = pieces if any(pieces) else list(typed)
    # Of the question's own language too: in others its function words are words that few memories hold.
    budget, own = ranking.postings_budget, detect(" ".join(typed))
    languages = sorted({*search.languages, *([own] if own else ())})
    with stage("recall.words"):
        analysed, words = await read_pieces(
            memory, statements, search.scope, pieces, languages, terms=list(terms), budget=budget
        )
    memory.statistics.totals[search.scope.key] = words.corpus.total
    if len(words.fresh_ids) > 16 * _FRESH and "packed" not in memory.statistics.packed:
        memory.statistics.packed["packed"] = True
        memory.go_on(_pack(PostingStore(memory.root.database)))
    functions = {piece: found for piece in analysed if (found := _function_words(analysed[piece], languages))}
    left_out = _function_pieces(pieces, functions)
    kept = [(place, analysed[piece]) for place, piece in enumerate(pieces) if piece not in left_out]
    query = lexemes_of(kept, words, several=len(languages) > 1)
    documents = dict(query.documents) | {term: words.documents(term) for term in terms}
    alone = () if documents else tuple(dict.fromkeys(word for item in functions.values() for word in item.words))
    query = replace(query, documents=documents, functions=alone)
    if search.scope.filters.as_of is not None:
        query = with_former(query)
    else:
        query = replace(query, stems={word: stem for word, stem in query.stems.items() if words.documents(word)})
    return weighted_words(query, ranking, terms), words


async def _pack(postings: PostingStore) -> None:
    with suppress(FolkloreError):  # the job tries again
        for namespace in (await postings.due())[0]:
            while await postings.pack(namespace):
                pass


def lexemes_of(
    pieces: Sequence[tuple[int, Sequence[Analysed]]], words: ScopeWords, *, several: bool
) -> QueryStatistics:
    """Return the lexemes of pieces at their places, with their document frequencies.

    A word may have several lexemes: of each of `several` languages, with and without accents, and as it is spelled,
    which is how tags are kept. The one that most memories hold is its stem, and counts those of the others.
    """
    stems: dict[tuple[int, int], str] = {}
    places: dict[str, dict[int, None]] = {}
    others: dict[str, list[str]] = {}
    for place, analysed in pieces:
        for item in sorted(analysed, key=lambda item: (-words.documents(item.lexeme) if several else 0, item.lexeme)):
            if item.kind == "compound" or (
                item.kind == "word" and stems.setdefault((place, item.position), item.lexeme) == item.lexeme
            ):
                places.setdefault(item.lexeme, {})[place] = None
        for item in analysed:
            if item.kind != "compound" and (place, item.position) in stems:
                others.setdefault(item.lexeme, []).append(stems[place, item.position])
    documents = {lexeme: words.documents(lexeme) for lexeme in places}
    represented = {word: min(found) for word, found in others.items() if word not in documents}
    for word, stem in represented.items():
        documents[stem] += words.documents_without(word, stem)
    return QueryStatistics(documents, words.corpus, {word: list(of) for word, of in places.items()}, represented)


def with_former(query: QueryStatistics) -> QueryStatistics:
    """Return the statistics with a document for words that no text holds now: a former text may hold them."""
    return replace(query, documents={lexeme: max(count, 1) for lexeme, count in query.documents.items()})


def _function_words(analysed: Sequence[Analysed], languages: Sequence[str]) -> FunctionWords | None:
    """Return the words of a piece that has function words alone in some of the languages."""
    kinds = {(item.kind, item.language) for item in analysed}
    alone = frozenset(language for language in languages if ("word", language) not in kinds)
    words = tuple(f"={item.lexeme}" for item in analysed if item.kind == "spelled")
    return FunctionWords(words, alone) if words and alone and ("compound", "") not in kinds else None


def _function_pieces(pieces: Sequence[str], functions: Mapping[str, FunctionWords]) -> set[str]:
    """Return the pieces that are function words in the language of the question: that in which most pieces are.

    Elsewhere they may be words that few memories hold: English `war` is a function word in German, and `the` is rare in
    German memories.
    """
    counts = Counter(language for piece in pieces if piece in functions for language in functions[piece].languages)
    most = max(counts.values(), default=0)
    languages = {language for language, count in counts.items() if count == most}
    return {piece for piece, words in functions.items() if not languages.isdisjoint(words.languages)}


def weighted_words(query: QueryStatistics, ranking: Ranking, terms: Mapping[str, float] = {}) -> Bm25:
    """Return the question as the keyword statements score it; `terms` are date terms with their shares."""
    corpus = query.corpus
    if query.functions:  # their frequencies are unknown; they are all that the question asks for
        rarest = inverse_document_frequency(0, corpus.total)
        weights = dict.fromkeys(query.functions, rarest)
        return Bm25(weights, rarest * len(weights), query, K1, B)
    weights = lexeme_weights(query.documents, total=corpus.total, budget=ranking.postings_budget)
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
