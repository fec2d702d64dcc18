"""The keyword branch: BM25 over the rarest words of the question, or the expression that the question is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter

from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import NOTHING, QueryStatistics, TermForm
from folklore.memory.context import MemoryContext
from folklore.memory.recall.corpus_statistics import read_words, weighted_words, with_former
from folklore.memory.recall.values import KeywordResult, Search, Statistics
from folklore.telemetry import stage
from folklore.text.query.tsquery import to_tsquery_text

# Memories that satisfy an expression, the newest first, of which the best are found.
_RANKED = 10_000


async def keyword_branch(memory: MemoryContext, search: Search, statistics: Statistics) -> KeywordResult:
    """Find memories by the words of the question; the words alone if the branch has no weight. Raises Unavailable.

    The statements follow each other on one connection.
    """
    if (error := statistics.unavailable.get("keyword")) is not None:
        raise error
    started, searched = perf_counter(), "keyword" in search.branches
    statements = memory.statements.pinned()
    try:
        with stage("recall.keyword"):
            if search.expression:
                found = await _expression(statements, search) if searched else KeywordResult(NOTHING)
            else:
                words = statistics.words or await read_words(memory, statements, search)
                fetched = search.ranking.fetch(search.wanted)
                hits = await statements.keyword(search.scope, words, fetched) if searched and words.weights else NOTHING
                found = KeywordResult(hits, words=words)
    finally:
        await statements.release()
    return KeywordResult(found.hits, (perf_counter() - started) * 1e3, found.words)


async def _expression(statements: RecallStatements, search: Search) -> KeywordResult:
    """Find memories that satisfy the query's expression. Two statements, one after the other."""
    query, ranking = search.query, search.ranking
    bound = ranking.count_bound(len(query.bag))
    forms, corpus = await statements.terms(
        search.scope, [(term.text, term.column or "") for term in query.terms], search.languages, bound
    )
    expression = to_tsquery_text(query, [_alternatives(place, forms) for place in range(len(query.terms))])
    if not expression:
        return KeywordResult(NOTHING)
    # Memories that hold a term are preferred for it. Postings do not contain sources.
    weighed = [place for place, term in enumerate(query.terms) if not term.negated and term.column != "source"]
    documents, stems = _frequencies([form for form in forms if form.term in weighed])
    statistics = QueryStatistics(documents, corpus, stems=stems)
    if search.scope.filters.as_of is not None:
        statistics = with_former(statistics)
    words = weighted_words(statistics, ranking, bound)
    hits = await statements.expression(search.scope, expression, words, ranking.fetch(search.wanted), _RANKED)
    return KeywordResult(hits, words=words)


def _frequencies(forms: Iterable[TermForm]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the document frequency of each lexeme, those of its spellings included, and the stems of spellings."""
    documents: dict[str, int] = {}
    spelled: dict[str, tuple[str, int]] = {}
    for form in forms:
        if form.stems:
            spelled |= {
                word: (stem, count)
                for word, stem, count in zip(form.lexemes, form.stems, form.documents, strict=True)
                if stem not in (None, word) and count
            }
        else:
            documents |= zip(form.lexemes, form.documents, strict=True)
    spelled = {word: (stem, count) for word, (stem, count) in spelled.items() if word not in documents}
    for stem, count in spelled.values():
        documents[stem] += count
    return documents, {word: stem for word, (stem, _) in spelled.items()}


def _alternatives(place: int, forms: Sequence[TermForm]) -> list[list[str]]:
    """Return the forms of one term by position, an empty text where a word has no lexeme."""
    alternatives = []
    for form in forms:
        if form.term == place:
            lexemes = [""] * (form.positions[-1] - form.positions[0] + 1)
            for lexeme, position in zip(form.lexemes, form.positions, strict=True):
                lexemes[position - form.positions[0]] = lexeme
            alternatives.append(lexemes)
    return alternatives
