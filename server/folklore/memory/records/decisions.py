"""Decisions on memories that a review shows: the request that each one is, and the request that takes it back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from folklore.memory import requests
from folklore.memory.results import ReviewItem
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

    request: requests.Request
    changed: Memory
    undo: requests.Request

    @property
    def is_relation(self) -> bool:
        """True for a decision that only relates the memories."""
        return isinstance(self.undo, requests.RelateRequest)


def decide(item: ReviewItem, decision: Decision, today: date) -> Decided:
    """Return a decision on an item; one of DECISIONS for its reason."""
    newer = item.memories[-1]
    if len(item.memories) == 1:
        return _on_one(newer, decision, today)
    older = item.memories[0]
    if decision in ("keep", "contradicts"):
        type_ = requests.DISTINCT if decision == "keep" else "contradicts"
        return Decided(
            _relation(newer, type_, older),
            newer,
            _relation(newer, type_, older, remove=True),
        )
    if decision == "merge":
        return _changed(
            newer,
            requests.UpdateRequest(
                id=newer.id, merge=(older.id,), namespaces=(newer.namespace,)
            ),
        )
    if decision == "supersede":
        return _changed(older, _relation(newer, "supersedes", older))
    return _forgotten(older if decision == "forget_older" else newer)


def _on_one(memory: Memory, decision: Decision, today: date) -> Decided:
    if decision == "forget":
        return _forgotten(memory)
    metadata = {**(memory.metadata or {}), requests.REVIEWED: today.isoformat()}
    changes = requests.Changes.model_validate(
        {"pinned": True} if decision == "pin" else {"metadata": metadata}
    )
    where = {"namespaces": (memory.namespace,), "if_revision": memory.revision}
    return _changed(
        memory, requests.UpdateRequest(id=memory.id, changes=changes, **where)
    )


def _forgotten(memory: Memory) -> Decided:
    return _changed(
        memory, requests.ForgetRequest(ids=(memory.id,), namespaces=(memory.namespace,))
    )


def _changed(memory: Memory, request: requests.Request) -> Decided:
    return Decided(
        request,
        memory,
        requests.UndoRequest(id=memory.id, namespaces=(memory.namespace,)),
    )


def _relation(
    one: Memory, type_: str, other: Memory, *, remove: bool = False
) -> requests.RelateRequest:
    change = requests.RelationChange(
        from_id=one.id, to_id=other.id, type=type_, remove=remove
    )
    return requests.RelateRequest(relations=(change,), namespaces=(one.namespace,))
