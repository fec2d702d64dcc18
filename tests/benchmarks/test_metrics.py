"""Metrics of a ranking, the reading of sets, and a small run from end to end."""

import math
from typing import Any
from unittest.mock import ANY

import asyncpg
import pytest

from benchmarks.metrics import (
    Sample,
    all_at,
    auroc,
    hit_at,
    interval,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)
from benchmarks.retrieval import retrieval
from tests.benchmark_commands import Benchmarks, benchmark_commands, question  # noqa: F401 - a fixture
from tests.conftest import Cluster


def test_metrics_agree_with_a_calculation_by_hand() -> None:
    ranked = ["x", "a", "y", "b"]
    evidence = frozenset("abc")

    assert recall_at(2, ranked, evidence) == pytest.approx(1 / 3)
    assert recall_at(4, ranked, evidence) == pytest.approx(2 / 3)
    assert reciprocal_rank(ranked, evidence) == 0.5
    assert (hit_at(1, ranked, evidence), hit_at(2, ranked, evidence)) == (0, 1)
    assert (all_at(4, ranked, evidence), all_at(4, ranked, frozenset("ab"))) == (0, 1)
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(10, ranked, evidence) == pytest.approx(gain / ideal)


def test_questions_of_one_conversation_are_drawn_together() -> None:
    values = [1.0] * 50 + [0.0] * 50
    alone = interval(Sample(values))
    grouped = interval(Sample(values, ["one"] * 50 + ["other"] * 50))

    assert 0.3 < alone.low < alone.high < 0.7
    assert (grouped.low, grouped.high) == (0.0, 1.0)
    assert interval(Sample([1.0] * 100), Sample([0.0])).difference == 0.5, (
        "a small set counts as much as a large one"
    )


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert auroc([0.8, 0.9], [0.1, 0.2]) == 1.0
    assert auroc([0.8, 0.3], [0.1, 0.3, 0.5]) == pytest.approx(4.5 / 6)
    assert auroc([], [0.3]) == auroc([0.3], []) == 0.5


SET: list[dict[str, Any]] = [
    {
        "type": "memory",
        "namespace": "Talk",
        "source": "2",
        "session": "s",
        "position": 1,
        "content": "Bo has a dog.",
    },
    {
        "type": "memory",
        "namespace": "Talk",
        "source": "1",
        "session": "s",
        "position": 0,
        "content": "Ada has a cat.",
    },
    {
        "type": "memory",
        "namespace": "Talk",
        "source": "3",
        "session": "t",
        "position": 0,
        "content": "Cy sells boats.",
    },
    {
        "type": "memory",
        "namespace": "Talk",
        "source": "4",
        "content": "Cy  sells boats.",
    },
    question("Talk", "Who has a cat?", "1") | {"category": "one"},
    question("Talk", "Who has pets, cat or dog?", "1", "2") | {"category": "one"},
    question("Talk", "What is unknown?") | {"category": "none"},
]


async def test_retrieval_is_measured_in_a_scratch_database_that_is_dropped(
    benchmarks: Benchmarks, cluster: Cluster, connection: asyncpg.Connection
) -> None:
    databases = "select count(*) from pg_database where datname like 'folklore_bench%'"
    path = benchmarks.written("small.jsonl", SET)
    ranking = '{"mmr_lambda": 0.5}'

    measured = await benchmarks.json(
        retrieval, path, "--limit", "20", "--ranking", ranking
    )
    table = await benchmarks.output(retrieval, path)

    assert (
        measured.items()
        >= {
            "set": "small",
            "limit": 20,
            "options": {"ranking": {"mmr_lambda": 0.5}},
            "stored": 3,
            "duplicates": 1,
            "latency_ms": {"p50": ANY, "p95": ANY, "p99": ANY},
        }.items()
    )
    assert set(measured["scores"]) == {"all"}  # one category only
    assert (
        measured["scores"]["all"].items()
        >= {"questions": 2, "hit@5": 1.0, "R@10": 1.0, "R@20": 1.0}.items()
    )
    assert "3 memories" in table
    assert await cluster.admin.fetchval(databases) == 0
    assert await connection.fetchval("select count(*) from memories") == 0
