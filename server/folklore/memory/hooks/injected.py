"""The ledger of injections for people."""

from collections.abc import Sequence
from itertools import groupby

from folklore.contract.hooks import InjectedMemory, InjectedRequest, InjectedText
from folklore.db.stores.events.injections import InjectedNote, Injections
from folklore.memory.context import RequestContext
from folklore.permissions import require_owner
from folklore.text import tokens
from folklore.text.hooks.injected import block

# Most notes of one text.
_NOTES = 5


async def read_injected(
    context: RequestContext, request: InjectedRequest
) -> tuple[InjectedText, ...]:
    """Return the latest injected texts in the namespaces that the caller may read. Two statements.

    Raises InvalidInput, NotFound, Refused.
    """
    if request.everyone:
        require_owner(context.caller, dry_run=True)
    namespaces = [
        namespace.id
        for namespace in await context.memory.find_namespaces(request.namespaces)
    ]
    caller = None if request.everyone else context.caller.author
    rows = await Injections(context.memory.root.database).read(
        namespaces=namespaces,
        caller=caller,
        session=request.session,
        fetch=request.limit * _NOTES,
    )
    texts = [
        _text(list(notes)) for _, notes in groupby(rows, key=lambda row: row.injection)
    ]
    return tuple(texts[: request.limit])


def _text(notes: Sequence[InjectedNote]) -> InjectedText:
    first = notes[0]
    text = block(first.heading, [note.note for note in notes])
    memories = (
        InjectedMemory(
            note.memory, note.namespace, note.tokens, note.used, note.used_at
        )
        for note in notes
    )
    injected = (
        first.injection,
        first.injected_at,
        first.session,
        first.caller,
        first.event,
    )
    return InjectedText(*injected, text, tokens.estimate(text), tuple(memories))
