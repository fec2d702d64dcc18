"""Decisions on memories that a review shows: the request that each one is, and the request that takes it back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from folklore.contract.memories import (
    Changes,
    ForgetRequest,
    RelateRequest,
    RelationChange,
    UndoRequest,
    UpdateRequest,
)
from folklore.contract.requests import Request
from folklore.contract.review import DISTINCT, REVIEWED, ReviewItem
from folklore.model import Memory

Decision = Literal[
    "keep",
    "pin",
    "merge",
    "supersede",
    "contradicts",
    "forget",
    "forget_older",
    "forget_newer",
]
_PAIR: Mapping[Decision, str] = {
    "keep": "Keep both; the review shows them no more",
    "merge": "Merge the older into the newer",
    "supersede": "Let the newer supersede the older",
    "forget_older": "Forget the older",
    "forget_newer": "Forget the newer",
}
# The decisions for each reason, with what they do.
DECISIONS: Mapping[str, Mapping[Decision, str]] = {
    "contradiction": _PAIR,
    "similar": {**_PAIR, "contradicts": "Relate them as a contradiction"},
    "unused": {
        "keep": "Keep it; the review shows it no more for the same time",
        "pin": "Pin it; it never expires",
        "forget": "Forget it",
    },
    "cues": {"forget": "Forget it; to write cues, open it"},
}


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision as a request, the memory that it changes, and the request that takes it back.

    A relation changes neither memory; then `changed` is the newer one.
    """

    request: Request
    changed: Memory
    undo: Request

    @property
    def is_relation(self) -> bool:
        """True for a decision that only relates the memories."""
        return isinstance(self.undo, RelateRequest)


def decide(item: ReviewItem, decision: Decision, today: date) -> Decided:
    """Return a decision on an item; one of DECISIONS for its reason."""
    newer = item.memories[-1]
    if len(item.memories) == 1:
        return _on_one(newer, decision, today)
    older = item.memories[0]
    if decision in ("keep", "contradicts"):
        type_ = DISTINCT if decision == "keep" else "contradicts"
        return Decided(
            _relation(newer, type_, older),
            newer,
            _relation(newer, type_, older, remove=True),
        )
    if decision == "merge":
        return _changed(
            newer,
            UpdateRequest(
                id=newer.id, merge=(older.id,), namespaces=(newer.namespace,)
            ),
        )
    if decision == "supersede":
        return _changed(older, _relation(newer, "supersedes", older))
    return _forgotten(older if decision == "forget_older" else newer)


def _on_one(memory: Memory, decision: Decision, today: date) -> Decided:
    if decision == "forget":
        return _forgotten(memory)
    metadata = {**(memory.metadata or {}), REVIEWED: today.isoformat()}
    changes = Changes.model_validate(
        {"pinned": True} if decision == "pin" else {"metadata": metadata}
    )
    where = {"namespaces": (memory.namespace,), "if_revision": memory.revision}
    return _changed(memory, UpdateRequest(id=memory.id, changes=changes, **where))


def _forgotten(memory: Memory) -> Decided:
    return _changed(
        memory, ForgetRequest(ids=(memory.id,), namespaces=(memory.namespace,))
    )


def _changed(memory: Memory, request: Request) -> Decided:
    return Decided(
        request,
        memory,
        UndoRequest(id=memory.id, namespaces=(memory.namespace,)),
    )


def _relation(
    one: Memory, type_: str, other: Memory, *, remove: bool = False
) -> RelateRequest:
    change = RelationChange(from_id=one.id, to_id=other.id, type=type_, remove=remove)
    return RelateRequest(relations=(change,), namespaces=(one.namespace,))
