"""Switching the embedding model while servers run: no answer mixes the vectors of two models."""

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

from folklore.callers import Caller
from folklore.contract.models import SwitchResult
from folklore.db.database import Database
from folklore.db.stores.models import Models
from folklore.embedding.protocol import Embedder, Model, ModelChoice
from folklore.errors import (
    ConfigInvalid,
    Conflict,
    EmbedderUnavailable,
    FolkloreError,
    NotFound,
)
from folklore.memory.context import MemoryContext, RequestContext, active_model
from folklore.memory.context.active_model import ActiveModel, ModelSource
from folklore.memory.models import switch
from folklore.memory.models.backfill import Pace
from folklore.memory.models.switch import ModelSwitch, model_coverage, target_of
from folklore.ranking.weights import Ranking
from tests import embedders
from tests.person import NOON, Person, contents
from tests.waiting import STUCK, statements_of

DENSE_ONLY = Ranking(keyword=0.0, neighbours=0.0, mmr_lambda=1.0)
WORDS = [
    "harbour",
    "quay",
    "lantern",
    "anchor",
    "gull",
    "rope",
    "captain",
    "storm",
    "tide",
    "whale",
    "mast",
    "deck",
]
TEXTS = [
    f"{one} and {other} number {place}"
    for place, (one, other) in enumerate(pairwise(WORDS))
]


@dataclass
class ByWord(embedders.ByLetter):
    """Each word has a random direction that depends on `salt`: models of two salts agree in dimensions only."""

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
        if self.down or (
            self.fail_after is not None and self.texts + len(texts) > self.fail_after
        ):
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
            total += np.random.default_rng([self.salt, *word.encode()]).standard_normal(
                self.size
            )
        length = float(np.linalg.norm(total))
        return total / length if length else total


