"""Page of an answer: results that earlier pages did not have, expansion, token budget, cursor, explanation."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from uuid import UUID

from folklore.db.rows import memory_of
from folklore.memory.context import MemoryContext
from folklore.memory.context.budget import within_budget
from folklore.memory.context.pagination import MAX_PAGED, given_cursor, is_given
from folklore.memory.recall.rank import RankedList
from folklore.memory.recall.values import Retrieval, Search
from folklore.model import Answer, JsonObject, Memory, Recalled, Replaced, Sort, Variant
from folklore.text.entities.finder import find_entities
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import line
from folklore.text.words import differing_words

# Characters of a line, and first results that are shown whole though they are weak.
_LINE = 160
_WHOLE = 3
_MAX_EXPANDED = 25
_MAX_TAGS = 64
_ENTITY = "entity:"
_NOTHING_FITS = "Nothing stored here fits the question well; these are the nearest. min_score 0 shows more of them."
NO_FURTHER_PAGES = f"Paging ends after about {MAX_PAGED:,} results; ask a narrower question, or list with filters."


async def page(memory: MemoryContext, ranked: RankedList) -> Answer:
    """Return the page of a ranked answer. One statement if the ranking asks for expansion, else none."""
    search = ranked.search
    question = search.question
    remaining = []
    for id_ in _in_rank(ranked):
        if not is_given(id_, search.before) and _is_shown(id_, ranked):
            remaining.append(id_)
    results = [_result(id_, ranked) for id_ in remaining[: question.limit]]
    results = _weak_in_a_line(in_order(results, question.sort), ranked)
    if search.ranking.expand and results:
        results += await _expanded(memory, search, results)
    results, is_cut = within_budget(results, question.max_tokens, search.query.bag)

    more = is_cut or len(remaining) > question.limit
    if more:
        cursor, note = continued(results, search.before, search.key)
    else:
        cursor = None
        note = _note(ranked, results)
    return Answer(
        memories=tuple(results),
        searched=search.namespaces.names,
        degraded=ranked.degraded,
        truncated=more,
        cursor=cursor,
        note=note,
        explain=_explain_answer(ranked.retrieval) if question.explain else None,
        found_by=ranked.retrieval.counts(_ids(results)),
    )


def _is_shown(id_: UUID, ranked: RankedList) -> bool:
    """Return false for a result whose score is 0, unless the request has a `min_score` of 0."""
    if ranked.search.ranking.min_score is not None or not _is_scored(ranked):
        return True
    return ranked.scores[id_] > 0


def _is_scored(ranked: RankedList) -> bool:
    """Return whether the answer shows scores; of a question of signs alone there is nothing to say."""
    words = ranked.search.words
    return ranked.search.sorted_by_score and bool(words.distinct or words.dates)


def continued(
    results: Sequence[Recalled], before: frozenset[bytes], key: object
) -> tuple[str | None, str | None]:
    """Return the cursor of the page after these results; at the end of paging a note."""
    cursor = given_cursor(_ids(results), before, key)
    return cursor, None if cursor else NO_FURTHER_PAGES


def _ids(results: Sequence[Recalled]) -> list[UUID]:
    """Return the ids of results and of their variants."""
    ids = []
    for result in results:
        ids.append(result.memory.id)
        ids += [variant.id for variant in result.variants]
    return ids


def _result(id_: UUID, ranked: RankedList) -> Recalled:
    candidates = ranked.candidates
    candidate = candidates.all[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    variants = [
        _variant(other, memory, ranked) for other in ranked.variants.get(id_, ())
    ]
    replaces = [
        Replaced(older, candidates.time_of(older))
        for older in ranked.replaces.get(id_, ())
    ]
    score = None
    match = None
    if _is_scored(ranked):
        score = ranked.scores[id_]
        match = ranked.weights.match_of(score)
    is_explained = ranked.search.question.explain
    return Recalled(
        memory,
        score=score,
        match=match,
        explain=_explain_result(id_, ranked) if is_explained else None,
        variants=tuple(variants),
        replaces=tuple(replaces),
        contradicts=tuple(candidate.row["contradicts"] or ()),
        passage=candidates.held[id_].passage,
    )


def _variant(id_: UUID, newest: Memory, ranked: RankedList) -> Variant:
    candidate = ranked.candidates.all[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    return Variant(
        id=id_,
        namespace=memory.namespace,
        when=memory.when,
        author=memory.author,
        differs=differing_words(memory.content, newest.content),
        changed_by=memory.changed_by,
    )


def _in_rank(ranked: RankedList) -> Sequence[UUID]:
    """Return the ranked memories; a boosted reflection is moved up to half of its rank."""
    ids = list(ranked.scores)
    if not ranked.search.question.boost_reflections:
        return ids
    ranks = {}
    for rank, id_ in enumerate(ids):
        is_reflection = ranked.candidates.all[id_].kind == "reflection"
        ranks[id_] = rank / 2 if is_reflection else rank
    return sorted(ids, key=ranks.__getitem__)


def in_order(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """Return the best results in the requested order."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        time = attrgetter("memory.updated_at")
    else:
        time = attrgetter("memory.order_time")
    return sorted(results, key=time, reverse=sort.endswith("desc"))


