"""Fields of a stored memory: written with its postings and vectors, in the transaction of a change."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from folklore.db.stores.changes import (
    NamespaceTransaction,
    Patch,
    Signature,
    State,
)
from folklore.db.stores.memories import Vectors
from folklore.errors import Conflict, NotFound
from folklore.model import FIELDS, Revision
from folklore.text.clean import digest

# What a reader takes for the words of the author.
TEXTS = frozenset(("content", "summary", "source"))
# Digits of numbers as the database stores them.
_DIGITS = 6
_INDEXED = frozenset(name for name, field in FIELDS.items() if field.indexed)


async def write_fields(
    change: NamespaceTransaction,
    state: State,
    fields: Mapping[str, Any],
    vectors: Vectors | None,
) -> None:
    """Write columns of a memory, and its postings and vectors if they changed. Raises Conflict for a text in use.

    The vector of cues is pending if they or the content changed: after the commit, `embed_cues` makes it.
    """
    values = {**state.held, **fields}
    text_digest = digest(str(values["content"]))
    if values["forgotten_at"] is None and values["superseded_at"] is None:
        holder = await change.in_force(digests=[text_digest])
        if holder not in (None, state.id):
            raise text_in_use(holder)
    if "language" in fields:
        await change.add_language(language=str(fields["language"]))

    content_changed = "content" in fields
    is_indexed = not _INDEXED.isdisjoint(fields)
    if is_indexed:
        await change.unindex([state.id])
    new_digest = text_digest if content_changed else None
    await change.update(changes=[Patch(state.id, fields, new_digest)])
    if is_indexed:
        await change.reindex(
            state.id,
            content_changed=content_changed,
            cues_changed="cues" in fields,
            vectors=vectors,
        )


def signed(
    changed: Mapping[str, Any], state: State, change: NamespaceTransaction
) -> dict[str, Any]:
    """Return changed columns with who changed the text last; with neither for a text that is its author's again.

    An author who changes the summary or the source of a memory does not make another's content theirs.
    """
    if TEXTS.isdisjoint(changed):
        return dict(changed)
    caller = change.caller.author
    if caller != state.author:
        at = change.now.isoformat()
        return {**changed, "changed_by": caller, "changed_at": at}
    if "content" in changed and state.held["changed_by"] is not None:
        return {**changed, "changed_by": None, "changed_at": None}
    return dict(changed)


async def restorable(change: NamespaceTransaction, last: Revision) -> Mapping[str, Any]:
    """Return the columns that a revision kept; with a text, who had changed it last, which old revisions lack."""
    if TEXTS.isdisjoint(last.before) or "changed_by" in last.before:
        return last.before
    signature = await change.signature(
        id=last.memory_id, revision=last.revision, texts=sorted(TEXTS)
    )
    if signature is None:
        signature = Signature()
    return {**last.before, **asdict(signature)}


def text_in_use(holder: object) -> Conflict:
    """Make the error for a text that the memory `holder` has."""
    return Conflict(
        f"The memory {holder} has this text.", hint="Change or forget that one instead."
    )


def differing(values: Mapping[str, Any], state: State) -> dict[str, Any]:
    """Return the values that differ from those of a memory."""
    changed = {}
    for name, value in values.items():
        if _differs(name, value, state.held[name]):
            changed[name] = value
    return changed


def revised(changed: Mapping[str, Any]) -> list[str]:
    """Return the columns that a revision keeps: a memory that moves to another session gets another position."""
    columns = list(changed)
    if "session" in changed:
        columns.append("position")
    return columns


def _differs(name: str, new: object, old: object) -> bool:
    """Return whether two values of a column differ: as times, and as exactly as the database stores numbers."""
    is_time = name in FIELDS and FIELDS[name].type == "time"
    if is_time and isinstance(new, str) and isinstance(old, str):
        return datetime.fromisoformat(new) != datetime.fromisoformat(old)
    if isinstance(new, float) and isinstance(old, float):
        return round(new, _DIGITS) != round(old, _DIGITS)
    return new != old


def require_revision(
    id_: UUID,
    revision: int,
    expected: int | None,
    *,
    hint: str = "Read it again with memory_get and repeat the change.",
) -> None:
    """Check that a memory is at the revision that its reader saw, if any is expected. Raises Conflict."""
    if expected not in (None, revision):
        raise Conflict(
            f"The memory {id_} is at revision {revision}, not {expected}.", hint=hint
        )


def require_in_force(state: State) -> None:
    """Check that a memory is neither forgotten nor superseded. Raises NotFound, Conflict."""
    if state.forgotten_at is not None:
        raise NotFound(
            f"The memory {state.id} was forgotten.",
            hint=f"`folklore undo {state.id}` restores it.",
        )
    if state.superseded_at is not None:
        by = "another" if state.superseded_by is None else str(state.superseded_by)
        raise Conflict(
            f"The memory {state.id} was superseded by {by}.", hint="Change that one."
        )
