"""What is put around a repeated text comes off, and nothing of the text with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.quoting import unwrapped

TEXT = "We deploy from the release branch, never from main."


@pytest.mark.parametrize(
    "wrapped",
    [
        f'"{TEXT}"',
        f"“{TEXT}”",
        f"- {TEXT}",
        f"12. {TEXT}",
        f"> {TEXT}",
        f"**{TEXT}**",
        f"```\n{TEXT}\n```",
        f'- "{TEXT}"',
        f'> 1. "{TEXT}"\n',
    ],
)
def test_a_quoted_text_is_found_within_its_wrapping(wrapped: str) -> None:
    assert TEXT in list(unwrapped(wrapped))


@pytest.mark.parametrize(
    "text",
    [TEXT, "", '"', '""', 'Say "a" or "b"', '"a" and "b"', "memory: " + TEXT, "> quoted\nand not", "-5 is a number"],
)
def test_a_text_with_nothing_around_it_stays_as_it_is(text: str) -> None:
    assert list(unwrapped(text)) == []


@given(st.text(max_size=200))
def test_no_word_is_ever_taken_off(text: str) -> None:
    letters = [sign for sign in text if sign.isalpha()]
    for inner in unwrapped(text):
        assert [sign for sign in inner if sign.isalpha()] == letters
