"""Texts that stand for no value, and lists in one text."""

import pytest

from folklore.text.arguments import entries_of, is_nothing, is_null_word


@pytest.mark.parametrize(
    "text", ["", " \t\n", "null", "Null", " NULL ", "None", "undefined", "\u200bnone"]
)
def test_blank_texts_and_null_words_are_nothing(text: str) -> None:
    assert is_nothing(text)


@pytest.mark.parametrize(
    "text", ["nullable", "none of them", "repo:null", "0", "false", "-", "x" * 10_000]
)
def test_other_texts_are_something(text: str) -> None:
    assert not is_nothing(text)
    assert not is_null_word(text)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a, b", ["a", "b"]),
        ("a b", ["a", "b"]),
        ("code review, deploy", ["code review", "deploy"]),
        ("[a, 'b']", ["a", "b"]),
        ("a;b\nc,", ["a", "b", "c"]),
        ("“a”", ["a"]),
        ("[]", []),
        (" ", []),
    ],
)
def test_a_list_in_one_text_has_its_entries(text: str, entries: list[str]) -> None:
    assert entries_of(text) == entries


def test_paths_with_blanks_stay_whole() -> None:
    assert entries_of("my notes/a.md, b.md", blanks=False) == ["my notes/a.md", "b.md"]
    assert entries_of("my notes/a.md", blanks=False) == ["my notes/a.md"]
