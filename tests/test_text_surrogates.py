"""JSON that spells half of a character."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.surrogates import without_halves

PIECES = st.text(st.sampled_from('aé\\"u\ud83d\udc4d\ud800\udfff👍d8'))


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        (rb'"half \ud83d"', "half \0"),
        (rb'"half \uDC4D"', "half \0"),
        (rb'"\ud83d\ud83d\udc4d"', "\0👍"),
        (rb'"\udc4d\ud83d"', "\0\0"),
        (rb'"\ud83d\udc4d"', "👍"),
        (rb'"C:\\ud83d"', "C:\\ud83d"),
        (rb'"C:\\\ud83d"', "C:\\\0"),
        (rb'"\ud7ff\ue000"', "\ud7ff\ue000"),
    ],
)
def test_half_a_character_becomes_nul_and_all_else_stays(spelled: bytes, read: str) -> None:
    assert json.loads(without_halves(spelled)) == read


@given(st.recursive(PIECES, lambda inner: st.lists(inner) | st.dictionaries(PIECES, inner)))
def test_what_is_left_is_text_of_the_same_length(value: object) -> None:
    spelled = json.dumps(value).encode()
    whole = without_halves(spelled)

    assert len(whole) == len(spelled)
    json.dumps(json.loads(whole), ensure_ascii=False).encode()  # no half is left
    assert json.loads(whole) == json.loads(_mended(json.dumps(json.loads(spelled), ensure_ascii=False)))


def _mended(text: str) -> str:
    """The same, made without the spelling: JSON with characters as they are."""
    return "".join("\\u0000" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
