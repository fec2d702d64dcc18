"""Tests of the textbook benchmark: BM25 by hand, and the comparison end to end."""

from __future__ import annotations

import math
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


def test_the_best_text_has_the_greatest_sum_of_the_formula() -> None:
    texts = [{"cat": 1, "dog": 3}, {"cat": 2}, {"tea": 1}]
    lengths, total = [4, 2, 1], 3

    def part(count: int, length: int, documents: int) -> float:
        weight = math.log(1 + (total - documents + 0.5) / (documents + 0.5))
        return weight * count * 1.9 / (count + 0.9 * (0.6 + 0.4 * length / (sum(lengths) / total)))

    book = Textbook.of(["a", "b", "c"], texts)
    assert part(1, 4, 2) + part(3, 4, 1) > part(2, 2, 2)
    assert book.ranked({"cat": 1, "dog": 1}, 10) == ["a", "b"]
    assert part(1, 4, 2) * 9 + part(3, 4, 1) < part(2, 2, 2) * 9
    assert book.ranked({"cat": 9, "dog": 1}, 10) == ["b", "a"]
    assert book.ranked({"owl": 1}, 10) == []


async def test_the_comparison_is_measured_end_to_end(benchmarks: Benchmarks) -> None:
    found = await benchmarks.json(textbook, benchmarks.written("home.jsonl", SET))

    [line] = found["sets"]
    assert line["questions"] == 2
    assert line["R@10 textbook"] == line["R@10 keyword"] == line["R@10 balanced"] == pytest.approx(1)
    assert line["keyword - textbook"] == 0
