"""Weights of words by their document frequencies."""

import math

import pytest
from hypothesis import given, strategies as st

from folklore.ranking.statistics import inverse_document_frequency, lexeme_weights


@pytest.mark.parametrize(
    ("documents", "total", "budget", "read"),
    [
        ({"rare": 2, "common": 190}, 200, 10_000, ["rare", "common"]),
        (
            {"common": 1_900, "rare": 2},
            2_000,
            10_000,
            ["rare"],
        ),  # a common word beside a rare one takes much time
        ({"common": 1_900}, 2_000, 10_000, ["common"]),
        ({"b": 2, "c": 3, "a": 2, "none": 0}, 9, 7, ["a", "b", "c"]),
        ({"b": 2, "c": 3, "a": 2, "none": 0}, 9, 6, ["a", "b"]),
        ({"b": 9, "a": 8}, 9, 1, ["a"]),
        # Of 10,000 memories, one in 5,000 has at least a tenth of the weight of the rarest, one in 6,000 less.
        ({"rare": 40, "common": 5_000}, 10_000, 10_000, ["rare", "common"]),
        ({"rare": 40, "common": 6_000}, 10_000, 10_000, ["rare"]),
        (
            {"rare": 2, "half": 498, "common": 1_000},
            1_000,
            10_000,
            ["rare", "half", "common"],
        ),  # 1,500 postings
        ({"rare": 2, "half": 499, "common": 1_000}, 1_000, 10_000, ["rare", "half"]),
        ({"counted later": 12}, 9, 100, ["counted later"]),
    ],
)
def test_the_rarest_words_are_read_first_and_common_ones_where_they_take_no_time(
    documents: dict[str, int], total: int, budget: int, read: list[str]
) -> None:
    weights = lexeme_weights(documents, total=total, budget=budget)

    assert list(weights) == read
    for word, weight in weights.items():
        held = documents[word]
        every = max(total, documents[word])
        assert (
            weight
            == inverse_document_frequency(held, every)
            == pytest.approx(math.log(1 + (every - held + 1 / 2) / (held + 1 / 2)))
        )


def test_a_word_in_more_memories_than_there_are_has_the_weight_of_one_in_all() -> None:
    assert inverse_document_frequency(12, 9) == pytest.approx(math.log(1 + 0.5 / 12.5))


@given(
    st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 1_000), max_size=20)
)
def test_the_rarest_lexeme_is_always_read_and_the_budget_kept(
    documents: dict[str, int],
) -> None:
    weights = lexeme_weights(documents, total=1_000, budget=500)

    held = {lexeme: count for lexeme, count in documents.items() if count}
    assert set(weights) <= set(held)
    if held:
        assert min(held, key=lambda lexeme: (held[lexeme], lexeme)) in weights
        assert sum(held[lexeme] for lexeme in weights) <= max(500, min(held.values()))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_rarer_word_never_weighs_less(documents: int, total: int) -> None:
    assert (
        inverse_document_frequency(documents, total)
        >= inverse_document_frequency(documents + 1, total)
        >= 0
    )