async def _expanded(
    memory: MemoryContext, search: Search, results: Sequence[Recalled]
) -> list[Recalled]:
    """Return at most 25 memories beyond the results, best first, each marked with the expansion that found it.

    `relations`: memories related to two results or more, by the sum of strengths; with several `hops` also those at the
    end of a chain of relations, by the product of strengths. `entities`: memories tagged with an
    entity (`entity:person:sarah`) that a result is tagged with or names.
    """
    expansions = search.ranking.expand
    tags = dict[str, None]()
    if "entities" in expansions:
        for result in results:
            tags |= dict.fromkeys(_entity_tags(result.memory))
    additions = await memory.statements.expand(
        search.scope,
        [result.memory.id for result in results],
        list(tags)[:_MAX_TAGS],
        bridges="relations" in expansions,
        hops=search.question.hops,
        least_strength=search.question.least_strength,
        most=_MAX_EXPANDED,
    )
    return [
        result for result in additions if not is_given(result.memory.id, search.before)
    ]


def _entity_tags(memory: Memory) -> list[str]:
    """Return the tags of the entities that a memory is tagged with or names."""
    tags = [tag for tag in memory.tags if tag.startswith(_ENTITY)]
    tags += [entity.tag for entity in find_entities(memory.content)]
    return tags


def _in_a_line(result: Recalled, words: QuestionWords) -> Recalled:
    """Return a result with one line of text: its summary, its passage, or what matches the question."""
    memory = result.memory
    if memory.summary is None and result.passage is not None:
        begin, end = result.passage
        text = " ".join(memory.content[begin:end].split())
    else:
        text = line(memory.summary or memory.content, words, _LINE)
    shortened = replace(memory, content=text)
    return replace(result, memory=shortened)


def _weak_in_a_line(results: list[Recalled], ranked: RankedList) -> list[Recalled]:
    """Return the results, weak ones after the first with one line of text unless the request has a `min_score`.

    Where nothing fits, all have one line.
    """
    if ranked.search.ranking.min_score is not None:
        return results
    words = ranked.search.words
    whole = _WHOLE if ranked.fits else 0
    shortened = []
    for index, result in enumerate(results):
        if result.match == "weak" and index >= whole:
            result = _in_a_line(result, words)
        shortened.append(result)
    return shortened


def _note(ranked: RankedList, results: Sequence[Recalled]) -> str | None:
    """Return why there is no result, or no good one."""
    search = ranked.search
    if any(_is_shown(id_, ranked) for id_ in ranked.scores):
        if not search.before and results and not ranked.fits:
            return _NOTHING_FITS
        return None
    if all(namespace.empty for namespace in search.namespaces):
        empty = [namespace.name for namespace in search.namespaces[:5]]
        if not empty:
            empty = [search.question.project or ""]
        return f"Empty so far: {', '.join(empty)}."
    return _why_empty(search, ranked.retrieval)


def _why_empty(search: Search, retrieval: Retrieval) -> str:
    if search.ranking.min_score and any(hits.ids for hits in retrieval.hits.values()):
        return f"Nothing reaches the confidence asked for (min_score {search.ranking.min_score})."
    if search.embedder is None and "keyword" not in search.branches:
        return "Nothing was found: this ranking searches by meaning only, and there is no embedding model here."
    if retrieval.degraded:
        return "Nothing was found, but a branch of the search could not take part (degraded)."
    if not replace(search.scope.filters, negations=None).empty:
        return "Nothing matches within these filters; try without them."
    if "dense" not in search.branches:
        return "Nothing stored here shares a word with the question."
    if search.embedder is None:
        return "Nothing stored here shares a word with the question; there is no embedding model to compare meanings."
    return "Nothing stored here shares a word or a meaning with the question."


def _explain_result(id_: UUID, ranked: RankedList) -> JsonObject:
    """Explain one result: its rank, score and raw score in each branch, and each feature times its weight."""
    branches = {}
    for branch, hits in ranked.retrieval.hits.items():
        if id_ in hits.ids:
            index = hits.ids.index(id_)
            score = round(hits.scores[index], 4)
            raw = round(hits.raw[index], 4)
            branches[branch] = {"rank": index + 1, "score": score, "raw": raw}
    parts = ranked.parts_of(id_)
    return {
        "branches": branches,
        "rrf": round(ranked.candidates.rrf.get(id_, 0.0), 5),
        "parts": {name: round(value, 3) for name, value in parts.items() if value},
        "relevance": round(sum(parts.values()), 3),
        "redundancy": round(ranked.redundancy.get(id_, 0.0), 3),
        "confidence": round(ranked.confidence.get(id_, 0.0), 3),
    }


def _explain_answer(retrieval: Retrieval) -> JsonObject:
    """Explain the answer: path, number of hits and milliseconds of each branch; lexemes, their frequency and weight."""
    value: dict[str, object] = {}
    for branch_list in retrieval.lists():
        value[branch_list.branch] = {
            "path": branch_list.path,
            "hits": len(branch_list.hits),
            "milliseconds": round(branch_list.milliseconds, 2),
        }
    lexemes = {}
    for item in retrieval.explained_words():
        weight = round(item.weight, 3)
        lexemes[item.word] = {"documents": item.documents, "weight": weight}
    if lexemes:
        value["lexemes"] = lexemes
    return value
