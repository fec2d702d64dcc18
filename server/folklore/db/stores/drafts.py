"""Drafts as the statements that write them take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from folklore.model import Draft


def stated(draft: Draft) -> dict[str, object]:
    """What a draft states, by column, as JSON that `jsonb_to_recordset` reads."""
    return {
        "content": draft.content,
        "summary": draft.summary,
        "kind": draft.kind,
        "tags": list(draft.tags),
        "source": draft.source,
        "session": draft.session,
        "position": draft.position,
        "paths": list(draft.paths),
        "commit": draft.commit,
        "importance": draft.importance,
        "confidence": draft.confidence,
        "priority": draft.priority,
        "metadata": draft.metadata,
        "occurred_at": draft.occurred_at.isoformat() if draft.occurred_at else None,
        "expires_at": draft.expires_at.isoformat() if draft.expires_at else None,
        "idempotency_key": draft.idempotency_key,
    }


def steps(drafts: Iterable[Draft]) -> Iterator[int]:
    """How many drafts of its session stand before each in the batch and also leave their position open."""
    counted: dict[str | None, int] = {}
    for draft in drafts:
        step = counted.get(draft.session, 0)
        if draft.position is None:
            counted[draft.session] = step + 1
        yield step
