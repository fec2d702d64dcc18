"""Settings of a ranking: presets, the numbers of a request, and their ranges."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from folklore.errors import ConfigInvalid, InvalidInput
from folklore.ranking.weights import (
    PRESETS,
    SIGNALS,
    Ranking,
    Signals,
    chosen,
    named_presets,
    numbers_of,
    setting_of,
)

WEIGHTS = "dense, keyword, exact, neighbours, relations, tags, importance, confidence, priority, recency"
NUMBERS = f"{WEIGHTS}, half_life_days, rrf_k, fetch_multiplier, mmr_lambda, min_score, postings_budget"


def test_the_default_preset_is_the_default_and_age_has_no_effect_in_it() -> None:
    assert (
        PRESETS["balanced"]
        == Ranking()
        == chosen()
        == chosen(weights={}, fusion=None, mmr_lambda=None)
    )
    assert (PRESETS["rrf"].fusion, PRESETS["rrf"].rrf_k, PRESETS["rrf"].mmr_lambda) == (
        "rrf",
        60,
        0.7,
    )
    assert (Ranking().signals.recency, Ranking().mmr_lambda, Ranking().min_score) == (
        0,
        0.7,
        None,
    )


def test_every_number_of_a_preset_can_be_overridden() -> None:
    weights = {"dense": 2, "relations": 0.1, "neighbours": 0.5, "recency": 0.3}
    ranking = chosen(
        "roaming",
        weights=weights,
        fusion="rrf",
        rrf_k=20,
        min_score=0.1,
        expand=["entities"],
    )

    assert (
        ranking.dense,
        ranking.relations,
        ranking.neighbours,
        ranking.signals.recency,
    ) == (2, 0.1, 0.5, 0.3)
    assert (ranking.fusion, ranking.rrf_k, ranking.keyword, ranking.expand) == (
        "rrf",
        20,
        0.0,
        ("entities",),
    )
    assert chosen("roaming", weights=weights).expand == ("relations", "entities")
    assert numbers_of(ranking) == {
        "dense": 2, "keyword": 0, "exact": 0, "neighbours": 0.5, "relations": 0.1, "mmr_lambda": 0.7, "min_score": 0.1,
        "tags": 0.6, "importance": 0.6, "confidence": 0.4, "priority": 0.4, "recency": 0.3,
    }  # fmt: skip
    assert numbers_of(Ranking()).keys() == numbers_of(ranking).keys() - {"min_score"}
    assert [ranking.scale(group) for group in ("dense", "keyword", "neighbours")] == [
        2,
        0,
        0.5,
    ]


def test_a_branch_brings_three_times_the_results_wanted_and_at_least_thirty() -> None:
    assert [Ranking().fetch(limit) for limit in (1, 10, 11, 50)] == [30, 30, 33, 150]
    assert [
        replace(Ranking(), least_fetched=1, fetch_multiplier=x).fetch(9)
        for x in (0.5, 1.5)
    ] == [9, 14]


def test_a_preset_of_the_settings_has_its_numbers_and_the_default_ones() -> None:
    numbers = {
        "fusion": "rrf",
        "dense": 0.5,
        "tags": 2,
        "neighbours": 0.3,
        "half_life_days": 7,
    }
    presets = named_presets({"ours": numbers, "keyword": {"exact": 2}, "semantic": {}})

    ours = presets["ours"]
    assert (ours.fusion, ours.dense, ours.signals.tags, ours.neighbours) == (
        "rrf",
        0.5,
        2,
        0.3,
    )
    assert (ours.signals.half_life, ours.keyword) == (
        timedelta(days=7),
        Ranking().keyword,
    )
    assert chosen("ours", presets, min_score=0.2) == replace(ours, min_score=0.2)
    assert presets.keys() == {*PRESETS, "ours"}
    # changes the built-in one
    assert presets["keyword"] == chosen("keyword", weights={"exact": 2})
    assert presets["semantic"] == PRESETS["semantic"]


@pytest.mark.parametrize("name", ["dense", "keyword", *SIGNALS, "relations"])
@pytest.mark.parametrize(
    ("value", "allowed"), [(0, True), (100, True), (100.5, False), (-0.1, False)]
)
def test_a_weight_is_between_0_and_100(name: str, value: float, allowed: bool) -> None:
    if allowed:
        assert numbers_of(chosen(weights={name: value}))[name] == value
    else:
        with pytest.raises(
            InvalidInput,
            match=rf"^ranking\.weights\.{name}: must be a number between 0 and 100, got",
        ):
            chosen(weights={name: value})


@pytest.mark.parametrize(
    ("call", "field", "message", "hint"),
    [
        (lambda: chosen("best"), "preset", "unknown preset 'best'.",
         f"Use one of {', '.join(PRESETS)}, or add it to the setting ranking.presets."),
        (lambda: chosen(weights={"graph": 1}), "weights", "unknown weight 'graph'.", f"Use {WEIGHTS}."),
        (lambda: chosen(mmr_lambda=2.0), "mmr_lambda", "must be a number between 0 and 1, got 2.", None),
        (lambda: chosen("keyword", weights={"keyword": 0}), "weights", "gives no branch a weight above 0.",
         "Give dense or keyword one."),
        ({"magic": 1}, "magic", "is not a number of a ranking.", f"Use fusion, expand, {NUMBERS}."),
        ({"rrf_k": "many"}, "rrf_k", "must be a number between 0 and 1000.", None),
        ({"rrf_k": True}, "rrf_k", "must be a number between 0 and 1000.", None),
        ({"rrf_k": float("nan")}, "rrf_k", "must be a number between 0 and 1000, got nan.", None),
        ({"fusion": "sum"}, "fusion", "must be one of trained, rrf.", None),
        ({"expand": ["entities", "x"]}, "expand", "must be one of relations, entities.", None),
        ({"dense": 0, "keyword": 0}, "", "gives no branch a weight above 0.", "Give dense or keyword one."),
    ],
)  # fmt: skip
def test_an_error_names_the_number_what_is_allowed_and_the_next_step(
    call: Callable[[], Any] | dict[str, Any], field: str, message: str, hint: str | None
) -> None:
    of_settings = isinstance(call, dict)
    with pytest.raises(ConfigInvalid if of_settings else InvalidInput) as error:
        named_presets({"ours": call}) if isinstance(call, dict) else call()

    place = ("ranking.presets.ours." if of_settings else "ranking.") + field
    assert (error.value.field, error.value.hint) == (place.rstrip("."), hint)
    assert error.value.message == f"{error.value.field}: {message}"


@pytest.mark.parametrize("name", PRESETS)
def test_the_setting_of_a_preset_makes_the_same_ranking(name: str) -> None:
    ranking = replace(
        PRESETS[name],
        min_score=0.25,
        rrf_k=30,
        signals=Signals(recency=0.5, half_life=timedelta(days=7.5)),
    )

    assert setting_of(Ranking()) == {}
    for each in (PRESETS[name], ranking):
        assert named_presets({"ours": setting_of(each)})["ours"] == each
