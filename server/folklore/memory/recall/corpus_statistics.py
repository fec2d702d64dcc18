"""Words of a question with their document frequencies in a scope."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from folklore.db.rows import in_cues
from folklore.db.stores.postings import PostingStore
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import (
    Bm25,
    CueForms,
    CueWeight,
    QueryStatistics,
    Scope,
)
from folklore.db.stores.recall_words import Analysed, ScopeWords
from folklore.errors import FolkloreError
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import Search
from folklore.ranking.numbers import CUE_WORDS, K1, B
from folklore.ranking.statistics import inverse_document_frequency, lexeme_weights
from folklore.ranking.weights import Ranking
from folklore.telemetry import stage
from folklore.text.dates.date_terms import date_terms
from folklore.text.languages import detect
from folklore.text.query.question import without_contractions

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
    cache = memory.statistics.pieces
    read_as = tuple(languages)
    analysed = {
        piece: found
        for piece in pieces
        if (found := cache.get((read_as, piece))) is not None
    }
    unknown = [piece for piece in dict.fromkeys(pieces) if piece not in analysed]
    known = {item.lexeme for found in analysed.values() for item in found}
    words = await statements.words(scope, unknown, [*known, *terms], languages, budget)
    for piece, found in zip(unknown, words.analysed, strict=True):
        analysed[piece] = cache[read_as, piece] = found
    return analysed, words


async def read_words(
    memory: MemoryContext, statements: RecallStatements, search: Search
) -> tuple[Bm25, ScopeWords]:
    """Return the weighted words of a question, and them in scope. One statement."""
    terms = date_terms(search.query.bag)
    typed = search.pieces
    ranking = search.ranking
    pieces = [without_contractions(piece) for piece in typed]
    pieces = pieces if any(pieces) else list(typed)
    # Of the question's own language too: in others its function words are words that few memories hold.
    languages = sorted(filter(None, {*search.languages, detect(" ".join(typed))}))
    with stage("recall.words"):
        analysed, words = await read_pieces(
            memory,
            statements,
            search.scope,
            pieces,
            languages,
            terms=list(terms),
            budget=ranking.postings_budget,
        )
    memory.statistics.totals[search.scope.key] = words.corpus.total
    if len(words.fresh_ids) > 16 * _FRESH and "packed" not in memory.statistics.packed:
        memory.statistics.packed["packed"] = True
        memory.go_on(_pack(PostingStore(memory.root.database)))
    functions = _function_words(pieces, analysed, languages)
    others = {
        place: analysed[piece]
        for place, piece in enumerate(pieces)
        if piece not in functions
    }
    former = search.scope.filters.as_of is not None
    query = lexemes_of(others, words, terms, several=len(languages) > 1, former=former)
    if not query.documents:
        query = replace(
            query,
            functions=tuple(dict.fromkeys(chain.from_iterable(functions.values()))),
        )
    return weighted_words(query, ranking, terms), words


async def _pack(postings: PostingStore) -> None:
    with suppress(FolkloreError):  # the job tries again
        for namespace in (await postings.due())[0]:
            while await postings.pack(namespace):
                pass


def lexemes_of(
    pieces: Mapping[int, Sequence[Analysed]],
    words: ScopeWords,
    terms: Iterable[str],
    *,
    several: bool,
    former: bool,
) -> QueryStatistics:
    """Return the lexemes of pieces by their places, and other terms, with their document frequencies.

    A word may have several lexemes: of each language, with and without accents, and as it is spelled, which is how tags
    are kept. One of them is its stem, and counts the documents of the others: with `several` languages that which most
    memories hold, else, and of equal ones, the first by the alphabet. Parts that are joined count if a memory holds
    them so; with `former`, for a question about an earlier time, always.
    """
    # The keys of a dictionary without values are a set that keeps its order.
    places: dict[str, dict[int, None]] = {}
    forms: dict[str, dict[str, None]] = {}
    stem_of: dict[str, str] = {}

    def preference(item: Analysed) -> tuple[int, str]:
        most_first = -words.documents(item.lexeme) if several else 0
        return most_first, item.lexeme

    for place, analysed in pieces.items():
        ordered = sorted(analysed, key=preference)
        stem_at: dict[int, str] = {}
        for item in ordered:
            if item.kind == "word":
                stem_at.setdefault(item.position, item.lexeme)

        for item in ordered:
            if item.kind == "joined":
                is_counted = former or words.documents(item.lexeme) > 0
            else:
                is_stem = stem_at.get(item.position) == item.lexeme
                is_counted = is_stem or item.kind == "compound"
            if is_counted:
                places.setdefault(item.lexeme, {})[place] = None

        for item in analysed:
            stem = stem_at.get(item.position)
            if stem is not None:
                # Of the stems that two pieces have for one lexeme, the first by the alphabet.
                stem_of[item.lexeme] = min(stem_of.get(item.lexeme, stem), stem)
            is_name = item.kind in ("compound", "joined")
            word = item.lexeme if is_name else stem
            if word is not None:
                forms.setdefault(word, {})[in_cues(item.lexeme)] = None
    return replace(
        statistics_of([*places, *terms], stem_of, words, former=former),
        places=places,
        cues=held_in_cues(forms, words, former=former),
    )


def held_in_cues(
    forms: Mapping[str, Iterable[str]], words: ScopeWords, *, former: bool
) -> dict[str, CueForms]:
    """Return the words that cues hold; with `former` all, which former cues may hold."""
    held: dict[str, CueForms] = {}
    for word, lexemes in forms.items():
        documents = {lexeme: words.documents(lexeme) for lexeme in lexemes}
        found = [lexeme for lexeme, count in documents.items() if count or former]
        if found:
            held[word] = CueForms(found, max(documents.values()))
    return held


def statistics_of(
    lexemes: Iterable[str], stems: Mapping[str, str], words: ScopeWords, *, former: bool
) -> QueryStatistics:
    """Return the document frequencies of lexemes, those of further words included of which a lexeme is the stem.

    With `former`, words that no text holds now count one document: a former text may hold them.
    """
    documents = {lexeme: words.documents(lexeme) for lexeme in lexemes}
    further = [
        word
        for word in stems
        if word not in documents and (former or words.documents(word))
    ]
    for word in further:
        documents[stems[word]] += words.documents_without(word, stems[word])
    if former:
        documents = {lexeme: max(count, 1) for lexeme, count in documents.items()}
    return QueryStatistics(
        documents, words.corpus, stems={word: stems[word] for word in further}
    )


def rarities(query: QueryStatistics, pieces: int) -> list[float]:
    """Return the rarity among the memories of each piece of a question: that of its rarest lexeme."""
    rarest = [0.0] * pieces
    for lexeme, places in query.places.items():
        rarity = inverse_document_frequency(
            query.documents.get(lexeme, 0), query.corpus.total
        )
        for place in places:
            rarest[place] = max(rarest[place], rarity)
    return rarest


def _function_words(
    pieces: Sequence[str],
    analysed: Mapping[str, Sequence[Analysed]],
    languages: Sequence[str],
) -> dict[str, Sequence[str]]:
    """Return the pieces that are function words in the language of the question, each with its words after '='.

    It is the language in which most pieces are. Elsewhere they may be words that few memories hold: English `war` is a
    function word in German, and `the` is rare in German memories.
    """
    spoken = {
        piece: _languages_of(items, languages) for piece, items in analysed.items()
    }
    counts = Counter(chain.from_iterable(spoken[piece] for piece in pieces))
    main = {
        language for language, count in counts.items() if count == max(counts.values())
    }
    return {
        piece: [f"={item.lexeme}" for item in items if item.kind == "spelled"]
        for piece, items in analysed.items()
        if not main.isdisjoint(spoken[piece])
    }


def _languages_of(analysed: Sequence[Analysed], languages: Sequence[str]) -> set[str]:
    """Return the languages in which a piece has function words alone."""
    kinds = {item.kind for item in analysed}
    if "spelled" not in kinds or "compound" in kinds:
        return set()
    return set(languages) - {item.language for item in analysed if item.kind == "word"}


def weighted_words(
    query: QueryStatistics, ranking: Ranking, terms: Mapping[str, float] = {}
) -> Bm25:
    """Return the question as the keyword statements score it; `terms` are date terms with their shares."""
    corpus = query.corpus
    # their frequencies are unknown; they are all that the question asks for
    if query.functions:
        rarest = inverse_document_frequency(0, corpus.total)
        weights = dict.fromkeys(query.functions, rarest)
        return Bm25(weights, rarest * len(weights), query, K1, B)
    weights = lexeme_weights(
        query.documents, total=corpus.total, budget=ranking.postings_budget
    )
    weights |= {
        term: weights[term] * share for term, share in terms.items() if term in weights
    }
    # A word counts as often as the question has it.
    for lexeme, places in query.places.items():
        if lexeme in weights:
            weights[lexeme] *= len(places)
    weights |= {
        word: weights[stem] for word, stem in query.stems.items() if stem in weights
    }
    # All words count, held by a memory or not, without the date terms.
    total_weight = sum(
        inverse_document_frequency(count, corpus.total)
        * len(query.places.get(lexeme, " "))
        for lexeme, count in query.documents.items()
        if not lexeme.startswith("@")
    )
    cues = {
        lexeme: CueWeight(forms.lexemes, _cue_weight(lexeme, forms, query))
        for lexeme, forms in query.cues.items()
    }
    return Bm25(weights, total_weight, query, K1, B, cues)


def _cue_weight(lexeme: str, forms: CueForms, query: QueryStatistics) -> float:
    """Return the weight of a word in cues: no more than in the content, however few memories have cues."""
    documents = max(forms.documents, query.documents.get(lexeme, 0))
    rarity = inverse_document_frequency(documents, max(query.corpus.total, documents))
    occurrences = len(query.places.get(lexeme, ())) or 1
    return CUE_WORDS * rarity * occurrences
