"""Quality of a memory: grows with its uses, fades while it is not used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Decay:
    """The constants of quality.

    With these, a memory recalled once falls below recall's floor of 0.05 after 299 days without use, a memory recalled
    often after 389. A memory never recalled has no quality and stays.
    """

    half_life: timedelta = timedelta(days=90)
    # The number of uses whose base is 1/2.
    habit: float = 1.0
    # Memories with this importance or kind do not fade; pinned ones are visible at any quality.
    important: float = 0.7
    protected_kinds: frozenset[str] = frozenset({"decision"})


def base(uses: int, decay: Decay = Decay()) -> float:
    """Return uses / (uses + habit): 0 for no use, 1/2 for one, approaching 1."""
    return uses / (uses + decay.habit)


def protected(kind: str, importance: float | None, decay: Decay = Decay()) -> bool:
    """Return whether a memory does not fade: a decision or an important one."""
    return (
        kind in decay.protected_kinds
        or (importance is not None and importance >= decay.important - 1e-6)  # importance is stored in four bytes
    )


def quality(uses: int, *, age: timedelta, fades: bool = True, decay: Decay = Decay()) -> float | None:
    """Return base · 0.5^(age / half-life), with the age since the last use; None without any use.

    A use in the future counts as now. A memory that does not fade keeps its base.
    """
    if uses <= 0:
        return None
    if not fades:
        return base(uses, decay)
    faded: float = base(uses, decay) * 0.5 ** (max(age, timedelta()) / decay.half_life)
    return faded
