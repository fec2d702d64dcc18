"""Token estimates and cutting to a budget."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.tokens import estimate, fit


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fives", 2)])
def test_a_token_is_four_characters(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_a_text_within_its_budget_is_unchanged() -> None:
    assert fit("short  text \n", 4) == "short  text \n"


def test_a_text_is_cut_at_the_end_of_a_word() -> None:
    assert fit("The connection pool must be drained first", 5) == "The connection pool…"


def test_a_word_longer_than_half_the_budget_is_cut_inside() -> None:
    assert fit("antidisestablishmentarianism", 3) == "antidisestab"[:11] + "…"


def test_an_accent_stays_with_its_letter() -> None:
    assert fit("abcde\u0301fghijk", 2) == "abcde\u0301f…"
    assert fit("abcdefe\u0301ghijk", 2) == "abcdef…"


@pytest.mark.parametrize("budget", [0, -5])
def test_no_budget_gives_no_text(budget: int) -> None:
    assert fit("words", budget) == ""


@given(st.text(), st.integers(-3, 40))
def test_a_fitted_text_never_exceeds_its_budget(text: str, budget: int) -> None:
    fitted = fit(text, budget)
    assert estimate(fitted) <= max(budget, 0)
    assert fitted == text or fitted == "" or (fitted.endswith("…") and text.startswith(fitted[:-1]))
