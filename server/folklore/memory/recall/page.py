"""Page of an answer: results that earlier pages did not have, expansion, token budget, cursor, explanation."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from folklore.db.rows import memory_of
from folklore.memory.budget import within_budget
from folklore.memory.context import MemoryContext
from folklore.memory.pagination import MAX_PAGED, given_cursor, is_given
from folklore.memory.recall.rank import RankedList
from folklore.memory.recall.values import Retrieval, Search
from folklore.model import Answer, JsonObject, Memory, Recalled, Sort, Variant
from folklore.text.entities.finder import find_entities
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import line
from folklore.text.words import differing_words

# Characters of a line, and first results that are shown whole though they are weak.
_LINE, _WHOLE = 160, 3
_MAX_EXPANDED, _MAX_TAGS = 25, 64
_ENTITY = "entity:"
_NOTHING_FITS = "Nothing stored here fits the question well; these are the nearest. min_score 0 shows more of them."
NO_FURTHER_PAGES = f"Paging ends after about {MAX_PAGED:,} results; ask a narrower question, or list with filters."


async def page(memory: MemoryContext, search: Search, retrieval: Retrieval, ranked_list: RankedList) -> Answer:
    """Return the page of a ranked answer. One statement if the ranking asks for expansion, else none."""
    question, before = search.question, search.before
    fresh = [id_ for id_ in _in_rank(search, ranked_list) if not is_given(id_, before)]
    results = in_order([_result(id_, search, retrieval, ranked_list) for id_ in fresh[: question.limit]], question.sort)
    results = _weak_in_a_line(results, search, ranked_list)
    if search.ranking.expand and results:
        results += await _expanded(memory, search, results)
    results_within, left_out = within_budget(results, question.max_tokens, search.query.bag)
    more = left_out or len(fresh) > question.limit
    ids = [id_ for result in results_within for id_ in (result.memory.id, *(variant.id for variant in result.variants))]
    cursor = given_cursor(ids, before, search.key) if more else None
    note = _note(search, retrieval, ranked_list, results_within) if not more else None if cursor else NO_FURTHER_PAGES
    return Answer(
        memories=tuple(results_within),
        searched=search.namespaces.names,
        degraded=(*retrieval.degraded, *ranked_list.degraded),
        truncated=more,
        cursor=cursor,
        note=note,
        explain=_explain_answer(search, retrieval) if question.explain else None,
        found_by=retrieval.counts(ids),
    )


def _result(id_: UUID, search: Search, retrieval: Retrieval, ranked_list: RankedList) -> Recalled:
    candidate = ranked_list.candidates.all[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    explanation = _explain_result(id_, retrieval, ranked_list) if search.question.explain else None
    score = ranked_list.scores[id_]
    return Recalled(
        memory,
        score if search.sorted_by_score else None,
        ranked_list.weights.match_of(score) if search.sorted_by_score else None,
        explanation,
        variants=tuple(_variant(other, memory, ranked_list) for other in ranked_list.shortlist.variants.get(id_, ())),
        contradicts=tuple(candidate.row["contradicts"] or ()),
        passage=ranked_list.candidates.matches[id_].passage,
    )


def _variant(id_: UUID, newest: Memory, ranked_list: RankedList) -> Variant:
    candidate = ranked_list.candidates.all[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    return Variant(id_, memory.namespace, memory.when, memory.author, differing_words(memory.content, newest.content))


def _in_rank(search: Search, ranked_list: RankedList) -> Sequence[UUID]:
    """Return the ranked memories; a boosted reflection is moved up to half of its rank."""
    if not search.question.boost_reflections:
        return list(ranked_list.scores)
    places = {
        id_: place / 2 if ranked_list.candidates.all[id_].kind == "reflection" else place
        for place, id_ in enumerate(ranked_list.scores)
    }
    return sorted(places, key=lambda id_: places[id_])


def in_order(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """Return the best results in the requested order."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        return sorted(results, key=lambda result: result.memory.updated_at, reverse=sort.endswith("desc"))
    return sorted(results, key=lambda result: result.memory.when, reverse=sort.endswith("desc"))


