"""Notes at moments at which nobody asks: calls of tools that edit or read a file, failed, or are about to ask.

A note that is given unasked must be likelier to help than one that a prompt gets.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from folklore.config import Moment
from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.memory.context import RequestContext
from folklore.memory.hooks.edit import concerned_by, notes_for_edit, path_in_repository
from folklore.memory.hooks.note_candidates import (
    NoteCandidate,
    candidates_of,
    inject,
    share_with_cues,
)
from folklore.memory.hooks.scope import HookScope
from folklore.ranking.injection import IGNORED, least_confidence
from folklore.text.hooks.edits import Edit, edit_of
from folklore.text.hooks.failures import failure_question
from folklore.text.hooks.injected import without_blocks
from folklore.text.hooks.prompts import without_private
from folklore.text.hooks.tool_calls import (
    Failure,
    FileRead,
    PersonQuestion,
    SubagentTask,
    ToolCall,
    ToolMoment,
)

# Least confidence of the best candidate with cues and without, and of those beside it. The
# header and a note take about 75 tokens, and one that answers spares some 700: worth it
# from one in nine on. Nobody has asked, and a note interrupts, so that it must be three
# times as likely to help, as it is from this score on. Scores of memories without cues are
# lower for the same chance (ranking/injection.py).
_SPEAK_WITH_CUES = 2 / 3
_SPEAK_WITHOUT = 1 / 8
_BESIDE = 1 / 50
# Candidates that are looked at, of which some may have been given before, and notes of one moment.
_CANDIDATES = 10
_NOTES = 3
# Characters of a file that is read that are asked.
_READ = 2_000

_NAMES: Mapping[type[ToolMoment], Moment] = {
    Edit: "edit",
    FileRead: "read",
    Failure: "failure",
    PersonQuestion: "question",
    SubagentTask: "subagent",
}


def moment_of(request: HookRequest) -> ToolMoment | None:
    """Return the moment of a session that a call of a tool is; None if it is none at which notes are given."""
    if request.tool_input:
        return ToolCall(
            request.event,
            request.tool,
            request.tool_input,
            request.tool_response,
            request.error,
        ).moment
    # As definitions of hooks were that users have approved before.
    return edit_of(request.path, request.text or request.content, request.command)


async def notes_for_tool(
    context: RequestContext, scope: HookScope, request: HookRequest
) -> HookAnswer:
    """Return the notes that a call of a tool needs and that its session was not given yet, mostly silence."""
    moment = moment_of(request)
    if moment is None or scope.ledger is None:
        return HookAnswer()
    if _NAMES[type(moment)] not in context.moments:
        return HookAnswer()

    if isinstance(moment, Edit | FileRead):
        path = path_in_repository(moment.path, request.directory)
        moment = replace(moment, path=path)
    if isinstance(moment, Edit):
        return await notes_for_edit(context, scope, request.event, moment)

    candidates = await _candidates(context, scope, moment)
    fresh = await _not_given(context, scope, candidates)
    answer = await inject(context, scope, request.event, fresh[:_NOTES])
    if not answer.text:
        return answer
    if isinstance(moment, PersonQuestion):
        # The notes come before the question does, and a question that is put again goes through.
        return replace(answer, holds=len(fresh) == len(candidates))
    if isinstance(moment, SubagentTask):
        # What a session is given does not reach its sub-agents.
        task = f"{moment.text}\n\n{answer.text}"
        return replace(answer, arguments={**request.tool_input, moment.argument: task})
    return answer


async def _candidates(
    context: RequestContext,
    scope: HookScope,
    moment: FileRead | Failure | PersonQuestion | SubagentTask,
) -> list[NoteCandidate]:
    """Return the memories that a moment needs with some confidence, best first."""
    if isinstance(moment, FileRead):
        text = without_blocks(moment.text)[:_READ]
        tied, probable = await asyncio.gather(
            concerned_by(context, scope, Edit(moment.path, text), naming_file=True),
            _probable(context, scope, f"{moment.path}\n{text}"),
        )
        tied_ids = {candidate.id for candidate in tied}
        return tied + [
            candidate for candidate in probable if candidate.id not in tied_ids
        ]
    question = without_private(without_blocks(_question_of(moment)))
    return await _probable(context, scope, question)


def _question_of(moment: Failure | PersonQuestion | SubagentTask) -> str:
    if isinstance(moment, Failure):
        return failure_question(moment.command, moment.output)
    return moment.text


async def _probable(
    context: RequestContext, scope: HookScope, question: str
) -> list[NoteCandidate]:
    """Return the candidates of a question, if the best of them is likely enough to be given unasked."""
    candidates = await candidates_of(
        context, scope, question, least=_BESIDE, limit=_CANDIDATES
    )
    if not candidates or not _is_likely(candidates[0], share_with_cues(candidates)):
        return []
    return candidates


def _is_likely(candidate: NoteCandidate, cued_share: float) -> bool:
    """Return whether a candidate is likely enough to interrupt with it, where this share of all candidates has cues."""
    least = least_confidence(
        _SPEAK_WITH_CUES, _SPEAK_WITHOUT, candidate.with_cues, cued_share
    )
    return candidate.confidence >= least


async def _not_given(
    context: RequestContext, scope: HookScope, candidates: Sequence[NoteCandidate]
) -> list[NoteCandidate]:
    """Return the candidates that the session has in no form, if the best of them is likely enough."""
    if not candidates or scope.ledger is None:
        return []
    previous = await scope.ledger.given(
        scope.ids,
        scope.session,
        [candidate.id for candidate in candidates],
        ignored=IGNORED,
        now=context.now,
    )
    fresh = []
    for candidate in candidates:
        past = previous.memories.get(candidate.id)
        if past is None or not past.given:
            fresh.append(candidate)
    if not fresh or not _is_likely(fresh[0], share_with_cues(candidates)):
        return []
    return fresh
