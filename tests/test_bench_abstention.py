"""Tests of the abstention benchmark: questions without an answer, and their separation by score."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.abstention import abstention, foreign_questions, renamed, speakers_of, with_names
from benchmarks.metrics import auroc, floor_keeping
from benchmarks.sets import read_set
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmark_commands import Benchmarks, benchmark_commands, question  # noqa: F401 - a fixture

scores = st.lists(st.integers(0, 10).map(lambda tenth: tenth / 10), min_size=1, max_size=30)
names = st.lists(st.sampled_from(["Ada", "Bo", "Cy", "Di"]), unique=True, min_size=1)


@given(scores, scores)
def test_auroc_is_the_share_of_pairs_in_the_right_order(positive: list[float], negative: list[float]) -> None:
    pairs = [(one > other) + (one == other) / 2 for one in positive for other in negative]

    assert auroc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))
    assert auroc(positive, negative) + auroc(negative, positive) == pytest.approx(1)


def test_auroc_is_1_for_separate_scores_and_one_half_for_ties_or_no_scores() -> None:
    assert auroc([0.8, 0.9], [0.1, 0.2]) == 1.0
    assert auroc([], [0.3]) == auroc([0.3], []) == auroc([0.3], [0.3]) == 0.5


@given(scores, st.floats(0.01, 1))
def test_a_floor_keeps_the_requested_share_and_no_higher_one_does(values: list[float], share: float) -> None:
    floor = floor_keeping(share, values)

    def kept(at: float) -> float:
        return sum(value >= at for value in values) / len(values)

    assert kept(floor) >= share - 1e-9
    assert all(kept(value) < share for value in values if value > floor)


def test_speakers_begin_at_least_a_fifth_of_the_turns() -> None:
    turns = ["Ada: Hi!", "Bo: Hi Ada.", "Ada: Note: it rains.", "Bo: Oh.", "Ada: Yes.", "Warning: cut."]

    assert speakers_of(turns) == ["Ada", "Bo"]
    assert speakers_of(["def stop(self):\n    pass", "https://a.b", "12:30 it began"]) == []


@given(names, names)
def test_every_guest_gets_the_name_of_a_host_and_a_shared_name_stays(guests: list[str], hosts: list[str]) -> None:
    found = renamed(guests, hosts)

    assert set(found) == set(guests)
    assert set(found.values()) <= set(hosts)
    assert all(found[name] == name for name in guests if name in hosts)


def test_whole_names_are_replaced_at_once_and_in_any_case() -> None:
    swap = {"Ada": "Bo", "Bo": "Ada"}

    assert with_names("Did ADA see Bo's adagio, Bo?", swap) == "Did Bo see Ada's adagio, Ada?"
    assert with_names("Ada", {}) == "Ada"


def talk(namespace: str, *turns: str) -> list[dict[str, Any]]:
    return [
        {"namespace": namespace, "source": str(at), "session": "s", "position": at, "content": text}
        for at, text in enumerate(turns)
    ]


SET = [
    *talk("one", "Ada: I adopted a ginger kitten.", "Bo: Wonderful!", "Ada: She sleeps on the piano."),
    *talk("two", "Cy: My sailing boat leaks.", "Bo: Caulk its hull.", "Cy: The regatta is in June."),
    question("one", "Which kitten was adopted by Ada?", "0"),
    question("two", "What leaks at Cy's, a sailing boat?", "0"),
    question("two", "Who knows?"),
]


def test_a_question_is_asked_of_the_next_conversation_in_its_names(benchmarks: Benchmarks) -> None:
    given_ = read_set(benchmarks.written("talks.jsonl", SET))

    found = foreign_questions(given_, given_.sample(None))

    assert found.reason is None
    assert [(one.namespaces, one.query) for one in found.questions] == [
        (("two",), "Which kitten was adopted by Cy?"),
        (("one",), "What leaks at Ada's, a sailing boat?"),
    ]
    assert [(one.namespaces, one.query) for one in found.as_they_are] == [
        (("two",), "Which kitten was adopted by Ada?"),
        (("one",), "What leaks at Cy's, a sailing boat?"),
    ]


async def test_abstention_is_measured_end_to_end(benchmarks: Benchmarks) -> None:
    path = benchmarks.written("talks.jsonl", SET)

    found = await benchmarks.json(abstention, path, "--floor", "0", "--floor", "1")
    table = await benchmarks.output(abstention, path, "--floor", "0.5")

    assert found["applies"]
    assert (found["questions"], found["foreign"]) == (2, 2)
    assert found["AUROC"] == {"as they are": 1.0, "best score": 1.0, "first score": 1.0, "all": 1.0}
    silence = {kind.pop("questions"): kind for kind in found["silence"]}
    assert silence["answerable"]["strong or fair"] == silence["answerable, without the floor"]["R@10"] == 1.0
    assert silence["foreign, as they are"]["strong or fair"] == 0.0
    assert 0 < silence["foreign, as they are"]["tokens"] < 500
    assert found["R@10"] == 1.0
    assert found["at_95_answered"]["answered"] == found["at_95_answered"]["refused"] == 1.0
    nothing, everything = found["floors"]
    assert nothing.items() >= {"answered": 1.0, "refused": 0.0, "precision": 0.5, "recall": 1.0}.items()
    assert everything.items() >= {"answered": 0.0, "refused": 1.0, "recall": 0.0}.items()
    assert everything["recall_of_whole_answers"] == 0.0
    assert "2 questions, 2 without an answer" in table


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*talk("one", "Ada: Hi.", "Bo: Hi."), question("one", "Who says hi?", "0")], "one namespace"),
        ([*talk("one", "It rains."), *talk("two", "It snows."), question("one", "Does it rain?", "0")], "no speakers"),
        ([*SET[:6], question("one", "Who?", "0") | {"namespaces": ["one", "two"]}], "one conversation alone"),
    ],
)
async def test_a_set_without_conversations_is_not_measured(
    benchmarks: Benchmarks, lines: list[dict[str, Any]], reason: str
) -> None:
    path = benchmarks.written("other.jsonl", lines)

    found = await benchmarks.json(abstention, path)

    assert not found["applies"]
    assert reason in found["reason"]
    assert "does not apply" in await benchmarks.output(abstention, path)
