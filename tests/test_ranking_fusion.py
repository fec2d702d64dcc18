"""Fusion of the branches' lists, the scores that spread to neighbours, and the ranking of the fusion `rrf`."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.features import spread_share
from folklore.ranking.fusion import (
    BranchList,
    best_first,
    dense_weight,
    fuse,
    model_trust,
    reciprocal_rank_fusion,
    score,
    spread_scores,
    standardised_scores,
    top_score_significance,
)
from folklore.ranking.weights import Ranking

ids = st.integers(0, 30)
ranked = st.lists(ids, unique=True, max_size=15)
weights = st.floats(0.01, 10)
lists = st.lists(st.tuples(weights, ranked), max_size=4)
ks = st.floats(0, 100)
own_scores = st.dictionaries(ids, st.floats(0, 10), max_size=10)
links = st.lists(st.tuples(ids, ids, st.floats(0, 2)), max_size=20)


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


# Rounded: scores next to 0 have no standardised score, whatever their scale.
scores = st.lists(st.floats(-5, 50).map(lambda score: round(score, 6)), min_size=1, max_size=30).map(
    lambda found: sorted(found, reverse=True)
)


@given(scores, st.integers(1, 40))
def test_standardised_scores_fall_with_the_score_and_are_never_negative(found: list[float], fetched: int) -> None:
    values = standardised_scores(found[:fetched], fetched)

    assert values == sorted(values, reverse=True)
    assert all(value >= 0 for value in values)


@given(scores, st.floats(0.01, 100))
def test_standardised_scores_do_not_depend_on_the_scale_of_a_branch(found: list[float], scale: float) -> None:
    assert standardised_scores([score * scale for score in found], 30) == pytest.approx(
        standardised_scores(found, 30), abs=1e-6
    )


def test_an_outlier_has_a_greater_standardised_score_than_the_best_of_a_flat_list() -> None:
    outlier = standardised_scores([9.0, *[0.1] * 29], 30)[0]
    flat = standardised_scores([1.0 - place / 1_000 for place in range(30)], 30)[0]

    assert outlier > 10 * flat


def test_standardised_scores_of_a_branch_count_by_its_weight() -> None:
    keyword = BranchList("keyword", ["k"], [3.0], 1.0)
    dense = BranchList("dense", ["d"], [0.5], 2.0)

    fused = fuse([keyword, dense], Ranking(), 30)

    assert fused.own == {"d": pytest.approx(1.0), "k": pytest.approx(0.5)}
    assert fused.standardised["dense"]["d"] == pytest.approx(2 * fused.standardised["keyword"]["k"])


def test_a_branch_with_an_outlier_outvotes_a_flat_one() -> None:
    keyword = BranchList("keyword", ["rare", *(f"k{place}" for place in range(29))], [9.0, *[0.1] * 29], 1.0)
    dense = BranchList("dense", [f"d{place}" for place in range(30)], [0.3 - place / 1_000 for place in range(30)], 1.0)

    assert fuse([dense, keyword], Ranking(), 30).order[0] == "rare"


def test_equal_scores_are_ordered_by_fused_rank_then_by_id() -> None:
    lists = [BranchList("keyword", ["b", "a", "c"], [0.0, 0.0, 0.0], 1.0), BranchList("dense", ["c"], [0.0], 1.0)]

    assert list(fuse(lists, Ranking(), 30).order) == ["c", "b", "a"]


def test_a_neighbour_outside_the_lists_enters_by_a_spread_score() -> None:
    fused = fuse([BranchList("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)

    scored = score(fused, {"hit": 1.0, "weak": 1.0}, [("hit", "next", 0.7)])

    assert scored.order[0] == "hit"
    assert scored.relevance["next"] == pytest.approx(0.7)


def test_a_candidate_that_no_longer_exists_spreads_nothing() -> None:
    fused = fuse([BranchList("keyword", ["gone", "here"], [5.0, 1.0], 1.0)], Ranking(), 30)

    scored = score(fused, {"here": 1.0}, [("gone", "here", 0.5)])

    assert dict(scored.relevance) == {"here": fused.own["here"]}


def test_a_signal_multiplies_an_own_score_and_does_not_spread() -> None:
    fused = fuse([BranchList("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)

    plain = score(fused, {"hit": 1.0, "weak": 1.0}, [("hit", "next", 0.7)])
    boosted = score(fused, {"hit": 2.0, "weak": 1.0, "next": 9.0}, [("hit", "next", 0.7)])

    assert boosted.relevance["hit"] == pytest.approx(2 * plain.relevance["hit"])
    assert boosted.relevance["next"] == plain.relevance["next"], "a memory without an own score has none to multiply"


def test_nearness_multiplies_spread_scores_too() -> None:
    fused = fuse([BranchList("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)
    found = [("hit", "near", 0.7), ("hit", "far", 0.7)]

    scored = score(fused, {"hit": 2.0, "weak": 1.0}, found, {"hit": 1.5, "near": 1.7})

    assert scored.relevance["hit"] == pytest.approx(1.5 * 2.0 * fused.own["hit"])
    assert scored.relevance["near"] == pytest.approx(1.7 * scored.relevance["far"])
    assert scored.spread == {"near": pytest.approx(0.7), "far": pytest.approx(0.7)}


def test_a_weighted_mean_keeps_similarities_and_passes_on_the_weight_of_an_empty_list() -> None:
    dense = BranchList("dense", ["a", "b"], [0.4, 0.1], 1.0, [0.6, 0.3])
    keyword = BranchList("keyword", ["b"], [3.0], 1.0, [0.5])
    ranking = Ranking(fusion="weighted", dense=3.0, keyword=1.0)

    both = fuse([dense, keyword], ranking, 30)
    nothing: BranchList[str] = BranchList("keyword", [], [], 1.0, [])
    alone = fuse([dense, nothing], ranking, 30)

    assert both.own == {"a": pytest.approx(0.45), "b": pytest.approx(0.225 + 0.125)}
    assert alone.own == {"a": pytest.approx(0.6), "b": pytest.approx(0.3)}


def test_the_dense_branch_counts_more_where_words_cover_less() -> None:
    assert dense_weight(1.0, 0.0) == 1.5
    assert dense_weight(1.0, 1.0) == 1.0


def test_a_model_that_blurs_long_texts_is_trusted_less_among_them() -> None:
    assert model_trust(None, 1_000) == 1.0
    assert model_trust(60, 30) == model_trust(60, 0) == 1.0
    assert model_trust(60, 240) == 0.25


def test_a_list_whose_best_score_is_not_significant_counts_less() -> None:
    chance = math.sqrt(2 * math.log(1_000))

    assert top_score_significance(1.25 * chance * 0.1, 0.1, 1_000, 1.25) == pytest.approx(1.0)
    assert top_score_significance(chance * 0.1, 0.1, 1_000, 1.25) == pytest.approx(1 / 1.25**2)
    assert top_score_significance(9.0, 0.1, 1_000, 1.25) == 1.0
    assert top_score_significance(-1.0, 0.1, 1_000, 1.25) == 0.0


@given(st.floats(0.01, 5), st.floats(0.01, 2), st.integers(2, 100_000))
def test_the_same_best_score_is_less_significant_among_more(best: float, spread: float, total: int) -> None:
    assert top_score_significance(best, spread, 2 * total, 1.25) <= top_score_significance(best, spread, total, 1.25)


def test_a_list_without_variance_or_without_the_check_counts_in_full() -> None:
    assert top_score_significance(0.1, 0.0, 1_000, 1.25) == 1.0
    assert top_score_significance(0.1, 0.1, 1_000, 0.0) == 1.0
    assert top_score_significance(0.1, 0.1, 1, 1.25) <= 1.0


def test_a_neighbour_takes_a_score_by_the_strength_of_the_link() -> None:
    spread_to = spread_scores({"seed": 1.0}, [("seed", "next", 0.4), ("seed", "after", 0.2)])

    assert spread_to == {"next": pytest.approx(0.4), "after": pytest.approx(0.2)}


def test_a_spread_score_does_not_spread_again() -> None:
    assert spread_scores({"a": 1.0}, [("a", "b", 0.5), ("b", "c", 0.5), ("b", "a", 0.5)]) == {"b": 0.5}


def test_neighbours_with_own_scores_strengthen_each_other() -> None:
    spread_to = spread_scores({"a": 1.0, "b": 0.6}, [("a", "b", 0.5), ("b", "a", 0.5)])

    assert spread_to == {"a": pytest.approx(0.3), "b": pytest.approx(0.5)}


def test_a_neighbour_of_two_candidates_takes_from_both() -> None:
    assert spread_scores({"a": 1.0, "b": 0.5}, [("a", "c", 0.4), ("b", "c", 0.4)]) == {"c": pytest.approx(0.6)}


def test_a_long_text_takes_less() -> None:
    shares = [spread_share(length, Ranking(neighbours_longest=100), asks=False) for length in (0, 10, 100, 400)]

    assert shares == [1.0, 1.0, 1.0, 0.25]


def test_a_text_that_asks_takes_less() -> None:
    ranking = Ranking(neighbours_asking=0.6)

    assert spread_share(20, ranking, asks=True) == pytest.approx(0.6 * spread_share(20, ranking, asks=False))


def test_without_scores_nothing_spreads() -> None:
    assert spread_scores({"a": 0.0}, [("a", "b", 0.5)]) == {}
    assert spread_scores({}, [("a", "b", 0.5)]) == {}


@given(own_scores, links, st.randoms(use_true_random=False))
def test_the_order_of_links_has_no_effect(
    own: dict[int, float], pairs: list[tuple[int, int, float]], chance: random.Random
) -> None:
    shuffled = chance.sample(pairs, len(pairs))

    assert spread_scores(own, pairs) == spread_scores(own, shuffled)


@given(own_scores, links)
def test_spreading_changes_no_own_score(own: dict[int, float], pairs: list[tuple[int, int, float]]) -> None:
    before = dict(own)

    spread_to = spread_scores(own, pairs)

    assert own == before
    assert all(value >= 0 for value in spread_to.values())
