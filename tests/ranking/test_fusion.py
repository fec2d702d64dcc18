"""Reciprocal rank fusion, and the order of equal scores."""

import random

import pytest
from hypothesis import given, strategies as st

from folklore.ranking.fusion import best_first, reciprocal_rank_fusion

ids = st.integers(0, 30)
ranked = st.lists(ids, unique=True, max_size=15)
weights = st.floats(0.01, 10)
lists = st.lists(st.tuples(weights, ranked), max_size=4)
ks = st.floats(0, 100)


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


def test_empty_lists_fuse_to_nothing() -> None:
    assert reciprocal_rank_fusion([], 60) == {}
    assert reciprocal_rank_fusion([(1.0, []), (1.0, [])], 60) == {}


@given(lists, ks, st.randoms(use_true_random=False))
def test_the_order_of_lists_has_no_effect(
    given_lists: list[tuple[float, list[int]]], k: float, chance: random.Random
) -> None:
    shuffled = chance.sample(given_lists, len(given_lists))

    first, second = reciprocal_rank_fusion(given_lists, k), reciprocal_rank_fusion(shuffled, k)

    assert first.keys() == second.keys()
    assert all(second[id_] == pytest.approx(score) for id_, score in first.items())


@given(ranked.filter(lambda ids: len(ids) > 1), weights, ks)
def test_an_earlier_rank_in_a_list_scores_more(given_ids: list[int], weight: float, k: float) -> None:
    scores = reciprocal_rank_fusion([(weight, given_ids)], k)

    assert list(scores) == given_ids
    assert [scores[id_] for id_ in given_ids] == sorted(scores.values(), reverse=True)
    assert len(set(scores.values())) == len(scores)


@given(lists, ranked.filter(bool), weights, ks)
def test_another_list_never_lowers_a_score(
    given_lists: list[tuple[float, list[int]]], more: list[int], weight: float, k: float
) -> None:
    before = reciprocal_rank_fusion(given_lists, k)
    after = reciprocal_rank_fusion([*given_lists, (weight, more)], k)

    assert all(after[id_] >= score for id_, score in before.items())
    assert all(after[id_] > before.get(id_, 0.0) for id_ in more)


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
