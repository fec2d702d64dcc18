"""Cleaning and fingerprinting text."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.text.clean import clean, digest, nfc

ANYTHING = st.text(st.characters())  # surrogates included
TRICKY = st.text(
    st.sampled_from(
        "aé \n\r\t\x00\x1b[0m]8;;\x07\\\u200b\u200c\u200d\ufe0f\ufe0e\U000e0101\U000e0041❤👩🔥🏽کनम्\u202e\ud800\udc00"
    )
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("nul\x00byte", "nulbyte"),
        ("half \ud83d emoji", "half  emoji"),
        ("bell\x07 backspace\x08 delete\x7f next\x9f", "bell backspace delete next"),
        ("a\tb\nc", "a\tb\nc"),
        ("dos\r\nmac\rpage\x0cnext\x85line\u2028end", "dos\nmac\npage\nnext\nline\nend"),
        ("\x1b[1;31mred\x1b[0m plain", "red plain"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\ufeffstart", "start"),
        ("access\u202e levels\u2066!\u2069", "access levels!"),
        ("in\u200bvis\u2060ible\u00ad", "invisible"),
        ("hidden\U000e0068\U000e0069", "hidden"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴"),
    ],
)
def test_what_cannot_be_seen_is_taken_out(raw: str, text: str) -> None:
    assert clean(raw).text == text


@pytest.mark.parametrize(
    "text",
    [
        "👩‍💻 and 👨‍👩‍👧‍👦 and ❤️‍🔥 and 🙂‍↔️ and 👩🏽‍🚀",
        "می‌خواهم",  # Persian, zero-width non-joiner
        "क्‍ष ക്‍",  # half forms after a virama
        "plain ASCII, C++ and `code`",
        "日本語 العربية עברית",
        "1️⃣ ©️",
    ],
)
def test_what_is_needed_to_read_the_text_stays(text: str) -> None:
    assert clean(text) == clean(clean(text).text)
    assert clean(text).text == text
    assert clean(text).removed == 0


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("pass\u200dword", "password"),
        ("\u200cstart", "start"),
        ("👍\ufe0f\U000e0100\U000e0101\U000e0102", "👍\ufe0f"),  # bytes smuggled in selectors
        ("a \ufe0f b", "a  b"),
    ],
)
def test_joiners_and_selectors_without_use_are_taken_out(raw: str, text: str) -> None:
    assert clean(raw).text == text


def test_the_number_of_removed_characters_is_told() -> None:
    assert clean("a\x00b\u200bc\r\n").removed == 2


@given(ANYTHING | TRICKY)
def test_cleaning_twice_changes_nothing_more(raw: str) -> None:
    once = clean(raw)
    assert clean(once.text) == type(once)(once.text, 0)
    assert once.removed >= 0


@given(ANYTHING | TRICKY)
def test_clean_text_can_be_stored(raw: str) -> None:
    text = clean(raw).text
    text.encode()
    assert "\x00" not in text
    assert not any(unicodedata.category(char) == "Cc" and char not in "\n\t" for char in text)


def test_the_same_text_in_other_white_space_and_accents_has_one_digest() -> None:
    assert digest("Café  is\n\topen ") == digest("Cafe\u0301 is open")


def test_case_and_punctuation_make_another_digest() -> None:
    assert len({digest("Use tabs."), digest("use tabs."), digest("Use tabs")}) == 3


@given(ANYTHING)
def test_every_text_has_a_digest_of_32_bytes(raw: str) -> None:
    assert len(digest(raw)) == 32
    assert digest(raw) == digest(f"\n {raw}\t")


@given(st.text())
def test_composing_agrees_with_the_standard(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "paste",
    [
        "word " * 200_000,
        "\u200d" * 1_000_000,
        "a" + "\u0301\u0316" * 500_000,
        "\x1b[" * 500_000,
        "\x1b]8;;" * 200_000,
        "\r" * 10**6,
    ],
    ids=["words", "joiners", "marks", "escapes", "links", "returns"],
)
def test_a_paste_of_a_megabyte_takes_no_longer_than_its_length(paste: str) -> None:
    started = time.perf_counter()
    digest(clean(paste).text)
    assert time.perf_counter() - started < 2
