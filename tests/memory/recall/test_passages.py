"""Long texts: found by a passage, which the answer shows, through every way that writes or reads embeddings."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.contract.namespaces import MergeNamespacesRequest
from folklore.contract.recall import recalled_json
from folklore.db.database import Database
from folklore.db.stores.embeddings import Embeddings, VectorIndexes
from folklore.db.stores.recall_rows import DenseQuery, Scope
from folklore.embedding.bundled import MODEL
from folklore.embedding.model_profiles import passage_rule
from folklore.embedding.protocol import Embedder
from folklore.memory.context import MemoryContext
from folklore.memory.models.backfill import Backfill
from folklore.model import Filters
from folklore.ranking.weights import PRESETS
from folklore.text.passages import passages
from tests.conftest import Cluster
from tests.embedders import Down
from tests.memory.transfer.test_transfer import Line
from tests.memory.transfer.test_vectors import VectorMover
from tests.person import NOON, Person, contents

SUBJECTS = (
    "the parser",
    "a worker",
    "this queue",
    "the old cache",
    "our build",
    "every request",
    "one thread",
)
VERBS = (
    "reads",
    "writes",
    "drops",
    "keeps",
    "checks",
    "copies",
    "sends",
    "splits",
    "joins",
    "delays",
)
OBJECTS = (
    "small files",
    "open handles",
    "all rows",
    "a header",
    "several keys",
    "large blocks",
    "its buffers",
)
ENDINGS = (
    "before it stops",
    "after a while",
    "on every call",
    "at the end",
    "during a test",
    "in order",
    "twice",
)

FACTS = (
    (
        "The spare key of the house hangs behind the mirror.",
        "Where is the spare key to our house?",
    ),
    (
        "Our cat is allergic to chicken and may only eat fish.",
        "Which food is the cat allergic to?",
    ),
    (
        "The landlord raised the rent to 1,450 euros.",
        "How many euros of rent does the landlord want?",
    ),
    ("The wedding will be in a chapel by the lake.", "Where will the wedding be?"),
    (
        "Grandmother puts honey and buttermilk into the dough.",
        "What does grandmother put into the dough?",
    ),
    (
        "The children saw a fox behind the swimming pool.",
        "Which animal was behind the swimming pool?",
    ),
)


def prose(chance: random.Random, length: int) -> str:
    """Return paragraphs of technical prose of at least this length."""
    text = ""
    while len(text) < length:
        sentences = [
            " ".join(
                map(chance.choice, (SUBJECTS, VERBS, OBJECTS, ENDINGS))
            ).capitalize()
            + "."
            for _ in range(chance.randint(3, 7))
        ]
        text += " ".join(sentences) + "\n\n"
    return text


def notes(number: int, facts: Sequence[str], length: int = 12_000) -> list[str]:
    """Return long notes; the first ones have a fact each in the last tenth."""
    chance = random.Random(7)
    found = []
    for place in range(number):
        fact = f"{facts[place]} " if place < len(facts) else ""
        found.append(
            prose(chance, length * 94 // 100) + fact + prose(chance, length * 5 // 100)
        )
    return found


class Counting:
    """Passes calls on, and counts the texts."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.texts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return await self.inner.embed(texts)


async def rows(connection: asyncpg.Connection) -> int:
    return int(
        await connection.fetchval("select count(*) from embeddings where passage > 0")
    )


async def test_a_fact_late_in_a_long_note_is_found_and_shown(person: Person) -> None:
    texts = notes(40, [fact for fact, _ in FACTS])
    await person.keep(*texts)

    for text, (fact, question) in zip(texts, FACTS, strict=False):
        [first, *_] = (await person.recall(question)).memories
        assert first.memory.content == text.strip()
        assert first.passage is not None
        begin, end = first.passage
        assert fact in first.memory.content[begin:end]
        assert recalled_json(first, "detailed")["passage"] == [begin, end]


