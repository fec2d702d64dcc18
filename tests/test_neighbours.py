"""What stands beside a good answer in the same session is part of it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.neighbours import room, spread
from folklore.ranking.weights import Ranking

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

    assert gained == {"a": pytest.approx(0.3), "b": pytest.approx(0.5)}


def test_who_stands_beside_two_answers_gains_by_both() -> None:
    assert spread({"a": 1.0, "b": 0.5}, [("a", "c", 0.4), ("b", "c", 0.4)]) == {"c": pytest.approx(0.6)}


def test_a_text_of_few_words_or_of_many_gains_less() -> None:
    ranking = Ranking(neighbours_least=10, neighbours_length=100)

    assert [room(length, ranking, asks=False) for length in (0, 2.5, 10, 100, 400)] == [0.0, 0.5, 1.0, 1.0, 0.25]


def test_who_asks_gains_less_than_who_tells() -> None:
    ranking = Ranking(neighbours_asking=0.6)

    assert room(20, ranking, asks=True) == pytest.approx(0.6 * room(20, ranking, asks=False))


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
