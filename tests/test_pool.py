"""The fused pool: evidence decides, rank breaks ties, neighbours gain."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.pool import Listed, fuse, lend
from folklore.ranking.standard_scores import (
    dense_weight,
    inverse_document_frequency,
    sharpness,
    standing,
    tail_evidence,
    weigh,
)
from folklore.ranking.weights import Ranking

# No nearer to 0 than what a branch scores: a list of next to nothing says nothing, whatever its scale.
scores = st.lists(st.floats(-5, 50).map(lambda score: round(score, 6)), min_size=1, max_size=30).map(
    lambda found: sorted(found, reverse=True)
)


@given(scores, st.integers(1, 40))
def test_evidence_falls_with_the_score_and_is_never_negative(found: list[float], fetched: int) -> None:
    evidence = tail_evidence(found[:fetched], fetched)

    assert evidence == sorted(evidence, reverse=True)
    assert all(value >= 0 for value in evidence)


@given(scores, st.floats(0.01, 100))
def test_evidence_does_not_depend_on_a_branchs_scale(found: list[float], scale: float) -> None:
    assert tail_evidence([score * scale for score in found], 30) == pytest.approx(tail_evidence(found, 30), abs=1e-6)


def test_one_hit_that_stands_out_has_more_evidence_than_the_best_of_a_flat_list() -> None:
    lonely = tail_evidence([9.0, *[0.1] * 29], 30)[0]
    flat = tail_evidence([1.0 - place / 1_000 for place in range(30)], 30)[0]

    assert lonely > 10 * flat


def test_the_same_excess_says_less_high_above_nothing() -> None:
    steep = tail_evidence([0.03 - place / 1_000 for place in range(30)], 30)[0]
    flat = tail_evidence([1.0 - place / 1_000 for place in range(30)], 30)[0]

    assert flat < steep / 10


def test_a_branchs_evidence_counts_by_its_weight() -> None:
    keyword = Listed("keyword", ["k"], [3.0], 1.0)
    dense = Listed("dense", ["d"], [0.5], 2.0)

    fused = fuse([keyword, dense], Ranking(rrf_share=0.0), 30)

    assert fused.own == {"d": pytest.approx(1.0), "k": pytest.approx(0.5)}
    assert fused.evidence["dense"]["d"] == pytest.approx(2 * fused.evidence["keyword"]["k"])


def test_a_branch_that_knows_something_outvotes_one_that_does_not() -> None:
    keyword = Listed("keyword", ["rare", *(f"k{place}" for place in range(29))], [9.0, *[0.1] * 29], 1.0)
    dense = Listed("dense", [f"d{place}" for place in range(30)], [0.3 - place / 1_000 for place in range(30)], 1.0)

    assert fuse([dense, keyword], Ranking(), 30).order[0] == "rare"


def test_equal_evidence_is_ordered_by_fused_rank_then_by_id() -> None:
    lists = [Listed("keyword", ["b", "a", "c"], [0.0, 0.0, 0.0], 1.0), Listed("dense", ["c"], [0.0], 1.0)]

    assert list(fuse(lists, Ranking(), 30).order) == ["c", "b", "a"]


def test_a_neighbour_outside_the_pool_enters_by_what_it_is_lent() -> None:
    fused = fuse([Listed("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)

    pool = lend(fused, {"hit", "weak", "beside"}, {}, [("hit", "beside", 0.7)])

    assert pool.order[0] == "hit"
    assert pool.relevance["beside"] == pytest.approx(0.7)


def test_who_dropped_out_since_lends_nothing() -> None:
    fused = fuse([Listed("keyword", ["gone", "here"], [5.0, 1.0], 1.0)], Ranking(), 30)

    pool = lend(fused, {"here"}, {}, [("gone", "here", 0.5)])

    assert dict(pool.relevance) == {"here": fused.own["here"]}


def test_a_signal_moves_what_answers_and_spreads_to_nobody() -> None:
    fused = fuse([Listed("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)

    plain = lend(fused, {"hit", "weak", "beside"}, {}, [("hit", "beside", 0.7)])
    moved = lend(fused, {"hit", "weak", "beside"}, {"hit": 2.0, "beside": 9.0}, [("hit", "beside", 0.7)])

    assert moved.relevance["hit"] == pytest.approx(2 * plain.relevance["hit"])
    assert moved.relevance["beside"] == plain.relevance["beside"], "who has no evidence of his own has none to move"


def test_nearness_moves_what_was_lent_too() -> None:
    fused = fuse([Listed("keyword", ["hit", "weak"], [5.0, 1.0], 1.0)], Ranking(), 30)
    beside = [("hit", "beside", 0.7), ("hit", "far", 0.7)]

    pool = lend(fused, {"hit", "weak", "beside", "far"}, {"hit": 2.0}, beside, {"hit": 1.5, "beside": 1.7})

    assert pool.relevance["hit"] == pytest.approx(1.5 * 2.0 * fused.own["hit"])
    assert pool.relevance["beside"] == pytest.approx(1.7 * pool.relevance["far"])
    assert pool.gained == {"beside": pytest.approx(0.7), "far": pytest.approx(0.7)}


def test_a_weighted_sum_keeps_similarities_as_they_are_and_hands_the_weight_of_an_empty_list_on() -> None:
    dense = Listed("dense", ["a", "b"], [0.4, 0.1], 1.0, [0.6, 0.3])
    keyword = Listed("keyword", ["b"], [3.0], 1.0, [0.5])
    ranking = Ranking(fusion="weighted", dense=3.0, keyword=1.0)

    both = fuse([dense, keyword], ranking, 30)
    nothing: Listed[str] = Listed("keyword", [], [], 1.0, [])
    alone = fuse([dense, nothing], ranking, 30)

    assert both.own == {"a": pytest.approx(0.45), "b": pytest.approx(0.225 + 0.125)}
    assert alone.own == {"a": pytest.approx(0.6), "b": pytest.approx(0.3)}


def test_ranks_and_evidence_count_half_each() -> None:
    keyword = Listed("keyword", ["a", "b"], [8.0, 2.0], 1.0)

    fused = fuse([keyword], Ranking(rrf_k=1, rrf_share=0.5), 2)

    assert fused.own == {"a": pytest.approx(1.0), "b": pytest.approx(0.5 * 0 + 0.5 * (1 / 3) / (1 / 2))}


def test_ranks_count_by_the_share_asked_for() -> None:
    keyword = Listed("keyword", ["a", "b"], [8.0, 2.0], 1.0)

    fused = fuse([keyword], Ranking(rrf_k=1, rrf_share=0.2), 2)

    assert fused.own == {"a": pytest.approx(1.0), "b": pytest.approx(0.8 * 0 + 0.2 * (1 / 3) / (1 / 2))}


def test_a_common_word_is_read_where_that_takes_no_time_and_not_beside_a_rare_one_where_it_does() -> None:
    few = weigh({"rare": 2, "common": 190}, total=200, budget=10_000, bound=10_000)
    many = weigh({"rare": 2, "common": 1_900}, total=2_000, budget=10_000, bound=10_000)
    alone = weigh({"common": 1_900}, total=2_000, budget=10_000, bound=10_000)

    assert (set(few), set(many), set(alone)) == ({"rare", "common"}, {"rare"}, {"common"})


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 1_000), max_size=20))
def test_the_rarest_lexeme_is_always_read_and_the_budget_kept(documents: dict[str, int]) -> None:
    weights = weigh(documents, total=1_000, budget=500, bound=1_000)

    held = {lexeme: count for lexeme, count in documents.items() if count}
    assert set(weights) <= set(held)
    if held:
        assert min(held, key=lambda lexeme: (held[lexeme], lexeme)) in weights
        assert sum(held[lexeme] for lexeme in weights) <= max(500, min(held.values()))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_rarer_word_never_weighs_less(documents: int, total: int) -> None:
    assert inverse_document_frequency(documents, total) >= inverse_document_frequency(documents + 1, total) >= 0


def test_the_dense_branch_counts_more_where_words_cover_less() -> None:
    assert dense_weight(1.0, 0.0) == 1.5
    assert dense_weight(1.0, 1.0) == 1.0


def test_a_model_that_blurs_long_texts_is_trusted_less_among_them() -> None:
    assert sharpness(None, 1_000) == 1.0
    assert sharpness(60, 30) == sharpness(60, 0) == 1.0
    assert sharpness(60, 240) == 0.25


def test_a_list_whose_best_is_no_more_than_chance_counts_less() -> None:
    chance = math.sqrt(2 * math.log(1_000))

    assert standing(1.25 * chance * 0.1, 0.1, 1_000, 1.25) == pytest.approx(1.0)
    assert standing(chance * 0.1, 0.1, 1_000, 1.25) == pytest.approx(1 / 1.25**2)
    assert standing(9.0, 0.1, 1_000, 1.25) == 1.0
    assert standing(-1.0, 0.1, 1_000, 1.25) == 0.0


@given(st.floats(0.01, 5), st.floats(0.01, 2), st.integers(2, 100_000))
def test_the_same_best_says_less_among_more(best: float, spread: float, total: int) -> None:
    assert standing(best, spread, 2 * total, 1.25) <= standing(best, spread, total, 1.25)


def test_where_nothing_varies_or_nobody_asks_a_list_counts_whole() -> None:
    assert standing(0.1, 0.0, 1_000, 1.25) == 1.0
    assert standing(0.1, 0.1, 1_000, 0.0) == 1.0
    assert standing(0.1, 0.1, 1, 1.25) <= 1.0


def test_ranks_that_are_not_trusted_count_less() -> None:
    dense = Listed("dense", ["a", "b"], [0.5, 0.4], 0.1, trust=0.1)
    keyword = Listed("keyword", ["b", "a"], [5.0, 4.0], 1.0)

    assert fuse([dense, keyword], Ranking(rrf_share=1.0), 30).order[0] == "b"
