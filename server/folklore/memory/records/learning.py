"""Cues learned from questions of `memory_recall`: what a session asked before it used a memory, or stored one.

A use is what counts as one of an injected note too: a memory is read, changed, stored again, superseded or quoted.

Only questions that a tool call brought are kept, for half an hour, in this process: never what a person typed into a
prompt, which hooks read. Who may not write to a namespace teaches its memories nothing.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from uuid import UUID

from folklore.contract.recall import RecallRequest
from folklore.db.stores.changes import Cues, NamespaceTransaction, State
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.context import RequestContext
from folklore.memory.context.caches import AskedQuestion, best_results
from folklore.memory.context.usage import query_digest
from folklore.memory.records.cues import MOST, cues_of, embed_cues, learned_of
from folklore.model import Answer, Memory
from folklore.permissions import role_in
from folklore.text import names
from folklore.text.cues import brings_words, fits, phrase, with_learned
from folklore.text.hooks.injected import quoting_of

log = get_logger(__name__)

# Memories that one call teaches: reading a page of a list says little of each.
_MOST_TAUGHT = 10
_GOOD = ("strong", "fair")

# Returns the questions, of those that a session asked, that a memory with this state learns.
_Choice = Callable[[State], Iterable[AskedQuestion]]


def keep_questions(
    context: RequestContext, request: RecallRequest, answer: Answer
) -> None:
    """Keep the questions of a tool call with their best results, if they may become cues."""
    session = _session(context, request.client_session)
    if session is None:
        return
    project = context.project()
    # A project without memories, which is not searched, is one that learns from its first.
    own = () if project is None or request.namespaces else (project,)
    searched = frozenset(map(names.key, (*answer.searched, *own)))
    for number, question in enumerate(request.questions):
        text = phrase(question)
        if text is None:
            continue
        results = best_results(answer, number)
        asked = AskedQuestion(
            text,
            context.now,
            searched,
            frozenset(result.memory.id for result in results),
            any(result.match in _GOOD for result in results),
        )
        context.memory.asked.add(session, asked)


def teach_used(
    context: RequestContext, client_session: str | None, namespace: str, ids: list[UUID]
) -> None:
    """Add to each used memory the latest question that found it, after the answer, if it brings new words."""
    questions = _questions(context, client_session, namespace)
    found = _found_by(questions)
    _teach(
        context, namespace, [id_ for id_ in ids if id_ in found], _latest_of(questions)
    )


def teach_successors(
    context: RequestContext,
    client_session: str | None,
    namespace: str,
    superseded: Mapping[UUID, UUID],
) -> None:
    """Add to each new memory the latest question that found the one that it superseded, after the answer."""
    questions = _questions(context, client_session, namespace)
    found = _found_by(questions)
    ids = [new for new, older in superseded.items() if older in found]
    _teach(context, namespace, ids, _latest_of(questions, superseded))


def teach_quoted(
    context: RequestContext, client_session: str | None, *texts: str
) -> None:
    """Add to each memory that these texts quote, or name by id, the latest question that found it, after the answer."""
    session = _session(context, client_session)
    if session is None:
        return
    found = _found_by(context.memory.asked.latest(session, context.now))
    if found:
        work = _teach_quoted(context, client_session, found, texts)
        context.memory.go_on(work)


async def _teach_quoted(
    context: RequestContext,
    client_session: str | None,
    found: Collection[UUID],
    texts: tuple[str, ...],
) -> None:
    memory = context.memory
    try:
        readable = [namespace.id for namespace in await memory.find_namespaces(())]
        read = await memory.memories.get(readable, list(found))
    except FolkloreError as error:
        log.warning("cues_not_learned", count=len(found), reason=error.message)
        return
    memories = [item for _, item in read]
    quoted = await asyncio.to_thread(_quoted, memories, texts)
    for namespace, ids in quoted.items():
        questions = _questions(context, client_session, namespace)
        if questions:
            taught = ids[:_MOST_TAUGHT]
            await _learn(context, namespace, taught, _latest_of(questions))


def _quoted(memories: Iterable[Memory], texts: Iterable[str]) -> dict[str, list[UUID]]:
    """Return the ids of the memories that these texts quote, or name by id, by namespace."""
    quoting = quoting_of("\n".join(texts))
    quoted: dict[str, list[UUID]] = {}
    for memory in memories:
        if quoting.uses(memory.id, memory.content):
            quoted.setdefault(memory.namespace, []).append(memory.id)
    return quoted


def _found_by(questions: Iterable[AskedQuestion]) -> set[UUID]:
    return set[UUID]().union(*(question.found for question in questions))


def _latest_of(
    questions: Sequence[AskedQuestion], superseded: Mapping[UUID, UUID] | None = None
) -> _Choice:
    """Return the choice of the latest question that found a memory, or the one that it superseded."""

    def choose(state: State) -> Iterable[AskedQuestion]:
        id_ = state.id if superseded is None else superseded[state.id]
        for question in questions:
            if id_ in question.found:
                return [question]
        return []

    return choose


def teach_stored(
    context: RequestContext, client_session: str | None, namespace: str, ids: list[UUID]
) -> None:
    """Add to new memories the questions that nothing answered and that fit them, after the answer."""
    questions = [
        question
        for question in _questions(context, client_session, namespace)
        if not question.answered
    ]

    def choose(state: State) -> Iterable[AskedQuestion]:
        text = "\n".join((str(state.held["content"]), *cues_of(state)))
        return [question for question in questions if fits(question.text, text)]

    if questions:
        _teach(context, namespace, ids, choose)


def _session(context: RequestContext, client_session: str | None) -> Hashable | None:
    """Return whose questions these are; None if nothing is learned from them. Clients without sessions teach nothing."""
    if not client_session or not context.learn_cues:
        return None
    caller = context.caller
    return caller.author, caller.token, client_session


def _questions(
    context: RequestContext, client_session: str | None, namespace: str
) -> list[AskedQuestion]:
    """Return the latest questions that were asked of a namespace to which the caller may write."""
    session = _session(context, client_session)
    if session is None or role_in(context.caller, namespace) not in ("writer", "admin"):
        return []
    key = names.key(namespace)
    latest = context.memory.asked.latest(session, context.now)
    return [question for question in latest if key in question.searched]


def _teach(
    context: RequestContext, namespace: str, ids: Collection[UUID], choose: _Choice
) -> None:
    if ids:
        taught = list(ids)[:_MOST_TAUGHT]
        context.memory.go_on(_learn(context, namespace, taught, choose))


async def _learn(
    context: RequestContext, namespace: str, ids: list[UUID], choose: _Choice
) -> None:
    """Write what memories learn in one transaction. What fails is not tried again: a cue is a help, no knowledge."""
    memory = context.memory
    try:
        space = await memory.find_namespace(namespace)
        async with (
            memory.root.learning,
            memory.changes.of(
                space.id, caller=context.caller, now=context.now
            ) as change,
        ):
            learned = await _learn_each(change, ids, choose)
        await embed_cues(memory, space.id, learned)
    except FolkloreError as error:
        log.warning("cues_not_learned", count=len(ids), reason=error.message)


async def _learn_each(
    change: NamespaceTransaction, ids: list[UUID], choose: _Choice
) -> list[UUID]:
    """Add chosen questions to the cues of memories in force; return those that learned."""
    learned: list[UUID] = []
    states = await change.states(ids, whole=True)
    for state in states.values():
        in_force = state.forgotten_at is None and state.superseded_at is None
        if in_force and await _learn_of(change, state, choose(state)):
            learned.append(state.id)
    return learned


async def _learn_of(
    change: NamespaceTransaction,
    state: State,
    questions: Iterable[AskedQuestion],
) -> bool:
    """Add questions to the cues of a memory; return False if none is new to it."""
    present = Cues(cues_of(state), learned_of(state))
    cues = present
    for question in questions:
        known = (str(state.held["content"]), *cues.every)
        learned_before = set(map(str.casefold, cues.learned))
        if question.text.casefold() in learned_before:
            continue
        if not brings_words(question.text, known):
            continue
        answers = [0] * len(cues.learned)
        if len(cues.every) >= MOST:
            digests = [query_digest(cue) for cue in cues.learned]
            answers = await change.answers_to(state.id, digests)
        added = with_learned(cues.every, cues.learned, question.text, answers)
        if added is not None:
            cues = Cues(*added)
    if cues == present:
        return False
    await change.learn_cues(state.id, cues)
    return True
