"""Differences of texts, as histories and reviews show them."""

from hypothesis import given, strategies as st

from folklore.text.difference import changed_lines

LINES = st.lists(st.sampled_from(["", "a", "b c", "b d", "x. y"]), max_size=8).map(
    "\n".join
)


def shown(old: str, new: str) -> list[str]:
    """Return the lines of a difference, with the changed parts in brackets."""
    return [
        sign + "".join(f"[{part}]" if changed else part for part, changed in parts)
        for sign, parts in changed_lines(old, new)
    ]


def test_changed_words_are_marked_with_a_line_around_each_change() -> None:
    assert shown("a\nb\nwe use pip\nc\nd\ne\nf", "a\nb\nwe use uv\nc\nd\ne\ng") == [
        " b", "-we use [pip]", "+we use [uv]", " c", " e", "-f", "+g",
    ]  # fmt: skip


def test_changes_far_apart_in_a_long_line_are_marked_apart() -> None:
    prose = [f"The {number}th gate is open." for number in range(500)]

    removed, added = shown(
        " ".join(prose), " ".join([*prose[:9], "Shut.", *prose[10:-1], "Shut too."])
    )

    assert removed.count("[") == added.count("[") == 2
    assert "[ Shut too.]" in added


@given(LINES, LINES)
def test_a_difference_holds_every_line_that_only_one_text_has(
    old: str, new: str
) -> None:
    parts = [
        (sign, "".join(part for part, _ in line))
        for sign, line in changed_lines(old, new)
    ]

    assert set(old.splitlines()) - set(new.splitlines()) <= {
        line for sign, line in parts if sign == "-"
    }
    assert set(new.splitlines()) - set(old.splitlines()) <= {
        line for sign, line in parts if sign == "+"
    }
