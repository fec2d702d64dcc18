"""Assertions of a person, recorded until a memory that says the same is written, and notes that a text repeats."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from folklore.contract.hooks import Assertion, Paused, PauseRequest, StatementsRequest
from folklore.db.stores.events.audit import NOWHERE
from folklore.db.stores.events.injections import (
    AssistantSession,
    Injections,
    OpenAssertion,
    SessionProject,
    Writing,
)
from folklore.db.stores.events.usage import USED_WITHIN
from folklore.errors import NotFound
from folklore.memory.context import RequestContext
from folklore.memory.hooks.scope import HookScope, project_named
from folklore.permissions import require_writable
from folklore.text.hooks.injected import Quoting, quoting_of
from folklore.text.secrets.finder import SearchEnded, find

# Two texts say the same if one has this share of the other's words, by weight.
LEAST_SHARE = 0.5
# The time in which a turn of an assistant stores what it then speaks of.
TURN = timedelta(hours=1)
_MOST_LISTED = 100


async def record_assertions(
    context: RequestContext, scope: HookScope, sentences: Sequence[str]
) -> None:
    """Record a session, and what was stated in it; nothing that holds a secret."""
    assert scope.ledger is not None
    harmless = [text for text in sentences if not _may_hold_secret(text)]
    await scope.ledger.enter(
        scope.recorded_project, scope.session, context.now, harmless
    )


def _may_hold_secret(sentence: str) -> bool:
    try:
        return bool(find(sentence))
    except SearchEnded:
        return True


async def settle_stored(
    context: RequestContext,
    project: SessionProject,
    stated: Sequence[OpenAssertion],
    session: str = "",
    drop: Sequence[str] = (),
) -> list[OpenAssertion]:
    """Return those of a project's assertions that no memory of the caller says yet.

    The others, and `drop`, are deleted from the ledger; those that are left are marked as compared now.

    A memory that says an assertion in its words settles it, each memory one; it is compared once. At the end of a turn
    of `session`, the assertions that the session was asked for in that turn are settled too by other memories written
    since, if these are as many. Up to three statements of SQL.
    """
    if not stated:
        return []
    ledger = Injections(context.memory.root.database)
    caller = context.caller.author
    writings = await _written_since(
        ledger, project, caller, min(item.since for item in stated), context.now
    )
    asked_for = []
    for item in stated:
        # Nothing was compared since the session was asked for it: this is the turn in which it answers.
        is_of_this_turn = item.asked_at == item.since
        if item.session == session and is_of_this_turn:
            asked_for.append(item)
    settled = {*drop, *_settled(stated, asked_for, writings)}
    if writings or asked_for or drop:
        await ledger.settle(project, caller, sorted(settled), context.now)
    return [item for item in stated if item.sentence not in settled]


async def _written_since(
    ledger: Injections,
    project: SessionProject,
    caller: str,
    since: datetime,
    now: datetime,
) -> list[Writing]:
    """Return what the caller has written in a project in this time, of equal texts the latest."""
    writings = await ledger.written(
        namespaces=[project.namespace], caller=caller, since=since
    )
    latest: dict[str, Writing] = {}
    for writing in reversed(writings):
        if writing.at <= now:
            latest[writing.content] = writing
    return list(latest.values())


def _settled(
    stated: Sequence[OpenAssertion],
    asked_for: Sequence[OpenAssertion],
    writings: Sequence[Writing],
) -> set[str]:
    """Return the sentences that were written down, in their words or, of those asked for, in as many other texts."""
    by_sentence = _written_down(stated, writings)
    in_their_words = set(by_sentence)
    unsettled = {item.sentence for item in asked_for} - in_their_words
    asked_since = min((item.since for item in asked_for), default=None)
    if asked_since is None:
        return in_their_words

    other_texts = 0
    for writing in writings:
        is_other = writing not in by_sentence.values()
        if is_other and writing.at >= asked_since:
            other_texts += 1
    if other_texts < len(unsettled):
        return in_their_words
    return in_their_words | unsettled


def _written_down(
    stated: Sequence[OpenAssertion], writings: Sequence[Writing]
) -> dict[str, Writing]:
    """Return the sentences that were written down in their words, each with a text of its own, the most alike."""
    pairs = []
    for assertion in stated:
        for writing in writings:
            if writing.at >= assertion.since:
                share = shared_words(writing.content, assertion.sentence)
                pairs.append((share, assertion.sentence, writing))
    pairs.sort(key=lambda pair: -pair[0])

    by_sentence: dict[str, Writing] = {}
    for share, sentence, writing in pairs:
        is_free = writing not in by_sentence.values()
        if share >= LEAST_SHARE and sentence not in by_sentence and is_free:
            by_sentence[sentence] = writing
    return by_sentence


def shared_words(text: str, other: str) -> float:
    """Return the larger share of one text's words, by weight, that the other holds."""
    return max(Quoting.of(text).share(other), Quoting.of(other).share(text))


