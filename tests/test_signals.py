"""What is known of a memory beside its text moves its evidence, and makes none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.errors import InvalidInput
from folklore.model import Draft
from folklore.ranking.length import LengthLine
from folklore.ranking.signals import Signals, factors, recency
from folklore.ranking.weights import PRESETS, Ranking, chosen
from tests.person import NOON, Person, contents, ids

shares = st.one_of(st.none(), st.floats(0, 1))
candidates = st.lists(st.fixed_dictionaries(dict.fromkeys(Signals.names(), shares)), min_size=1, max_size=8)


@given(candidates)
def test_a_factor_is_never_below_one_nor_above_all_weights_together(found: list[dict[str, float | None]]) -> None:
    signals = Signals(overlap=0.3, recency=0.2)
    whole = sum(getattr(signals, name) for name in Signals.names())

    assert all(1.0 <= factor <= 1.0 + whole + 1e-9 for factor in factors(signals, found))


def test_a_rating_that_nobody_has_hands_its_weight_on() -> None:
    signals = Signals(importance=0.2, confidence=0.1, priority=0.1)

    assert factors(signals, [{"importance": 1.0}, {"importance": 0.0}]) == [pytest.approx(1.4), 1.0]
    assert factors(signals, [{}, {}]) == [1.0, 1.0]


def test_who_was_not_rated_lies_between_those_who_were() -> None:
    best, unrated, worst = factors(Signals(), [{"importance": 1.0}, {}, {"importance": 0.0}])

    assert best > unrated > worst


BOATS = [f"Somebody repaired boat number {number}." for number in range(9)]
RATED = [
    ({"importance": 1.0}, {"importance": 0.0}),
    ({"importance": 0.9}, {}),
    ({}, {"importance": 0.1}),
    ({"confidence": 1.0}, {"confidence": 0.0}),
    ({"priority": 1}, {"priority": 4}),
    ({"priority": 1}, {}),
    ({"tags": ("area:crane",)}, {"tags": ("area:boat",)}),
    ({"tags": ("crane",)}, {}),
]


@pytest.mark.parametrize(("better", "worse"), RATED)
@pytest.mark.parametrize("first", [True, False])
async def test_of_two_that_answer_alike_the_better_rated_comes_first(
    person: Person, better: dict[str, Any], worse: dict[str, Any], first: bool
) -> None:
    one, other = (better, worse) if first else (worse, better)
    kept = await person.keep(Draft("Crane 4 was painted.", **one), Draft("Crane 7 was painted.", **other))
    await person.keep(*BOATS)

    answer = await person.recall("Which crane was painted?")

    assert ids(answer)[0] == kept[0 if first else 1]


async def test_a_tag_that_is_asked_for_counts(person: Person) -> None:
    halls = [
        Draft(f"Hall {4 + place} was painted.", tags=(tag,)) for place, tag in enumerate(("area:hall", "area:boat"))
    ]
    await person.keep(*halls, *BOATS)

    answer = await person.recall("hall", explain=True)

    told: list[Any] = [(result.memory.tags, result.explain) for result in answer.memories[:2]]
    moved = {tags: explained["signals"] for tags, explained in told}
    assert moved[("area:hall",)] == pytest.approx(moved[("area:boat",)] + 0.2)


async def test_of_two_that_answer_alike_the_newer_is_not_the_better(person: Person) -> None:
    texts = ["Crane 4 was painted.", "Crane 7 was painted."]
    for name, order in (("forth", texts), ("back", texts[::-1])):
        for text, days in zip(order, (400, 0), strict=True):
            await person.at(NOON - timedelta(days=days)).keep(text, namespace=name)
        await person.keep(*BOATS, namespace=name)

    forth, back = [
        contents(await person.recall("Which crane was painted?", namespaces=(name,))) for name in ("forth", "back")
    ]

    assert forth == back


def test_recency_halves_with_every_half_life_and_the_future_counts_as_now() -> None:
    month = timedelta(days=30)

    assert recency(NOON - month, NOON, month) == pytest.approx(0.5)
    assert recency(NOON - 2 * month, NOON, month) == pytest.approx(0.25)
    assert recency(NOON + month, NOON, month) == 1.0


def test_every_number_of_a_preset_can_be_overridden_and_names_itself_when_it_is_wrong() -> None:
    weights = {"dense": 2, "relations": 0.1, "nearness": 0.5, "recency": 0.3}
    ranking = chosen("roaming", weights=weights, fusion="weighted", rrf_k=60)

    assert (ranking.dense, ranking.relations, ranking.nearness, ranking.signals.recency) == (2, 0.1, 0.5, 0.3)
    assert (ranking.fusion, ranking.rrf_k, ranking.keyword) == ("weighted", 60, 0.0)
    with pytest.raises(InvalidInput, match=r"ranking\.mmr_lambda.*between 0 and 1"):
        chosen(mmr_lambda=2.0)
    with pytest.raises(InvalidInput, match=r"unknown weight 'graph'.*dense, keyword, relations, nearness, exact"):
        chosen(weights={"graph": 1.0})
    with pytest.raises(InvalidInput, match=r"at least one branch"):
        chosen("keyword", weights={"keyword": 0.0})


def test_the_default_preset_is_the_default() -> None:
    assert PRESETS["balanced"] == Ranking() == chosen()


def test_the_line_through_similarities_is_that_of_a_regression() -> None:
    import numpy as np

    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(80, 16)).astype(np.float32)
    sizes = chance.uniform(3, 7, size=80).astype(np.float32)
    question = chance.normal(size=16).astype(np.float32)

    line = LengthLine.through(vectors, sizes)

    assert line is not None
    seen = line.of(question)
    slope, start = seen.slope, seen.expected
    expected = np.polyfit(sizes, vectors @ question, 1)[0] * 80 / 100
    assert slope == pytest.approx(expected, rel=1e-3)
    assert start + slope * sizes.mean() == pytest.approx((vectors @ question).mean(), abs=1e-4)
    similarities = vectors @ question
    rest = similarities - similarities.mean() - slope * (sizes - sizes.mean())
    assert seen.spread == pytest.approx(rest.std(), rel=1e-3)
    scores = similarities - slope * sizes
    assert [int((scores >= seen.passed_by(share) - 1e-6).sum()) for share in (0.0, 0.1, 0.5, 1.0)] == [1, 9, 41, 80]
    assert LengthLine.through(vectors[:0], sizes[:0]) is None
