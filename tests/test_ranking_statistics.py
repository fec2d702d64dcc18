"""Weights of words, and the length lines of both branches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.ranking.statistics import LengthLine, inverse_document_frequency, lexeme_weights


def test_a_common_word_is_left_out_beside_a_rare_one_where_reading_it_takes_time() -> None:
    few = lexeme_weights({"rare": 2, "common": 190}, total=200, budget=10_000, bound=10_000)
    many = lexeme_weights({"rare": 2, "common": 1_900}, total=2_000, budget=10_000, bound=10_000)
    alone = lexeme_weights({"common": 1_900}, total=2_000, budget=10_000, bound=10_000)

    assert (set(few), set(many), set(alone)) == ({"rare", "common"}, {"rare"}, {"common"})


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 1_000), max_size=20))
def test_the_rarest_lexeme_is_always_read_and_the_budget_kept(documents: dict[str, int]) -> None:
    weights = lexeme_weights(documents, total=1_000, budget=500, bound=1_000)

    held = {lexeme: count for lexeme, count in documents.items() if count}
    assert set(weights) <= set(held)
    if held:
        assert min(held, key=lambda lexeme: (held[lexeme], lexeme)) in weights
        assert sum(held[lexeme] for lexeme in weights) <= max(500, min(held.values()))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_rarer_word_never_weighs_less(documents: int, total: int) -> None:
    assert inverse_document_frequency(documents, total) >= inverse_document_frequency(documents + 1, total) >= 0


def test_the_line_through_similarities_is_a_regression_line() -> None:
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(80, 16)).astype(np.float32)
    sizes = chance.uniform(3, 7, size=80).astype(np.float32)
    question = chance.normal(size=16).astype(np.float32)

    line = LengthLine.through(vectors, sizes)

    assert line is not None
    seen = line.of(question)
    slope, start = seen.slope, seen.expected
    expected = np.polyfit(sizes, vectors @ question, 1)[0] * 80 / 100
    assert slope == pytest.approx(expected, rel=1e-3)
    assert start + slope * sizes.mean() == pytest.approx((vectors @ question).mean(), abs=1e-4)
    similarities = vectors @ question
    rest = similarities - similarities.mean() - slope * (sizes - sizes.mean())
    assert seen.deviation == pytest.approx(rest.std(), rel=1e-3)
    scores = similarities - slope * sizes
    assert [int((scores >= seen.score_of_best(share) - 1e-6).sum()) for share in (0.0, 0.1, 0.5, 1.0)] == [1, 9, 41, 80]
    assert LengthLine.through(vectors[:0], sizes[:0]) is None


def test_two_memories_of_different_length_keep_different_scores() -> None:
    relevant, other = np.array([1.0, 0.0], dtype=np.float32), np.array([0.0, 1.0], dtype=np.float32)
    vectors, sizes = np.stack([relevant, other]), np.array([5.0, 4.0], dtype=np.float32)

    line = LengthLine.through(vectors, sizes)

    assert line is not None
    through_question = line.of(relevant)
    first, second = vectors @ relevant - through_question.slope * sizes
    assert first > second + 0.5
