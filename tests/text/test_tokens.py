"""Token estimates and cutting to a budget."""

import pytest
from hypothesis import given, strategies as st

from folklore.text.tokens import estimate, fit


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fives", 2)]
)
def test_a_token_is_four_characters(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@pytest.mark.parametrize(
    ("text", "budget", "fitted"),
    [
        ("short  text \n", 4, "short  text \n"),
        ("The connection pool must be drained first", 5, "The connection pool…"),
        ("antidisestablishmentarianism", 3, "antidisesta…"),
        ("abcde\u0301fghijk", 2, "abcde\u0301f…"),  # an accent stays with its letter
        ("abcdefe\u0301ghijk", 2, "abcdef…"),
        ("words", 0, ""),
    ],
)
def test_a_text_is_cut_to_its_budget_at_the_end_of_a_word(
    text: str, budget: int, fitted: str
) -> None:
    assert fit(text, budget) == fitted


@given(st.text(), st.integers(-3, 40))
def test_a_fitted_text_never_exceeds_its_budget(text: str, budget: int) -> None:
    fitted = fit(text, budget)
    assert estimate(fitted) <= max(budget, 0)
    assert (
        fitted == text
        or fitted == ""
        or (fitted.endswith("…") and text.startswith(fitted[:-1]))
    )
