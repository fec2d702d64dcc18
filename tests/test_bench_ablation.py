"""Ablation: intervals and constant fusion by hand and by property, then runs from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.ablation import GRID, PARTS, Constant, Direct, Sessions, ablation, constant_fusion
from benchmarks.metrics import Sample, interval, resampled_means
from benchmarks.sets import Question, RetrievalSet
from benchmarks.store import Store
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from folklore.app import App
from folklore.errors import InvalidInput
from folklore.mcp.server import build_server
from folklore.ranking.weights import Branch, Ranking
from tests.benchmark_commands import Benchmarks, benchmark_commands  # noqa: F401 - the fixture `benchmarks`

differences = st.lists(st.floats(-1, 1), min_size=1, max_size=30)
keys = st.lists(st.sampled_from("abcdefghij").map(lambda source: ("n", source)), unique=True, max_size=10)
NO_SESSIONS = Sessions({}, {})


@given(differences)
def test_an_interval_contains_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = interval(Sample(values), rounds=200)

    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.difference == pytest.approx(float(np.mean(values)))


@given(differences)
def test_an_interval_is_repeatable_and_changes_sign_with_its_values(values: list[float]) -> None:
    first, negated = interval(Sample(values), rounds=200), interval(Sample([-value for value in values]), rounds=200)

    assert first == interval(Sample(values), rounds=200)
    assert (negated.low, negated.high) == pytest.approx((-first.high, -first.low))


def test_an_interval_of_many_values_is_as_wide_as_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.1, 1.0, 2_000)

    found = interval(Sample(values.tolist()))

    error = float(values.std() / np.sqrt(len(values)))
    assert (found.high - found.low) == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_questions_of_one_conversation_are_drawn_together() -> None:
    values = [1.0] * 50 + [0.0] * 50

    alone = interval(Sample(values))
    grouped = interval(Sample(values, ["one"] * 50 + ["other"] * 50))

    assert 0.3 < alone.low < alone.high < 0.7
    assert (grouped.low, grouped.high) == (0.0, 1.0)


def test_the_draws_do_not_depend_on_the_size_of_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_means(Sample([0.0, 1.0, 2.0]), rounds=100)
    monkeypatch.setattr("benchmarks.metrics._DRAWS_AT_ONCE", 10)

    assert resampled_means(Sample([0.0, 1.0, 2.0]), rounds=100).tolist() == whole.tolist()


def test_a_small_set_counts_as_much_as_a_large_one_in_the_mean() -> None:
    assert interval(Sample([1.0] * 100), Sample([0.0])).difference == 0.5
    assert interval(Sample([])).difference == interval().high == 0.0


@given(keys, keys, st.sampled_from(GRID))
def test_constant_fusion_ranks_each_memory_of_the_lists_once(
    dense: list[tuple[str, str]], keyword: list[tuple[str, str]], setting: Constant
) -> None:
    found = constant_fusion({"dense": dense, "keyword": keyword}, setting, NO_SESSIONS, limit=20)

    assert sorted(found) == sorted({*dense, *keyword})


def test_constant_fusion_agrees_with_a_calculation_by_hand() -> None:
    a, b, c = ("n", "a"), ("n", "b"), ("n", "c")
    lists: dict[Branch, list[tuple[str, str]]] = {"dense": [a, b], "keyword": [c, b]}

    # k 0, shares 0.9 : 0.1: a 0.9, b 0.45 + 0.05, c 0.1; with k 100 a place in both lists counts most.
    assert constant_fusion(lists, Constant(0, 0.9, 0), NO_SESSIONS, 3) == [a, b, c]
    assert constant_fusion(lists, Constant(100, 0.5, 0), NO_SESSIONS, 3) == [b, a, c]


def test_constant_fusion_spreads_scores_to_session_neighbours() -> None:
    memories = [{"source": source, "session": "s"} for source in "axyz"]
    sessions = Sessions.of(RetrievalSet("set", {"n": memories}, []))

    found = constant_fusion({"dense": [("n", "a")], "keyword": []}, Constant(10, 0.5, 0.8), sessions, 10)

    assert found == [("n", "a"), ("n", "x"), ("n", "y")]


async def test_a_single_branch_gives_its_whole_list(app: App) -> None:
    texts = [f"Note {at}: the ferry to island {at} leaves at {at} past nine." for at in range(40)]
    async with Client(build_server(app.service)) as client:
        store = Store(app, client)
        await store.add("notes", [{"content": text, "source": str(at)} for at, text in enumerate(texts)])
        question = Question("When does the ferry leave?", ("notes",), frozenset("1"), "")

        lists = await Direct(store, 10).lists(question, Ranking())

    assert {name: len(set(found)) for name, found in lists.items()} == {"dense": 30, "keyword": 30}


SET: list[dict[str, Any]] = [
    {"namespace": "Talk", "source": "1", "session": "s", "position": 0, "content": "Ada has a cat named Tom."},
    {"namespace": "Talk", "source": "2", "session": "s", "position": 1, "content": "How lovely, he must be fluffy!"},
    {"namespace": "Talk", "source": "3", "session": "t", "position": 0, "content": "Cy sells boats in Lisbon."},
    {"namespace": "Talk", "source": "4", "content": "The harbour opens at six."},
    {"type": "question", "namespaces": ["Talk"], "query": "What cat has Ada?", "evidence": ["1"]},
    {"type": "question", "namespaces": ["Talk"], "query": "Who sells boats?", "evidence": ["3"]},
]


async def test_sets_are_ablated_one_by_one_and_together(benchmarks: Benchmarks) -> None:
    one = benchmarks.written("one.jsonl", SET)
    other = benchmarks.written("other.jsonl", [SET[2], SET[3], SET[-1]])

    document = await benchmarks.json(ablation, one, other)

    assert [found["set"] for found in document["sets"]] == ["one", "other", "mean"]
    assert [found["R@10"] for found in document["sets"]] == [1.0, 1.0, 1.0]
    for found in document["sets"]:
        assert [line["without"] for line in found["ablations"]] == list(PARTS)
        assert all(line["R@10"] <= 1.0 for line in found["ablations"])
    assert [line["set"] for line in document["comparisons"]] == ["one", "other", "mean"]
    assert {line["R@10 of constant"] for line in document["comparisons"]} == {1.0}


async def test_the_questions_of_a_kept_home_are_asked_again_without_storing(benchmarks: Benchmarks) -> None:
    home, other = benchmarks.folder / "kept", benchmarks.written("other.jsonl", [SET[0], SET[2], SET[-1]])
    path = benchmarks.written("one.jsonl", SET)

    first = await benchmarks.json(ablation, path, "--home", home, "--questions", "1")
    again = await benchmarks.output(ablation, path, "--home", home, "--ranking", '{"preset": "keyword"}')

    assert first["sets"][0]["R@10"] == 1.0
    assert "keyword branch" not in again  # the only branch cannot be switched off
    other.rename(path)
    with pytest.raises(InvalidInput, match="holds another set"):
        await benchmarks.output(ablation, path, "--home", home)


async def test_session_neighbours_are_missed_when_they_are_off(benchmarks: Benchmarks) -> None:
    noise = [{"namespace": "Talk", "source": f"n{at}", "content": f"Fluffy note {at} on cats."} for at in range(20)]
    reply = {"type": "question", "namespaces": ["Talk"], "query": "What cat named Tom has Ada?", "evidence": ["2"]}

    document = await benchmarks.json(
        ablation, benchmarks.written("reply.jsonl", [*SET[:4], *noise, reply]), "--limit", "3"
    )

    [found] = document["sets"]
    assert found["R@10"] == 1.0
    assert {line["without"]: line["difference"] for line in found["ablations"]}["session neighbours"] == -1.0
