"""Signals of a memory add to its relevance; every number of a ranking has a range."""

from datetime import timedelta
from typing import Any

import pytest

from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import ConfigInvalid, InvalidInput
from folklore.memory.context import MemoryContext
from folklore.memory.requests import RankingRequest, RecallRequest
from folklore.model import Draft
from folklore.ranking.features import recency
from folklore.ranking.weights import PRESETS, Ranking, chosen, named_presets
from tests.person import NOON, Person, contents, ids

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
async def test_of_two_that_answer_alike_the_better_rated_comes_first(
    person: Person, better: dict[str, Any], worse: dict[str, Any]
) -> None:
    for place, (one, other) in enumerate(((better, worse), (worse, better))):
        space = f"order-{place}"
        cranes = (Draft("Crane 4 was painted.", **one), Draft("Crane 7 was painted.", **other))
        kept = await person.keep(*cranes, namespace=space)
        await person.keep(*BOATS, namespace=space)

        answer = await person.recall("Which crane was painted?", namespaces=(space,))

        assert ids(answer)[0] == kept[place]


async def test_a_tag_in_the_question_counts(person: Person) -> None:
    halls = [
        Draft(f"Hall {4 + place} was painted.", tags=(tag,)) for place, tag in enumerate(("area:hall", "area:boat"))
    ]
    await person.keep(*halls, *BOATS)

    answer = await person.recall("hall", explain=True)

    explained: list[Any] = [(result.memory.tags, result.explain) for result in answer.memories[:2]]
    parts = {tags: explanation["parts"].get("tags", 0.0) for tags, explanation in explained}
    assert parts == {("area:hall",): 0.6, ("area:boat",): 0.0}


async def test_age_has_no_effect_on_relevance_by_default(person: Person) -> None:
    texts = ["Crane 4 was painted.", "Crane 7 was painted."]
    for name, order in (("forth", texts), ("back", texts[::-1])):
        for text, days in zip(order, (400, 0), strict=True):
            await person.at(NOON - timedelta(days=days)).keep(text, namespace=name)
        await person.keep(*BOATS, namespace=name)

    forth, back = [
        {
            result.memory.content: (result.explain or {})["relevance"]
            for result in (await person.recall("Which crane was painted?", namespaces=(name,), explain=True)).memories
        }
        for name in ("forth", "back")
    ]

    assert forth == back


def test_recency_halves_with_every_half_life_and_the_future_counts_as_now() -> None:
    month = timedelta(days=30)

    assert recency(NOON - month, NOON, month) == pytest.approx(0.5)
    assert recency(NOON - 2 * month, NOON, month) == pytest.approx(0.25)
    assert recency(NOON + month, NOON, month) == 1.0


def test_every_number_of_a_preset_can_be_overridden_and_an_error_names_it() -> None:
    weights = {"dense": 2, "relations": 0.1, "neighbours": 0.5, "recency": 0.3}
    ranking = chosen("roaming", weights=weights, fusion="rrf", rrf_k=20)

    assert (ranking.dense, ranking.relations, ranking.neighbours, ranking.signals.recency) == (2, 0.1, 0.5, 0.3)
    assert (ranking.fusion, ranking.rrf_k, ranking.keyword) == ("rrf", 20, 0.0)
    with pytest.raises(InvalidInput, match=r"ranking\.mmr_lambda.*between 0 and 1"):
        chosen(mmr_lambda=2.0)
    with pytest.raises(InvalidInput, match=r"unknown weight 'graph'.*dense, keyword, exact, neighbours, relations"):
        chosen(weights={"graph": 1.0})
    with pytest.raises(InvalidInput, match=r"no branch a weight above 0"):
        chosen("keyword", weights={"keyword": 0.0})


def test_the_default_preset_is_the_default() -> None:
    assert PRESETS["balanced"] == Ranking() == chosen()


def test_a_preset_of_the_settings_has_its_numbers_and_the_default_ones() -> None:
    presets = named_presets(
        {"ours": {"fusion": "rrf", "dense": 0.5, "tags": 2, "neighbours": 0.3, "half_life_days": 7}}
    )

    ours = presets["ours"]

    assert (ours.fusion, ours.dense, ours.signals.tags, ours.neighbours) == ("rrf", 0.5, 2, 0.3)
    assert (ours.signals.half_life, ours.keyword) == (timedelta(days=7), Ranking().keyword)
    assert chosen("ours", presets, min_score=0.2).min_score == 0.2
    assert presets.keys() == {*PRESETS, "ours"}


def test_a_preset_with_the_name_of_a_built_in_one_changes_that_one() -> None:
    assert named_presets({"keyword": {"exact": 2}})["keyword"] == chosen("keyword", weights={"exact": 2})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"magic": 1}, r"ranking\.presets\.ours\.magic: is not a number of a ranking"),
        ({"rrf_k": -1}, r"ranking\.presets\.ours\.rrf_k: must be a number between 0 and 1000, got -1"),
        ({"rrf_k": "many"}, r"ranking\.presets\.ours\.rrf_k: must be a number"),
        ({"fusion": "sum"}, r"ranking\.presets\.ours\.fusion: must be one of trained, rrf"),
        ({"expand": ["friends"]}, r"ranking\.presets\.ours\.expand: must be one of relations, entities"),
        ({"dense": 0, "keyword": 0}, r"ranking\.presets\.ours: gives no branch a weight above 0"),
    ],
)
def test_a_wrong_number_of_a_preset_is_an_error_that_names_it(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigInvalid, match=message):
        named_presets({"ours": values})


async def test_a_recall_takes_the_name_of_a_preset_of_the_settings(database: Database, embedder: Embedder) -> None:
    memory = MemoryContext.of(database, embedder, presets=named_presets({"words": {"dense": 0}}))
    person = Person(memory)
    await person.keep("The harbour is closed.", "Boats sleep.")

    answer = await person.call(RecallRequest(query="harbour", explain=True, ranking=RankingRequest(preset="words")))

    assert answer.explain is not None
    assert "dense" not in answer.explain
    assert contents(answer) == ["The harbour is closed."]
    with pytest.raises(InvalidInput, match=r"unknown preset 'other'.*balanced.*words"):
        await person.call(RecallRequest(query="harbour", ranking=RankingRequest(preset="other")))
