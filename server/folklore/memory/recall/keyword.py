"""The keyword branch: BM25 over the rarest words of the question, or the expression that the question is."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter

from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import NOTHING, Bm25, QueryStatistics, TermForm
from folklore.db.stores.recall_words import ScopeWords
from folklore.errors import Unavailable
from folklore.memory.context import MemoryContext
from folklore.memory.recall.corpus_statistics import read_words, weighted_words, with_former
from folklore.memory.recall.values import KeywordResult, Search, Terms
from folklore.telemetry import stage
from folklore.text.query.parser import Term
from folklore.text.query.tsquery import SPELLED, to_negations, to_tsquery_text, without_last_characters

# Number of the rarest words of a question that are distinguished: one bit each, in a bigint.
_MAX_WORDS = 62
# Memories that satisfy an expression, the newest first, of which the best are found.
_NEWEST = 10_000
# Around words of a question.
_PUNCTUATION = ".,;:!?\"'()[]{}<>`*…“”‘’«»"


async def keyword_branch(memory: MemoryContext, search: Search) -> KeywordResult:
    """Find memories by the words of the question; the words alone if the branch has no weight. Raises Unavailable.

    The statements follow each other on one connection.
    """
    started, searched = perf_counter(), "keyword" in search.branches
    statements = memory.statements.pinned()
    try:
        with stage("recall.keyword"):
            if search.expression:
                result = await _expression(memory, statements, search) if searched else KeywordResult(NOTHING)
            else:
                words, in_scope = await read_words(memory, statements, search)
                alone = search.question.literal or len(search.pieces) == 1
                if searched and words.query.functions and alone:  # nothing else is asked for
                    result = await _function_words(statements, search, words)
                else:
                    fetched, any_word = search.ranking.fetch(search.wanted), words.weights and not words.query.functions
                    scored = searched and any_word
                    hits = await statements.keyword(search.scope, words, in_scope, fetched) if scored else NOTHING
                    result = KeywordResult(hits, words=words)
    finally:
        await statements.release()
    return KeywordResult(result.hits, (perf_counter() - started) * 1e3, result.words)


async def read_terms(memory: MemoryContext, search: Search) -> Search:
    """Return a question with an expression and the terms of it, excluding in every statement what the expression does.

    One statement. If it fails, an expression without exclusions is left to the other branch. Raises Unavailable.
    """
    query = search.query
    columns = [(term.text, term.column or "") for term in query.terms]
    try:
        forms = await memory.statements.terms(columns, search.languages)
    except Unavailable:
        if any(term.negated for term in query.terms):
            raise
        return search
    lexemes = [_alternatives(place, term, forms) for place, term in enumerate(query.terms)]
    filters = replace(search.scope.filters, negations=to_negations(query, lexemes))
    terms = Terms(forms, to_tsquery_text(query, lexemes))
    return replace(search, terms=terms, scope=replace(search.scope, filters=filters))


async def _expression(memory: MemoryContext, statements: RecallStatements, search: Search) -> KeywordResult:
    """Find memories that satisfy the query's expression. One statement."""
    query, ranking, terms = search.query, search.ranking, search.terms
    if terms is None:
        raise Unavailable("The words of the expression could not be read.")
    if not terms.expression:
        return KeywordResult(NOTHING)
    # Memories that hold a term are preferred for it. Postings do not contain sources.
    weighed = [place for place, term in enumerate(query.terms) if not term.negated and term.column != "source"]
    forms = [form for form in terms.forms if form.term in weighed]
    lexemes = {lexeme for form in forms for lexeme in (*form.lexemes, *form.stems) if lexeme}
    words_in_scope = await statements.words(search.scope, (), list(lexemes), (), ranking.postings_budget)
    statistics = _frequencies(forms, words_in_scope)
    if search.scope.filters.as_of is not None:
        statistics = with_former(statistics)
    words = weighted_words(statistics, ranking)
    hits = await statements.expression(search.scope, terms.expression, words, ranking.fetch(search.wanted), _NEWEST)
    return KeywordResult(hits, words=words)


async def _function_words(statements: RecallStatements, search: Search, words: Bm25) -> KeywordResult:
    """Find memories by the words of a question of function words alone. One statement."""
    typed = (piece.strip(_PUNCTUATION) for piece in search.pieces)
    capitals = [word for word in typed if word != word.lower()]
    hits = await statements.function_words(search.scope, words, capitals, search.ranking.fetch(search.wanted), _NEWEST)
    documents = {
        word: sum(bits >> place & 1 for bits in hits.words)
        for place, word in enumerate(islice(words.weights, _MAX_WORDS))
    }
    return KeywordResult(hits, words=replace(words, query=replace(words.query, documents=documents)))


def _frequencies(forms: Sequence[TermForm], words: ScopeWords) -> QueryStatistics:
    """Return the document frequency of each lexeme, those of its spellings included, and the stems of spellings."""
    lexemes = {word for form in forms if not form.spelled for word in form.lexemes if not word.startswith(SPELLED)}
    documents = {word: words.documents(word) for word in lexemes}
    spelled = {
        word: stem
        for form in forms
        for word, stem in zip(form.lexemes, form.stems, strict=form.spelled)
        if stem not in (None, word) and word not in documents and words.documents(word)
    }
    for word, stem in spelled.items():
        documents[stem] += words.documents_without(word, stem)
    return QueryStatistics(documents, words.corpus, stems=spelled)


def _alternatives(place: int, term: Term, forms: Sequence[TermForm]) -> list[list[str]]:
    """Return the forms of one term by position, an empty text where a word has no lexeme.

    The last word of a prefix is read as it is spelled. A term for the tags or for any column is read as it is spelled
    too, unless it has function words alone.
    """
    spellings = [form for form in forms if form.term == place]
    spelled = next((_in_order(form) for form in spellings if form.spelled), [])
    alternatives = [_in_order(form) for form in spellings if not form.spelled]
    has_stem = any(stem is not None for form in spellings if form.spelled for stem in form.stems)
    if term.prefix and spelled:
        last = spelled[-1].removeprefix(SPELLED)
        return [[*form[:-1], word] for form in [*alternatives, spelled] for word in (SPELLED + last, last)]
    if term.column is None and has_stem:
        alternatives.append(spelled)
    return [without_last_characters(form) for form in alternatives]


def _in_order(form: TermForm) -> list[str]:
    lexemes = [""] * (form.positions[-1] - form.positions[0] + 1)
    for lexeme, position in zip(form.lexemes, form.positions, strict=True):
        lexemes[position - form.positions[0]] = lexeme
    return lexemes
