"""Intervals of the difference between two rankings: the paired bootstrap."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.metrics import Sample, interval, resampled_means
from hypothesis import given
from hypothesis import strategies as st

differences = st.lists(st.floats(-1, 1), min_size=1, max_size=30)


@given(differences)
def test_an_interval_contains_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = interval(Sample(values), rounds=200)

    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.difference == pytest.approx(float(np.mean(values)))


@given(differences)
def test_an_interval_is_repeatable_and_changes_sign_with_its_values(values: list[float]) -> None:
    first, negated = interval(Sample(values), rounds=200), interval(Sample([-value for value in values]), rounds=200)

    assert first == interval(Sample(values), rounds=200)
    assert (negated.low, negated.high) == pytest.approx((-first.high, -first.low))


def test_an_interval_of_many_values_is_as_wide_as_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.1, 1.0, 2_000)

    found = interval(Sample(values.tolist()))

    error = float(values.std() / np.sqrt(len(values)))
    assert (found.high - found.low) == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_questions_of_one_conversation_are_drawn_together() -> None:
    values = [1.0] * 50 + [0.0] * 50

    alone = interval(Sample(values))
    grouped = interval(Sample(values, ["one"] * 50 + ["other"] * 50))

    assert 0.3 < alone.low < alone.high < 0.7
    assert (grouped.low, grouped.high) == (0.0, 1.0)


def test_the_draws_do_not_depend_on_the_size_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_means(Sample([0.0, 1.0, 2.0]), rounds=100)
    monkeypatch.setattr("benchmarks.metrics._DRAWS_AT_ONCE", 10)

    assert resampled_means(Sample([0.0, 1.0, 2.0]), rounds=100).tolist() == whole.tolist()


def test_a_small_set_counts_as_much_as_a_large_one_in_the_mean() -> None:
    assert interval(Sample([1.0] * 100), Sample([0.0])).difference == 0.5
    assert interval(Sample([])).difference == interval().high == 0.0
