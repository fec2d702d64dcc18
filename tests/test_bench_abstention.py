"""Questions nobody can answer, and how well the score of an answer tells them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.bench.abstention import precision
from folklore.bench.foreign import foreign_questions, renamed, speakers_of, with_names
from folklore.bench.sets import read_set
from folklore.bench.statistics import auroc, floor_keeping
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

scores = st.lists(st.integers(0, 10).map(lambda tenth: tenth / 10), min_size=1, max_size=30)
names = st.lists(st.sampled_from(["Ada", "Bo", "Cy", "Di"]), unique=True, min_size=1)


@given(scores, scores)
def test_auroc_is_the_share_of_pairs_in_the_right_order(positive: list[float], negative: list[float]) -> None:
    pairs = [(one > other) + (one == other) / 2 for one in positive for other in negative]

    assert auroc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))
    assert auroc(positive, negative) + auroc(negative, positive) == pytest.approx(1)


def test_auroc_of_what_is_told_apart_and_of_nothing() -> None:
    assert auroc([0.8, 0.9], [0.1, 0.2]) == 1.0
    assert auroc([], [0.3]) == auroc([0.3], []) == auroc([0.3], [0.3]) == 0.5


@given(scores, st.floats(0.01, 1))
def test_a_floor_keeps_the_share_asked_for_and_could_not_be_higher(values: list[float], share: float) -> None:
    floor = floor_keeping(share, values)

    def kept(at: float) -> float:
        return sum(value >= at for value in values) / len(values)

    assert kept(floor) >= share - 1e-9
    assert all(kept(value) < share for value in values if value > floor)


def test_a_floor_by_hand() -> None:
    assert floor_keeping(0.95, [place / 20 for place in range(20)]) == 0.05
    assert floor_keeping(0.95, []) == 0.0


def test_precision_weighs_both_kinds_alike() -> None:
    assert precision(0.9, 0.7) == pytest.approx(0.75)
    assert precision(0.0, 1.0) == 1.0


def test_speakers_are_who_says_a_fifth_of_the_turns() -> None:
    turns = ["Ada: Hi!", "Bo: Hi Ada.", "Ada: Note: it rains.", "Bo: Oh.", "Ada: Yes.", "Warning: cut."]

    assert speakers_of(turns) == ["Ada", "Bo"]
    assert speakers_of(["def stop(self):\n    pass", "https://a.b", "12:30 it began"]) == []


@given(names, names)
def test_every_guest_becomes_a_host_and_a_shared_name_stays(guests: list[str], hosts: list[str]) -> None:
    found = renamed(guests, hosts)

    assert set(found) == set(guests)
    assert set(found.values()) <= set(hosts)
    assert all(found[name] == name for name in guests if name in hosts)


def test_names_change_whole_at_once_and_in_any_case() -> None:
    swap = {"Ada": "Bo", "Bo": "Ada"}

    assert with_names("Did ADA see Bo's adagio, Bo?", swap) == "Did Bo see Ada's adagio, Ada?"
    assert with_names("Ada", {}) == "Ada"


def talk(namespace: str, *turns: str) -> list[dict[str, Any]]:
    return [
        {"namespace": namespace, "source": str(at), "session": "s", "position": at, "content": text}
        for at, text in enumerate(turns)
    ]


def question(namespace: str, query: str, *evidence: str) -> dict[str, Any]:
    return {"type": "question", "namespaces": [namespace], "query": query, "evidence": list(evidence)}


SET = [
    *talk("one", "Ada: I adopted a ginger kitten.", "Bo: Wonderful!", "Ada: She sleeps on the piano."),
    *talk("two", "Cy: My sailing boat leaks.", "Bo: Caulk its hull.", "Cy: The regatta is in June."),
    question("one", "Which kitten was adopted by Ada?", "0"),
    question("two", "What leaks at Cy's, a sailing boat?", "0"),
    question("two", "Who knows?"),
]


@pytest.fixture
def set_path(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, SET)))
    return path


def test_a_question_is_asked_of_the_next_conversation_in_its_names(set_path: Path) -> None:
    given_ = read_set(set_path, prefix="x-")

    found = foreign_questions(given_, given_.questions)

    assert found.why_not is None
    assert [(one.namespaces, one.query) for one in found.questions] == [
        (("x-two",), "Which kitten was adopted by Cy?"),
        (("x-one",), "What leaks at Ada's, a sailing boat?"),
    ]


async def test_abstention_is_measured_end_to_end(folklore: CommandLine, set_path: Path) -> None:
    told = await folklore.json("bench", "abstain", set_path, "--floor", "0", "--floor", "1")
    table = await folklore.done("bench", "abstain", set_path, "--floor", "0.5")

    assert told["applies"]
    assert (told["questions"], told["foreign"]) == (2, 2)
    assert (told["AUROC"], told["AUROC_of_first"], told["R@10"]) == (1.0, 1.0, 1.0)
    assert told["at_95_answered"]["answered"] == told["at_95_answered"]["refused"] == 1.0
    nothing, everything = told["floors"]
    assert nothing.items() >= {"answered": 1.0, "refused": 0.0, "precision": 0.5, "R@10": 1.0, "cost": 0.0}.items()
    assert everything.items() >= {"answered": 0.0, "refused": 1.0, "R@10": 0.0, "cost": 1.0}.items()
    assert (everything["R@10_whole_answers"], everything["cost_whole_answers"]) == (0.0, 1.0)
    assert "AUROC 1.0000" in table


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*talk("one", "Ada: Hi.", "Bo: Hi."), question("one", "Who says hi?", "0")], "one namespace"),
        ([*talk("one", "It rains."), *talk("two", "It snows."), question("one", "Does it rain?", "0")], "no speakers"),
        ([*SET[:6], question("one", "Who?", "0") | {"namespaces": ["one", "two"]}], "one conversation alone"),
    ],
)
async def test_a_set_that_is_no_conversations_is_told_so(
    folklore: CommandLine, tmp_path: Path, lines: list[dict[str, Any]], reason: str
) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))

    told = await folklore.json("bench", "abstain", path)

    assert not told["applies"]
    assert reason in told["reason"]
    assert "does not apply" in await folklore.done("bench", "abstain", path)
