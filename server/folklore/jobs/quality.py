"""Quality of a memory: grows with its uses, fades while it is not used."""

from datetime import timedelta

# A memory recalled once falls below recall's floor of 0.05 after 299 days without use, a memory recalled often after
# 389. A memory never recalled has no quality and stays.
HALF_LIFE = timedelta(days=90)
# Memories with this importance do not fade, nor do decisions; pinned ones are visible at any quality.
_IMPORTANT = 0.7


def base(uses: int) -> float:
    """Return uses / (uses + 1): 0 for no use, 1/2 for one, approaching 1."""
    return uses / (uses + 1)


def protected(kind: str, importance: float | None) -> bool:
    """Return whether a memory does not fade: a decision or an important one."""
    # Importance is stored in four bytes.
    return kind == "decision" or (importance is not None and importance >= _IMPORTANT - 1e-6)


def quality(uses: int, *, age: timedelta, fades: bool = True) -> float | None:
    """Return base · 0.5^(age / half-life), with the age since the last use; None without any use.

    A use in the future counts as now. A memory that does not fade keeps its base.
    """
    if uses <= 0:
        return None
    if not fades:
        return base(uses)
    faded: float = base(uses) * 0.5 ** (max(age, timedelta()) / HALF_LIFE)
    return faded
