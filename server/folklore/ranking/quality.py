"""How much a memory proved worth: often of use counts, and fades while nobody uses it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Decay:
    """The constants of quality.

    With these, what was recalled once falls below recall's floor of 0.05 after 299 days without use, and what was
    recalled often after 389. What nobody ever recalled has no quality, and stays.
    """

    half_life: timedelta = timedelta(days=90)
    # So many uses are worth half of what there is.
    habit: float = 1.0
    # Whoever is protected does not fade.
    important: float = 0.7
    protected_kinds: frozenset[str] = frozenset({"decision"})
    protected_tags: frozenset[str] = frozenset({"pinned"})


def base(recalls: int, confirmations: int, decay: Decay = Decay()) -> float:
    """n / (n + habit) for n uses: 0 for what was never of use, 1/2 for once, ever closer to 1; the tenth use says less
    than the second.
    """
    uses = max(recalls, 0) + max(confirmations, 0)
    return uses / (uses + decay.habit)


def protected(kind: str, tags: Collection[str], importance: float | None, decay: Decay = Decay()) -> bool:
    """Decisions, what somebody pinned, and what is important never fade."""
    return (
        kind in decay.protected_kinds
        or not decay.protected_tags.isdisjoint(tags)
        or (importance is not None and importance >= decay.important - 1e-6)  # stored in four bytes
    )


def quality(
    *,
    recalls: int,
    confirmations: int,
    used_at: datetime,
    now: datetime,
    fades: bool,
    decay: Decay = Decay(),
) -> float | None:
    """base · 0.5^(age / half-life), 0 to 1, with the age since the last use; None for what was never of use.

    A time in the future counts as now. What does not fade keeps its base.
    """
    if recalls <= 0 and confirmations <= 0:
        return None
    worth = base(recalls, confirmations, decay)
    if not fades:
        return worth
    age = max(now - used_at, timedelta())
    faded: float = worth * 0.5 ** (age / decay.half_life)
    return faded
