"""Reciprocal rank fusion, the order of equal scores and of a reranker, and the lead of each result."""

import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from folklore.ranking.fusion import (
    behind_best,
    best_first,
    leads,
    reciprocal_rank_fusion,
    reranked,
)

ids = st.integers(0, 30)


def test_worked_values_of_the_paper() -> None:
    dense = ["a", "b", "c", "d", "e"]
    keyword = ["v", "w", "x", "y", "a"]

    scores = reciprocal_rank_fusion([(1.0, dense), (1.0, keyword)], 60)

    assert scores["a"] == pytest.approx(1 / 61 + 1 / 65)
    assert scores["a"] == pytest.approx(0.0318, abs=5e-5)
    assert reciprocal_rank_fusion([(1.0, dense)], 60)["a"] == pytest.approx(
        0.0164, abs=5e-5
    )


def test_a_weight_multiplies_the_terms_of_its_list() -> None:
    scores = reciprocal_rank_fusion([(0.7, ["a"]), (1.0, ["b", "a"])], 10)

    assert scores == {"a": pytest.approx(0.7 / 11 + 1 / 12), "b": pytest.approx(1 / 11)}


@given(
    st.dictionaries(ids, st.tuples(*[st.sampled_from([0.0, 0.5])] * 2)),
    st.randoms(use_true_random=False),
)
def test_best_first_does_not_depend_on_the_order_given(
    scores: dict[int, tuple[float, float]], chance: random.Random
) -> None:
    shuffled = dict(chance.sample(list(scores.items()), len(scores)))

    def order(pairs: dict[int, tuple[float, float]]) -> list[int]:
        return best_first(
            *({id_: pair[place] for id_, pair in pairs.items()} for place in (0, 1))
        )

    ordered = order(shuffled)

    assert ordered == order(scores)
    assert sorted(ordered) == sorted(scores)
    assert [scores[id_] for id_ in ordered] == sorted(scores.values(), reverse=True)


def test_equal_scores_are_ordered_by_the_second_score_and_then_by_id() -> None:
    assert best_first(
        {"d": 1.0, "c": 1.0, "b": 1.0, "a": 0.5}, {"c": 0.5, "b": -0.5, "a": 9.0}
    ) == ["c", "d", "b", "a"]


@pytest.mark.parametrize(
    ("relevance", "scores", "order", "spread"),
    [
        ([9, 8, 5, 1], [0.2, 0.4, 0.3], [1, 2, 0, 3], [9, 7, 5, 1]),
        ([9, 6, 5], [-2, 8, 8], [1, 2, 0], [9, 9, 5]),
        ([9, 6, 5], [3, 3], [0, 1, 2], [9, 6, 5]),
        ([9, 6, 5], [], [0, 1, 2], [9, 6, 5]),
    ],
)
def test_reranked_candidates_share_their_former_range_by_their_scores(
    relevance: list[float], scores: list[float], order: list[int], spread: list[float]
) -> None:
    places, shared = reranked(np.array(relevance), np.array(scores))

    assert (places, shared.tolist()) == (order, pytest.approx(spread))


@pytest.mark.parametrize(
    ("relevance", "lead"),
    [
        ([], []),
        ([0.3], [4.0]),
        ([5, 2], [3, -3]),
        ([2, 7, 4], [-5, 3, -3]),
        ([3, 3, 1], [0, 0, -2]),
    ],
)
def test_a_lead_is_over_the_best_of_the_others(
    relevance: list[float], lead: list[float]
) -> None:
    assert leads(np.array(relevance)).tolist() == lead


def test_a_memory_with_cues_is_behind_the_best_with_cues_and_any_other_behind_the_best() -> (
    None
):
    relevance = np.array([5.0, 4.0, 3.0, 1.0])
    cued = np.array([False, True, False, True])

    assert behind_best(relevance, cued).tolist() == [0, 0, -2, -3]
    assert behind_best(relevance, ~cued).tolist() == [0, -1, -2, -4]
    assert behind_best(relevance, np.zeros(4, bool)).tolist() == [0, -1, -2, -4]
    assert behind_best(np.array([]), np.array([], bool)).tolist() == []
