"""Near-duplicates: how a text is said again, what is counted, and one run from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.bench.duplicates import copied_set, distinct, distinct_evidence, original
from folklore.bench.rewording import COPIES, normalised, rewordings
from folklore.bench.sets import read_set
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`

texts = st.text() | st.lists(
    st.sampled_from(["So,", "just to note:", "As I said,", "by the way", "Ada:", "I'm", "because", "rain", "!", "\n"])
).map(" ".join)


@given(texts, st.integers(0, 9))
def test_no_rewording_has_the_words_of_the_text_or_of_another(text: str, count: int) -> None:
    found = [normalised(worded) for worded in rewordings(text, count)]

    assert len({normalised(text), *found}) == count + 1


@given(texts)
def test_a_text_is_always_reworded_alike(text: str) -> None:
    assert rewordings(text) == rewordings(text)
    assert len(rewordings(text)) == COPIES - 1


def test_rewordings_by_hand() -> None:
    assert rewordings("Ada: I'm late because the bus got stuck!") == [
        "Ada: So, I'm late since the bus obtained stuck!",
        "Ada: Just to note: I am late because the bus got stuck!",
        "Ada: As I said, Because the bus got stuck, I'm late!",
        "Ada: By the way, I'm late because the bus got stuck.",
    ]
    assert rewordings("The disk is full. Do not panic; free /tmp.")[2:] == [
        "As I said, Do not panic; free /tmp. The disk is full.",
        "By the way, the disk is full. Do not panic, free /tmp.",
    ]


@pytest.mark.parametrize(
    "fact", ["ERR_CONN_REFUSED", "v18.2.0", "src/memory/store.py", "Lisbon", "12:30", "--no-verify"]
)
def test_what_carries_the_fact_stays(fact: str) -> None:
    assert all(fact in worded for worded in rewordings(f"When it rains {fact} is what we get, but it's really rare."))


def test_code_keeps_the_order_of_its_lines() -> None:
    code = "def stop(self):\n    halt(). Really.\n    return 1"

    assert all(worded.endswith("return 1") for worded in rewordings(code))


def test_a_copy_counts_as_its_original_and_once() -> None:
    ranked = ["a\u241f2", "a", "b", "a\u241f5", "c\u241f3", "d"]

    assert original("a\u241f2") == original("a") == "a"
    assert [distinct(k, ranked) for k in (2, 4, 6)] == [1, 2, 4]
    assert distinct_evidence(5, ranked, {"a", "c", "d"}) == 2


def question(query: str, *evidence: str) -> dict[str, Any]:
    return {"type": "question", "namespaces": ["talk"], "query": query, "evidence": list(evidence)}


FACTS = [
    "Tom is the cat that sleeps all day on the old piano in our kitchen.",
    "Kitty is another cat; she sleeps all day between the tomatoes of the garden.",
    "Ginger, our third cat, hunts mice behind the barn until the evening comes.",
    "Felix bought an old piano at the flea market and repaired it with his uncle.",
    "Luna was found one day by the river when the water was unusually high.",
]
SET: list[dict[str, Any]] = [
    *(
        {
            "namespace": "talk",
            "source": str(at),
            "session": f"s{at}",
            "position": 0,
            "occurred_at": "2025-03-01T10:00:00+00:00",
            "content": fact,
        }
        for at, fact in enumerate(FACTS)
    ),
    {"namespace": "talk", "source": "b", "session": "s0", "position": 1, "content": "The harbour opens at six."},
    question("What cat sleeps all day on the old piano?", "0", "1", "2", "3", "4"),
]


@pytest.fixture
def set_path(tmp_path: Path) -> Path:
    path = tmp_path / "cats.jsonl"
    path.write_text("\n".join(map(json.dumps, SET)))
    return path


def test_copies_stand_last_and_in_no_session_or_right_behind_their_original(set_path: Path) -> None:
    apart, originals, copies = copied_set(read_set(set_path))
    within, _, _ = copied_set(read_set(set_path), in_session=True)

    assert (originals, copies) == (5, 20)
    held = apart.memories["copied-talk"]
    assert [memory["source"] for memory in held[:7]] == ["0", "1", "2", "3", "4", "b", "0\u241f2"]
    assert [memory.get("session") for memory in held[5:8]] == ["s0", None, None]
    assert held[6]["occurred_at"] == held[0]["occurred_at"]
    told = within.memories["copied-talk"]
    assert [memory["source"] for memory in told[:6]] == ["0", "0\u241f2", "0\u241f3", "0\u241f4", "0\u241f5", "1"]
    assert [memory["session"] for memory in told[:6]] == ["s0"] * 5 + ["s1"]


@pytest.mark.parametrize("where", [(), ("--in-session",)])
async def test_diversity_is_measured_end_to_end(folklore: CommandLine, set_path: Path, where: tuple[str, ...]) -> None:
    told = await folklore.json("bench", "duplicates", set_path, *where)

    assert told.items() >= {"stored": 6 + 26, "copied": 5, "missing_copies": 0, "questions": 1}.items()
    own, texts = told["distinct_own_evidence"], told["distinct_texts"]
    assert 1 <= own["without"] < own["with"] <= 5
    assert texts["with"] > texts["without"]
    assert told["distinct_evidence"] == own  # the only question there is
    assert told["plain_R@10"].items() >= {"with": 1.0, "without": 1.0, "difference": 0.0}.items()


async def test_without_diversity_both_ways_are_the_same(folklore: CommandLine, set_path: Path) -> None:
    told = await folklore.json("bench", "duplicates", set_path, "--mmr-lambda", "1")

    assert told["distinct_own_evidence"]["ratio"] == told["distinct_texts"]["ratio"] == 1.0
    assert "distinct evidence in ten" in await folklore.done("bench", "duplicates", set_path)
