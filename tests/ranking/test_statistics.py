"""Weights of words by their document frequencies."""

from hypothesis import given, strategies as st

from folklore.ranking.statistics import inverse_document_frequency, lexeme_weights


def test_a_common_word_is_left_out_beside_a_rare_one_where_reading_it_takes_time() -> None:
    few = lexeme_weights({"rare": 2, "common": 190}, total=200, budget=10_000)
    many = lexeme_weights({"rare": 2, "common": 1_900}, total=2_000, budget=10_000)
    alone = lexeme_weights({"common": 1_900}, total=2_000, budget=10_000)

    assert (set(few), set(many), set(alone)) == ({"rare", "common"}, {"rare"}, {"common"})


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 1_000), max_size=20))
def test_the_rarest_lexeme_is_always_read_and_the_budget_kept(documents: dict[str, int]) -> None:
    weights = lexeme_weights(documents, total=1_000, budget=500)

    held = {lexeme: count for lexeme, count in documents.items() if count}
    assert set(weights) <= set(held)
    if held:
        assert min(held, key=lambda lexeme: (held[lexeme], lexeme)) in weights
        assert sum(held[lexeme] for lexeme in weights) <= max(500, min(held.values()))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_rarer_word_never_weighs_less(documents: int, total: int) -> None:
    assert inverse_document_frequency(documents, total) >= inverse_document_frequency(documents + 1, total) >= 0
