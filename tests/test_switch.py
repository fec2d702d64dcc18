"""Changing the embedding model while everybody goes on: two generations side by side, and never a mixture."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.db.database import Database
from folklore.db.stores.embeddings import Debts
from folklore.db.stores.models import Models
from folklore.embedding.protocol import Embedder, Model, ModelChoice
from folklore.errors import Conflict, EmbedderUnavailable, FolkloreError, NotFound
from folklore.memory.context import MemoryContext
from folklore.memory.models import active_model as generations
from folklore.memory.models import switch
from folklore.memory.models.active_model import Generations
from folklore.memory.models.backfill import Pace
from folklore.memory.models.switch import Switch, Switched, holdings, target_of
from folklore.ranking.weights import Ranking
from tests import embedders
from tests.person import NOON, Person, contents

DENSE_ONLY = Ranking(keyword=0.0, neighbours=(), mmr_lambda=1.0)
WORDS = ["harbour", "quay", "lantern", "anchor", "gull", "rope", "captain", "storm", "tide", "whale", "mast", "deck"]
TEXTS = [f"{one} and {other} number {place}" for place, (one, other) in enumerate(pairwise(WORDS))]


@dataclass
class ByWord(embedders.ByLetter):
    """Every word turns into a direction that depends on `salt`: two of them are models whose spaces have nothing in
    common, though their dimensions agree. `fingerprint` stands for what else is behind a name.
    """

    name: str = "old"
    salt: int = 1
    size: int = 64
    down: bool = False
    texts: int = 0
    fail_after: int | None = None
    spoken: dict[bytes, str] = field(default_factory=dict)

    async def model(self) -> Model:
        return Model("fake", self.name, self.size)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.down or (self.fail_after is not None and self.texts + len(texts) > self.fail_after):
            raise EmbedderUnavailable("The embedding service does not answer.")
        self.texts += len(texts)
        vectors = np.stack([self._vector(text) for text in texts])
        return vectors.astype(np.float32)

    async def probe(self) -> NDArray[np.float32]:
        if self.down:
            raise EmbedderUnavailable("The embedding service does not answer.")
        return self._vector("a fixed text that tells models apart").astype(np.float32)

    def _vector(self, text: str) -> NDArray[np.float64]:
        total = np.zeros(self.size)
        for word in text.lower().split():
            total += np.random.default_rng([self.salt, *word.encode()]).standard_normal(self.size)
        length = float(np.linalg.norm(total))
        return total / length if length else total


class World:
    """Servers over one store, and the services that hold the models, by name."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.services: dict[str, ByWord] = {"old": ByWord(), "new": ByWord(name="new", salt=2)}
        self.models = Models(database)

    def build(self, choice: ModelChoice) -> Embedder:
        service = self.services[choice.name]
        return RevisedAs(service, choice.revision) if choice.revision else service

    def server(self, settings: str = "old") -> Person:
        """Somebody at a server whose settings name this model."""
        choice = ModelChoice("fake", settings)
        return Person(MemoryContext.of(self.database, Generations(self.models, choice, self.build(choice), self.build)))

    def switch(self, library: MemoryContext, **options: Any) -> Switch:
        pace = Pace(**{"batch": 4, "patience": 0.0} | options)
        return Switch(
            library, self.models, Debts(self.database), now=lambda: NOON, pace=pace, tell=lambda _done, _words: None
        )

    async def switch_to(self, name: str, *, force: bool = False, **options: Any) -> Switched:
        library = self.server().library
        await library.find_namespaces([])
        target = await target_of(ModelChoice("fake", name), self.models, self.build)
        return await self.switch(library, **options).to(target, force=force)


@dataclass
class RevisedAs:
    """A service under a revision of its own."""

    inner: ByWord
    revision: str

    async def model(self) -> Model:
        return replace(await self.inner.model(), revision=self.revision)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "_SWEEP", 0.0)
    monkeypatch.setattr(generations, "NOTICED_WITHIN", 0.0)


@pytest.fixture
async def world(database: Database) -> World:
    made = World(database)
    await made.server().keep(*TEXTS)
    return made


async def by_dense(person: Person, question: str) -> list[str]:
    person.library.known_namespaces.clear()
    answer = await person.recall(question, ranking=DENSE_ONLY)
    assert answer.degraded == ()
    return contents(answer)


async def test_after_a_switch_recall_goes_by_the_new_model_on_servers_that_run_already(world: World) -> None:
    running = world.server()
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]
    asked_before = world.services["new"].texts

    done = await world.switch_to("new")
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]

    assert done.made == len(TEXTS)
    assert done.agreement is not None
    assert (done.agreement.old, done.agreement.new) == (done.agreement.sample, done.agreement.sample)
    assert (await running.library.embedder.model()).name == "new"  # type: ignore[union-attr]
    assert world.services["new"].texts > asked_before + len(TEXTS)
    assert [model.role for model in await world.models.all()] == ["active", "previous"]


