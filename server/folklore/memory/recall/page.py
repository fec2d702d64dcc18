"""Page of an answer: results that earlier pages did not have, expansion, token budget, cursor, explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from folklore.db.rows import memory_of
from folklore.memory.context import MemoryContext
from folklore.memory.pagination import MAX_PAGED, given_cursor, is_given
from folklore.memory.recall.rank import Ranked
from folklore.memory.recall.values import Found, Search
from folklore.model import Answer, JsonObject, Memory, Recalled, Sort, Variant
from folklore.text import tokens
from folklore.text.entities.finder import find_entities
from folklore.text.words import differing_words

# Tokens of a result besides its text: id, namespace, kind, time.
_ENVELOPE = 30
_MAX_EXPANDED, _MAX_TAGS = 25, 64
_ENTITY = "entity:"
NO_FURTHER_PAGES = f"Paging ends after about {MAX_PAGED:,} results; ask a narrower question, or list with filters."


async def page(memory: MemoryContext, search: Search, found: Found, ranked: Ranked) -> Answer:
    """Return the page of a ranked answer. One statement if the ranking asks for expansion, else none."""
    question, before = search.question, search.before
    fresh = [id_ for id_ in ranked.confidence if not is_given(id_, before)]
    results = in_order([_result(id_, search, found, ranked) for id_ in fresh[: question.limit]], question.sort)
    if search.ranking.expand and results:
        results += await _expanded(memory, search, results)
    kept, cut = within_budget(results, question.max_tokens)
    more = cut or len(fresh) > question.limit
    ids = [id_ for result in kept for id_ in (result.memory.id, *(variant.id for variant in result.variants))]
    cursor, note = None, None
    if more and len(before) + len(kept) <= MAX_PAGED:
        cursor = given_cursor(ids, before, search.key)
    elif more:
        note = NO_FURTHER_PAGES
    elif not ranked.confidence:
        note = _why_empty(search, found)
    return Answer(
        memories=tuple(kept),
        searched=tuple(namespace.name for namespace in search.namespaces),
        degraded=(*found.degraded, *ranked.leading.degraded),
        truncated=more,
        cursor=cursor,
        note=note,
        explain=_explain_answer(search, found) if question.explain else None,
        found_by=found.counts(ids),
    )


def _result(id_: UUID, search: Search, found: Found, ranked: Ranked) -> Recalled:
    candidate = ranked.features.candidates[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    explanation = _explain_result(id_, found, ranked) if search.question.explain else None
    return Recalled(
        memory,
        round(ranked.confidence[id_], 3),
        explanation,
        variants=tuple(_variant(other, memory, ranked) for other in ranked.leading.variants.get(id_, ())),
        contradicts=tuple(candidate.row["contradicts"]),
    )


def _variant(id_: UUID, shown: Memory, ranked: Ranked) -> Variant:
    candidate = ranked.features.candidates[id_]
    memory = memory_of(candidate.row, candidate.namespace)
    return Variant(id_, memory.namespace, memory.when, memory.author, differing_words(memory.content, shown.content))


def in_order(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """Return the best results in the requested order."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        return sorted(results, key=lambda result: result.memory.updated_at, reverse=sort.endswith("desc"))
    return sorted(results, key=lambda result: result.memory.when, reverse=sort.endswith("desc"))


async def _expanded(memory: MemoryContext, search: Search, results: Sequence[Recalled]) -> list[Recalled]:
    """Return at most 25 memories beyond the results, best first, each marked with the expansion that found it.

    `relations`: memories related to two results or more, by the sum of strengths. `entities`: memories tagged with an
    entity (`entity:person:sarah`) that a result is tagged with or names.
    """
    by, tags = search.ranking.expand, dict[str, None]()
    if "entities" in by:
        for result in results:
            tags |= dict.fromkeys(tag for tag in result.memory.tags if tag.startswith(_ENTITY))
            tags |= dict.fromkeys(entity.tag for entity in find_entities(result.memory.content))
    ids = [result.memory.id for result in results]
    found = await memory.statements.expand(
        search.scope, ids, list(tags)[:_MAX_TAGS], bridges="relations" in by, limit=_MAX_EXPANDED
    )
    return [result for result in found if not is_given(result.memory.id, search.before)]


