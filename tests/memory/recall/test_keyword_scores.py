"""Keyword scores are BM25 as in textbooks, over the postings."""

import random
from collections import Counter
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from folklore.db.stores.postings import PostingStore
from folklore.db.stores.recall_lexemes import ScopeLexemes
from folklore.db.stores.recall_rows import Bm25, Scope
from folklore.memory.recall.corpus_statistics import read_lexemes
from folklore.memory.recall.pipeline import search_of
from folklore.memory.recall.values import Question
from folklore.model import Draft
from tests.person import Person

WORDS = "amber birch cedar delta ember fjord grove heath inlet jetty knoll lagoon mesa night oasis".split()


def texts(count: int) -> list[str]:
    rng = random.Random(3)
    return [
        " ".join(rng.choices(WORDS, range(len(WORDS), 0, -1), k=rng.randint(3, 60)))
        for _ in range(count)
    ]


@pytest.fixture
async def many(person: Person) -> Person:
    await person.keep(*texts(150))
    return person


async def read(person: Person, question: str) -> tuple[Scope, Bm25, ScopeLexemes]:
    namespaces = await person.library.find_namespaces(["notes"])
    search = search_of(person.context, Question(question), namespaces)
    return search.scope, *await read_lexemes(
        person.library, person.library.statements, search
    )


async def expected(connection: asyncpg.Connection, bm25: Bm25) -> dict[UUID, float]:
    """Return BM25 of every memory with a match, k1 1.2 and b .75, computed from the texts."""
    held = {
        row["id"]: Counter(row["content"].split())
        for row in await connection.fetch("select * from memories")
    }
    mean = sum(words.total() for words in held.values()) / len(held)
    scores = {
        id_: sum(
            weight
            * words[word]
            * 2.2
            / (words[word] + 1.2 * (0.25 + 0.75 * words.total() / mean))
            for word, weight in bm25.weights.items()
        )
        for id_, words in held.items()
    }
    return {id_: score for id_, score in scores.items() if score}


@pytest.mark.parametrize(
    "question", ["amber fjord oasis", "amber fjord amber, amber and the oasis of amber"]
)
async def test_a_keyword_score_is_bm25(
    many: Person, connection: asyncpg.Connection, question: str
) -> None:
    scope, bm25, in_scope = await read(many, question)

    hits = await many.library.statements.keyword(scope, bm25, in_scope, fetch=150)

    scores = await expected(connection, bm25)
    assert dict(zip(hits.ids, hits.scores, strict=True)) == pytest.approx(scores)
    assert list(hits.ids) == sorted(scores, key=lambda id_: (-scores[id_], id_))


@pytest.mark.parametrize("packed", [0, 1, 2])
async def test_few_memories_that_filters_let_through_are_scored_among_all(
    many: Person, connection: asyncpg.Connection, packed: int
) -> None:
    [namespace] = await many.library.find_namespaces(["notes"])
    postings = PostingStore(many.library.root.database)
    if packed:
        await postings.pack(namespace.id)
    await many.keep(
        Draft("amber at the quay", cues=("oasis of fjords",)),
        Draft("nothing of that", cues=("an oasis",)),
    )
    if packed == 2:
        await postings.pack(namespace.id)
    scope, bm25, in_scope = await read(many, "amber fjord oasis")
    rows = await connection.fetch("select id from memories order by id desc limit 40")
    few = {row["id"]: namespace.id for row in rows}

    among_all = await many.library.statements.keyword(scope, bm25, in_scope, fetch=200)
    of_few = await many.library.statements.keyword(
        replace(scope, few=few), bm25, in_scope, fetch=200
    )

    expected_hits = [
        hit
        for hit in zip(among_all.ids, among_all.scores, among_all.raw, strict=True)
        if hit[0] in few
    ]
    found = list(zip(of_few.ids, of_few.scores, of_few.raw, strict=True))
    assert len(found) > 10
    assert found == expected_hits
    assert of_few.spaces == {namespace.id}


async def test_a_word_weighs_as_often_as_the_question_has_it(many: Person) -> None:
    _, once, _ = await read(many, "amber fjord oasis")
    _, again, _ = await read(many, "amber fjord amber, amber and the oasis of amber")

    assert again.weights["amber"] == pytest.approx(4 * once.weights["amber"])
    assert again.weights["fjord"] == pytest.approx(once.weights["fjord"])
