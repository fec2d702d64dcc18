"""Trained weights: relevance is a sum, confidence and score are probabilities, and a score falls along the order."""

import math

import numpy as np
import pytest

from folklore.ranking.trained import Weights, weights_for
from tests.ranking.test_features import pool

WEIGHTS = Weights(
    relevance={"sequence": 2.0, "coverage": 4.0},
    confidence={"bias": -3.0, "letters held": 6.0, "unnamed": -1.0},
    score={"relevance": 0.5, "lead": 2.0, "confidence": 0.7, "bias": -1.0},
    strong=0.9,
    fair=0.5,
    floor=0.1,
)


def sigma(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_relevance_is_the_sum_of_the_features_times_their_weights_and_confidence_their_probability() -> (
    None
):
    facts = pool(
        2,
        in_text=[[1, 0], [0, 1]],
        rarity=[3, 1],
        letters=[3, 2],
        names=[1, 0],
        sequence=[0, 1],
        pairs=2,
    )

    parts = WEIGHTS.relevance_of(facts)

    assert {name: part.tolist() for name, part in parts.items()} == {
        "coverage": [3, 1],
        "sequence": [0, 1],
    }
    expected = [sigma(-3 + 6 * 3 / 10), sigma(-3 + 6 * 2 / 10 - 1)]
    assert WEIGHTS.confidence_of(facts).tolist() == pytest.approx(expected)


def test_a_score_is_the_greatest_of_a_result_and_of_those_after_it() -> None:
    confidence = [0.5, 0.2, 0.9]
    alone = [
        sigma(0.5 * 4 + 2 * 1 - 1),
        sigma(0.5 * 3 - 2 * 1 + 0.7 * math.log(1 / 4) - 1),
    ]
    last = sigma(0.5 * 2 - 2 * 0.25 + 0.7 * math.log(9) - 1)

    for count, expected in ((2, alone), (3, [alone[0], last, last])):
        given = ([4.0, 3.0, 2.0], [1.0, -1.0, -0.25], confidence)
        scores = WEIGHTS.scores_of(*(np.array(values[:count]) for values in given))
        assert scores.tolist() == pytest.approx(expected)


def test_a_match_is_strong_or_fair_from_its_line_on() -> None:
    matches = [WEIGHTS.match_of(score) for score in (1.0, 0.9, 0.899, 0.5, 0.499, 0.0)]

    assert matches == ["strong", "strong", "fair", "fair", "weak", "weak"]


@pytest.mark.parametrize("model", ["bundled", "contextual", "none"])
def test_what_speaks_for_a_memory_has_no_negative_weight(model: str) -> None:
    weights = weights_for(model)

    assert all(weight > 0 for weight in weights.relevance.values())
    assert weights.confidence["letters held"] > 0 > weights.confidence["unnamed"]
    assert weights.confidence["cue words"] > 0
    assert weights.score["relevance"] > 0
    assert 1 > weights.strong > weights.fair > 0
    assert (
        "scaled cosine" in weights.relevance,
        "meaning" in weights.confidence,
        weights.confidence.get("cue meaning", 0) > 0,
    ) == (model != "none",) * 3
