"""History of calls of several clients, and the check that each memory behaved as if there were one copy of it.

Linearizability (Herlihy and Wing, 1990): the calls on a memory have an order in which each gives the answer that it
gave, and in which a call that ended before another began comes before it. The search is that of Wing and Gong (1993),
with the states that were seen remembered (Lowe, 2017). A call without an answer may have had its effect, at any time
since it began, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

_MOST_STATES = 1_000_000
# What a call does to the state of its object: the states after it that fit its answer.
Step = Callable[[Any, "Call"], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Call:
    """A call on one object. `end` is infinity and `answer` None for a call without an answer."""

    name: str
    arguments: tuple[Any, ...]
    begin: float
    end: float = inf
    answer: Any = None

    @property
    def unknown(self) -> bool:
        """True if its effect is not known."""
        return self.end == inf


@dataclass(frozen=True, slots=True)
class Register:
    """A memory: its text, its revision, what hides it, and its changes that an undo can take back, the last one last.

    A change is the text, `forgotten` and `superseded` before it.
    """

    content: str | None = None
    revision: int = 0
    forgotten: bool = False
    superseded: bool = False
    changes: tuple[tuple[str | None, bool, bool], ...] = ()

    def changed(self, **fields: Any) -> Register:
        """The state after a change."""
        before = (self.content, self.forgotten, self.superseded)
        return replace(
            self, revision=self.revision + 1, changes=(*self.changes, before), **fields
        )

    def undone(self) -> Register:
        """The state after an undo."""
        content, forgotten, superseded = self.changes[-1]
        return Register(
            content, self.revision + 1, forgotten, superseded, self.changes[:-1]
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """Answer of a call that changed nothing: the code of its error."""

    code: str


@dataclass(frozen=True, slots=True)
class Seen:
    """Memory as a read shows it; `content` is None if it shows none."""

    content: str | None
    revision: int = 0
    superseded: bool = False


DONE = "done"


def register(state: Register, call: Call) -> Iterable[Register]:
    """The states of a memory after a call: its effect if the answer fits, the same if it was refused with reason."""
    effect = _effect(state, call)
    if call.unknown:
        return (state,) if effect is None else (state, effect)
    if isinstance(call.answer, Refused):
        return (state,) if effect is None else ()
    if call.name == "read":
        return (state,) if _shows(state, call.answer) else ()
    return () if effect is None else (effect,)


def _effect(state: Register, call: Call) -> Register | None:
    """The state after a call that changes it; None where it must be refused, and for a read."""
    if call.name == "store":
        return None if state.revision else Register(call.arguments[0], 1)
    if call.name == "read" or state.revision == 0:
        return None
    return _EFFECTS[call.name](state, *call.arguments)


def _updated(state: Register, content: str, revision: int | None) -> Register | None:
    refused = (
        state.forgotten or state.superseded or revision not in (None, state.revision)
    )
    return None if refused else state.changed(content=content)


def _forgotten(state: Register) -> Register | None:
    return None if state.forgotten else state.changed(forgotten=True)


def _superseded(state: Register) -> Register | None:
    return (
        None if state.forgotten or state.superseded else state.changed(superseded=True)
    )


def _undone(state: Register, revision: int | None) -> Register | None:
    return (
        None
        if not state.changes or revision not in (None, state.revision)
        else state.undone()
    )


_EFFECTS: Mapping[str, Callable[..., Register | None]] = {
    "update": _updated, "forget": _forgotten, "supersede": _superseded, "undo": _undone,
}  # fmt: skip


def _shows(state: Register, seen: Seen) -> bool:
    if seen.content is None:
        return state.forgotten or state.revision == 0
    shown = (state.content, state.revision, state.superseded)
    return not state.forgotten and shown == (
        seen.content,
        seen.revision,
        seen.superseded,
    )


@dataclass(frozen=True, slots=True)
class Key:
    """An idempotency key: the memory that its first request stored."""

    id: str | None = None


def key(state: Key, call: Call) -> Iterable[Key]:
    """The states of a key after a request under it: the first stores, all others are answered by its memory."""
    if call.unknown:
        return (state,) if state.id else (state, Key("unknown"))
    if isinstance(call.answer, Refused):
        return (state,)
    id_, status = call.answer
    if status == "stored":
        return () if state.id else (Key(id_),)
    return (Key(id_),) if state.id in (id_, "unknown") else ()


@dataclass
class History:
    """Calls by the object that they concern."""

    calls: dict[str, list[Call]] = field(default_factory=dict)

    def add(self, about: str, call: Call) -> None:
        """Add a call that ended, or whose client gave up."""
        self.calls.setdefault(about, []).append(call)

    def violations(self, step: Step, initial: Hashable, about: str = "") -> list[str]:
        """Describe each object, of those whose name begins with `about`, that has no order of its calls."""
        found = []
        for name, calls in self.calls.items():
            if name.startswith(about) and (
                problem := unexplained(calls, step, initial)
            ):
                found.append(f"{name}: {problem}")
        return found


def _described(call: Call) -> str:
    end = "?" if call.unknown else f"{call.end:.3f}"
    return f"[{call.begin:.3f}–{end}] {call.name}{call.arguments} → {call.answer}"


def unexplained(calls: Sequence[Call], step: Step, initial: Hashable) -> str | None:
    """Return None if an order of the calls explains their answers, else the longest such order and what is left."""
    ordered = sorted(calls, key=lambda call: call.begin)
    must = frozenset(number for number, call in enumerate(ordered) if not call.unknown)
    seen: set[tuple[frozenset[int], Hashable]] = set()
    open_: list[tuple[tuple[int, ...], Hashable]] = [((), initial)]
    longest: tuple[tuple[int, ...], Hashable] = ((), initial)
    while open_:
        order, state = open_.pop()
        done = frozenset(order)
        if must <= done:
            return None
        if len(seen) > _MOST_STATES:
            return f"undecided after {_MOST_STATES:,} states"
        longest = max(longest, (order, state), key=lambda item: len(item[0]))
        for number in _possible(ordered, must, done):
            for after in step(state, ordered[number]):
                found = (done | {number}, after)
                if found not in seen and not (
                    ordered[number].unknown and after == state
                ):
                    seen.add(found)
                    open_.append(((*order, number), after))
    return _account(ordered, *longest)


def _possible(
    ordered: Sequence[Call], must: frozenset[int], done: frozenset[int]
) -> list[int]:
    """The calls that may come next: those that began before another one ended.

    The last one is tried first: a call with an answer, and of these the one that ended first.
    """
    first_end = min(ordered[number].end for number in must - done)
    possible = [
        number
        for number, call in enumerate(ordered)
        if call.begin <= first_end and number not in done
    ]
    return sorted(possible, key=lambda number: ordered[number].end, reverse=True)


def _account(ordered: Sequence[Call], order: tuple[int, ...], state: Hashable) -> str:
    left = [call for number, call in enumerate(ordered) if number not in order]
    return "\n    ".join(
        [
            "the last calls that have an order:",
            *(_described(ordered[number]) for number in order[-8:]),
            f"state: {state}",
            "then:",
            *map(_described, left[:6]),
        ]
    )
