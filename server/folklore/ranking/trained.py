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
from folklore.ranking.numbers import MANY_CUED


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features, and the scores from which a match is strong or fair.

    `score_among_cues` are those of the score where many candidates have cues; none if they were trained without any.
    An answer none of whose results has the confidence `floor` is one where nothing fits.
    """

    relevance: Mapping[str, float]
    confidence: Mapping[str, float]
    score: Mapping[str, float]
    score_among_cues: Mapping[str, float]
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
        behind: NDArray[np.float64],
        confidence: NDArray[np.float64],
        cued_share: float,
    ) -> NDArray[np.float64]:
        """Return the calibrated probability (n,) that each result of an answer is right, in the order of the results.

        `lead` is the relevance minus the greatest one of the other candidates (`leads`), `behind` minus the best that
        `behind_best` compares it with (ranking/fusion.py). `cued_share` is the share of all candidates with cues. The
        score falls along the order: it is the greatest of a result's own and of those after it.
        """
        log_odds = (
            self.score["relevance"] * relevance
            + self.score["lead"] * lead
            + self.score["bias"]
        )
        confidence_log_odds = np.log(confidence / (1.0 - confidence))
        log_odds += self.score["confidence"] * confidence_log_odds
        if cued_share > 0.0 and self.score_among_cues:
            among_cues = self._log_odds_among_cues(behind, confidence_log_odds)
            weight = weight_among_cues(cued_share)
            log_odds = (1.0 - weight) * log_odds + weight * among_cues
        last_first = _probability(log_odds)[::-1]
        falling: NDArray[np.float64] = np.maximum.accumulate(last_first)[::-1]
        return falling

    def _log_odds_among_cues(
        self, behind: NDArray[np.float64], confidence_log_odds: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the log odds (n,) of the scores where many candidates have cues.

        Some memory is always the best, and leads of prompts with and without an answer are alike. So the rank counts,
        and how far a result is behind the best, but not how far the best is ahead.
        """
        log_odds: NDArray[np.float64] = (
            self.score_among_cues["behind"] * behind
            + self.score_among_cues["reciprocal rank"] * reciprocal_ranks(len(behind))
            + self.score_among_cues["confidence"] * confidence_log_odds
            + self.score_among_cues["bias"]
        )
        return log_odds

    def match_of(self, score: float) -> Match:
        """Return the match that a score is: strong, fair or weak."""
        if score >= self.strong:
            return "strong"
        return "fair" if score >= self.fair else "weak"


def reciprocal_ranks(count: int) -> NDArray[np.float64]:
    """Return 1 / rank of the results of an answer, in order."""
    ranks = np.arange(1, count + 1, dtype=np.float64)
    return 1.0 / ranks


def weight_among_cues(cued_share: float) -> float:
    """Return how much of a score is that among memories with cues, 0 to 1, where this share of the candidates has any."""
    return min(cued_share / MANY_CUED, 1.0)


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