async def test_a_short_text_has_one_vector_and_no_passage(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(*(fact for fact, _ in FACTS))

    [first, *_] = (await person.recall(FACTS[1][1])).memories

    assert first.memory.content == FACTS[1][0]
    assert first.passage is None
    assert await rows(connection) == 0


async def test_passages_of_one_note_do_not_crowd_out_other_memories(
    person: Person,
) -> None:
    cats = " ".join(
        f"Cat number {number} sleeps on the sofa of the office all day."
        for number in range(500)
    )
    others = [
        f"The office cat {name} sleeps under a desk."
        for name in ("Ada", "Bob", "Eve", "Joe", "Kim", "Liv", "Mia")
    ]
    await person.keep(cats, *others)
    answer = await person.recall(
        "Where does the office cat sleep?", ranking=PRESETS["semantic"]
    )

    assert {*others} < {*contents(answer)}
    assert len(contents(answer)) == len(others) + 1


async def test_where_one_note_has_all_the_best_vectors_more_are_checked_at_once(
    person: Person,
) -> None:
    cats = " ".join(
        f"Cat number {number} sleeps on the sofa of the office all day."
        for number in range(500)
    )
    others = ["The port is 8080.", "Ada leads payments.", "Releases are on Tuesday."]
    await person.keep(cats, *others)
    question = "Where does the office cat sleep?"
    crowded = person.library.statistics.crowded
    assert not crowded

    answer = await person.recall(question, ranking=PRESETS["semantic"])
    assert len(contents(answer)) == len(others) + 1
    assert crowded

    again = await person.recall(question, ranking=PRESETS["semantic"])
    assert contents(again) == contents(answer)


async def test_facts_late_in_long_notes_are_found_through_an_index(
    person: Person, embedder: Embedder
) -> None:
    await person.keep(*notes(40, [fact for fact, _ in FACTS]))
    indexes = VectorIndexes(person.library.database)
    library = person.library
    for change in await indexes.index_changes(threshold=1_000):
        await indexes.apply(change)
    [space], model = await library.find_namespaces([]), await embedder.model()
    scope = Scope({space.id: space.name}, Filters(), NOON)

    for _, question in FACTS:
        words = question.split()
        vector = await embedder.embed_question(words, [1.0] * len(words))
        exact = await library.statements.dense(scope, DenseQuery(model.id, vector), 30)
        near = await library.statements.dense(
            scope, DenseQuery(model.id, vector, visited=2_000), 30
        )

        assert (near.path, exact.path) == ("hnsw", "exact")
        assert len({*near.ids}) == 30, "no note fills the answer"
        assert near.ids[0] in exact.ids[:5]


async def test_changing_a_text_replaces_its_passages(
    person: Person, connection: asyncpg.Connection
) -> None:
    [text] = notes(1, [FACTS[0][0]])
    [id_] = await person.keep(text)
    assert await rows(connection) > 10

    await person.update(id_, content="The spare key is lost.")
    assert await rows(connection) == 0

    await person.update(id_, content=text)
    assert await rows(connection) > 10
    await person.forget(id_, erase=True)
    assert await connection.fetchval("select count(*) from embeddings") == 0


async def test_passages_move_with_their_namespace(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(*notes(1, [FACTS[0][0]]), namespace="drafts")
    await person.keep(FACTS[1][0])
    made = await rows(connection)

    await person.call(MergeNamespacesRequest(name="drafts", into="notes"))

    [first, *_] = (await person.recall(FACTS[0][1], namespaces=["notes"])).memories
    assert first.passage is not None
    assert await rows(connection) == made > 10


async def test_a_long_text_is_pending_once_and_gets_all_passages_later(
    database: Database, embedder: Embedder, connection: asyncpg.Connection
) -> None:
    texts = notes(3, [fact for fact, _ in FACTS])
    await Person(MemoryContext.of(database, Down())).keep(*texts)
    person = Person(MemoryContext.of(database, embedder))
    [namespace] = await person.library.namespaces.find(None)
    embeddings = Embeddings(database)
    assert (await embeddings.coverage([namespace.id], MODEL.id))[
        namespace.id
    ].pending == 3

    await Backfill(embeddings, embedder, MODEL.id, now=lambda: NOON).fill(
        [namespace.id]
    )

    coverage = (await embeddings.coverage([namespace.id], MODEL.id))[namespace.id]
    assert (coverage.memories, coverage.embedded) == (3, 3)
    assert await rows(connection) > 30
    assert (await person.recall(FACTS[0][1])).memories[0].passage is not None


async def test_passages_are_exported_and_imported_with_their_ranges(
    cluster: Cluster, template: str, database: Database, embedder: Embedder
) -> None:
    texts = [*notes(2, [FACTS[0][0]]), FACTS[1][0]]
    await Person(MemoryContext.of(database, embedder)).keep(*texts)
    lines = await VectorMover(database, embedder).memories()
    assert [len(line["embedding"].get("passages", ())) > 10 for line in lines] == [
        True,
        True,
        False,
    ]

    async with cluster.opened(template) as other:
        counting = Counting(embedder)
        mover = VectorMover(other, counting)
        report = await mover.put(lines)
        again = await mover.memories()

    assert again == lines
    assert report.ignored_fields == {}
    assert counting.texts == 0


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda found: found.pop("passages"),
        lambda found: found["passages"][3].update(end=40_000),
        lambda found: found["passages"][3].update(end=found["passages"][3]["begin"]),
        lambda found: found["passages"][3].update(
            vector=found["passages"][3]["vector"][:8]
        ),
    ],
)
async def test_the_vectors_of_a_long_text_are_made_again_if_its_passages_are_unusable(
    person: Person,
    embedder: Embedder,
    connection: asyncpg.Connection,
    spoilt: Callable[[Line], object],
) -> None:
    mover = VectorMover(person.library.database, embedder)
    await person.keep(*notes(1, []))
    made, [line] = await rows(connection), await mover.memories()
    spoilt(line["embedding"])

    report = await mover.put([line | {"namespace": "other"}])

    assert report.ignored_fields == {"embedding": 1}
    assert await rows(connection) == 2 * made


