"""Which words are usual in a sample of texts, and what follows for the pieces of a question."""

from __future__ import annotations

import math

from folklore.ranking.evidence import piece_weights
from folklore.text.usual import UsualWords

USUAL = UsualWords.of(["The harbour, the wind.", "The wind's end", "the `max_wal_size` of Wind", "nothing"])


def test_a_word_counts_once_a_text_in_any_case_and_whatever_stands_beside_it() -> None:
    assert USUAL.total == 4
    assert [USUAL.holding(word) for word in ("THE", "wind?", "harbour", "max_wal_size", "never")] == [3, 3, 1, 1, 0]


def test_a_piece_is_as_rare_as_its_rarest_word() -> None:
    assert USUAL.holding("the/harbour") == 1
    assert USUAL.holding("the-wind") == 3


def test_a_piece_without_a_word_is_told_apart_from_a_word_that_nobody_uses() -> None:
    assert USUAL.holding("—?!") is None


def test_nothing_is_usual_among_no_texts() -> None:
    assert UsualWords.of([]).holding("word") == 0


def test_the_rarer_a_piece_the_more_it_counts_and_none_counts_less_than_a_word_of_every_second_text() -> None:
    never, once, often, always, nothing = piece_weights([0, 1, 60, 200, None], 200)

    assert never > once > often > always
    assert always == nothing == math.sqrt(math.log(2))
    assert once == math.sqrt(math.log1p(199.5 / 1.5))


def test_where_no_texts_are_known_all_words_count_alike() -> None:
    assert len(set(piece_weights([0, 0], 0))) == 1
