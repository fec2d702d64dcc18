"""Cleaning, composing and digests of text, and lone surrogates in JSON."""

import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from folklore.text.clean import (
    clean,
    digest,
    former_digest,
    nfc,
    replace_lone_surrogates,
    trimmed,
)

ANYTHING = st.text(st.characters())  # with lone surrogates
TRICKY = st.text(
    st.sampled_from(
        "aé \n\r\t\x00\x1b[0m]8;;\x07\\\u200b\u200c\u200d\ufe0f\ufe0e\U000e0101\U000e0041❤👩🔥🏽کनम्\u202e\ud800\udc00"
    )
)
SURROGATES = st.text(st.sampled_from('aé\\"u\ud83d\udc4d\ud800\udfff👍d8'))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("nul\x00byte", "nulbyte"),
        ("half \ud83d emoji", "half  emoji"),
        ("bell\x07 backspace\x08 delete\x7f next\x9f", "bell backspace delete next"),
        ("a\tb\nc", "a\tb\nc"),
        (
            "dos\r\nmac\rpage\x0cnext\x85line\u2028end",
            "dos\nmac\npage\nnext\nline\nend",
        ),
        ("\x1b[1;31mred\x1b[0m plain", "red plain"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\ufeffstart", "start"),
        ("access\u202e levels\u2066!\u2069", "access levels!"),
        ("in\u200bvis\u2060ible\u00ad", "invisible"),
        ("hidden\U000e0068\U000e0069", "hidden"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴"),
        # joiners and selectors without effect
        ("pass\u200dword", "password"),
        ("\u200cstart", "start"),
        (
            "👍\ufe0f\U000e0100\U000e0101\U000e0102",
            "👍\ufe0f",
        ),  # bytes smuggled in selectors
        ("a \ufe0f b", "a  b"),
    ],
)
def test_invisible_characters_are_removed(raw: str, text: str) -> None:
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
def test_characters_that_change_the_rendering_remain(text: str) -> None:
    assert clean(text) == clean(clean(text).text)
    assert clean(text).text == text
    assert clean(text).removed == 0


def test_the_removed_characters_are_counted() -> None:
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
    assert not any(
        unicodedata.category(char) == "Cc" and char not in "\n\t" for char in text
    )


@pytest.mark.parametrize(
    "other",
    [
        "- Café  is\r\n  -\topen ",
        "\n\n- Cafe\u0301 is  \n  - open\n",
        "- Caf\u00e9\u00a0is\n\u00a0\u00a0- open",
        "    - Café is\n      - open",
        "- Café is\u2028  - open",
    ],
)
def test_blanks_that_say_nothing_do_not_change_the_digest(other: str) -> None:
    assert digest(other) == digest("- Café is\n  - open")


def test_the_number_of_empty_lines_does_not_change_the_digest() -> None:
    assert digest("one\n\n \n\ntwo") == digest("one\n\ntwo") != digest("one\ntwo")


DIFFERENT = [
    ("- a\n- b", "- a\n  - b"),
    ("- a\n  - b\n  - c", "- a\n  - b\n    - c"),
    ("all:\n\tmake it", "all:\n        make it"),
    ("if a:\n    b()\nc()", "if a:\n    b()\n    c()"),
    ("HOST=a\nPORT=1", "HOST=a PORT=1"),
    ("alice\nbob smith", "alice bob\nsmith"),
    ("  - a\n  - b", "- a\n  - b"),
    ("a\n\tb", "a\n\t\tb"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_indentation_and_borders_of_lines_change_the_digest(
    one: str, other: str
) -> None:
    assert digest(one) != digest(other)
    assert former_digest(one) == former_digest(other)


@given(ANYTHING)
def test_every_text_has_a_digest_of_32_bytes(raw: str) -> None:
    assert len(digest(raw)) == 32
    assert digest(raw) == digest(f"\n\n{raw}\t") == digest(trimmed(raw))


@given(ANYTHING)
def test_the_digest_of_one_line_is_what_it_was(raw: str) -> None:
    line = " ".join(raw.split())
    assert digest(line) == former_digest(line)


@given(st.text())
def test_composing_agrees_with_unicodedata(text: str) -> None:
    assert nfc(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (rb'"half \ud83d"', "half \0"), (rb'"half \uDC4D"', "half \0"), (rb'"\ud83d\ud83d\udc4d"', "\0👍"),
        (rb'"\udc4d\ud83d"', "\0\0"), (rb'"\ud83d\udc4d"', "👍"), (rb'"C:\\ud83d"', "C:\\ud83d"),
        (rb'"C:\\\ud83d"', "C:\\\0"), (rb'"\ud7ff\ue000"', "\ud7ff\ue000"),
    ],
)  # fmt: skip
def test_only_lone_surrogates_in_json_become_nul(escaped: bytes, read: str) -> None:
    assert json.loads(replace_lone_surrogates(escaped)) == read


@given(
    st.recursive(
        SURROGATES, lambda inner: st.lists(inner) | st.dictionaries(SURROGATES, inner)
    )
)
def test_json_without_lone_surrogates_has_the_same_length_and_can_be_encoded(
    value: object,
) -> None:
    escaped = json.dumps(value).encode()
    replaced = replace_lone_surrogates(escaped)

    assert len(replaced) == len(escaped)
    json.dumps(json.loads(replaced), ensure_ascii=False).encode()
    plain = json.dumps(json.loads(escaped), ensure_ascii=False)
    expected = "".join(
        "\\u0000" if "\ud800" <= char <= "\udfff" else char for char in plain
    )
    assert json.loads(replaced) == json.loads(expected)