class World:
    """Servers over one database, and embedding services by name."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.services: dict[str, ByWord] = {
            "old": ByWord(),
            "new": ByWord(name="new", salt=2),
        }
        self.models = Models(database)

    def build(self, choice: ModelChoice) -> Embedder:
        service = self.services[choice.name]
        return RevisedAs(service, choice.revision) if choice.revision else service

    def server(self, settings: str = "old") -> Person:
        """A person at a server whose settings name this model."""
        choice = ModelChoice("fake", settings)
        source = ModelSource(self.models, choice, self.build)
        return Person(
            MemoryContext.of(self.database, ActiveModel(self.build(choice), source))
        )

    def switch(self, context: MemoryContext, **options: Any) -> ModelSwitch:
        request = RequestContext(context, Caller("tester"), NOON, clock=lambda: NOON)
        return ModelSwitch(request, Pace(**{"batch": 4, "patience": 0.0} | options))

    async def interrupted(self, after: int) -> None:
        """Switch to a model whose service fails after so many texts."""
        self.services["new"].fail_after = after
        with pytest.raises(EmbedderUnavailable):
            await self.switch_to("new")

    async def switch_to(
        self, name: str, *, force: bool = False, **options: Any
    ) -> SwitchResult:
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
    monkeypatch.setattr(switch, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(active_model, "REFRESH_SECONDS", 0.0)


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


async def test_running_servers_use_the_new_model_after_a_switch(world: World) -> None:
    running = world.server()
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]
    asked_before = world.services["new"].texts

    done = await world.switch_to("new")
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]

    assert done.made == len(TEXTS)
    assert done.validation is not None
    assert (done.validation.old, done.validation.new) == (
        done.validation.sample,
        done.validation.sample,
    )
    assert (await running.library.embedder.model()).name == "new"  # type: ignore[union-attr]
    assert world.services["new"].texts > asked_before + len(TEXTS)
    assert [model.role for model in await world.models.read()] == ["active", "previous"]


async def test_recall_uses_the_old_model_until_the_new_one_is_filled(
    world: World,
) -> None:
    await world.interrupted(after=6)

    running = world.server()
    assert (await by_dense(running, TEXTS[3]))[0] == TEXTS[3]
    assert (await running.library.embedder.model()).name == "old"  # type: ignore[union-attr]


async def test_an_interrupted_switch_continues_where_it_stopped(world: World) -> None:
    new = world.services["new"]
    for stop in (4, 8):  # each run fails after one batch of four
        await world.interrupted(after=stop)
    new.fail_after = None

    done = await world.switch_to("new")

    assert done.made == len(TEXTS) - 8
    assert done.validation is not None
    # No text was embedded twice: the rest are the questions of the sample.
    assert new.texts == len(TEXTS) + done.validation.sample


async def test_a_switch_to_a_third_model_is_refused_during_a_switch(
    world: World,
) -> None:
    world.services["third"] = ByWord(name="third", salt=3)
    await world.interrupted(after=4)

    with pytest.raises(Conflict, match="being filled"):
        await world.switch_to("third")


async def test_a_model_that_fails_the_validation_is_not_activated_without_force(
    world: World,
) -> None:
    class Blind(ByWord):
        def _vector(self, text: str) -> NDArray[np.float64]:
            if text.startswith("a fixed text"):
                return super()._vector(text)
            return (
                np.random.default_rng([len(text), self.texts]).standard_normal(
                    self.size
                )
                / 8
            )

    world.services["new"] = Blind(name="new")
    await world.server().keep(
        *(f"{text} again, {word}" for text in TEXTS for word in WORDS)
    )

    with pytest.raises(FolkloreError, match="by their own first words"):
        await world.switch_to("new")
    assert (await world.models.read())[0].name == "old"

    await world.switch_to("new", force=True)
    assert (await world.models.read())[0].name == "new"


async def test_a_rollback_embeds_memories_stored_since_the_switch(world: World) -> None:
    await world.switch_to("new")
    since = world.server("new")
    await since.keep("a lighthouse was built since")
    assert (await by_dense(since, "a lighthouse was built since"))[
        0
    ] == "a lighthouse was built since"

    await since.library.find_namespaces([])
    done = await world.switch(since.library).back(world.build)

    assert (done.made, done.new) == (1, "fake/old")
    running = world.server("new")
    assert (await by_dense(running, "a lighthouse was built since"))[
        0
    ] == "a lighthouse was built since"
    assert (await running.library.embedder.model()).name == "old"  # type: ignore[union-attr]


async def test_a_rollback_after_dropping_the_previous_model_is_refused(
    world: World,
) -> None:
    await world.switch_to("new")
    library = world.server().library
    [active, previous] = await world.models.read()
    later = NOON + timedelta(minutes=1)
    work = ModelSwitch(
        RequestContext(library, Caller("tester"), later, clock=lambda: later)
    )

    with pytest.raises(Conflict):
        await work.drop(active)
    assert await work.drop(previous) == len(TEXTS)

    with pytest.raises(NotFound, match="no previous model"):
        await work.back(world.build)
    assert [model.name for model in await world.models.read()] == ["new"]


async def test_another_model_behind_the_same_name_is_detected_by_its_fingerprint(
    world: World, connection: asyncpg.Connection
) -> None:
    world.services["old"].salt = 9  # another model is served under this name
    server = world.server()

    answer = await server.recall("captain and storm", namespaces=("notes",))
    await server.keep("stored by the changed model")

    assert [item.branch for item in answer.degraded] == ["dense"]
    assert "fingerprints" in answer.degraded[0].reason
    assert answer.memories  # by keyword
    assert await connection.fetchval("select count(*) from embeddings") == len(TEXTS)

    done = await world.switch_to("old")  # the same name, a revision of its own
    assert (done.new, done.made) == ("fake/old (2)", len(TEXTS) + 1)
    assert (await by_dense(world.server(), TEXTS[5]))[0] == TEXTS[5]


async def test_every_answer_reports_settings_that_name_an_unused_model(
    world: World, connection: asyncpg.Connection
) -> None:
    server = world.server("new")

    answer = await server.recall(TEXTS[2], ranking=DENSE_ONLY)
    await server.keep("stored meanwhile")

    assert contents(answer)[0] == TEXTS[2]  # by the active model
    [degraded] = answer.degraded
    assert degraded.branch == "dense"
    assert "fake/new" in degraded.reason
    assert "fake/old" in degraded.reason
    assert "folklore embeddings switch" in degraded.reason
    assert (
        await connection.fetchval("select count(distinct model_id) from embeddings")
        == 1
    )


async def test_an_unavailable_active_model_degrades_recall_to_keywords(
    world: World,
) -> None:
    world.services["old"].down = True

    answer = await world.server().recall("captain")

    assert {item.branch for item in answer.degraded} == {"dense"}
    assert contents(answer)


async def test_an_active_model_that_cannot_be_built_degrades_recall_with_the_reason(
    world: World, connection: asyncpg.Connection
) -> None:
    def refuse(_choice: ModelChoice) -> Embedder:
        raise ConfigInvalid("embedding.url", "is missing.")

    source = ModelSource(world.models, ModelChoice("fake", "new"), refuse)
    server = Person(
        MemoryContext.of(world.database, ActiveModel(world.services["new"], source))
    )

    answer = await server.recall("captain")
    await server.keep("stored meanwhile")

    assert (
        "fake/old, which cannot be used: embedding.url: is missing."
        in answer.degraded[0].reason
    )
    assert contents(answer)
    assert await connection.fetchval("select count(*) from embeddings") == len(TEXTS)


async def test_a_recall_reads_the_active_model_without_a_statement_of_its_own(
    world: World, queries: list[str]
) -> None:
    server = world.server()
    await server.recall("captain")

    statements = await statements_of(server.recall("anchor and gull"), queries)

    assert len(statements) <= 5, statements
    assert not any(
        "models_" in item or item.strip().startswith("select id from models")
        for item in statements
    )


async def test_coverage_is_counted_for_each_model(world: World) -> None:
    await world.interrupted(after=5)

    models, held = await model_coverage(world.server().library)

    counts = [("active", len(TEXTS), 0), ("next", 4, len(TEXTS) - 4)]
    assert [(model.role, model.embedded, model.pending) for model in models] == counts
    assert [(item.role, item.embedded, item.pending, item.path) for item in held] == [
        (*count, "exact") for count in counts
    ]


@pytest.mark.strain
async def test_no_call_fails_and_no_answer_mixes_two_models_during_a_switch(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four clients recall and two store during a switch that is interrupted twice.

    Each query is the text of a memory: the cosine of both is 1 by one model, and near 0 if the models are mixed.
    """
    monkeypatch.setattr(switch, "_SWEEP_SECONDS", 1.0)
    monkeypatch.setattr(active_model, "REFRESH_SECONDS", 0.05)
    world = World(database)
    # All of one length, so that the correction for length is 0.
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
            answer = await server.recall(
                text, ranking=DENSE_ONLY, explain=True, limit=10, namespaces=("notes",)
            )
            assert [
                item for item in answer.degraded if "settings name" not in item.reason
            ] == []
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
            [item] = (
                await server.store(f"paper and ink number {stored} on day {number}")
            ).stored
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
            await until(lambda: used == {"old", "new"} and answers > 50 and stored > 20)
        finally:
            over.set()

    assert done.new == "fake/new"
    models, held = await model_coverage(world.server().library)
    assert [item.pending for item in held if item.role == "active"] == [0]
    assert len(models) == 2


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(STUCK):
        while not true():
            await asyncio.sleep(0.01)