def test_passages_cover_a_text_and_end_at_its_boundaries() -> None:
    text = prose(random.Random(1), 10_000)

    found = passages(text, 400, longer_than=1_000)

    assert "".join(text[begin:end] for begin, end in found) == text
    assert all(text[begin].isupper() for begin, _ in found)
    assert all(200 < end - begin < 700 for begin, end in found)
    assert passages(text[:1_000], 400, longer_than=1_000) == []


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("One. " * 50 + "\n\nTwo.\n## Three\n" + "Four. " * 100, "## Three\nFour."),
        ("One. " * 50 + "\n\nTwo. Three.\nFour. " + "Five. " * 100, "Two. Three."),
        ("One. " * 50 + "Two three\nfour. Five. " + "six " * 100, "four. Five."),
        ("One. " * 60 + "two " * 200, "two two"),
        ("x" * 1_000, "x" * 400),
    ],
)
def test_a_passage_ends_before_a_heading_or_after_a_paragraph_line_sentence_or_word(
    text: str, second: str
) -> None:
    (_, end), *_ = passages(text, 400, longer_than=500)

    assert text[end:].startswith(second)


@pytest.mark.parametrize(
    "name", ["all-MiniLM-L6-v2", "bge-small-en", "unknown", MODEL.name]
)
def test_a_passage_fits_the_window_of_its_model(name: str) -> None:
    windows = {
        "all-MiniLM-L6-v2": 256,
        "bge-small-en": 512,
        "unknown": 512,
        MODEL.name: 10_000,
    }

    rules = [passage_rule(name, characters) for characters in (100, 3_000, 20_000)]

    assert all(
        size <= 3.2 * windows[name] and longer_than >= 2 * size
        for size, longer_than in rules
    )
