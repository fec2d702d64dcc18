"""Similar texts neither fill an answer nor disappear from it, and texts of the same words count as one."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from folklore.ranking.diversity import (
    discounted_relevance,
    group_near_duplicates,
    maximal_marginal_relevance,
    newest_first,
    opening,
    share_words,
)
from folklore.text.query.question import plain
from tests.person import NOON


@st.composite
def pools(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Relevance, and the cosines of some vectors, many of them nearly 1."""
    count = draw(st.integers(0, 8))
    relevance = np.array(
        draw(st.lists(st.floats(0, 50), min_size=count, max_size=count))
    )
    numbers = draw(st.lists(st.integers(-1, 7), min_size=2 * count, max_size=2 * count))
    vectors = np.array(numbers, dtype=np.float32).reshape(count, 2)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return relevance, vectors @ vectors.T


def picked(
    relevance: NDArray[np.float64],
    similarity: NDArray[np.float32],
    limit: int,
    trade_off: float,
) -> list[int]:
    return [
        place
        for place, _ in discounted_relevance(relevance, similarity, limit, trade_off)
    ]


@given(pools(), st.integers(0, 10), st.floats(0.01, 0.99))
def test_each_pick_has_the_greatest_relevance_after_the_discount_for_what_it_repeats(
    pool: Any, limit: int, trade_off: float
) -> None:
    relevance, similarity = pool
    chosen: list[int] = []

    def repeated(one: int) -> float:
        return sum(
            min(max((float(similarity[one, other]) - 0.95) / 0.03, 0), 1)
            for other in chosen
        )

    for place, redundancy in discounted_relevance(
        relevance, similarity, limit, trade_off
    ):
        left = [one for one in range(len(relevance)) if one not in chosen]
        assert place in left
        assert redundancy == pytest.approx(repeated(place), abs=1e-5)
        discounted = [relevance[one] * trade_off ** repeated(one) for one in left]
        assert relevance[place] * trade_off**redundancy == pytest.approx(
            max(discounted), rel=1e-4
        )
        chosen.append(place)
    assert len(chosen) == min(limit, len(relevance))
    # a trade-off of 1 keeps the order
    assert picked(relevance, similarity, limit, 1.0) == list(range(len(chosen)))


@given(pools(), st.integers(0, 10), st.floats(0, 1))
def test_each_pick_has_the_greatest_marginal_relevance(
    pool: Any, limit: int, trade_off: float
) -> None:
    relevance, similarity = pool
    chosen: list[int] = []

    def redundant(one: int) -> float:
        return max((float(similarity[one, other]) for other in chosen), default=0.0)

    for place, redundancy in maximal_marginal_relevance(
        relevance, similarity, limit, trade_off
    ):
        left = [one for one in range(len(relevance)) if one not in chosen]
        assert place in left
        assert redundancy == pytest.approx(redundant(place))
        values = [
            trade_off * relevance[one] - (1 - trade_off) * redundant(one)
            for one in left
        ]
        assert trade_off * relevance[place] - (
            1 - trade_off
        ) * redundancy == pytest.approx(max(values))
        chosen.append(place)
    assert len(chosen) == min(limit, len(relevance))


@pytest.mark.parametrize(
    ("relevance", "alike", "order"),
    [
        ([1.0, 0.95, 0.8], 2, [0, 2, 1]),  # behind a new text of nearly its relevance
        ([1.0, 0.99, 0.5], 2, [0, 1, 2]),  # before one of half its relevance
        ([1.0, 0.9, 0.0], 2, [0, 1, 2]),
        (
            [1.0, 1.0, 1.0, 1.0, 0.6, 0.4],
            4,
            [0, 1, 4, 2, 5, 3],
        ),  # each further one of a series moves back further
        ([4.0, 3.0, 2.0, 1.0], 4, [0, 1, 2, 3]),
        ([1.0, 1.0, 1.0], 1, [0, 1, 2]),  # equal values keep their order
        ([1.0, 1.0, 2.0], 1, [2, 0, 1]),
        ([0.0, -1.0, -2.0], 1, [0, 1, 2]),
    ],
)
def test_the_first_texts_that_are_alike_move_back_behind_others(
    relevance: list[float], alike: int, order: list[int]
) -> None:
    similarity = np.eye(len(relevance), dtype=np.float32)
    similarity[:alike, :alike] = 0.99

    assert picked(np.array(relevance), similarity, 9, 0.7) == order
    assert picked(np.array(relevance), similarity, 2, 0.7) == order[:2]


