"""What stands beside a good answer in the same session is part of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.neighbours import spread

ids = st.integers(0, 12)
scores = st.dictionaries(ids, st.floats(0, 10), max_size=10)
beside = st.lists(st.tuples(ids, ids, st.integers(0, 4)), max_size=20)


def test_a_neighbour_gains_by_its_distance_and_may_enter() -> None:
    together = spread({"seed": 1.0}, [("seed", "next", 1), ("seed", "after", 2)], (0.4, 0.2))

    assert together == {"seed": 1.0, "next": pytest.approx(0.4), "after": pytest.approx(0.2)}


def test_only_own_scores_are_lent_so_that_nothing_cascades() -> None:
    together = spread({"a": 1.0}, [("a", "b", 1), ("b", "c", 1), ("b", "a", 1)], (0.5,))

    assert together == {"a": 1.0, "b": 0.5}


def test_neighbours_that_both_answer_strengthen_each_other() -> None:
    together = spread({"a": 1.0, "b": 0.6}, [("a", "b", 1), ("b", "a", 1)], (0.5,))

    # The best lends all its strength, another one in proportion: 0.5 x 0.6 x 0.6 / 1.
    assert together == {"a": pytest.approx(1.18), "b": pytest.approx(1.1)}


def test_middling_neighbours_do_not_carry_one_another() -> None:
    middling = dict.fromkeys(range(10), 0.2) | {99: 1.0}

    together = spread(middling, [(n, n + 1, 1) for n in range(9)], (0.5,))

    assert max(together[n] for n in range(10)) < 0.25


def test_where_nothing_answers_nothing_is_lent() -> None:
    assert spread({"a": 0.0}, [("a", "b", 1)], (0.5,)) == {"a": 0.0}
    assert spread({}, [("a", "b", 1)], (0.5,)) == {}


@pytest.mark.parametrize("gap", [0, 3, -1, 100])
def test_who_stands_too_far_away_gains_nothing(gap: int) -> None:
    assert spread({"a": 1.0}, [("a", "b", gap)], (0.4, 0.2)) == {"a": 1.0}


def test_without_strengths_nothing_is_lent() -> None:
    assert spread({"a": 1.0}, [("a", "b", 1)], ()) == {"a": 1.0}


@given(scores, beside, st.randoms(use_true_random=False))
def test_the_order_of_neighbours_does_not_matter_at_all(
    own: dict[int, float], pairs: list[tuple[int, int, int]], chance: random.Random
) -> None:
    shuffled = chance.sample(pairs, len(pairs))

    assert spread(own, pairs, (0.4, 0.2)) == spread(own, shuffled, (0.4, 0.2))


@given(scores, beside)
def test_nobody_loses_and_the_given_scores_stay_as_they_are(
    own: dict[int, float], pairs: list[tuple[int, int, int]]
) -> None:
    before = dict(own)

    together = spread(own, pairs, (0.4, 0.2))

    assert own == before
    assert all(together[id_] >= score for id_, score in own.items())
