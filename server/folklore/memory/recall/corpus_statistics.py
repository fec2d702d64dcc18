"""Lexemes of a question with their document frequencies in a scope."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from folklore.db.rows import in_cues
from folklore.db.stores.postings import PostingStore
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_lexemes import Analysed, ScopeLexemes
from folklore.db.stores.recall_rows import (
    Bm25,
    CueForms,
    CueWeight,
    QueryStatistics,
    Scope,
)
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

# A question that reads the lexemes of so many fresh memories has them packed.
_FRESH = 1_000
_BYTES_OF_ID = 16
# Kinds of lexemes that are names, found in cues by themselves and not by their stem.
_NAMES = ("compound", "joined")


async def read_tokens(
    memory: MemoryContext,
    statements: RecallStatements,
    scope: Scope,
    tokens: Sequence[str],
    languages: Sequence[str],
    *,
    terms: Sequence[str] = (),
    budget: int = Ranking().postings_budget,
) -> tuple[dict[str, Sequence[Analysed]], ScopeLexemes]:
    """Return the lexemes of tokens of a question, and them and other `terms` in scope. One statement."""
    cache = memory.statistics.tokens
    read_as = tuple(languages)
    analysed: dict[str, Sequence[Analysed]] = {}
    unknown: list[str] = []
    lexemes: set[str] = set()
    for token in dict.fromkeys(tokens):
        cached = cache.get((read_as, token))
        if cached is None:
            unknown.append(token)
        else:
            analysed[token] = cached
            lexemes.update(item.lexeme for item in cached)

    in_scope = await statements.lexemes(
        scope, unknown, [*lexemes, *terms], languages, budget
    )
    for token, read in zip(unknown, in_scope.analysed, strict=True):
        cache[read_as, token] = read
        analysed[token] = read
    return analysed, in_scope


async def read_lexemes(
    memory: MemoryContext, statements: RecallStatements, search: Search
) -> tuple[Bm25, ScopeLexemes]:
    """Return the weighted lexemes of a question, and them in scope. One statement."""
    terms = date_terms(search.query.bag)
    ranking = search.ranking
    tokens = [without_contractions(token) for token in search.tokens]
    if not any(tokens):
        tokens = list(search.tokens)
    # Of the question's own language too: in others its function words are words that few memories hold.
    own_language = detect(" ".join(search.tokens))
    languages = sorted(filter(None, {*search.languages, own_language}))
    with stage("recall.words"):
        analysed, in_scope = await read_tokens(
            memory,
            statements,
            search.scope,
            tokens,
            languages,
            terms=list(terms),
            budget=ranking.postings_budget,
        )
    memory.statistics.totals[search.scope.key] = in_scope.corpus.total
    _pack_if_many(memory, in_scope)

    function_words = _function_words(tokens, analysed, languages)
    others = {}
    for position, token in enumerate(tokens):
        if token not in function_words:
            others[position] = analysed[token]
    former = search.scope.filters.as_of is not None
    query = lexemes_of(
        others, in_scope, terms, several=len(languages) > 1, former=former
    )
    if not query.documents:
        lexemes = dict.fromkeys(chain.from_iterable(function_words.values()))
        query = replace(query, functions=tuple(lexemes))
    return bm25_of(query, ranking, terms), in_scope


def _pack_if_many(memory: MemoryContext, in_scope: ScopeLexemes) -> None:
    """Pack the lexemes of fresh memories after the answer, if a question had to read many of them."""
    is_many = len(in_scope.fresh_ids) > _BYTES_OF_ID * _FRESH
    if is_many and "packed" not in memory.statistics.packed:
        memory.statistics.packed["packed"] = True
        memory.go_on(_pack(PostingStore(memory.root.database)))


async def _pack(postings: PostingStore) -> None:
    with suppress(FolkloreError):  # the job tries again
        namespaces, *_ = await postings.due()
        for namespace in namespaces:
            while await postings.pack(namespace):
                pass


def lexemes_of(
    tokens: Mapping[int, Sequence[Analysed]],
    in_scope: ScopeLexemes,
    terms: Iterable[str],
    *,
    several: bool,
    former: bool,
) -> QueryStatistics:
    """Return the lexemes of tokens by position, and other terms, with their document frequencies.

    A word may have several lexemes: of each language, with and without accents, and as it is spelled, which is how tags
    are kept. One of them is its stem, and counts the documents of the others: with `several` languages that which most
    memories hold, else, and of equal ones, the first by the alphabet. Parts that are joined count if a memory holds
    them so; with `former`, for a question about an earlier time, always.
    """
    # The keys of a dictionary without values are a set that keeps its order.
    positions: dict[str, dict[int, None]] = {}
    cue_forms: dict[str, dict[str, None]] = {}
    stem_of: dict[str, str] = {}

    def preference(item: Analysed) -> tuple[int, str]:
        most_first = -in_scope.documents(item.lexeme) if several else 0
        return most_first, item.lexeme

    for position, analysed in tokens.items():
        ordered = sorted(analysed, key=preference)
        stem_at = _stems_by_position(ordered)
        for item in ordered:
            if _is_counted(item, stem_at.get(item.position), in_scope, former=former):
                positions.setdefault(item.lexeme, {})[position] = None

        for item in analysed:
            stem = stem_at.get(item.position)
            if stem is not None:
                # Of the stems that two tokens have for one lexeme, the first by the alphabet.
                stem_of[item.lexeme] = min(stem_of.get(item.lexeme, stem), stem)
            word = item.lexeme if item.kind in _NAMES else stem
            if word is not None:
                cue_forms.setdefault(word, {})[in_cues(item.lexeme)] = None
    return replace(
        statistics_of([*positions, *terms], stem_of, in_scope, former=former),
        positions=positions,
        cues=held_in_cues(cue_forms, in_scope, former=former),
    )


def _stems_by_position(ordered: Iterable[Analysed]) -> dict[int, str]:
    """Return the stem of each word of a token by its position there: a token such as a-b has several words."""
    stem_at: dict[int, str] = {}
    for item in ordered:
        if item.kind == "word":
            stem_at.setdefault(item.position, item.lexeme)
    return stem_at


def _is_counted(
    item: Analysed, stem: str | None, in_scope: ScopeLexemes, *, former: bool
) -> bool:
    """Return whether a lexeme counts by itself: a stem, a compound, and joined parts if a memory holds them so."""
    if item.kind == "joined":
        return former or in_scope.documents(item.lexeme) > 0
    return item.lexeme == stem or item.kind == "compound"


def held_in_cues(
    forms: Mapping[str, Iterable[str]], in_scope: ScopeLexemes, *, former: bool
) -> dict[str, CueForms]:
    """Return the words that cues hold; with `former` all, which former cues may hold."""
    forms_in_scope: dict[str, CueForms] = {}
    for word, lexemes in forms.items():
        documents = {lexeme: in_scope.documents(lexeme) for lexeme in lexemes}
        held = [lexeme for lexeme, count in documents.items() if count or former]
        if held:
            forms_in_scope[word] = CueForms(held, max(documents.values()))
    return forms_in_scope


def statistics_of(
    lexemes: Iterable[str],
    stems: Mapping[str, str],
    in_scope: ScopeLexemes,
    *,
    former: bool,
) -> QueryStatistics:
    """Return the document frequencies of lexemes, those of further words included of which a lexeme is the stem.

    With `former`, words that no text holds now count one document: a former text may hold them.
    """
    documents = {lexeme: in_scope.documents(lexeme) for lexeme in lexemes}
    further: dict[str, str] = {}
    for word, stem in stems.items():
        if word not in documents and (former or in_scope.documents(word)):
            further[word] = stem
    for word, stem in further.items():
        documents[stem] += in_scope.documents_without(word, stem)
    if former:
        documents = {lexeme: max(count, 1) for lexeme, count in documents.items()}
    return QueryStatistics(documents, in_scope.corpus, stems=further)


def rarities(query: QueryStatistics, tokens: int) -> list[float]:
    """Return the rarity among the memories of each token of a question: that of its rarest lexeme."""
    rarest = [0.0] * tokens
    for lexeme, positions in query.positions.items():
        documents = query.documents.get(lexeme, 0)
        rarity = inverse_document_frequency(documents, query.corpus.total)
        for position in positions:
            rarest[position] = max(rarest[position], rarity)
    return rarest


def _function_words(
    tokens: Sequence[str],
    analysed: Mapping[str, Sequence[Analysed]],
    languages: Sequence[str],
) -> dict[str, Sequence[str]]:
    """Return the tokens that are function words in the language of the question, each with its words after '='.

    It is the language in which most tokens are function words. Elsewhere they may be words that few memories hold:
    English `war` is a function word in German, and `the` is rare in German memories.
    """
    languages_of = {}
    for token, items in analysed.items():
        languages_of[token] = _languages_as_function_word(items, languages)
    counts = Counter(chain.from_iterable(languages_of[token] for token in tokens))
    most = max(counts.values(), default=0)
    main = {language for language, count in counts.items() if count == most}

    function_words: dict[str, Sequence[str]] = {}
    for token, items in analysed.items():
        if not main.isdisjoint(languages_of[token]):
            spelled = [item for item in items if item.kind == "spelled"]
            function_words[token] = [f"={item.lexeme}" for item in spelled]
    return function_words


def _languages_as_function_word(
    analysed: Sequence[Analysed], languages: Sequence[str]
) -> set[str]:
    """Return the languages in which a token has function words alone."""
    kinds = {item.kind for item in analysed}
    if "spelled" not in kinds or "compound" in kinds:
        return set()
    return set(languages) - {item.language for item in analysed if item.kind == "word"}


def bm25_of(
    query: QueryStatistics, ranking: Ranking, terms: Mapping[str, float] = {}
) -> Bm25:
    """Return the question as the keyword statements score it; `terms` are date terms with their shares."""
    corpus = query.corpus
    if query.functions:
        # Their frequencies are unknown, and they are all that the question asks for.
        rarest = inverse_document_frequency(0, corpus.total)
        weights = dict.fromkeys(query.functions, rarest)
        return Bm25(weights, rarest * len(weights), query, K1, B)

    weights = lexeme_weights(
        query.documents, total=corpus.total, budget=ranking.postings_budget
    )
    for term, share in terms.items():
        if term in weights:
            weights[term] *= share
    for lexeme in query.positions:
        if lexeme in weights:
            weights[lexeme] *= _occurrences(lexeme, query)
    for word, stem in query.stems.items():
        if stem in weights:
            weights[word] = weights[stem]
    cues = {}
    for lexeme, forms in query.cues.items():
        weight = _cue_weight(lexeme, forms, query)
        cues[lexeme] = CueWeight(forms.lexemes, weight)
    return Bm25(weights, _total_weight(query), query, K1, B, cues)


def _occurrences(lexeme: str, query: QueryStatistics) -> int:
    """Return how often the question has a lexeme, which then counts as often; one of an expression has no position."""
    return len(query.positions.get(lexeme, ())) or 1


def _total_weight(query: QueryStatistics) -> float:
    """Return the weight of all words, held by a memory or not, without the date terms."""
    total = 0.0
    for lexeme, documents in query.documents.items():
        if not lexeme.startswith("@"):
            rarity = inverse_document_frequency(documents, query.corpus.total)
            total += rarity * _occurrences(lexeme, query)
    return total


def _cue_weight(lexeme: str, forms: CueForms, query: QueryStatistics) -> float:
    """Return the weight of a word in cues: no more than in the content, however few memories have cues."""
    documents = max(forms.documents, query.documents.get(lexeme, 0))
    rarity = inverse_document_frequency(documents, max(query.corpus.total, documents))
    return CUE_WORDS * rarity * _occurrences(lexeme, query)
