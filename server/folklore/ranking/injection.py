"""Worth of a memory for injection, after its former use."""

from __future__ import annotations

# Least worth of what is injected.
FLOOR = 0.25
# Injections after which the use of a memory counts as much as its confidence.
_PRIOR = 4.0


def worth(confidence: float, times: int, used: int) -> float:
    """Return confidence * (used + 4) / (times + 4).

    The factor is the expected rate of use, as if the memory had been used in four injections before: 1 for a new one,
    1/2 after four injections without a use. Recall does not know it.
    """
    return confidence * (used + _PRIOR) / (times + _PRIOR)
