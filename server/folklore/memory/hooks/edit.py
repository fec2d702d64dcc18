"""Notes for an edit: memories that are tied to its file, and those that its text nearly certainly concerns."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from folklore.background import on_texts, stop_if_abandoned
from folklore.contract.hooks import HookAnswer
from folklore.memory.context import RequestContext
from folklore.memory.hooks.matches import (
    Match,
    fact_of,
    inject,
    recalled,
    successors_among,
    with_successors,
)
from folklore.memory.hooks.scope import HookScope
from folklore.model import Filters, Recalled
from folklore.ranking.injection import CODE, CONCERNED, MOST_OF_EDIT, edit_worth
from folklore.text.hooks.edits import Edit
from folklore.text.paths import plain_path
from folklore.text.query.question import QuestionWords

# Candidates of an edit, by words.
_CANDIDATES = 30


async def notes_for_edit(
    context: RequestContext, scope: HookScope, event: str, edit: Edit
) -> HookAnswer:
    """Return the notes that an edit concerns and that its session was not given yet, mostly silence."""
    matches = await concerned_by(context, scope, edit)
    return await inject(context, scope, event, matches)


def path_in_repository(path: str, directory: str) -> str:
    """Return a path as memories have it: relative to the session's directory, which is the root of its repository."""
    return plain_path(path).removeprefix(f"{plain_path(directory)}/")


async def concerned_by(
    context: RequestContext, scope: HookScope, edit: Edit, *, tied: bool = False
) -> list[Match]:
    """Return the memories of exactly this file, and those that share enough words with the edit, best first.

    With `tied`, those of which paths, text or cues name the file, a file next to it or a folder above it.
    """
    of_file, (shared, matches) = await asyncio.gather(
        _tied(context, scope, edit), _sharing(context, scope, edit)
    )
    candidates = [*of_file, *matches]

    def worths() -> dict[UUID, float]:
        result = {}
        for match in candidates:
            stop_if_abandoned()
            memory = match.result.memory
            words = shared.get(match.id, 0.0)
            text = "\n".join([memory.content, *memory.cues])
            worth = edit_worth(words, edit.path, memory.paths, text)
            result[match.id] = 0.0 if tied and worth == words else worth
        return result

    worth = await on_texts(worths, _characters(candidates))
    worthy = {match.id: match for match in candidates if worth[match.id] >= CONCERNED}
    # Nearly certain, or not there at all.
    best = sorted(worthy.values(), key=lambda match: -worth[match.id])[:MOST_OF_EDIT]
    current = with_successors(best, successors_among(matches))
    return [replace(match, confidence=1.0) for match in current]


async def _tied(context: RequestContext, scope: HookScope, edit: Edit) -> list[Match]:
    if scope.space is None or scope.space.empty:
        return []
    names = {scope.space.id: scope.space.name}
    filters = Filters(paths=(edit.path,))
    words = QuestionWords.of(edit.words.split())
    page = await context.memory.memories.list(
        names, filters, limit=MOST_OF_EDIT, now=context.now
    )
    return [
        Match(result, scope.space.id, 1.0, fact_of(result, words))
        for result in map(Recalled, page.memories)
    ]


async def _sharing(
    context: RequestContext, scope: HookScope, edit: Edit
) -> tuple[Mapping[UUID, float], Sequence[Match]]:
    """Return memories that share words with an edit, and of each how many words as rare as can be."""
    if not scope.spaces or not edit.words:
        return {}, ()
    outcome, matches = await recalled(
        context, scope, edit.words, _CANDIDATES, ("keyword",)
    )
    words = outcome.keyword.words
    hits = outcome.keyword.hits
    if words is None:
        return {}, ()
    rarest = math.log(1.0 + words.query.corpus.total)
    weights = words.weights

    def code_weights() -> dict[UUID, float]:
        result = {}
        for match in matches:
            stop_if_abandoned()
            text = match.result.memory.content
            result[match.id] = CODE * edit.held_as_code(weights, text)
        return result

    code = await on_texts(code_weights, _characters(matches))
    return {
        id_: (raw + code.get(id_, 0.0)) / rarest
        for id_, raw in zip(hits.ids, hits.raw, strict=True)
    }, matches


def _characters(matches: Sequence[Match]) -> int:
    return sum(len(match.result.memory.content) for match in matches)
