"""Which words are usual in a sample of texts, and what follows for the pieces of a question."""

from __future__ import annotations

import math

from folklore.ranking.standard_scores import piece_weights, sampled_weights
from folklore.text.sampled_frequencies import UsualWords

USUAL = UsualWords.of(["The harbour, the wind.", "The wind's end", "the `max_wal_size` of Wind", "max_wal_size"])


def test_a_word_counts_once_a_text_in_any_case_and_whatever_stands_beside_it() -> None:
    assert USUAL.total == 4
    assert [USUAL.holding(word) for word in ("THE", "wind?", "`max_wal_size`", "never")] == [3, 3, 2, 0]
    assert USUAL.holding("wal") == 0, "the parts of an identifier are other words"


def test_a_word_of_one_text_is_as_rare_as_one_of_none() -> None:
    assert USUAL.holding("harbour") == 0
    assert set(USUAL.documents) == {"the", "wind", "max_wal_size"}


def test_a_piece_is_as_rare_as_its_rarest_word() -> None:
    assert USUAL.holding("the/max_wal_size") == 2
    assert USUAL.holding("the-wind") == 3


def test_a_piece_without_a_word_is_told_apart_from_a_word_that_nobody_uses() -> None:
    assert USUAL.holding("—?!") is None


def test_nothing_is_usual_among_no_texts() -> None:
    assert UsualWords.of([]).holding("word") == 0


def test_the_rarer_a_piece_the_more_it_counts_and_none_counts_less_than_a_word_of_every_second_text() -> None:
    never, twice, often, always, nothing = piece_weights(sampled_weights([0, 2, 60, 200, None], 200))

    assert never > twice > often > always
    assert always == nothing == math.sqrt(math.log(2))
    assert twice == math.sqrt(math.log1p(198.5 / 2.5))
