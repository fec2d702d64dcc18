"""Quotations: which injected notes a later text repeats."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from folklore.db.stores.events.injections import AssistantSession, Injections
from folklore.db.stores.events.usage import USED_WITHIN
from folklore.text.hooks.injected import Quoting, without_blocks

# Characters of a text that are compared.
_LONGEST = 20_000


async def record_quotations(
    ledger: Injections, namespaces: Sequence[UUID], session: AssistantSession, text: str, now: datetime
) -> None:
    """Record the session's notes that a text, or a memory written since, quotes or names by id.

    One statement, a second if notes are unused, a third if any is quoted.
    """
    since = now - USED_WITHIN
    unused = (
        await ledger.unused(namespaces=namespaces, **session.columns, since=since, before=now) if namespaces else []
    )
    if not unused:
        return
    writings = await ledger.written(
        namespaces=namespaces, caller=session.caller, since=min(note.injected_at for note in unused)
    )
    quoting = without_blocks("\n".join([text[:_LONGEST], *(one.content for one in writings)]))
    read = Quoting.of(quoting)
    quoted = [note for note in unused if str(note.memory) in quoting or read.quotes(note.content)]
    if quoted:
        await ledger.use(quoted, session, "quoted", now=now)