def within_budget(results: Sequence[Recalled], max_tokens: int | None) -> tuple[list[Recalled], bool]:
    """Return the leading results that fit, and True if any was left out or shortened.

    A result whose text does not fit has its summary instead, if there is one. The first result is cut to fit.
    """
    if max_tokens is None:
        return list(results), False
    kept: list[Recalled] = []
    left, cut = max_tokens, False
    for result in results:
        room = left - _ENVELOPE
        text = result.memory.content
        if tokens.estimate(text) > room and result.memory.summary is not None:
            text = result.memory.summary
        if tokens.estimate(text) > room:
            if kept:
                return kept, True
            text = tokens.fit(text, max(room, 1))
        if text is not result.memory.content:
            cut = True
            result = replace(result, memory=replace(result.memory, content=text))
        kept.append(result)
        left -= result_tokens(result)
    return kept, cut


def result_tokens(result: Recalled) -> int:
    """Return the number of tokens that a result takes, estimated."""
    return _ENVELOPE + tokens.estimate(result.memory.content)


def _why_empty(search: Search, found: Found) -> str:
    if all(namespace.empty for namespace in search.namespaces):
        empty = [namespace.name for namespace in search.namespaces[:5]] or [search.question.project or ""]
        return f"Empty so far: {', '.join(empty)}."
    if search.ranking.min_score > 0 and any(hits.ids for hits in found.hits.values()):
        return f"Nothing reaches the confidence asked for (min_score {search.ranking.min_score})."
    if found.degraded:
        return "Nothing was found, but a branch of the search could not take part (degraded)."
    if not search.scope.filters.empty:
        return "Nothing matches within these filters; try without them."
    return "Nothing stored here shares a word or a meaning with the question."


def _explain_result(id_: UUID, found: Found, ranked: Ranked) -> JsonObject:
    """Explain one result: relevance = (own * signals + neighbours) * nearness.

    Each branch gives rank, score, raw score and, as `evidence`, its standardised score.
    """
    fused, scored, features = ranked.fused, ranked.leading.scored, ranked.features
    branches = {}
    for branch, hits in found.hits.items():
        if id_ in hits.ids:
            place = hits.ids.index(id_)
            branches[branch] = {
                "rank": place + 1,
                "score": round(hits.scores[place], 4),
                "raw": round(hits.raw[place], 4),
                "evidence": round(fused.standardised[branch][id_], 3),
            }
    return {
        "branches": branches,
        "rrf": round(fused.rrf.get(id_, 0.0), 5),
        "own": round(fused.own.get(id_, 0.0), 3),
        "signals": round(features.signals.get(id_, 1.0), 3),
        "neighbours": round(scored.spread.get(id_, 0.0), 3),
        "nearness": round(features.nearness.get(id_, 1.0), 3),
        "relevance": round(scored.relevance[id_], 3),
        "redundancy": round(ranked.redundancy[id_], 3),
    }


def _explain_answer(search: Search, found: Found) -> JsonObject:
    """Explain the answer: path, number of hits and milliseconds of each branch; lexemes, their frequency and weight."""
    milliseconds = {"dense": found.dense.milliseconds, "keyword": found.keyword.milliseconds}
    value: dict[str, object] = {
        branch: {
            "path": hits.path if branch == "dense" else "tsvector" if search.expression else "postings",
            "hits": len(hits.ids),
            "milliseconds": round(milliseconds[branch], 2),
        }
        for branch, hits in found.hits.items()
    }
    if (words := found.keyword.words) is not None:
        weights = words.scored_weights
        value["lexemes"] = {
            lexeme: {"documents": count, "weight": round(weights.get(lexeme, 0.0), 3)}
            for lexeme, count in words.query.documents.items()
        }
    return value