FACT = "We will paint the harbour office in autumn when the scaffolding is there"


def grouped_places(texts: Sequence[str]) -> dict[int, list[int]]:
    return group_near_duplicates(
        range(len(texts)),
        lambda place: opening(plain(texts[place])),
        lambda place: texts[place],
        lambda place: NOON + timedelta(place),
    )


def grouped(*texts: str) -> list[list[str]]:
    """Group texts, best first and each a day newer than the one before it."""
    groups = grouped_places(texts)
    return [
        [texts[newest], *(texts[other] for other in others)]
        for newest, others in groups.items()
    ]


def test_long_texts_are_compared_to_their_end_and_in_the_order_of_their_words() -> None:
    beginning = "the deploy of the billing service went well " * 200
    ends = (
        "today for Ada and Ben",
        "again",
        "Today for Ada and Ben.",
        "today for Ben and Ada",
    )
    texts = [beginning + end for end in ends]

    assert grouped(*texts) == [[texts[2], texts[0]], [texts[1]], [texts[3]]]


def test_a_text_is_no_near_duplicate_of_its_beginning() -> None:
    texts = (
        "we retry before the message",
        "we retry before the message is acknowledged",
        "we retry",
        "",
        "!!!",
        "the",
    )

    assert grouped(*texts) == [[text] for text in texts]


def test_an_opening_has_the_first_eight_words_that_are_no_articles() -> None:
    assert opening(plain(FACT)) == "we will paint harbour office in autumn when"
    assert opening("the a an one the  two") == "one two"
    assert opening("the " * 31 + "one two three") == "one"  # of 32 words that are read


def test_texts_of_another_opening_are_not_read() -> None:
    def text_of(place: int) -> str:
        assert place < 2
        return "same words"

    groups = group_near_duplicates(
        range(4), "aabc".__getitem__, text_of, lambda place: NOON - timedelta(place)
    )
    assert groups == {0: [1], 2: [], 3: []}


@given(st.lists(st.text("ab .", max_size=6), max_size=8))
def test_every_text_comes_once_and_each_wording_is_represented_once(
    texts: list[str],
) -> None:
    def wording(place: int) -> tuple[object, ...]:
        chunks = (chunk.rstrip(".") for chunk in texts[place].split())
        return tuple(word for word in chunks if word and word != "a") or (place,)

    groups = grouped_places(texts)

    places = range(len(texts))
    assert sorted(
        [*groups, *(other for others in groups.values() for other in others)]
    ) == list(places)
    assert len(groups) == len({wording(place) for place in places})
    assert all(
        {wording(newest)} >= {wording(other) for other in others}
        for newest, others in groups.items()
    )
    assert all(
        [newest, *others] == sorted([newest, *others], reverse=True)
        for newest, others in groups.items()
    )


def test_of_one_subject_the_newer_comes_first_wherever_it_was() -> None:
    assert newest_first("abcd", {"a": ["d", "x"], "c": ["d"]}) == [
        "d",
        "x",
        "a",
        "b",
        "c",
    ]
    assert newest_first("abc", {"a": ["c", "b"], "b": ["c"]}) == ["c", "b", "a"]
    assert newest_first("abc", {}) == ["a", "b", "c"]


def test_two_texts_share_a_part_of_all_their_words() -> None:
    shares = [share_words(set("abc"), set("bcd"), least) for least in (0, 0.5, 0.51)]
    assert shares == [True, True, False]
    assert not share_words(set("ab"), set("cd"), 0)
    assert not share_words(set(), set(), 0)
    assert share_words(set("ab"), set("bc"), 1 / 3)
