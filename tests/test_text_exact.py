"""Exact match of a query with a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.exact import ExactMatch


def match(query: str) -> ExactMatch:
    pieces = query.split()
    return ExactMatch.of(pieces, [1.0] * len(pieces))


@pytest.mark.parametrize(
    ("query", "text", "score"),
    [
        ("buffered.py", "It stands in buffered.py, line 3", 1.0),
        ("buffered.py", "It stands in rebuffered.python", 0.0),
        ("anyio 4.16.0", "anyio 4.16.0 was released", 1.0),
        ("anyio 4.16.0", "anyio needs typing_extensions>=4.16.0", 1 / 3),
        ("Connection REFUSED", "connection refused by peer", 1.0),
        ("connection refused", "refused: the connection", 1 / 3),
        ("`--no-verify`", "Commit with --no-verify.", 1.0),
        ("stop", "TRACING_STOP", 0.0),
        ("a b", "", 0.0),
        ("one two three four", "four and two", 0.0),
    ],
)
def test_whole_words_and_adjacent_pairs_beyond_half_of_the_weight_score(query: str, text: str, score: float) -> None:
    assert match(query).score(text) == pytest.approx(score)


def test_words_without_weight_do_not_score() -> None:
    exact = ExactMatch.of(["the", "tunnel"], [0.0, 3.0])

    assert exact.score("the other") == 0.0
    assert exact.score("a tunnel") == 1.0
    assert ExactMatch.of(["the"], [0.0]).score("the") == 0.0


@given(st.text(max_size=80), st.text(max_size=200))
def test_every_score_is_between_0_and_1(query: str, text: str) -> None:
    assert 0.0 <= match(query).score(text) <= 1.0 + 1e-9
