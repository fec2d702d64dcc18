"""The keyword branch: rare words first, or the expression the question is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import NOTHING, Bm25, Form, Hits, Lexemes, Measures, Reading, Scope
from folklore.memory.context import MemoryContext
from folklore.memory.recall.corpus_statistics import Measured, Read, Way
from folklore.ranking.length import score_line
from folklore.ranking.standard_scores import question_mass, taken_for, weigh
from folklore.ranking.weights import Ranking
from folklore.text.dates.date_terms import date_terms
from folklore.text.query.parser import KeywordQuery, Term
from folklore.text.query.tsquery import to_tsquery_text

# Of the memories that satisfy an expression, so many of the newest are ranked.
_RANKED = 10_000
# Of a very long question, so many words are read.
_PIECES = 512


async def read_question(
    library: MemoryContext,
    statements: RecallStatements,
    scope: Scope,
    query: KeywordQuery,
    languages: Sequence[str],
    ranking: Ranking,
) -> tuple[Bm25, Measured]:
    """Weigh the words of a question in scope, with the measures of the scope. One statement at most."""
    bound = ranking.bound(len(query.bag))
    marks = date_terms(query.bag)
    measured = library.measured.get(scope.namespaces)
    way: Way = (tuple(languages), ranking.saturation, ranking.length_prior)
    known = {} if measured is None else measured.known(way)
    pieces = pieces_of(query)
    unknown = list(dict.fromkeys(piece for piece in pieces if piece not in known))
    read = Lexemes({}, {}, {})
    if unknown or marks or measured is None:
        read, measures = await statements.lexemes(
            scope,
            pieces=unknown,
            marks=list(marks),
            languages=languages,
            bound=bound,
            saturation=ranking.saturation,
            prior=ranking.length_prior,
            mean_length=None if measured is None else measured.measures.mean_length,
            measure=measured is None,
        )
        if measures is not None:
            measured = Measured(measures)
            library.measured.put(scope.namespaces, measured)
        assert measured is not None
        measured.learn(way, unknown, read, bound)
    assert measured is not None
    whole = measured.measures
    reading = _joined(pieces, unknown, read, known, bound, whole)
    return _bm25(reading, ranking, bound, marks), measured


def _joined(
    pieces: Sequence[str], unknown: Sequence[str], read: Lexemes, known: Mapping[str, Read], bound: int, whole: Measures
) -> Reading:
    """What was read now and what was known before, with places in the whole question."""
    places_of: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        places_of.setdefault(piece, []).append(place)
    documents = dict(read.documents)
    places = {
        lexeme: sorted(place for piece in found for place in places_of[unknown[piece]])
        for lexeme, found in read.places.items()
    }
    sums = dict(read.sums)
    spelled = {word: spelling.stem for word, spelling in read.spelled.items() if spelling.documents}
    for lexeme, count in read.documents.items():
        if count >= bound:  # those that were not counted say on average what the others do
            more = taken_for(count, total=whole.total, bound=bound) / count
            evidence, sized = sums[lexeme]
            sums[lexeme] = evidence * more, sized * more
    for piece in places_of.keys() - set(unknown):
        for lexeme, count, held, words in known[piece]:
            documents[lexeme] = min(count, bound)
            places[lexeme] = sorted({*places.get(lexeme, ()), *places_of[piece]})
            sums[lexeme] = held
            spelled |= dict.fromkeys(words, lexeme)
    spelled = {word: stem for word, stem in spelled.items() if word not in documents}
    return Reading(
        documents, whole.total, whole.mean_length, whole.mean_size, whole.size_variance, places, sums, spelled
    )


def pieces_of(query: KeywordQuery) -> list[str]:
    """The question between white space; of a very long one the beginning."""
    return query.bag.split()[:_PIECES]


async def expression_hits(
    statements: RecallStatements,
    scope: Scope,
    query: KeywordQuery,
    *,
    languages: Sequence[str],
    ranking: Ranking,
    fetch: int,
) -> tuple[Hits, Bm25 | None]:
    """What satisfies the query's expression, and how its words weigh. Two statements, one after the other."""
    bound = ranking.bound(len(query.bag))
    forms, total, mean_length = await statements.terms(
        scope,
        terms=[term.text for term in query.terms],
        columns=[term.column or "" for term in query.terms],
        languages=languages,
        bound=bound,
    )
    expression = to_tsquery_text(query, [_forms_of(place, forms) for place in range(len(query.terms))])
    if not expression:
        return NOTHING, None
    documents, spelled = _evidence_of([form for form in forms if _speaks(query.terms[form.term])])
    bm25 = _bm25(Reading(documents, total, mean_length, spelled=spelled), ranking, bound)
    hits = await statements.expression(scope, expression=expression, bm25=bm25, fetch=fetch, bound=_RANKED)
    return hits, bm25


def _speaks(term: Term) -> bool:
    """Whether memories that hold it are to be preferred for it. Of sources the postings do not tell who holds what."""
    return not term.negated and term.column != "source"


def _evidence_of(forms: Iterable[Form]) -> tuple[dict[str, int], dict[str, str]]:
    """In how many memories each lexeme is, and which spellings stand for which; a stem counts with its spellings."""
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


def _bm25(reading: Reading, ranking: Ranking, bound: int, marks: Mapping[str, float] | None = None) -> Bm25:
    weights = weigh(reading.documents, total=reading.total, budget=ranking.postings_budget, bound=bound)
    for mark, share in (marks or {}).items():
        if mark in weights:
            weights[mark] *= share
    weights |= {word: weights[stem] for word, stem in reading.spelled.items() if stem in weights}
    mass = question_mass(reading.documents, total=reading.total)
    mean, slope = score_line(
        weights,
        reading.sums,
        total=reading.total,
        mean_size=reading.mean_size,
        size_variance=reading.size_variance,
    )
    return Bm25(weights, mass, reading, ranking.saturation, ranking.length_prior, mean, slope)


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
