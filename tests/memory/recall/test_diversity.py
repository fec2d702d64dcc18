"""A series of similar texts does not fill an answer, and the second of two is not lost."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from folklore.ranking.diversity import discounted_relevance


@st.composite
def pools(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Relevance, best first, and the cosines of some vectors."""
    count = draw(st.integers(0, 8))
    relevance = np.array(sorted(draw(st.lists(st.floats(0, 50), min_size=count, max_size=count)), reverse=True))
    numbers = draw(st.lists(st.integers(-3, 3), min_size=3 * count, max_size=3 * count))
    vectors = np.array(numbers, dtype=np.float32).reshape(count, 3)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return relevance, vectors @ vectors.T


def alike(*rows: list[float]) -> NDArray[np.float32]:
    return np.array(rows, dtype=np.float32)


def picked(relevance: NDArray[np.float64], similarity: NDArray[np.float32], limit: int, trade_off: float) -> list[int]:
    return [place for place, _ in discounted_relevance(relevance, similarity, limit, trade_off)]


@given(pools(), st.integers(0, 10))
def test_a_trade_off_of_one_keeps_the_order(pool: Any, limit: int) -> None:
    relevance, similarity = pool

    assert picked(relevance, similarity, limit, 1.0) == list(range(min(limit, len(relevance))))


@given(pools(), st.integers(0, 10), st.floats(0, 1))
def test_every_candidate_is_picked_once_and_the_best_comes_first(pool: Any, limit: int, trade_off: float) -> None:
    relevance, similarity = pool

    chosen = picked(relevance, similarity, limit, trade_off)

    assert len(chosen) == len(set(chosen)) == min(limit, len(relevance))
    if chosen and trade_off > 0.01:
        assert relevance[chosen[0]] == relevance.max()


@given(pools(), st.integers(1, 7), st.floats(0, 1))
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(pool: Any, limit: int, trade_off: float) -> None:
    relevance, similarity = pool

    longer = picked(relevance, similarity, limit + 1, trade_off)

    assert picked(relevance, similarity, limit, trade_off) == longer[:limit]


@given(pools(), st.floats(0.5, 100))
def test_the_scale_of_relevance_does_not_matter(pool: Any, factor: float) -> None:
    relevance, similarity = pool
    relevance = np.round(relevance)  # else rounding may make two values equal

    scaled = picked(relevance * 2.0 ** round(np.log2(factor)), similarity, 8, 0.7)

    assert scaled == picked(relevance, similarity, 8, 0.7)


@given(pools(), st.floats(0.01, 1))
def test_two_similar_texts_stay_before_much_weaker_ones(pool: Any, trade_off: float) -> None:
    relevance, similarity = pool
    pair = alike([1.0, 0.99], [0.99, 1.0])
    size = len(relevance)
    everything = np.zeros((size + 2, size + 2), dtype=np.float32)
    everything[:2, :2], everything[2:, 2:] = pair, similarity
    weaker = relevance / 100.0 * trade_off  # at most half of what the penalty leaves of 1.0

    chosen = picked(np.array([1.0, 1.0, *weaker]), everything, size + 2, trade_off)

    assert chosen[:2] == [0, 1]


@pytest.mark.parametrize(
    ("relevance", "order"),
    [([1.0, 0.95, 0.8], [0, 2, 1]), ([1.0, 0.99, 0.5], [0, 1, 2]), ([1.0, 0.9, 0.0], [0, 1, 2])],
    ids=["behind a new text of nearly its relevance", "before one of half its relevance", "before one without any"],
)
def test_a_near_duplicate_moves_back(relevance: list[float], order: list[int]) -> None:
    similarity = alike([1.0, 0.99, 0.1], [0.99, 1.0, 0.1], [0.1, 0.1, 1.0])

    assert picked(np.array(relevance), similarity, 3, 0.7) == order


def test_each_further_text_of_a_series_moves_back_further() -> None:
    relevance = np.array([1.0, 1.0, 1.0, 1.0, 0.6, 0.4])
    similarity = np.eye(6, dtype=np.float32)
    similarity[:4, :4] = 0.99

    assert picked(relevance, similarity, 6, 0.7) == [0, 1, 4, 2, 5, 3]


def test_a_text_similar_to_any_picked_one_moves_back() -> None:
    relevance = np.array([1.0, 0.9, 0.85, 0.6])
    similarity = np.eye(4, dtype=np.float32)
    similarity[0, 2] = similarity[2, 0] = 0.99

    assert picked(relevance, similarity, 4, 0.7) == [0, 1, 3, 2]


def test_candidates_of_the_same_text_or_relevance_keep_their_order() -> None:
    same = np.ones((4, 4), dtype=np.float32)  # one text in four namespaces
    assert picked(np.array([4.0, 3.0, 2.0, 1.0]), same, 4, 0.7) == [0, 1, 2, 3]
    assert picked(np.ones(4), np.zeros((4, 4), dtype=np.float32), 4, 0.7) == [0, 1, 2, 3]


def test_a_text_without_a_vector_is_similar_to_none() -> None:
    relevance = np.array([1.0, 0.9, 0.7])
    similarity = alike([1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 0.0])

    assert picked(relevance, similarity, 3, 0.7) == [0, 2, 1]


@pytest.mark.parametrize("worthless", [np.zeros(3), np.array([0.0, -1.0, -2.0])])
def test_relevance_of_zero_or_less_is_accepted(worthless: NDArray[np.float64]) -> None:
    chosen = picked(worthless, np.eye(3, dtype=np.float32), 3, 0.7)

    assert sorted(chosen) == [0, 1, 2]
