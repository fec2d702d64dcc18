"""The keyword branch: BM25 over the rarest words of the question, or the expression that the question is."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter

from folklore.db.rows import in_cues
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_lexemes import ScopeLexemes
from folklore.db.stores.recall_rows import (
    NOTHING,
    Bm25,
    Hits,
    QueryStatistics,
    TermForm,
)
from folklore.errors import Unavailable
from folklore.memory.context import MemoryContext
from folklore.memory.recall.corpus_statistics import (
    bm25_of,
    held_in_cues,
    read_lexemes,
    statistics_of,
)
from folklore.memory.recall.values import BranchResult, Search
from folklore.telemetry import stage
from folklore.text.query.parser import Term
from folklore.text.query.tsquery import (
    SPELLED,
    to_negations,
    to_tsquery_text,
    without_last_characters,
)

# Number of the rarest words of a question that are distinguished: one bit each, in a bigint.
_MAX_WORDS = 62
# Memories that satisfy an expression, the newest first, of which the best are found.
_NEWEST = 10_000
# Around words of a question.
_PUNCTUATION = ".,;:!?\"'()[]{}<>`*…“”‘’«»"


async def keyword_branch(memory: MemoryContext, search: Search) -> BranchResult:
    """Find memories by the words of the question; the words alone if the branch has no weight. Raises Unavailable.

    The statements follow each other on one connection.
    """
    started = perf_counter()
    statements = memory.statements.pinned()
    find = _expression if search.expression else _question
    try:
        with stage("recall.keyword"):
            hits, bm25 = await find(memory, statements, search)
    finally:
        await statements.release()
    return BranchResult(hits, (perf_counter() - started) * 1e3, bm25=bm25)


async def read_terms(memory: MemoryContext, search: Search) -> Search:
    """Return a question with an expression and its tsquery, excluding in every statement what the expression does.

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
    lexemes = []
    for index, term in enumerate(query.terms):
        of_term = [form for form in forms if form.term == index]
        lexemes.append(_alternatives(term, of_term))
    filters = replace(search.scope.filters, negations=to_negations(query, lexemes))
    scope = replace(search.scope, filters=filters)
    return replace(
        search, forms=forms, tsquery=to_tsquery_text(query, lexemes), scope=scope
    )


async def _expression(
    memory: MemoryContext, statements: RecallStatements, search: Search
) -> tuple[Hits, Bm25 | None]:
    """Find memories that satisfy the query's expression. One statement; none if the branch has no weight."""
    if "keyword" not in search.branches:
        return NOTHING, None
    if search.tsquery is None:
        raise Unavailable("The words of the expression could not be read.")
    if not search.tsquery:
        return NOTHING, None
    # Memories that hold a term are preferred for it. Postings do not contain sources.
    ranking = search.ranking
    forms = []
    lexemes: set[str] = set()
    for form in search.forms:
        term = search.query.terms[form.term]
        if not term.negated and term.column != "source":
            forms.append(form)
            lexemes.update(filter(None, (*form.lexemes, *form.stems)))
    in_scope = await statements.lexemes(
        search.scope, (), list(lexemes), (), ranking.postings_budget
    )
    former = search.scope.filters.as_of is not None
    bm25 = bm25_of(_frequencies(forms, in_scope, former=former), ranking)
    fetched = ranking.fetch(search.wanted)
    return await statements.expression(
        search.scope, search.tsquery, bm25, in_scope, fetched, _NEWEST
    ), bm25


async def _question(
    memory: MemoryContext, statements: RecallStatements, search: Search
) -> tuple[Hits, Bm25]:
    """Find memories by the rarest words of the question, or by its function words if it is nothing else."""
    bm25, in_scope = await read_lexemes(memory, statements, search)
    fetched = search.ranking.fetch(search.wanted)
    if "keyword" not in search.branches or not (bm25.weights or bm25.cues):
        return NOTHING, bm25
    if not bm25.query.functions:
        return await statements.keyword(search.scope, bm25, in_scope, fetched), bm25

    # Function words alone are looked for only where they are surely meant.
    are_meant = search.question.literal or len(search.tokens) == 1
    if not are_meant:
        return NOTHING, bm25
    typed = [token.strip(_PUNCTUATION) for token in search.tokens]
    capitals = [word for word in typed if word != word.lower()]
    hits = await statements.function_words(
        search.scope, bm25, capitals, fetched, _NEWEST
    )
    return hits, _counted(bm25, hits)


def _counted(bm25: Bm25, hits: Hits) -> Bm25:
    """Return function words with the number of the hits that hold each."""
    documents = {}
    for bit, word in enumerate(islice(bm25.weights, _MAX_WORDS)):
        documents[word] = sum(bits >> bit & 1 for bits in hits.lexeme_bits)
    return replace(bm25, query=replace(bm25.query, documents=documents))


def _frequencies(
    forms: Sequence[TermForm], in_scope: ScopeLexemes, *, former: bool
) -> QueryStatistics:
    """Return the document frequency of each lexeme, those of its spellings included, and the stems of spellings."""
    lexemes: list[str] = []
    stems: dict[str, str] = {}
    for form in forms:
        if not form.spelled:
            lexemes += [it for it in form.lexemes if not it.startswith(SPELLED)]
        for lexeme, stem in zip(form.lexemes, form.stems, strict=form.spelled):
            if stem is None or stem == lexeme:
                continue
            if in_scope.documents(lexeme):
                stems[lexeme] = stem
    cue_forms = {lexeme: [in_cues(lexeme)] for lexeme in lexemes}
    return replace(
        statistics_of(lexemes, stems, in_scope, former=former),
        cues=held_in_cues(cue_forms, in_scope, former=former),
    )


def _alternatives(term: Term, forms: Sequence[TermForm]) -> list[list[str]]:
    """Return the forms of one term by position, an empty text where a word has no lexeme.

    The last word of a prefix is read as it is spelled. A term for the tags or for any column is read as it is spelled
    too, unless it has function words alone.
    """
    alternatives: list[list[str]] = []
    spelled: TermForm | None = None
    for form in forms:
        if form.spelled:
            spelled = form
        else:
            alternatives.append(_in_order(form))
    if spelled is not None and term.prefix:
        return _beginnings(forms, spelled.lexemes[-1].removeprefix(SPELLED))
    if spelled is not None and term.column is None and any(spelled.stems):
        alternatives.append(_in_order(spelled))
    return list(map(without_last_characters, alternatives))


def _beginnings(forms: Sequence[TermForm], last: str) -> list[list[str]]:
    """Return the forms of a prefix of which `last` is the last word, as it is spelled."""
    in_parts = []
    whole = []
    for form in forms:
        lexemes = _in_order(form)
        if form.whole:
            whole.append(lexemes)
        else:
            in_parts.append([*lexemes[:-1], SPELLED + last])
            in_parts.append([*lexemes[:-1], last])
    return in_parts + whole


def _in_order(form: TermForm) -> list[str]:
    """Return the lexemes of a form by position, an empty text where a word has none."""
    first = form.positions[0]
    lexemes = [""] * (form.positions[-1] - first + 1)
    for lexeme, position in zip(form.lexemes, form.positions, strict=True):
        lexemes[position - first] = lexeme
    return lexemes
