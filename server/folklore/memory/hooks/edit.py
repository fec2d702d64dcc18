"""Notes for an edit: memories that are tied to its file, and those that its text nearly certainly concerns."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from folklore.background import on_texts, stop_if_abandoned
from folklore.contract.hooks import HookAnswer
from folklore.memory.context import RequestContext
from folklore.memory.hooks.note_candidates import (
    NoteCandidate,
    inject,
    retrieved,
    successors_among,
    text_of_note,
    with_successors,
)
from folklore.memory.hooks.scope import HookScope
from folklore.model import Filters, Recalled
from folklore.ranking.injection import CODE, CONCERNED, MOST_OF_EDIT, edit_worth
from folklore.text.hooks.edits import Edit
from folklore.text.paths import plain_path
from folklore.text.query.question import QuestionWords

_MOST_CANDIDATES = 30  # by words


async def notes_for_edit(
    context: RequestContext, scope: HookScope, event: str, edit: Edit
) -> HookAnswer:
    """Return the notes that an edit concerns and that its session was not given yet, mostly silence."""
    candidates = await concerned_by(context, scope, edit)
    return await inject(context, scope, event, candidates)


def path_in_repository(path: str, directory: str) -> str:
    """Return a path as memories have it: relative to the session's directory, which is the root of its repository."""
    return plain_path(path).removeprefix(f"{plain_path(directory)}/")


async def concerned_by(
    context: RequestContext,
    scope: HookScope,
    edit: Edit,
    *,
    naming_file: bool = False,
) -> list[NoteCandidate]:
    """Return the memories of exactly this file, and those that share enough words with the edit, best first.

    With `naming_file`, those of which paths, text or cues name the file, a file next to it or a folder above it.
    """
    of_file, (shared_words, by_words) = await asyncio.gather(
        _of_file(context, scope, edit), _sharing_words(context, scope, edit)
    )
    candidates = [*of_file, *by_words]

    def worths_by_id() -> dict[UUID, float]:
        worths = {}
        for candidate in candidates:
            stop_if_abandoned()
            memory = candidate.result.memory
            by_words_alone = shared_words.get(candidate.id, 0.0)
            text = "\n".join([memory.content, *memory.cues])
            worth = edit_worth(by_words_alone, edit.path, memory.paths, text)
            names_file = worth > by_words_alone
            if names_file or not naming_file:
                worths[candidate.id] = worth
        return worths

    worths = await on_texts(worths_by_id, _characters(candidates))
    # Nearly certain, or not there at all.
    concerned = {
        candidate.id: candidate
        for candidate in candidates
        if worths.get(candidate.id, 0.0) >= CONCERNED
    }
    best = sorted(concerned.values(), key=lambda candidate: -worths[candidate.id])
    current = with_successors(best[:MOST_OF_EDIT], successors_among(by_words))
    return [replace(candidate, confidence=1.0) for candidate in current]


async def _of_file(
    context: RequestContext, scope: HookScope, edit: Edit
) -> list[NoteCandidate]:
    """Return the latest memories that are tied to exactly this file."""
    if scope.space is None or scope.space.empty:
        return []
    page = await context.memory.memories.list(
        {scope.space.id: scope.space.name},
        Filters(paths=(edit.path,)),
        limit=MOST_OF_EDIT,
        now=context.now,
    )
    words = QuestionWords.of(edit.question.split())
    candidates = []
    for memory in page.memories:
        result = Recalled(memory)
        candidates.append(
            NoteCandidate(result, scope.space.id, 1.0, text_of_note(result, words))
        )
    return candidates


async def _sharing_words(
    context: RequestContext, scope: HookScope, edit: Edit
) -> tuple[Mapping[UUID, float], Sequence[NoteCandidate]]:
    """Return the weight of the words that memories share with an edit, by id, and these memories, best first.

    The weight of a word that no other memory has is 1 (see `edit_worth`); a word that a memory writes as code weighs
    more.
    """
    if not scope.spaces or not edit.question:
        return {}, ()
    retrieval, candidates = await retrieved(
        context, scope, edit.question, _MOST_CANDIDATES, ("keyword",)
    )
    bm25 = retrieval.keyword.bm25
    if bm25 is None:
        return {}, ()

    def weights_as_code() -> dict[UUID, float]:
        weights = {}
        for candidate in candidates:
            stop_if_abandoned()
            content = candidate.result.memory.content
            weights[candidate.id] = CODE * edit.weight_in_code(bm25.weights, content)
        return weights

    as_code = await on_texts(weights_as_code, _characters(candidates))
    weight_of_rarest = math.log(1.0 + bm25.query.corpus.total)
    hits = retrieval.keyword.hits
    shared_words = {}
    for id_, weight in zip(hits.ids, hits.raw, strict=True):
        weight_with_code = weight + as_code.get(id_, 0.0)
        shared_words[id_] = weight_with_code / weight_of_rarest
    return shared_words, candidates


def _characters(candidates: Sequence[NoteCandidate]) -> int:
    return sum(len(candidate.result.memory.content) for candidate in candidates)
