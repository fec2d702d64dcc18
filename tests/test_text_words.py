"""Which texts have the same words in the same order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.words import words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We use pnpm.", "we use PNPM"),
        ("We retry after acknowledging.", "We retry, after   acknowledging:\n"),
        ("We retry — after acknowledging", "We retry - after acknowledging"),
        ("- Run `make test` (twice)", "Run make test twice!"),
        ("Straße", "STRASSE"),
        ("我们重试。", "「我们重试」"),
        ("", "..."),
    ],
)
def test_case_punctuation_and_white_space_do_not_count(one: str, other: str) -> None:
    assert list(words(one)) == list(words(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We retry before acknowledging.", "We retry after acknowledging."),
        ("Ada reviews Cy.", "Cy reviews Ada."),
        ("Just to note: we use pnpm.", "We use pnpm."),
        ("It needs v1.2", "It needs v12"),
        ("The limit is 1.5", "The limit is 15"),
        ("The offset is -5", "The offset is 5"),
        ("Alert if load > 5", "Alert if load < 5"),
        ("run if !ready", "run if ready"),
        ("if a != b", "if a == b"),
        ("Load .env", "Load env"),
        ("We chose C++", "We chose C"),
    ],
)
def test_other_words_numbers_signs_or_order_count(one: str, other: str) -> None:
    assert list(words(one)) != list(words(other))


@given(st.text())
def test_reading_the_words_again_changes_nothing(text: str) -> None:
    once = list(words(text))

    assert list(words(" ".join(once))) == once
