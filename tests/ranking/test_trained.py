"""Trained weights: relevance is a sum, confidence and score are probabilities, and a score falls along the order."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from folklore.ranking.numbers import MANY_CUED
from folklore.ranking.trained import Weights, weights_for
from tests.ranking.test_features import pool

WEIGHTS = Weights(
    relevance={"sequence": 2.0, "coverage": 4.0},
    confidence={"bias": -3.0, "letters held": 6.0, "unnamed": -1.0},
    score={"relevance": 0.5, "lead": 2.0, "confidence": 0.7, "bias": -1.0},
    score_among_cues={
        "behind": 0.6,
        "reciprocal rank": 0.8,
        "confidence": 0.9,
        "bias": -2.0,
    },
    strong=0.9,
    fair=0.5,
    floor=0.1,
)
NOTHING = np.array([])


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
        relevance, lead, confidences = (np.array(values[:count]) for values in given)
        scores = WEIGHTS.scores_of(relevance, lead, NOTHING, confidences, 0.0)
        assert scores.tolist() == pytest.approx(expected)


def test_among_memories_with_cues_a_score_counts_the_rank_and_how_far_a_result_is_behind() -> (
    None
):
    def scores(ahead: float, relevance: float, cued_share: float) -> Any:
        found = WEIGHTS.scores_of(
            np.array([relevance, relevance - ahead]),
            np.array([ahead, -ahead]),
            np.array([0.0, -ahead]),
            np.array([0.5, 0.2]),
            cued_share,
        )
        return found.tolist()

    second = 0.8 / 2 + 0.9 * math.log(1 / 4) - 2
    expected = [sigma(0.8 - 2), sigma(second - 0.6 * 3)]

    for share in (MANY_CUED, 1.0):
        assert scores(3, 9, share) == pytest.approx(expected)
    # Neither a greater relevance nor a greater lead raises the score of the best.
    assert scores(5, 9, 1.0)[0] == scores(3, 9, 1.0)[0] == scores(3, 4, 1.0)[0]


def test_a_score_lies_between_both_where_few_candidates_have_cues() -> None:
    facts = (np.array([4.0]), np.array([1.0]), np.array([0.0]), np.array([0.5]))
    without = 0.5 * 4 + 2 * 1 - 1
    among_cues = 0.8 - 2

    [score] = WEIGHTS.scores_of(*facts, MANY_CUED / 4)

    assert score == pytest.approx(sigma(0.75 * without + 0.25 * among_cues))


def test_weights_that_were_trained_without_cues_score_memories_with_cues_as_others() -> (
    None
):
    facts = (np.array([4.0]), np.array([1.0]), np.array([0.0]), np.array([0.5]))
    weights = replace(WEIGHTS, score_among_cues={})

    assert weights.scores_of(*facts, 1.0) == WEIGHTS.scores_of(*facts, 0.0)


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
    assert all(
        weights.score_among_cues[name] > 0
        for name in ("behind", "reciprocal rank", "confidence")
    )
    assert 1 > weights.strong > weights.fair > 0
    assert (
        "scaled cosine" in weights.relevance,
        "meaning" in weights.confidence,
        weights.confidence.get("cue meaning", 0) > 0,
    ) == (model != "none",) * 3
