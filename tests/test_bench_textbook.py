"""Tests of the textbook benchmark: BM25 by hand, and the comparison end to end."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.textbook import Textbook, textbook

from tests.benchmark_commands import Benchmarks, benchmark_commands  # noqa: F401 - the fixture `benchmarks`

SET: list[dict[str, Any]] = [
    {"type": "memory", "namespace": "home", "source": "cat", "content": "Ada keeps two cats and a canary."},
    {"type": "memory", "namespace": "home", "source": "dog", "content": "Bo walks the dogs of the street."},
    {"type": "memory", "namespace": "home", "source": "tea", "content": "Cy drinks tea."},
    {"type": "question", "namespaces": ["home"], "query": "Which cat is it?", "evidence": ["cat"]},
    {"type": "question", "namespaces": ["home"], "query": "walking a dog", "evidence": ["dog"]},
]


def test_rare_words_count_more_than_frequent_ones_until_the_question_repeats_them() -> None:
    texts = [{"cat": 1, "dog": 3}, {"cat": 2}, {"tea": 1}]
    book = Textbook.of(["a", "b", "c"], texts)
    assert book.ranked({"cat": 1, "dog": 1}, 10) == ["a", "b"]
    assert book.ranked({"cat": 9, "dog": 1}, 10) == ["b", "a"]
    assert book.ranked({"owl": 1}, 10) == []


async def test_the_comparison_is_measured_end_to_end(benchmarks: Benchmarks) -> None:
    found = await benchmarks.json(textbook, benchmarks.written("home.jsonl", SET))

    [line] = found["sets"]
    assert line["questions"] == 2
    assert line["R@10 textbook"] == line["R@10 keyword"] == line["R@10 balanced"] == pytest.approx(1)
    assert line["keyword - textbook"] == 0
