"""What stands beside a good answer in the same session is part of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.neighbours import spread

ids = st.integers(0, 12)
scores = st.dictionaries(ids, st.floats(0, 10), max_size=10)
beside = st.lists(st.tuples(ids, ids, st.floats(0, 2)), max_size=20)


def test_a_neighbour_gains_by_the_strength_and_may_enter() -> None:
    gained = spread({"seed": 1.0}, [("seed", "next", 0.4), ("seed", "after", 0.2)])

    assert gained == {"next": pytest.approx(0.4), "after": pytest.approx(0.2)}


def test_only_own_scores_are_lent_so_that_nothing_cascades() -> None:
    assert spread({"a": 1.0}, [("a", "b", 0.5), ("b", "c", 0.5), ("b", "a", 0.5)]) == {"b": 0.5}


def test_neighbours_that_both_answer_strengthen_each_other() -> None:
    gained = spread({"a": 1.0, "b": 0.6}, [("a", "b", 0.5), ("b", "a", 0.5)])

    # The best lends all its strength, another one in proportion: 0.5 x 0.6 x 0.6 / 1.
    assert gained == {"a": pytest.approx(0.18), "b": pytest.approx(0.5)}


def test_middling_neighbours_do_not_carry_one_another() -> None:
    middling = dict.fromkeys(range(10), 0.2) | {99: 1.0}

    gained = spread(middling, [(n, n + 1, 0.5) for n in range(9)])

    assert max(gained.values()) < 0.05


def test_where_nothing_answers_nothing_is_lent() -> None:
    assert spread({"a": 0.0}, [("a", "b", 0.5)]) == {}
    assert spread({}, [("a", "b", 0.5)]) == {}


@given(scores, beside, st.randoms(use_true_random=False))
def test_the_order_of_neighbours_does_not_matter_at_all(
    own: dict[int, float], pairs: list[tuple[int, int, float]], chance: random.Random
) -> None:
    shuffled = chance.sample(pairs, len(pairs))

    assert spread(own, pairs) == spread(own, shuffled)


@given(scores, beside)
def test_nobody_loses_and_the_given_scores_stay_as_they_are(
    own: dict[int, float], pairs: list[tuple[int, int, float]]
) -> None:
    before = dict(own)

    gained = spread(own, pairs)

    assert own == before
    assert all(value >= 0 for value in gained.values())
