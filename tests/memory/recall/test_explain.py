"""The explanation of a recall, and presets of the settings."""

import pytest

from folklore.contract.recall import (
    ExplainRequest,
    ListPresetsRequest,
    RankingRequest,
    RecallRequest,
)
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from folklore.ranking.weights import PRESETS, named_presets
from tests.person import Person, contents

TEXTS = (
    "The pool of connections has six places.", "PgBouncer runs in transaction mode.",
    "The pool closes idle connections.", "Deploys happen on Thursday.", "The lighthouse is white.",
    "Connections are opened when they are used.",
    "The release is cut from main.", "A connection that waits is cancelled.", "The harbour is closed in November.",
)  # fmt: skip
QUESTION = "how many connections has the pool?"


async def test_the_explained_order_is_that_of_the_recall(person: Person) -> None:
    await person.keep(*TEXTS, namespace="notes")
    ranking = RankingRequest(min_score=0.0)
    answer = await person.call(
        RecallRequest(query=QUESTION, namespaces=("notes",), limit=4, ranking=ranking)
    )

    explained = await person.call(
        ExplainRequest(query=QUESTION, namespaces=("notes",), limit=4, ranking=ranking)
    )

    results = [item for item in explained.candidates if item.stage == "answer"]
    assert [item.memory.id for item in results] == [
        item.memory.id for item in answer.memories
    ]
    assert [item.rank for item in results] == [1, 2, 3, 4]
    assert [item.score for item in results] == [item.score for item in answer.memories]
    assert explained.candidates[: len(results)] == tuple(results)


async def test_the_shares_add_up_to_the_relevance(person: Person) -> None:
    await person.keep(
        *(Draft(text, importance=0.9) for text in TEXTS), namespace="notes"
    )

    explained = await person.call(ExplainRequest(query=QUESTION, namespaces=("notes",)))

    scored = [item for item in explained.candidates if item.shares]
    assert scored
    for item in scored:
        assert sum(item.shares.values()) == pytest.approx(item.relevance)
    assert {branch.branch for branch in explained.branches} == {"dense", "keyword"}
    for branch in explained.branches:
        assert [hit.rank for hit in branch.hits] == list(range(1, len(branch.hits) + 1))
    assert {"pool", "connect"} & {word.word for word in explained.words}


async def test_near_duplicates_and_weak_results_are_named(person: Person) -> None:
    await person.keep(*TEXTS, namespace="notes")
    await person.keep("The pool of connections has six places!", namespace="notes")

    explained = await person.call(
        ExplainRequest(query=QUESTION, namespaces=("notes",), limit=3)
    )

    by_stage = {item.stage for item in explained.candidates}
    assert "grouped" in by_stage
    assert by_stage & {"below the limit", "low confidence", "next page"}
    (grouped,) = [item for item in explained.candidates if item.stage == "grouped"]
    assert grouped.represented_by in {
        item.memory.id for item in explained.candidates if item.stage == "answer"
    }


async def test_an_empty_question_is_an_error(person: Person) -> None:
    await person.keep("x", namespace="notes")
    for query in ("", "  ", "*"):
        with pytest.raises(InvalidInput, match="query"):
            await person.call(ExplainRequest(query=query))


async def test_a_recall_takes_the_name_of_a_preset_of_the_settings(
    database: Database, embedder: Embedder
) -> None:
    memory = MemoryContext.of(
        database, embedder, presets=named_presets({"words": {"dense": 0}})
    )
    person = Person(memory)
    await person.keep("The harbour is closed.", "Boats sleep.")

    answer = await person.call(
        RecallRequest(
            query="harbour", explain=True, ranking=RankingRequest(preset="words")
        )
    )

    assert answer.explain is not None
    assert "dense" not in answer.explain
    assert contents(answer) == ["The harbour is closed."]
    listed = {item.name: item for item in await person.call(ListPresetsRequest())}
    assert listed.keys() == {*PRESETS, "words"}
    assert listed["words"].setting == {"dense": 0}
    assert listed["words"].numbers["dense"] == 0
    with pytest.raises(
        InvalidInput, match=r"unknown preset 'other'.*balanced.*words.*ranking\.presets"
    ):
        await person.call(
            RecallRequest(query="harbour", ranking=RankingRequest(preset="other"))
        )