async def _expanded(memory: MemoryContext, search: Search, results: Sequence[Recalled]) -> list[Recalled]:
    """Return at most 25 memories beyond the results, best first, each marked with the expansion that found it.

    `relations`: memories related to two results or more, by the sum of strengths; with several `hops` also those at the
    end of a chain of relations, by the product of strengths. `entities`: memories tagged with an
    entity (`entity:person:sarah`) that a result is tagged with or names.
    """
    by, tags = search.ranking.expand, dict[str, None]()
    if "entities" in by:
        for result in results:
            tags |= dict.fromkeys(tag for tag in result.memory.tags if tag.startswith(_ENTITY))
            tags |= dict.fromkeys(entity.tag for entity in find_entities(result.memory.content))
    ids = [result.memory.id for result in results]
    additions = await memory.statements.expand(
        search.scope,
        ids,
        list(tags)[:_MAX_TAGS],
        bridges="relations" in by,
        hops=search.question.hops,
        least_strength=search.question.least_strength,
        most=_MAX_EXPANDED,
    )
    return [result for result in additions if not is_given(result.memory.id, search.before)]


def _in_a_line(result: Recalled, words: QuestionWords) -> Recalled:
    """Return a result with one line of text: its summary, its passage, or what matches the question."""
    memory = result.memory
    if memory.summary is None and result.passage is not None:
        shown = " ".join(memory.content[slice(*result.passage)].split())
    else:
        shown = line(memory.summary or memory.content, words, _LINE)
    return replace(result, memory=replace(memory, content=shown))


def _weak_in_a_line(results: list[Recalled], search: Search, ranked_list: RankedList) -> list[Recalled]:
    """Return the results, weak ones after the first with one line of text unless the request has a `min_score`.

    Where nothing fits, all have one line.
    """
    if search.ranking.min_score is not None or all(result.match != "weak" for result in results):
        return results
    words, whole = QuestionWords.of(search.pieces), _WHOLE if ranked_list.fits else 0
    weak = [result.match == "weak" and place >= whole for place, result in enumerate(results)]
    return [_in_a_line(result, words) if short else result for result, short in zip(results, weak, strict=True)]


def _note(search: Search, retrieval: Retrieval, ranked_list: RankedList, results: Sequence[Recalled]) -> str | None:
    """Return why there is no result, or no good one."""
    if not ranked_list.scores:
        return _why_empty(search, retrieval)
    return _NOTHING_FITS if not search.before and results and not ranked_list.fits else None


def _why_empty(search: Search, retrieval: Retrieval) -> str:
    if all(namespace.empty for namespace in search.namespaces):
        empty = [namespace.name for namespace in search.namespaces[:5]] or [search.question.project or ""]
        return f"Empty so far: {', '.join(empty)}."
    if search.ranking.min_score and any(hits.ids for hits in retrieval.hits.values()):
        return f"Nothing reaches the confidence asked for (min_score {search.ranking.min_score})."
    if search.embedder is None and "keyword" not in search.branches:
        return "Nothing was found: this ranking searches by meaning only, and there is no embedding model here."
    if retrieval.degraded:
        return "Nothing was found, but a branch of the search could not take part (degraded)."
    if not replace(search.scope.filters, negations=None).empty:
        return "Nothing matches within these filters; try without them."
    if search.embedder is None:
        return "Nothing stored here shares a word with the question; there is no embedding model to compare meanings."
    return "Nothing stored here shares a word or a meaning with the question."


def _explain_result(id_: UUID, retrieval: Retrieval, ranked_list: RankedList) -> JsonObject:
    """Explain one result: its rank, score and raw score in each branch, and each feature times its weight."""
    branches = {}
    for branch, hits in retrieval.hits.items():
        if id_ in hits.ids:
            place = hits.ids.index(id_)
            score, raw = round(hits.scores[place], 4), round(hits.raw[place], 4)
            branches[branch] = {"rank": place + 1, "score": score, "raw": raw}
    parts = ranked_list.parts_of(id_)
    return {
        "branches": branches,
        "rrf": round(ranked_list.rrf.get(id_, 0.0), 5),
        "parts": {name: round(value, 3) for name, value in parts.items() if value},
        "relevance": round(sum(parts.values()), 3),
        "redundancy": round(ranked_list.redundancy.get(id_, 0.0), 3),
        "confidence": round(ranked_list.confidence.get(id_, 0.0), 3),
    }


def _explain_answer(search: Search, retrieval: Retrieval) -> JsonObject:
    """Explain the answer: path, number of hits and milliseconds of each branch; lexemes, their frequency and weight."""
    value: dict[str, object] = {
        of.branch: {"path": of.path, "hits": len(of.hits), "milliseconds": round(of.milliseconds, 2)}
        for of in retrieval.lists(search)
    }
    if words := retrieval.words():
        value["lexemes"] = {of.word: {"documents": of.documents, "weight": round(of.weight, 3)} for of in words}
    return value
