"""The trained weights of a ranking: relevance, which orders; confidence, of memory and question alone; the score.

`weights.json` is written by benchmarks/train_ranking.py and names what it was trained on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from folklore.lazy import NDArray, numpy as np
from folklore.model import Match
from folklore.ranking.features import CONFIDENCE, OF_CUES, RELEVANCE, Pool


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features, and the scores from which a match is strong or fair.

    An answer none of whose results has the confidence `floor` is one where nothing fits.
    """

    relevance: Mapping[str, float]
    confidence: Mapping[str, float]
    score: Mapping[str, float]
    strong: float
    fair: float
    floor: float

    def relevance_of(self, pool: Pool) -> dict[str, NDArray[np.float64]]:
        """Return each feature of the candidates (n,) times its weight; their sum is the relevance.

        Features of cues are left out where no candidate has any.
        """
        absent = _absent(pool)
        products = {}
        for name, (feature, _) in RELEVANCE.items():
            if name in self.relevance and name not in absent:
                products[name] = feature(pool) * self.relevance[name]
        return products

    def confidence_of(self, pool: Pool) -> NDArray[np.float64]:
        """Return the probability (n,) that a memory answers the question, estimated from the two alone.

        It is the same whatever else is stored, so answers of several scopes can be compared by it.
        """
        log_odds = np.full(len(pool.keyword), self.confidence["bias"])
        absent = _absent(pool)
        for name, weight in self.confidence.items():
            if name != "bias" and name not in absent:
                feature = CONFIDENCE[name]
                log_odds += weight * feature(pool)
        return _probability(log_odds)

    def scores_of(
        self,
        relevance: NDArray[np.float64],
        lead: NDArray[np.float64],
        confidence: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the calibrated probability (n,) that each result of an answer is right, in the order of the results.

        `lead` is the relevance minus the greatest one of the other candidates. The score falls along the order: it is
        the greatest of a result's own and of those after it.
        """
        log_odds = (
            self.score["relevance"] * relevance
            + self.score["lead"] * lead
            + self.score["bias"]
        )
        odds = confidence / (1.0 - confidence)
        log_odds += self.score["confidence"] * np.log(odds)
        last_first = _probability(log_odds)[::-1]
        falling: NDArray[np.float64] = np.maximum.accumulate(last_first)[::-1]
        return falling

    def match_of(self, score: float) -> Match:
        """Return the match that a score is: strong, fair or weak."""
        if score >= self.strong:
            return "strong"
        return "fair" if score >= self.fair else "weak"


def _probability(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logistic function of each value."""
    probability: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-log_odds))
    return probability


def _absent(pool: Pool) -> Collection[str]:
    """Return the features that are 0 for every candidate: those of cues where none has any."""
    if pool.cues is None:
        return OF_CUES
    return ()


@cache
def weights_for(model: str) -> Weights:
    """Return the weights for questions with vectors of a model: "bundled", "contextual", or "none" for words alone."""
    text = files("folklore.ranking").joinpath("weights.json").read_text("utf-8")
    trained: Mapping[str, Any] = json.loads(text)
    return Weights(**trained["models"][model])
