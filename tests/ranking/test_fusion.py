"""Reciprocal rank fusion, and the order of equal scores."""

import random

import pytest
from hypothesis import given, strategies as st

from folklore.ranking.fusion import best_first, reciprocal_rank_fusion

ids = st.integers(0, 30)


def test_worked_values_of_the_paper() -> None:
    dense = ["a", "b", "c", "d", "e"]
    keyword = ["v", "w", "x", "y", "a"]

    scores = reciprocal_rank_fusion([(1.0, dense), (1.0, keyword)], 60)

    assert scores["a"] == pytest.approx(1 / 61 + 1 / 65)
    assert scores["a"] == pytest.approx(0.0318, abs=5e-5)
    assert reciprocal_rank_fusion([(1.0, dense)], 60)["a"] == pytest.approx(0.0164, abs=5e-5)


def test_a_weight_multiplies_the_terms_of_its_list() -> None:
    scores = reciprocal_rank_fusion([(0.7, ["a"]), (1.0, ["b", "a"])], 10)

    assert scores == {"a": pytest.approx(0.7 / 11 + 1 / 12), "b": pytest.approx(1 / 11)}


@given(st.dictionaries(ids, st.tuples(*[st.sampled_from([0.0, 0.5])] * 2)), st.randoms(use_true_random=False))
def test_best_first_does_not_depend_on_the_order_given(
    scores: dict[int, tuple[float, float]], chance: random.Random
) -> None:
    shuffled = dict(chance.sample(list(scores.items()), len(scores)))

    def order(pairs: dict[int, tuple[float, float]]) -> list[int]:
        return best_first(*({id_: pair[place] for id_, pair in pairs.items()} for place in (0, 1)))

    ordered = order(shuffled)

    assert ordered == order(scores)
    assert sorted(ordered) == sorted(scores)
    assert [scores[id_] for id_ in ordered] == sorted(scores.values(), reverse=True)
