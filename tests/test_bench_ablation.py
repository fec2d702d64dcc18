"""The ablated measurement: intervals and sweeps by hand and by property, then one run from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.bench.ablation import ABLATIONS
from folklore.bench.statistics import mean_of_sets, paired_bootstrap, resampled_means
from folklore.bench.sweep import GRID, Constant, Lists, Sessions, ranked
from folklore.ranking.weights import Ranking
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

differences = st.lists(st.floats(-1, 1), min_size=1, max_size=30)
NO_SESSIONS: Sessions[str] = Sessions.of({})
ids = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=10)


@given(differences)
def test_an_interval_holds_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = paired_bootstrap(values, rounds=200)

    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.mean == pytest.approx(float(np.mean(values)))


@given(differences)
def test_a_bootstrap_says_the_same_twice_and_turns_with_its_sign(values: list[float]) -> None:
    first, turned = paired_bootstrap(values, rounds=200), paired_bootstrap([-value for value in values], rounds=200)

    assert first == paired_bootstrap(values, rounds=200)
    assert (turned.low, turned.high) == pytest.approx((-first.high, -first.low))


def test_an_interval_is_as_wide_as_the_normal_one_of_many_values() -> None:
    values = np.random.default_rng(1).normal(0.1, 1.0, 2_000)

    found = paired_bootstrap(values.tolist())

    error = float(values.std() / np.sqrt(len(values)))
    assert (found.high - found.low) == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_the_draws_do_not_depend_on_how_many_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = resampled_means([0.0, 1.0, 2.0], rounds=100)
    monkeypatch.setattr("folklore.bench.statistics._AT_ONCE", 10)

    assert resampled_means([0.0, 1.0, 2.0], rounds=100).tolist() == whole.tolist()


def test_a_small_set_counts_as_much_as_a_large_one_in_the_mean() -> None:
    assert mean_of_sets([[1.0] * 100, [0.0]]).mean == 0.5
    assert paired_bootstrap([]).mean == mean_of_sets([]).high == 0.0


def test_every_ablation_takes_something_out_of_the_default_ranking() -> None:
    names = [ablation.name for ablation in ABLATIONS]

    assert len(set(names)) == len(names)
    for ablation in ABLATIONS:
        assert isinstance(ablation.of(Ranking()), Ranking)


@given(ids, ids, st.sampled_from(GRID))
def test_the_sweep_ranks_each_of_the_lists_once(dense: list[str], keyword: list[str], setting: Constant) -> None:
    found = ranked(Lists(dense, keyword), setting, NO_SESSIONS, (0.5, 0.3), fetched=10, limit=20)

    assert sorted(found) == sorted({*dense, *keyword})


@given(ids, st.sampled_from(GRID))
def test_lists_that_agree_are_the_ranking(both: list[str], setting: Constant) -> None:
    assert ranked(Lists(both, both), setting, NO_SESSIONS, (), fetched=10, limit=10) == both


def test_a_sweep_by_hand() -> None:
    lists = Lists(["a", "b"], ["c", "b"])

    # k 0, shares 0.9 : 0.1: a 0.9, b 0.45 + 0.05, c 0.1; with k 100 being in both lists counts most.
    assert ranked(lists, Constant(0, 0.9), NO_SESSIONS, (), fetched=2, limit=3) == ["a", "b", "c"]
    assert ranked(lists, Constant(100, 0.5), NO_SESSIONS, (), fetched=2, limit=3) == ["b", "a", "c"]


def test_a_session_neighbour_enters_the_sweep_by_what_is_lent() -> None:
    sessions = Sessions.of({"a": ("n", "s", 1), "x": ("n", "s", 2), "y": ("n", "s", 3), "z": ("n", "s", 5)})

    found = ranked(Lists(["a"], []), Constant(10, 0.5), sessions, (0.5, 0.3), fetched=30, limit=10)

    assert found == ["a", "x", "y"]


SET: list[dict[str, Any]] = [
    {"namespace": "Talk", "source": "1", "session": "s", "position": 0, "content": "Ada has a cat named Tom."},
    {"namespace": "Talk", "source": "2", "session": "s", "position": 1, "content": "How lovely, he must be fluffy!"},
    {"namespace": "Talk", "source": "3", "session": "t", "position": 0, "content": "Cy sells boats in Lisbon."},
    {"namespace": "Talk", "source": "4", "content": "The harbour opens at six."},
    {"type": "question", "namespaces": ["Talk"], "query": "What cat has Ada?", "evidence": ["1"]},
    {"type": "question", "namespaces": ["Talk"], "query": "Who sells boats?", "evidence": ["3"]},
]


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


async def test_sets_are_ablated_one_by_one_and_together(folklore: CommandLine, tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", SET)
    other = written(tmp_path / "other.jsonl", [SET[2], SET[3], SET[-1]])

    told = await folklore.json("bench", "retrieval", one, other, "--ablate")

    assert [found["set"] for found in told["sets"]] == ["one", "other"]
    assert [found["answered_otherwise_by_the_use_case"] for found in told["sets"]] == [0, 0]
    names = [ablation.name for ablation in ABLATIONS]
    assert [effect["without"] for effect in told["sets"][0]["ablations"]] == names
    assert [effect["without"] for effect in told["mean"]["ablations"]] == names
    assert told["mean"]["R@10"] == 1.0
    assert all(effect["R@10"] <= 1.0 for effect in told["sets"][0]["ablations"])
    assert [line["set"] for line in told["regret"]] == ["one", "other", "mean", "mean"]
    assert told["regret"][0]["over_constant_rrf"] == 0.0
    assert len(told["sets"][0]["constant_rrf"]) == len(GRID)


async def test_a_part_that_the_options_switched_off_is_said_to_be_off(folklore: CommandLine, tmp_path: Path) -> None:
    path = written(tmp_path / "one.jsonl", SET)

    told = await folklore.json("bench", "retrieval", path, "--ablate", "--mmr-lambda", "1", "--limit", "2")
    table = await folklore.done("bench", "retrieval", path, "--ablate", "--preset", "keyword", "--limit", "50")

    [mmr] = [effect for effect in told["sets"][0]["ablations"] if "MMR" in effect["without"]]
    assert mmr["unchanged"]
    assert told["sets"][0]["options"] == {"ranking": {"mmr_lambda": 1.0}}
    assert "off already" in table
    assert "best constant RRF" in table


async def test_what_lends_to_its_neighbour_is_missed_when_it_is_off(folklore: CommandLine, tmp_path: Path) -> None:
    noise = [{"namespace": "Talk", "source": f"n{at}", "content": f"Fluffy note {at} on cats."} for at in range(20)]
    reply = {"type": "question", "namespaces": ["Talk"], "query": "What cat named Tom has Ada?", "evidence": ["2"]}
    path = written(tmp_path / "reply.jsonl", [*SET[:4], *noise, reply])

    told = await folklore.json("bench", "retrieval", path, "--ablate", "--limit", "3")

    without = {effect["without"]: effect["difference"] for effect in told["sets"][0]["ablations"]}
    assert told["sets"][0]["scores"]["all"]["R@10"] == 1.0
    assert without["no session neighbours"] == -1.0
