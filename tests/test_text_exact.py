"""How exactly a text says what a question says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.exact import ExactQuestion


def question(text: str) -> ExactQuestion:
    pieces = text.split()
    return ExactQuestion.of(pieces, [1.0] * len(pieces))


@pytest.mark.parametrize(
    ("asked", "text", "share"),
    [
        ("buffered.py", "It stands in buffered.py, line 3", 1.0),
        ("buffered.py", "It stands in rebuffered.python", 0.0),
        ("anyio 4.16.0", "anyio 4.16.0 was released", 1.0),
        ("anyio 4.16.0", "anyio needs typing_extensions>=4.16.0", 2 / 3),
        ("Connection REFUSED", "connection refused by peer", 1.0),
        ("connection refused", "refused: the connection", 2 / 3),
        ("`--no-verify`", "Commit with --no-verify.", 1.0),
        ("stop", "TRACING_STOP", 0.0),
        ("a b", "", 0.0),
    ],
)
def test_words_count_as_they_are_spelled_and_side_by_side(asked: str, text: str, share: float) -> None:
    assert question(asked).share(text) == pytest.approx(share)


def test_a_word_that_weighs_nothing_counts_nothing() -> None:
    exact = ExactQuestion.of(["the", "tunnel"], [0.0, 3.0])

    assert exact.share("the other") == 0.0
    assert exact.share("a tunnel") == 1.0
    assert ExactQuestion.of(["the"], [0.0]).share("the") == 0.0


def test_half_of_the_words_are_no_likeness() -> None:
    assert question("one two three four").likeness("four and two") == 0.0
    assert question("one two").likeness("one two") == 1.0


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_has_a_share_between_nothing_and_all(asked: str, text: str) -> None:
    assert 0.0 <= question(asked).share(text) <= 1.0 + 1e-9
    assert 0.0 <= question(asked).likeness(text) <= 1.0 + 1e-9
