"""Worth of a memory for injection: its confidence, lowered if it was injected before and seldom used."""

from __future__ import annotations

# Odds from which a memory is injected. Confidence was fitted on as many questions with an answer as without; of the
# prompts in a session perhaps one in seven asks for something that is stored.
_ODDS = 6.0
FLOOR = _ODDS / (_ODDS + 1.0)
# Injections at the usual rate that are added to those of a memory.
_PRIOR = 4.0
_CERTAIN = 1.0 - 1e-9


def worth(confidence: float, times: int, used: int, usual: float) -> float:
    """Return the confidence after its odds were multiplied by min(1, (used + 4 usual) / ((times + 4) usual)).

    `used` of `times` injections of the memory were used, and the share `usual` of all injections. So a memory is
    compared with others: how many uses are seen depends on the client. Recall does not know this factor.
    """
    if usual <= 0.0:
        return confidence
    factor = min((used + _PRIOR * usual) / ((times + _PRIOR) * usual), 1.0)
    held = min(confidence, _CERTAIN)
    odds = factor * held / (1.0 - held)
    return odds / (1.0 + odds)
