"""Statements of a person, recorded until a memory that says the same is written, and notes that a text repeats."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from folklore.contract.hooks import Paused, PauseRequest, Statement, StatementsRequest
from folklore.db.stores.events.audit import NOWHERE
from folklore.db.stores.events.injections import (
    AssistantSession,
    Injections,
    OpenStatement,
    Place,
    Writing,
)
from folklore.db.stores.events.usage import USED_WITHIN
from folklore.errors import NotFound
from folklore.memory.context import RequestContext
from folklore.memory.hooks.scope import HookScope, place_of
from folklore.permissions import require_writable
from folklore.text.hooks.injected import Quoting, quoting_of
from folklore.text.secrets.finder import SearchEnded, find

# Of two texts that say the same, one holds this share of the other's words, by weight.
SAME = 0.5
# The time in which a turn of an assistant stores what it then speaks of.
MEANWHILE = timedelta(hours=1)
_MOST = 100


async def record_statements(
    context: RequestContext, scope: HookScope, sentences: Sequence[str]
) -> None:
    """Record a session, and what was stated in it; nothing that holds a secret."""
    assert scope.ledger is not None
    await scope.ledger.enter(
        scope.place,
        scope.session,
        context.now,
        [one for one in sentences if not _may_hold_secret(one)],
    )


def _may_hold_secret(sentence: str) -> bool:
    try:
        return bool(find(sentence))
    except SearchEnded:
        return True


async def not_stored(
    context: RequestContext,
    place: Place,
    stated: Sequence[OpenStatement],
    session: str = "",
    drop: Sequence[str] = (),
) -> list[OpenStatement]:
    """Return which of a project's statements no memory of the caller says yet; forget `drop` and the others.

    A text is compared once and settles one. At the end of a turn of `session`, as many texts in other words as it was
    asked for in that turn settle those. Up to three statements.
    """
    if not stated:
        return []
    ledger = Injections(context.memory.root.database)
    writings = await _written(context, ledger, place, stated)
    asked = [
        one for one in stated if one.session == session and one.asked_at == one.since
    ]
    settled = {*drop, *_settled(stated, asked, writings)}
    if writings or asked or drop:
        await ledger.settle(place, context.caller.author, sorted(settled), context.now)
    return [one for one in stated if one.sentence not in settled]


async def _written(
    context: RequestContext,
    ledger: Injections,
    place: Place,
    stated: Sequence[OpenStatement],
) -> list[Writing]:
    """Return what the caller has written in a project since the first of these, of equal texts the latest."""
    since = min(one.since for one in stated)
    texts = await ledger.written(
        namespaces=[place.namespace], caller=context.caller.author, since=since
    )
    return list(
        {
            text.content: text for text in reversed(texts) if text.at <= context.now
        }.values()
    )


def _settled(
    stated: Sequence[OpenStatement],
    asked: Sequence[OpenStatement],
    writings: Sequence[Writing],
) -> set[str]:
    """Return the sentences that were written down, in their words or, of those asked for, in as many other texts."""
    said = _said(stated, writings)
    sentences = {one.sentence for one in asked} - said.keys()
    others = [
        text
        for text in writings
        if text not in said.values() and any(text.at >= one.since for one in asked)
    ]
    if len(others) >= len(sentences):
        return said.keys() | sentences
    return set(said)


def _said(
    stated: Sequence[OpenStatement], writings: Sequence[Writing]
) -> dict[str, Writing]:
    """Return the statements that were written down in their words, each with a text of its own, the most alike."""
    said: dict[str, Writing] = {}
    pairs = [
        (alike(new.content, one.sentence), one, new)
        for one in stated
        for new in writings
        if new.at >= one.since
    ]
    for share, one, text in sorted(pairs, key=lambda pair: -pair[0]):
        if share >= SAME and one.sentence not in said and text not in said.values():
            said[one.sentence] = text
    return said


def alike(text: str, other: str) -> float:
    """Return the larger share of one text's words, by weight, that the other holds."""
    return max(Quoting.of(text).share(other), Quoting.of(other).share(text))


async def list_statements(
    context: RequestContext, request: StatementsRequest
) -> tuple[Statement, ...]:
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
        spaces = {
            space.id: space.name for space in await context.memory.find_namespaces(())
        }
        places = await ledger.stated_in(namespaces=[NOWHERE, *spaces], caller=caller)
        projects = sorted({spaces.get(one.namespace, one.project) for one in places})
        each = [
            request.model_copy(update={"namespace": project, "everywhere": False})
            for project in projects
        ]
        return tuple(
            [
                statement
                for one in each
                for statement in await list_statements(context, one)
            ]
        )
    place = await place_of(context, request.namespace or context.namespace())
    stated = await ledger.stated(**place.columns, caller=caller)
    pending = await not_stored(context, place, stated, drop=request.drop)
    return tuple(
        Statement(one.sentence, one.said_at, one.session, place.project)
        for one in pending[:_MOST]
    )


async def pause(context: RequestContext, request: PauseRequest) -> Paused:
    """Silence the caller's hooks for some minutes, in every session or in the last one of the project; 0 ends all.

    Raises InvalidInput, NotFound, Refused.
    """
    require_writable(context.caller)
    ledger = Injections(context.memory.root.database)
    caller = context.caller.author
    until = context.now + timedelta(minutes=request.minutes)
    name = ""
    if request.minutes == 0:
        await ledger.resume(caller=caller)
        return Paused(until)
    if request.session:
        place = await place_of(context, context.namespace())
        last = await ledger.last_session(
            **place.columns, caller=caller, before=context.now
        )
        if last is None:
            raise NotFound(
                f"No session of yours in {place.project} is known.",
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
    contents = [one.content for one in writings]
    quoting = quoting_of(text, *contents)
    quoted = [note for note in unused if quoting.uses(note.memory, note.content)]
    if quoted:
        await ledger.use(quoted, session, "quoted", now=now)
