"""Metrics of a ranking, the reading of sets, and a small run from end to end."""

import math
from typing import Any
from unittest.mock import ANY
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import (
    Sample,
    all_at,
    auroc,
    hit_at,
    interval,
    mean,
    ndcg_at,
    percentile,
    recall_at,
    reciprocal_rank,
)
from benchmarks.retrieval import retrieval
from benchmarks.sets import read_set
from benchmarks.store import with_database
from tests.benchmark_commands import Benchmarks, benchmark_commands, question  # noqa: F401 - a fixture
from tests.conftest import Cluster

sources = st.sampled_from("abcdefgh")
rankings = st.lists(sources, max_size=12)
evidences = st.frozensets(sources, min_size=1, max_size=5)
depths = st.integers(1, 15)
METRICS_AT = (recall_at, hit_at, all_at, ndcg_at)


@given(depths, rankings, evidences)
def test_a_source_that_occurs_twice_counts_once(k: int, ranked: list[str], evidence: frozenset[str]) -> None:
    again = [source for source in ranked for _ in range(2)]

    for metric in METRICS_AT:
        assert metric(2 * k, again, evidence) <= metric(2 * k, ranked, evidence) + 1e-12


def test_metrics_agree_with_a_calculation_by_hand() -> None:
    ranked, evidence = ["x", "a", "y", "b"], frozenset("abc")

    assert recall_at(2, ranked, evidence) == pytest.approx(1 / 3)
    assert recall_at(4, ranked, evidence) == pytest.approx(2 / 3)
    assert reciprocal_rank(ranked, evidence) == 0.5
    assert (hit_at(1, ranked, evidence), hit_at(2, ranked, evidence)) == (0, 1)
    assert (all_at(4, ranked, evidence), all_at(4, ranked, frozenset("ab"))) == (0, 1)
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg_at(10, ranked, evidence) == pytest.approx(gain / ideal)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_is_a_value_that_enough_do_not_exceed(values: list[float], share: float) -> None:
    found = percentile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)
    assert min(values) - 1e-6 <= mean(values) <= max(values) + 1e-6


def test_questions_of_one_conversation_are_drawn_together() -> None:
    values = [1.0] * 50 + [0.0] * 50
    alone, grouped = interval(Sample(values)), interval(Sample(values, ["one"] * 50 + ["other"] * 50))

    assert 0.3 < alone.low < alone.high < 0.7
    assert (grouped.low, grouped.high) == (0.0, 1.0)
    assert interval(Sample([1.0] * 100), Sample([0.0])).difference == 0.5, "a small set counts as much as a large one"


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert auroc([0.8, 0.9], [0.1, 0.2]) == 1.0
    assert auroc([0.8, 0.3], [0.1, 0.3, 0.5]) == pytest.approx(4.5 / 6)
    assert auroc([], [0.3]) == auroc([0.3], []) == 0.5


SET: list[dict[str, Any]] = [
    {"type": "memory", "namespace": "Talk", "source": "2", "session": "s", "position": 1, "content": "Bo has a dog."},
    {"type": "memory", "namespace": "Talk", "source": "1", "session": "s", "position": 0, "content": "Ada has a cat."},
    {"type": "memory", "namespace": "Talk", "source": "3", "session": "t", "position": 0, "content": "Cy sells boats."},
    {"type": "memory", "namespace": "Talk", "source": "4", "content": "Cy  sells boats."},
    question("Talk", "Who has a cat?", "1") | {"category": "one"},
    question("Talk", "Who has pets, cat or dog?", "1", "2") | {"category": "one"},
    question("Talk", "What is unknown?") | {"category": "none"},
]


def test_a_set_is_read_in_session_order(benchmarks: Benchmarks) -> None:
    read = read_set(benchmarks.written("small.jsonl", SET))

    assert [memory["source"] for memory in read.memories["Talk"]] == ["1", "2", "3", "4"]
    assert "position" not in read.memories["Talk"][0]
    assert (read.name, read.size) == ("small", 4)
    assert [question.query for question in read.sample(None)] == ["Who has a cat?", "Who has pets, cat or dog?"]
    assert len(read.sample(1)) == 1


async def test_retrieval_is_measured_in_a_scratch_database_that_is_dropped(
    benchmarks: Benchmarks, cluster: Cluster, connection: asyncpg.Connection
) -> None:
    databases = "select count(*) from pg_database where datname like 'folklore_bench%'"
    path, ranking = benchmarks.written("small.jsonl", SET), '{"mmr_lambda": 0.5}'

    measured = await benchmarks.json(retrieval, path, "--limit", "20", "--ranking", ranking)
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
    assert measured["scores"]["all"].items() >= {"questions": 2, "hit@5": 1.0, "R@10": 1.0, "R@20": 1.0}.items()
    assert "3 memories" in table
    assert await cluster.admin.fetchval(databases) == 0
    assert await connection.fetchval("select count(*) from memories") == 0


def test_the_address_of_a_scratch_database_differs_in_the_database_only() -> None:
    dsn = "postgresql://ada:s%40@host:5433/team?host=/run/my%20sockets&dbname=team&sslmode=require"

    parts = urlsplit(with_database(dsn, "scratch"))

    assert (parts.netloc, parts.path) == ("ada:s%40@host:5433", "/scratch")
    assert parse_qs(parts.query) == {"host": ["/run/my sockets"], "sslmode": ["require"]}
