"""The keyword branch: rare words first, or the expression the question is."""

from __future__ import annotations

from collections.abc import Sequence

from folklore.db.recall import NOTHING, Form, Hits, Scope
from folklore.memory.library import Library
from folklore.ranking.evidence import weigh
from folklore.ranking.weights import Ranking
from folklore.text.query import KeywordQuery
from folklore.text.tsquery import to_tsquery_text

# Of the memories that satisfy an expression, so many of the newest are ranked.
_RANKED = 10_000


async def keyword_hits(
    library: Library,
    scope: Scope,
    query: KeywordQuery,
    *,
    languages: Sequence[str],
    total: int,
    ranking: Ranking,
    fetch: int,
) -> Hits:
    """What the words of the query find in scope, of `total` memories. Two statements, one after the other."""
    bound = ranking.bound(len(query.bag))
    if query.expert and not query.only_alternatives:
        return await _expression(library, scope, query, languages, total, ranking, fetch, bound)
    documents = await library.statements.lexemes(scope, text=query.bag, languages=languages, bound=bound)
    weights = weigh(documents, total=total, budget=ranking.postings_budget, bound=bound)
    if not weights:
        return NOTHING
    return await library.statements.keyword(
        scope, weights=weights, prior=ranking.length_prior, fetch=fetch, known=ranking.known
    )


async def _expression(
    library: Library,
    scope: Scope,
    query: KeywordQuery,
    languages: Sequence[str],
    total: int,
    ranking: Ranking,
    fetch: int,
    bound: int,
) -> Hits:
    forms = await library.statements.terms(
        scope, terms=[term.text for term in query.terms], languages=languages, bound=bound
    )
    expression = to_tsquery_text(query, [_forms_of(place, forms) for place in range(len(query.terms))])
    if not expression:
        return NOTHING
    documents = {
        lexeme: count
        for form in forms
        if not query.terms[form.term].negated
        for lexeme, count in zip(form.lexemes, form.documents, strict=True)
    }
    weights = weigh(documents, total=total, budget=ranking.postings_budget, bound=bound)
    return await library.statements.expression(
        scope, expression=expression, weights=weights, prior=ranking.length_prior, fetch=fetch, bound=_RANKED
    )


def _forms_of(place: int, forms: Sequence[Form]) -> list[list[str]]:
    """The readings of one term, an empty text where a word has no lexeme."""
    readings = []
    for form in forms:
        if form.term == place:
            reading = [""] * (form.positions[-1] - form.positions[0] + 1)
            for lexeme, position in zip(form.lexemes, form.positions, strict=True):
                reading[position - form.positions[0]] = lexeme
            readings.append(reading)
    return readings