async def list_assertions(
    context: RequestContext, request: StatementsRequest
) -> tuple[Assertion, ...]:
    """Return what the caller said in a project, or everywhere, and was not stored, oldest first; `drop` is forgotten.

    Raises InvalidInput, Refused.
    """
    if request.drop:
        require_writable(context.caller)
    if not context.caller.may_write:  # which recorded nothing
        return ()
    ledger = Injections(context.memory.root.database)
    caller = context.caller.author
    if request.everywhere:
        listed: list[Assertion] = []
        for name in await _projects_with_assertions(context, ledger):
            update = {"namespace": name, "everywhere": False}
            listed += await list_assertions(context, request.model_copy(update=update))
        return tuple(listed)

    project = await project_named(context, request.namespace or context.namespace())
    stated = await ledger.stated(**project.columns, caller=caller)
    pending = await settle_stored(context, project, stated, drop=request.drop)
    return tuple(
        Assertion(item.sentence, item.said_at, item.session, project.project)
        for item in pending[:_MOST_LISTED]
    )


async def _projects_with_assertions(
    context: RequestContext, ledger: Injections
) -> list[str]:
    """Return the names of the projects in which the caller said what was not stored."""
    namespaces = await context.memory.find_namespaces(())
    names = {namespace.id: namespace.name for namespace in namespaces}
    projects = await ledger.stated_in(
        namespaces=[NOWHERE, *names], caller=context.caller.author
    )
    # A namespace may have been renamed since.
    return sorted({names.get(item.namespace, item.project) for item in projects})


async def pause(context: RequestContext, request: PauseRequest) -> Paused:
    """Silence the caller's hooks for some minutes, in every session or in the last one of the project; 0 ends all.

    Raises InvalidInput, NotFound, Refused.
    """
    require_writable(context.caller)
    ledger = Injections(context.memory.root.database)
    caller = context.caller.author
    until = context.now + timedelta(minutes=request.minutes)
    if request.minutes == 0:
        await ledger.resume(caller=caller)
        return Paused(until)

    name = ""
    if request.session:
        project = await project_named(context, context.namespace())
        last = await ledger.last_session(
            **project.columns, caller=caller, before=context.now
        )
        if last is None:
            raise NotFound(
                f"No session of yours in {project.project} is known.",
                hint="Leave --session out.",
            )
        name = last.session
    await ledger.pause(caller=caller, session=name, now=context.now, until=until)
    return Paused(until, name or None)


async def record_quotations(
    ledger: Injections,
    namespaces: Sequence[UUID],
    session: AssistantSession,
    text: str,
    now: datetime,
) -> None:
    """Record the session's notes that a text, or a memory written since, quotes or names by id.

    One statement, a second if notes are unused, a third if any is quoted.
    """
    unused = await ledger.unused(
        namespaces=namespaces, **session.columns, since=now - USED_WITHIN, before=now
    )
    if not unused:
        return
    since = min(note.injected_at for note in unused)
    writings = await ledger.written(
        namespaces=namespaces, caller=session.caller, since=since
    )
    quoting = quoting_of(text, *(writing.content for writing in writings))
    quoted = [note for note in unused if quoting.uses(note.memory, note.content)]
    if quoted:
        await ledger.use(quoted, session, "quoted", now=now)
