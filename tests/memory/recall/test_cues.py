"""Cues in a recall: found by their words and their vector, which are apart from those of the content."""

from typing import Any
from uuid import UUID

import asyncpg
import pytest

from folklore.contract.recall import ExplainRequest
from folklore.db.stores.postings import PostingStore
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Filters
from folklore.ranking.weights import Ranking
from tests import embedders
from tests.person import NOON, Person, contents

TEXT = "Outgoing HTTP goes through shop/common/http.py."
CUES = ("wrap the purchase in a decorator", "Kauf wiederholen")
OTHERS = [f"The warehouse has a gate number {n}." for n in range(6)]
WORDS = Ranking(dense=0.0)


@pytest.fixture
async def memory(person: Person) -> UUID:
    [id_, *_] = await person.keep(Draft(TEXT, cues=CUES), *OTHERS)
    return id_


async def vectors(connection: asyncpg.Connection, id_: UUID) -> list[bool]:
    """Return for each embedding of a memory if it has a vector of the cues."""
    rows = await connection.fetch(
        "select cues is not null from embeddings where memory_id = $1 order by passage",
        id_,
    )
    return [row[0] for row in rows]


@pytest.mark.parametrize("query", ["decorators for purchases", "Kauf"])
@pytest.mark.parametrize("packed", [False, True])
async def test_a_memory_is_found_by_the_words_of_its_cues(
    person: Person, memory: UUID, query: str, packed: bool
) -> None:
    if packed:
        postings = PostingStore(person.library.database)
        [space] = await person.library.find_namespaces(["notes"])
        await postings.pack(space.id)

    assert contents(await person.recall(query, ranking=WORDS)) == [TEXT]


@pytest.mark.parametrize(
    "query",
    ['"in a decorator"', "purchase AND outgoing", "decorator -gate", "Kauf OR herring"],
)
async def test_an_expression_is_satisfied_by_text_and_cues_together(
    person: Person, memory: UUID, query: str
) -> None:
    assert contents(await person.search(query)) == [TEXT]


@pytest.mark.parametrize("query", ['"a decorator in"', "purchase AND gate"])
async def test_an_expression_that_cues_do_not_satisfy_finds_nothing(
    person: Person, memory: UUID, query: str
) -> None:
    assert contents(await person.search(query)) == []


async def test_a_memory_is_found_by_the_meaning_of_its_cues(
    person: Person, memory: UUID
) -> None:
    nearest = await person.recall("buying again", ranking=Ranking(keyword=0.0))

    assert contents(nearest)[0] == TEXT


async def test_filters_that_let_few_through_find_cues_too(
    person: Person, memory: UUID
) -> None:
    scope = (await person.recall("purchase", filters=Filters(kinds=("note",)))).memories

    assert scope[0].memory.id == memory


async def test_cues_leave_the_frequencies_of_words_in_contents_as_they_are(
    person: Person,
) -> None:
    texts = ["We deploy from main on Mondays.", "Deploys need a review.", *OTHERS]
    await person.keep(*texts, namespace="plain")
    await person.keep(*texts[:1], namespace="cued")
    await person.keep(Draft(texts[1], cues=("Mondays", "gate main")), namespace="cued")
    await person.keep(*texts[2:], namespace="cued")

    def explained(namespace: str) -> Any:
        return person.call(
            ExplainRequest(query="gate reviews Mondays", namespaces=(namespace,))
        )

    plain = await explained("plain")
    cued = await explained("cued")

    assert plain.words == cued.words


async def test_changed_and_cleared_cues_are_indexed_again(
    person: Person, memory: UUID, connection: asyncpg.Connection
) -> None:
    await person.update(memory, cues=["paint the fence"])
    assert contents(await person.recall("purchase", ranking=WORDS)) == []
    assert contents(await person.recall("fence", ranking=WORDS)) == [TEXT]
    assert await vectors(connection, memory) == [True]

    await person.update(memory, content="Outgoing calls are direct.")
    assert await vectors(connection, memory) == [True]

    await person.update(memory, clear=("cues",))
    assert contents(await person.recall("fence", ranking=WORDS)) == []
    assert await vectors(connection, memory) == [False]


async def test_an_earlier_time_is_asked_for_the_cues_of_that_time(
    person: Person, memory: UUID
) -> None:
    later = person.at(NOON.replace(hour=14))
    await later.update(memory, cues=["paint the fence"])
    then = Filters(as_of=NOON.replace(hour=13))

    assert contents(await later.recall("purchase", ranking=WORDS, filters=then)) == [
        TEXT
    ]
    assert contents(await later.recall("fence", ranking=WORDS, filters=then)) == []


async def test_an_earlier_time_is_asked_for_the_meaning_of_cues_that_it_had(
    person: Person, memory: UUID
) -> None:
    later = person.at(NOON.replace(hour=14))
    then = Filters(as_of=NOON.replace(hour=13))
    meaning = Ranking(keyword=0.0)

    unchanged = await later.recall("buying again", ranking=meaning, filters=then)
    now = await later.recall("buying again", ranking=meaning)
    assert contents(unchanged)[0] == TEXT
    assert unchanged.memories[0].score == now.memories[0].score

    await later.update(memory, cues=["paint the fence"])
    painted = await later.recall("painting a fence", ranking=meaning, filters=then)
    new = await later.recall("painting a fence", ranking=meaning)
    scores = {item.memory.content: item.score for item in painted.memories}
    assert contents(new)[0] == TEXT
    assert (scores.get(TEXT) or 0.0) < (new.memories[0].score or 0.0)


async def test_cues_without_a_vector_are_embedded_by_the_job(
    person: Person, memory: UUID, connection: asyncpg.Connection, jobs: Any
) -> None:
    offline = Person(MemoryContext.of(person.library.database, embedders.Down()))
    await offline.update(memory, cues=["paint the fence"])
    assert await vectors(connection, memory) == [False]

    await jobs("embeddings")

    assert await vectors(connection, memory) == [True]


async def test_an_erased_memory_leaves_no_word_of_its_cues(
    person: Person, memory: UUID, connection: asyncpg.Connection
) -> None:
    await person.forget(memory, erase=True)

    assert contents(await person.recall("purchase", ranking=WORDS)) == []
    assert not await connection.fetchval(
        "select count(*) from fresh_words where memory_id = $1", memory
    )
