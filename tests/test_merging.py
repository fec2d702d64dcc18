"""Copies of one text count as one before they compete; what only looks alike does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.model import Draft
from folklore.ranking.near_duplicates import as_one, copies, fused_as_one
from folklore.ranking.pool import Listed, fuse
from folklore.ranking.weights import Ranking
from folklore.text.particulars import Particulars
from tests.person import Person, contents

LONG = ("the wind turned", 40)


def alike(*rows: list[float]) -> Any:
    return np.array(rows, dtype=np.float32)


def test_the_first_of_those_that_say_the_same_is_the_one_the_others_are_copies_of() -> None:
    similarity = alike([1, 0.2, 0.99, 0.99], [0.2, 1, 0.3, 0.3], [0.99, 0.3, 1, 0.99], [0.99, 0.3, 0.99, 1])

    assert copies(["a", "b", "c", "d"], similarity, lambda _: LONG) == {"c": "a", "d": "a"}


def test_who_is_like_a_copy_only_is_no_copy() -> None:
    similarity = alike([1, 0.99, 0.92], [0.99, 1, 0.99], [0.92, 0.99, 1])

    assert copies(["a", "b", "c"], similarity, lambda _: LONG) == {"b": "a"}


def test_a_short_text_may_lie_further_from_its_copy_than_a_long_one() -> None:
    similarity = alike([1, 0.93], [0.93, 1])

    assert copies(["a", "b"], similarity, lambda _: ("the wind turned", 10)) == {"b": "a"}
    assert copies(["a", "b"], similarity, lambda _: LONG) == {}


def test_other_numbers_and_other_names_make_another_text() -> None:
    similarity = alike([1, 0.99, 0.99], [0.99, 1, 0.99], [0.99, 0.99, 1])
    texts = {"a": "the port is 5432", "b": "the port is 5433", "c": "the port is 5432 now"}

    assert copies(["a", "b", "c"], similarity, lambda id_: (texts[id_], 9)) == {"c": "a"}


def test_notes_that_differ_by_a_number_alone_are_each_read_once() -> None:
    count, asked = 120, []

    def text_of(place: int) -> tuple[str, int]:
        asked.append(place)
        return f"the deploy number {place} of the billing service went well", 8

    assert copies(list(range(count)), np.ones((count, count), dtype=np.float32), text_of) == {}
    assert sorted(asked) == list(range(count))


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_nobody_is_a_copy_of_himself_or_of_a_copy(count: int, chance: Any) -> None:
    similarity = np.array([[chance.choice([0.5, 0.95, 1.0]) for _ in range(count)] for _ in range(count)])
    similarity = np.maximum(similarity, similarity.T)
    np.fill_diagonal(similarity, 1.0)

    found = copies(list(range(count)), similarity.astype(np.float32), lambda _: LONG)

    assert all(whole < copy for copy, whole in found.items())
    assert not found.keys() & set(found.values())


def test_whom_a_copy_is_of_has_the_best_rank_of_both_in_each_branch() -> None:
    lists = [
        Listed("keyword", ["copy", "other", "whole"], [9.0, 8.0, 1.0], 1.0),
        Listed("dense", ["whole", "copy", "other"], [0.9, 0.8, 0.1], 1.0),
    ]
    ranking = Ranking()
    apart = fuse(lists, ranking, 3)

    fused = fused_as_one(lists, apart, {"copy": "whole"}, ranking, 3)

    assert fused.order == ["whole", "other", "copy"]
    assert fused.own["whole"] == pytest.approx(1.0)
    assert fused.own["copy"] == fused.lent["copy"] == 0.0
    assert fused.own.keys() == apart.own.keys()
    assert all(fused.evidence[branch].keys() == apart.evidence[branch].keys() for branch in apart.evidence)


@pytest.mark.parametrize("fusion", ["rrf", "weighted"])
def test_without_copies_nothing_changes(fusion: Any) -> None:
    lists = [Listed("keyword", ["a", "b"], [9.0, 8.0], 1.0, [0.9, 0.4]), Listed("dense", ["b"], [0.9], 1.0, [0.9])]
    ranking = Ranking(fusion=fusion)
    apart = fuse(lists, ranking, 2)

    assert fused_as_one(lists, apart, {}, ranking, 2) == apart


def test_beside_a_copy_is_beside_whom_it_is_of_once() -> None:
    beside = [("copy", "next", 0.5), ("whole", "next", 0.7), ("copy", "whole", 0.9), ("next", "copy", 0.5)]

    assert list(as_one(beside, {"copy": "whole"})) == [("whole", "next", 0.7), ("next", "whole", 0.5)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Just to note: we use pnpm.", "We use pnpm.", True),
        ("We met Ada in Kiel.", "So, we met Ada in Kiel!", True),
        ("We met Ada in Kiel.", "We met Cy in Kiel.", False),
        ("Because it rained, Ada stayed.", "Ada stayed because it rained.", True),
        ("It needs v1.2", "It needs v1.3", False),
        ("Error 4711 is new.", "The error is new.", False),
        ("", "", True),
    ],
)  # fmt: skip
def test_texts_of_other_numbers_or_names_are_never_the_same(one: str, other: str, same: bool) -> None:
    assert Particulars(one).same(Particulars(other)) is same
    assert Particulars(other).same(Particulars(one)) is same


@given(st.text())
def test_a_text_has_the_particulars_of_itself(text: str) -> None:
    assert Particulars(text).same(Particulars(text))


async def test_a_fact_noted_five_times_takes_one_place_and_keeps_its_conversation(person: Person) -> None:
    said = "We will paint the harbour office in autumn when the scaffolding is there"
    leads = ("So, ", "Just to note: ", "As I said, ", "By the way, ")
    await person.keep(
        Draft("Who paints it then?", session="s"), Draft(said, session="s"), Draft("Ada does.", session="s"),
        *(lead + said[0].lower() + said[1:] for lead in leads),
        *(f"The office got chair number {number}." for number in range(20)),
    )  # fmt: skip

    found = contents(await person.recall("When will the harbour office be painted?", limit=4))
    apart = contents(
        await person.recall("When will the harbour office be painted?", limit=4, ranking=Ranking(mmr_lambda=1.0))
    )

    assert sum("scaffolding" in text for text in found) == 1
    assert sum("scaffolding" in text for text in apart) > 1
    assert {"Who paints it then?", "Ada does."} <= set(found)


async def test_copies_come_after_everything_else(person: Person) -> None:
    said = "The harbour office opens at nine in the morning on every weekday"
    await person.keep(said, f"So, {said}", "A harbour has gulls.", "An office has chairs.")

    found = contents(await person.recall("When does the harbour office open?", limit=10, explain=True))

    assert len(found) == 4
    assert "nine" in found[0]
    assert "nine" in found[3]
