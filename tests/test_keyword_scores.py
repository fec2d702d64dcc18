"""Keyword scores are relative to the line through the scores of all memories in scope over their size."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.db.stores.recall_rows import Bm25, Scope
from folklore.memory.recall.corpus_statistics import read_words
from folklore.memory.recall.pipeline import search_of
from folklore.memory.recall.values import Question
from folklore.ranking.statistics import score_line
from folklore.ranking.weights import Ranking
from tests.person import Person

WORDS = "amber birch cedar delta ember fjord grove heath inlet jetty knoll lagoon mesa night oasis".split()  # noqa: SIM905


def texts(count: int) -> list[str]:
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, range(len(WORDS), 0, -1), k=rng.randint(3, 60))) for _ in range(count)]


@pytest.fixture
async def many(person: Person) -> Person:
    await person.keep(*texts(150))
    return person


async def read(person: Person, question: str, ranking: Ranking = Ranking()) -> tuple[Scope, Bm25]:
    namespaces = await person.library.find_namespaces(["notes"])
    search = search_of(person.context, Question(question, ranking=ranking), namespaces)
    return search.scope, await read_words(person.library, person.library.statements, search)


async def plain_scores(connection: asyncpg.Connection, bm25: Bm25) -> tuple[dict[UUID, float], dict[UUID, float]]:
    """Return BM25 of every memory, computed from the postings, and the size of each."""
    rows = await connection.fetch("select lexeme, memory_id, frequency, first_position, length from postings")
    sizes = {row["memory_id"]: math.log(row["length"] + 30) for row in rows if row["lexeme"] == ""}
    mean = sum(row["length"] for row in rows if row["lexeme"] == "") / len(sizes)
    scores: dict[UUID, float] = defaultdict(float)
    for row in rows:
        count = row["frequency"] + math.exp(-row["first_position"] / 10)
        longer = math.hypot(row["length"], bm25.prior) / math.hypot(mean, bm25.prior)
        weight = bm25.scored_weights.get(row["lexeme"], 0.0)
        scores[row["memory_id"]] += weight * count * (bm25.saturation + 1) / (count + bm25.saturation * longer)
    return {id_: scores[id_] for id_ in sizes}, sizes


def through(scores: Mapping[UUID, float], sizes: Mapping[UUID, float]) -> tuple[float, float]:
    """Return mean and slope of the regression line, the slope times N / (N + 20) and V / (V + 0.2)."""
    x, y = np.array([sizes[id_] for id_ in scores]), np.array(list(scores.values()))
    slope = float(np.polyfit(x, y, 1)[0])
    return float(y.mean()), slope * len(x) / (len(x) + 20) * x.var() / (x.var() + 0.2)


async def test_the_line_is_the_one_through_all_scores(many: Person, connection: asyncpg.Connection) -> None:
    _, bm25 = await read(many, "amber fjord oasis")

    expected = through(*await plain_scores(connection, bm25))

    assert (bm25.mean_score, bm25.score_slope) == pytest.approx(expected, rel=1e-5)


async def test_a_keyword_score_is_bm25_minus_the_line(many: Person, connection: asyncpg.Connection) -> None:
    scope, bm25 = await read(many, "amber fjord oasis")
    plain, sizes = await plain_scores(connection, bm25)
    mean, slope = through(plain, sizes)
    middle = sum(sizes.values()) / len(sizes)

    hits = await many.library.statements.keyword(scope, bm25=bm25, fetch=150)

    left = {id_: plain[id_] - mean - slope * (sizes[id_] - middle) for id_ in hits.ids}
    assert dict(zip(hits.ids, hits.scores, strict=True)) == pytest.approx(left, rel=1e-4, abs=1e-4)
    assert list(hits.ids) == sorted(left, key=lambda id_: (-left[id_], id_))


async def test_a_repeated_word_counts_more_but_not_in_proportion(many: Person, connection: asyncpg.Connection) -> None:
    scope, bm25 = await read(many, "amber fjord amber, amber and the oasis of amber")
    plain, sizes = await plain_scores(connection, bm25)
    mean, slope = through(plain, sizes)
    middle = sum(sizes.values()) / len(sizes)

    hits = await many.library.statements.keyword(scope, bm25=bm25, fetch=150)

    left = {id_: plain[id_] - mean - slope * (sizes[id_] - middle) for id_ in hits.ids}
    assert dict(zip(hits.ids, hits.scores, strict=True)) == pytest.approx(left, rel=1e-4, abs=1e-4)
    assert bm25.repetitions == {"amber": pytest.approx(2.5)}


async def test_a_question_asked_twice_has_the_same_order(many: Person) -> None:
    scope, once = await read(many, "amber fjord oasis")
    _, twice = await read(many, "amber fjord oasis amber fjord oasis")

    first = await many.library.statements.keyword(scope, bm25=once, fetch=150)
    again = await many.library.statements.keyword(scope, bm25=twice, fetch=150)

    assert again.ids == first.ids
    assert again.raw == pytest.approx([raw * 5 / 3 for raw in first.raw])
    assert twice.total_weight == pytest.approx(once.total_weight * 5 / 3)


async def test_cached_common_words_have_the_numbers_that_were_read(many: Person) -> None:
    _, first = await read(many, "amber birch oasis")
    _, again = await read(many, "amber birch oasis")

    assert (again.mean_score, again.score_slope) == pytest.approx((first.mean_score, first.score_slope))


async def test_a_word_that_was_not_counted_to_the_end_is_estimated_at_a_quarter_of_all(person: Person) -> None:
    await person.keep(*(f"amber {text} {place}" for place, text in enumerate(texts(450))))
    await person.keep(*(f"amber {text} more {place}" for place, text in enumerate(texts(450))))

    _, long = await read(person, "amber " + "zz" * 4_000)  # of a question so long, 200 of each word are counted
    _, short = await read(person, "amber")

    some, all_ = (bm25.mean_score / bm25.weights["amber"] for bm25 in (long, short))
    assert some == pytest.approx(all_ * (900 // 4) / 900, rel=0.1)


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.floats(3.4, 9)), min_size=2, max_size=40),
    st.floats(0.1, 9),
    st.floats(0.1, 9),
)
def test_the_line_of_a_question_is_the_sum_of_those_of_its_words(
    memories: list[tuple[float, float, float]], one: float, other: float
) -> None:
    left, right, sizes = (np.array(column) for column in zip(*memories, strict=True))
    variance = float(sizes.var())

    mean, slope = score_line(
        {"one": one, "other": other},
        {"one": (left.sum(), left @ sizes), "other": (right.sum(), right @ sizes)},
        total=len(memories),
        mean_size=float(sizes.mean()),
        size_variance=variance,
    )

    scores = one * left + other * right
    assert mean == pytest.approx(scores.mean())
    if variance > 1e-3:
        expected = float(((scores - scores.mean()) * (sizes - sizes.mean())).mean()) / variance
        trust = len(sizes) / (len(sizes) + 20) * variance / (variance + 0.2)
        assert slope == pytest.approx(expected * trust, rel=1e-6, abs=1e-6)
