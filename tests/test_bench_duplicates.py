"""Duplicates: rewordings of a text, the counts, and runs from end to end."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.duplicates import copied_set, distinct, distinct_evidence, duplicates, normalised, original, rewordings
from benchmarks.sets import read_set
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmark_commands import Benchmarks, benchmark_commands, question  # noqa: F401 - a fixture

texts = st.text() | st.lists(
    st.sampled_from(["So,", "just to note:", "As I said,", "by the way", "Ada:", "I'm", "because", "rain", "!", "\n"])
).map(" ".join)


@given(texts, st.integers(0, 9))
def test_no_rewording_has_the_words_of_the_text_or_of_another(text: str, count: int) -> None:
    found = [normalised(worded) for worded in rewordings(text, count)]

    assert len({normalised(text), *found}) == count + 1


def test_rewordings_agree_with_examples_written_by_hand() -> None:
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
def test_rewording_keeps_names_and_numbers(fact: str) -> None:
    assert all(fact in worded for worded in rewordings(f"When it rains {fact} is what we get, but it's really rare."))


def test_a_duplicate_counts_as_its_original_and_once() -> None:
    ranked = ["a\u241f2", "a", "b", "a\u241f5", "c\u241f3", "d"]

    assert original("a\u241f2") == original("a") == "a"
    assert [distinct(k, ranked) for k in (2, 4, 6)] == [1, 2, 4]
    assert distinct_evidence(5, ranked, {"a", "c", "d"}) == 2


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
    question("talk", "What cat sleeps all day on the old piano?", "0", "1", "2", "3", "4"),
]


def test_duplicates_are_stored_last_and_without_a_session(benchmarks: Benchmarks) -> None:
    copied, originals = copied_set(read_set(benchmarks.written("cats.jsonl", SET)))

    assert originals == 5
    held = copied.memories["copied-talk"]
    assert len(held) == 6 + 20
    assert [memory["source"] for memory in held[:7]] == ["0", "1", "2", "3", "4", "b", "0\u241f2"]
    assert [memory.get("session") for memory in held[5:8]] == ["s0", None, None]
    assert held[6]["occurred_at"] == held[0]["occurred_at"]


async def test_diversity_is_measured_end_to_end(benchmarks: Benchmarks) -> None:
    found = await benchmarks.json(duplicates, benchmarks.written("cats.jsonl", SET))

    assert found.items() >= {"stored": 6 + 26, "copied": 5, "duplicates": 0}.items()
    own, texts = found["distinct own evidence"], found["distinct texts"]
    assert 1 <= own["without"] < own["with"] <= 5
    assert texts["with"] > texts["without"]
    assert found["distinct evidence"] == own  # the only question there is
    assert found["plain R@10"].items() >= {"with": 1.0, "without": 1.0, "difference": 0.0}.items()


async def test_without_diversity_both_counts_are_the_same(benchmarks: Benchmarks) -> None:
    path, off = benchmarks.written("cats.jsonl", SET), ("--ranking", '{"mmr_lambda": 1}')

    found = await benchmarks.json(duplicates, path, *off)

    assert found["distinct own evidence"]["ratio"] == found["distinct texts"]["ratio"] == 1.0
    assert "distinct texts" in await benchmarks.output(duplicates, path, *off)
