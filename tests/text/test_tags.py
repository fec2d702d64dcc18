"""The normal form of tags."""

import pytest
from hypothesis import given, strategies as st

from folklore.errors import InvalidInput
from folklore.text import tags

ANYTHING = st.text(st.characters()) | st.text(
    st.sampled_from("aB:/ \t-'’İßΣé\u0301\u200b\x00")
)


@pytest.mark.parametrize(
    ("raw", "tag"),
    [
        ("  Payments ", "payments"), ("Code Review", "code-review"), ("Entity : Person : Sarah", "entity:person:sarah"),
        ("area//payments/", "area/payments"), ("::leading", "leading"), ("O’Brien", "o'brien"), ("Cafe\u0301", "café"),
        ("in\u200bvisible\x00", "invisible"), ("c++", "c++"), ("entity:symbol:std::vector", "entity:symbol:std:vector"),
        ("a\u3000b", "a-b"),
    ],
)  # fmt: skip
def test_a_tag_has_one_normal_form(raw: str, tag: str) -> None:
    assert tags.spell(raw) == tag
    assert tags.normalise([raw]) == (tag,)


def test_tags_keep_their_order_without_repetitions() -> None:
    assert tags.normalise(["B", "a", "b ", "A"]) == ("b", "a")


@pytest.mark.parametrize("raw", ["", "  ", ":/", "\u200b"])
def test_an_empty_tag_is_rejected_with_its_number(raw: str) -> None:
    with pytest.raises(InvalidInput, match="exclude_tags: tag 2 is empty"):
        tags.normalise(["ok", raw], field="exclude_tags")


@pytest.mark.parametrize("raw", ["x" * 101, "x" * 1_000_000])
def test_an_over_long_tag_is_rejected_with_the_limit(raw: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"tags: tag 1 has .* at most 100"
    ) as refusal:
        tags.normalise([raw])
    assert "xxx" not in str(refusal.value)


def test_more_than_64_tags_are_rejected_with_the_limit() -> None:
    assert len(tags.normalise(f"tag-{n % 64}" for n in range(100))) == 64
    with pytest.raises(InvalidInput, match="65 tags are more than the 64"):
        tags.normalise(f"tag-{n}" for n in range(65))


@given(ANYTHING)
def test_the_normal_form_is_idempotent(raw: str) -> None:
    tag = tags.spell(raw)
    assert tags.spell(tag) == tag
    assert not any(char.isspace() for char in tag)