async def test_recall_goes_by_the_old_model_until_the_new_one_is_whole(world: World) -> None:
    world.services["new"].fail_after = 6
    with pytest.raises(EmbedderUnavailable):
        await world.switch_to("new")

    running = world.server()
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]
    assert (await running.library.embedder.model()).name == "old"  # type: ignore[union-attr]


async def test_a_switch_that_was_broken_off_goes_on_where_it_was(world: World) -> None:
    new = world.services["new"]
    for stop in (4, 8):  # two pages of four, each run broken off after one
        new.fail_after = stop
        with pytest.raises(EmbedderUnavailable):
            await world.switch_to("new")
    new.fail_after = None

    done = await world.switch_to("new")

    assert done.made == len(TEXTS) - 8
    assert done.agreement is not None
    # No text was embedded twice: the rest are the questions of the sample.
    assert new.texts == len(TEXTS) + done.agreement.sample


async def test_a_second_switch_to_elsewhere_waits_for_the_first(world: World) -> None:
    world.services["third"] = ByWord(name="third", salt=3)
    world.services["new"].fail_after = 4
    with pytest.raises(EmbedderUnavailable):
        await world.switch_to("new")

    with pytest.raises(Conflict, match="being filled"):
        await world.switch_to("third")


async def test_a_model_that_finds_nothing_is_not_switched_to(world: World) -> None:
    class Blind(ByWord):
        def _vector(self, text: str) -> NDArray[np.float64]:
            if text.startswith("a fixed text"):
                return super()._vector(text)
            return np.random.default_rng([len(text), self.texts]).standard_normal(self.size) / 8

    world.services["new"] = Blind(name="new")
    await world.server().keep(*(f"{text} again, {word}" for text in TEXTS for word in WORDS))

    with pytest.raises(FolkloreError, match="by their own first words"):
        await world.switch_to("new")
    assert (await world.models.all())[0].name == "old"

    await world.switch_to("new", force=True)
    assert (await world.models.all())[0].name == "new"


async def test_going_back_gives_their_vectors_to_what_was_stored_since(world: World) -> None:
    await world.switch_to("new")
    since = world.server("new")
    await since.keep("a lighthouse was built since")
    assert (await by_dense(since, "a lighthouse was built since"))[0] == "a lighthouse was built since"

    await since.library.find_namespaces([])
    done = await world.switch(since.library).back(world.build)

    assert (done.made, done.new.name) == (1, "old")
    running = world.server("new")
    assert (await by_dense(running, "a lighthouse was built since"))[0] == "a lighthouse was built since"
    assert (await running.library.embedder.model()).name == "old"  # type: ignore[union-attr]


async def test_there_is_no_way_back_once_the_old_vectors_are_dropped(world: World) -> None:
    await world.switch_to("new")
    library = world.server().library
    [active, previous] = await world.models.all()
    later = NOON + timedelta(minutes=1)
    work = Switch(library, world.models, Debts(world.database), now=lambda: later, tell=lambda _done, _words: None)

    with pytest.raises(Conflict):
        await work.drop(active)
    assert await work.drop(previous) == len(TEXTS)

    with pytest.raises(NotFound, match="no previous model"):
        await work.back(world.build)
    assert [model.name for model in await world.models.all()] == ["new"]


async def test_another_model_behind_the_same_name_is_noticed_and_never_mixed(
    world: World, connection: asyncpg.Connection
) -> None:
    world.services["old"].salt = 9  # somebody put another model there
    server = world.server()

    answer = await server.recall("captain and storm", namespaces=("notes",))
    await server.keep("stored by the changed model")

    assert [item.branch for item in answer.degraded] == ["dense"]
    assert "fingerprints" in answer.degraded[0].reason
    assert answer.memories  # by word
    assert await connection.fetchval("select count(*) from embeddings") == len(TEXTS)

    done = await world.switch_to("old")  # the same name, a revision of its own
    assert (done.new.revision, done.made) == ("2", len(TEXTS) + 1)
    assert (await by_dense(world.server(), TEXTS[5]))[0] == TEXTS[5]


async def test_settings_that_name_a_model_without_vectors_are_told_with_every_answer(
    world: World, connection: asyncpg.Connection
) -> None:
    server = world.server("new")

    answer = await server.recall(TEXTS[2], ranking=DENSE_ONLY)
    await server.keep("stored meanwhile")

    assert contents(answer)[0] == TEXTS[2]  # by the model of the vectors
    [told] = answer.degraded
    assert told.branch == "dense"
    assert "fake/new" in told.reason
    assert "fake/old" in told.reason
    assert "folklore embeddings switch" in told.reason
    assert await connection.fetchval("select count(distinct model_id) from embeddings") == 1


