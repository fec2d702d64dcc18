"""Words of a text: normal form, questions, quotation."""

import pytest
from hypothesis import given, strategies as st

from folklore.text.words import is_question, unquoted, words

TEXT = "We deploy from the release branch, never from main."


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We use pnpm.", "we use PNPM"), ("We retry after acknowledging.", "We retry, after   acknowledging:\n"),
        ("We retry — after acknowledging", "We retry - after acknowledging"),
        ("- Run `make test` (twice)", "Run make test twice!"), ("Straße", "STRASSE"),
        ("我们重试。", "「我们重试」"), ("", "..."),
    ],
)  # fmt: skip
def test_words_ignore_case_punctuation_and_white_space(one: str, other: str) -> None:
    assert list(words(one)) == list(words(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We retry before acknowledging.", "We retry after acknowledging."), ("Ada reviews Cy.", "Cy reviews Ada."),
        ("Just to note: we use pnpm.", "We use pnpm."), ("It needs v1.2", "It needs v12"),
        ("The limit is 1.5", "The limit is 15"), ("The offset is -5", "The offset is 5"),
        ("Alert if load > 5", "Alert if load < 5"), ("run if !ready", "run if ready"), ("if a != b", "if a == b"),
        ("Load .env", "Load env"), ("We chose C++", "We chose C"),
    ],
)  # fmt: skip
def test_words_keep_numbers_signs_and_order(one: str, other: str) -> None:
    assert list(words(one)) != list(words(other))


@given(st.text())
def test_words_are_their_own_normal_form(text: str) -> None:
    once = list(words(text))

    assert list(words(" ".join(once))) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wow! What happened?", True), ("Comment \u00e7a va ?", True), ('She said "are you sure?" and left.', True),
        ("Really?\nI was there.", True), ("\u4f60\u597d\u5417\uff1f", True),
        ("\u0647\u0644 \u062a\u0639\u0631\u0641\u061f", True), ("See https://example.org/find?q=lamp for more.", False),
        ("Read value?.length here.", False), ("It was a lamp.", False), ("", False),
    ],
)  # fmt: skip
def test_a_question_mark_at_the_end_of_a_sentence_makes_a_question(
    text: str, expected: bool
) -> None:
    assert is_question(text) is expected


@pytest.mark.parametrize(
    "quoted",
    [
        f'"{TEXT}"', f"“{TEXT}”", f"- {TEXT}", f"12. {TEXT}", f"> {TEXT}", f"**{TEXT}**", f"```\n{TEXT}\n```",
        f'- "{TEXT}"', f'> 1. "{TEXT}"\n',
    ],
)  # fmt: skip
def test_a_quoted_text_is_found_without_its_marks(quoted: str) -> None:
    assert TEXT in list(unquoted(quoted))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "",
        '"',
        '""',
        'Say "a" or "b"',
        '"a" and "b"',
        "memory: " + TEXT,
        "> quoted\nand not",
        "-5 is a number",
    ],
)
def test_a_text_without_outer_marks_has_no_other_form(text: str) -> None:
    assert list(unquoted(text)) == []


@given(st.text(max_size=200))
def test_removing_marks_never_removes_a_letter(text: str) -> None:
    letters = [char for char in text if char.isalpha()]
    for inner in unquoted(text):
        assert [char for char in inner if char.isalpha()] == letters
