"""The ledger of injections for people."""

from collections.abc import Sequence
from itertools import groupby

from folklore.contract.hooks import InjectedMemory, InjectedRequest, InjectedText
from folklore.db.stores.events.injections import InjectedNote, Injections
from folklore.memory.context import RequestContext
from folklore.permissions import require_owner
from folklore.text import tokens
from folklore.text.hooks.injected import block

_MOST_NOTES = 5  # of one text


async def read_injected(
    context: RequestContext, request: InjectedRequest
) -> tuple[InjectedText, ...]:
    """Return the latest injected texts in the namespaces that the caller may read. Two statements.

    Raises InvalidInput, NotFound, Refused.
    """
    caller: str | None = context.caller.author
    if request.everyone:
        require_owner(context.caller, dry_run=True)
        caller = None
    namespaces = await context.memory.find_namespaces(request.namespaces)
    rows = await Injections(context.memory.root.database).read(
        namespaces=[namespace.id for namespace in namespaces],
        caller=caller,
        session=request.session,
        fetch=request.limit * _MOST_NOTES,
    )
    texts = []
    for _, notes in groupby(rows, key=lambda row: row.injection):
        texts.append(_text(list(notes)))
    return tuple(texts[: request.limit])


def _text(notes: Sequence[InjectedNote]) -> InjectedText:
    """Return one injected text with its notes, which are not empty."""
    first = notes[0]
    text = block(first.heading, [note.note for note in notes])
    memories = []
    for note in notes:
        memory = InjectedMemory(
            id=note.memory,
            namespace=note.namespace,
            tokens=note.tokens,
            used=note.used,
            used_at=note.used_at,
        )
        memories.append(memory)
    return InjectedText(
        id=first.injection,
        at=first.injected_at,
        session=first.session,
        author=first.caller,
        event=first.event,
        text=text,
        tokens=tokens.estimate(text),
        memories=tuple(memories),
    )