async def test_settings_that_lag_behind_a_switch_are_followed_in_silence(world: World) -> None:
    await world.switch_to("new")

    assert (await by_dense(world.server("old"), TEXTS[1]))[0] == TEXTS[1]


async def test_a_model_that_cannot_be_had_here_degrades_and_says_which(world: World) -> None:
    del world.services["old"]
    world.services["old"] = ByWord(down=True)

    answer = await world.server("new").recall("captain")

    assert {item.branch for item in answer.degraded} == {"dense"}
    assert contents(answer)


async def test_a_recall_costs_no_statement_more_for_noticing(world: World, queries: list[str]) -> None:
    server = world.server()
    await server.recall("captain")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    queries.clear()

    await server.recall("anchor and gull")
    await asyncio.sleep(0)

    assert len(queries) <= 5, queries
    assert not any("models_" in query or query.strip().startswith("select id from models") for query in queries)


async def test_status_tells_what_each_model_covers(world: World) -> None:
    world.services["new"].fail_after = 5
    with pytest.raises(EmbedderUnavailable):
        await world.switch_to("new")

    models, held = await holdings(world.server().library, world.models, Debts(world.database))

    assert [(model.name, model.role) for model in models] == [("old", "active"), ("new", "next")]
    assert [(item.model.name, item.coverage.embedded, item.coverage.owed, item.path) for item in held] == [
        ("old", len(TEXTS), 0, "exact"),
        ("new", 4, len(TEXTS) - 4, "exact"),
    ]


async def test_an_index_over_one_generation_is_named_as_the_path(world: World, connection: asyncpg.Connection) -> None:
    row = await connection.fetchrow("select namespace_id, model_id from embeddings limit 1")
    assert row is not None
    await connection.execute(
        "create index on embeddings using hnsw ((vector::halfvec(64)) halfvec_cosine_ops)"
        f" where namespace_id = '{row['namespace_id']}' and model_id = '{row['model_id']}'"
    )

    _, held = await holdings(world.server().library, world.models, Debts(world.database))

    assert [item.path for item in held] == ["hnsw"]


@pytest.mark.strain
async def test_no_call_fails_and_no_answer_mixes_two_spaces_while_the_model_changes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four recall and two store while the switch runs, is broken off twice and goes on.

    A question is the text of a memory, so that its cosine with it is 1 in its own space and near 0 in the other: a
    question that was compared with vectors of the other model would not find its memory with a cosine of 1.
    """
    monkeypatch.setattr(switch, "_SWEEP", 1.0)
    monkeypatch.setattr(generations, "NOTICED_WITHIN", 0.05)
    world = World(database)
    # All of one length, or the correction for length would have its say.
    known = [f"{text} on day {day}" for day in range(15) for text in TEXTS]
    await world.server().keep(*known)
    over = asyncio.Event()
    used: set[str] = set()
    answers = stored = 0

    async def recaller(number: int) -> None:
        nonlocal answers
        server = world.server("old" if number % 2 else "new")
        place = number
        while not over.is_set():
            place += 7
            text = known[place % len(known)]
            answer = await server.recall(text, ranking=DENSE_ONLY, explain=True, limit=10, namespaces=("notes",))
            assert [item for item in answer.degraded if "settings name" not in item.reason] == []
            cosines: dict[str, float] = {
                result.memory.content: result.explain["branches"]["dense"]["raw"]  # type: ignore[index]
                for result in answer.memories
            }
            assert cosines.get(text, 0.0) > 0.99, (text, cosines)
            used.add((await server.library.embedder.model()).name)  # type: ignore[union-attr]
            answers += 1

    async def storer(number: int) -> None:
        nonlocal stored
        server = world.server()
        while not over.is_set():
            [item] = (await server.store(f"paper and ink number {stored} on day {number}")).stored
            assert item.status == "stored"
            stored += 1
            await asyncio.sleep(0.005)

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(recaller(number))
        for number in range(2):
            group.create_task(storer(number))
        try:
            for _ in range(2):
                running = asyncio.create_task(world.switch_to("new", batch=32))
                await until(lambda: world.services["new"].texts > 40)
                world.services["new"].texts = 0
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            done = await world.switch_to("new", batch=32)
            await asyncio.sleep(0.3)
        finally:
            over.set()

    assert used == {"old", "new"}
    assert answers > 50
    assert stored > 20
    assert done.new.name == "new"
    models, held = await holdings(world.server().library, world.models, Debts(world.database))
    assert [(item.model.name, item.coverage.owed) for item in held if item.model.role == "active"] == [("new", 0)]
    assert len(models) == 2


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)
