"""The life of memories against a model simple enough to be believed: whatever is done in whatever order, both agree."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import hypothesis
import hypothesis.stateful
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from folklore.db.database import Database, PoolLimits
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Filters, Relation
from tests.embedders import ByLetter
from tests.person import Person

TEXTS = st.sampled_from(["ant", "bee", "cow", "doe"])
TYPES = st.sampled_from(["causes", "part_of"])


@dataclass
class Modelled:
    """A memory as the model has it; `past` are the states that undo goes back to, the last one last.

    `restored` is the number of its changes when the forgetting of its successor restored it, and that successor.
    """

    text: str
    forgotten: bool = False
    superseded_by: UUID | None = None
    superseded: bool = False
    past: list[tuple[str, bool, UUID | None, bool]] = field(default_factory=list)
    changes: int = 0
    restored: tuple[int, UUID | None] | None = None

    @property
    def alive(self) -> bool:
        return not self.forgotten and not self.superseded

    def push(self) -> None:
        self.past.append(
            (self.text, self.forgotten, self.superseded_by, self.superseded)
        )
        self.changes += 1


class Life(RuleBasedStateMachine):
    """Rules do the same to both; a refusal by the one must be one by the other."""

    address = ""
    loop: asyncio.AbstractEventLoop
    ids = Bundle("ids")

    @initialize()
    def open(self) -> None:
        self.memories: dict[UUID, Modelled] = {}
        self.relations: dict[tuple[UUID, str, UUID], float] = {}
        self.database = Database(self.address, PoolLimits(minimum=0, maximum=2))
        self.run(self.database.open())
        self.person = Person(MemoryContext.of(self.database, ByLetter()), "model")

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        async def clear() -> None:
            connection = await asyncpg.connect(self.address)
            await connection.execute(
                "truncate grants, usage, idempotency_keys, namespaces, memories, embeddings, fresh_words,"
                " packed_namespaces, relations, revisions, injections"
            )
            await connection.close()
            await self.database.close()

        self.run(clear())

    def living(self, text: str) -> UUID | None:
        return next(
            (
                id_
                for id_, memory in self.memories.items()
                if memory.alive and memory.text == text
            ),
            None,
        )

    @rule(target=ids, text=TEXTS)
    def store(self, text: str) -> Any:
        [item] = self.run(self.person.store(text)).stored
        known = self.living(text)
        assert item.status == ("duplicate" if known else "stored")
        if known:
            assert item.id == known
            return multiple()
        self.memories[item.id] = Modelled(text)
        return item.id

    @rule(target=ids, old=ids, text=TEXTS)
    def supersede(self, old: UUID, text: str) -> Any:
        was = self.memories.get(old)
        known = self.living(text)
        possible = (
            was is not None and old != known and (was.alive or self._is_by(was, known))
        )
        try:
            [item] = self.run(self.person.store(Draft(text, supersedes=old))).stored
        except (NotFound, Conflict, InvalidInput):
            assert not possible
            return multiple()
        assert possible
        assert was is not None
        assert item.status == "superseded_old"
        if was.alive:
            was.push()
            was.superseded = True
            was.superseded_by = item.id
            self.relations[item.id, "supersedes", old] = 1.0
        if known:
            assert item.id == known
            return multiple()
        self.memories[item.id] = Modelled(text)
        return item.id

    def _is_by(self, was: Modelled, known: UUID | None) -> bool:
        return known is not None and not was.forgotten and was.superseded_by == known

    @rule(id_=ids, text=TEXTS)
    def update(self, id_: UUID, text: str) -> None:
        memory = self.memories.get(id_)
        possible = (
            memory is not None and memory.alive and self.living(text) in (None, id_)
        )
        try:
            self.run(self.person.update(id_, content=text))
        except (NotFound, Conflict):
            assert not possible
            return
        assert possible
        assert memory is not None
        if memory.text != text:
            memory.push()
            memory.text = text

    @rule(id_=ids)
    def forget(self, id_: UUID) -> None:
        memory = self.memories.get(id_)
        try:
            outcome = self.run(self.person.forget(id_))
        except NotFound:
            assert memory is None
            return
        assert memory is not None
        assert bool(outcome.memories) is not memory.forgotten
        if not memory.forgotten:
            restored = self.hidden_by(id_)
            memory.push()
            memory.forgotten = True
            assert {item.id for item in outcome.restored} == set(restored)
            self.restore(restored)

    def hidden_by(self, leaving: UUID) -> list[UUID]:
        """Return the memories that return when this one goes."""
        if not self.memories[leaving].alive:
            return []
        hidden: list[UUID] = []
        gone = [leaving]
        for by in gone:
            before = [
                id_
                for id_, memory in self.memories.items()
                if memory.superseded_by == by
            ]
            hidden += [id_ for id_ in before if not self.memories[id_].forgotten]
            gone += [id_ for id_ in before if self.memories[id_].forgotten]
        latest = {self.memories[id_].text: id_ for id_ in sorted(hidden)}
        return [
            id_ for text, id_ in latest.items() if self.living(text) in (None, leaving)
        ]

    def restore(self, hidden: list[UUID]) -> None:
        for id_ in hidden:
            memory = self.memories[id_]
            memory.push()
            by = memory.superseded_by
            memory.superseded_by = None
            memory.superseded = False
            memory.restored = (memory.changes, by)
            if by is not None:
                self.relations.pop((by, "supersedes", id_), None)

    @rule(id_=ids)
    def undo(self, id_: UUID) -> None:
        memory = self.memories.get(id_)
        possible = memory is not None and bool(memory.past)
        if memory is not None and memory.past:
            text, forgotten, _, superseded = memory.past[-1]
            possible = forgotten or superseded or self.living(text) in (None, id_)
        try:
            self.run(self.person.undo(id_))
        except (NotFound, Conflict):
            assert not possible
            return
        assert possible
        assert memory is not None
        was_forgotten = memory.forgotten
        self.take_back(id_)
        if was_forgotten and memory.alive:
            chain = {id_}
            while len(chain) < len(
                chain := chain
                | {i for i, m in self.memories.items() if m.superseded_by in chain}
            ):
                pass
            for other, item in self.memories.items():
                if (
                    item.restored is not None
                    and item.restored[0] == item.changes
                    and item.restored[1] in chain
                ):
                    self.take_back(other)

    def take_back(self, id_: UUID) -> None:
        memory = self.memories[id_]
        by = memory.superseded_by
        memory.text, memory.forgotten, memory.superseded_by, memory.superseded = (
            memory.past.pop()
        )
        memory.changes += 1
        if by is not None and memory.superseded_by != by:
            self.relations.pop((by, "supersedes", id_), None)
        successor = memory.superseded_by
        if successor not in (None, by) and not memory.forgotten:
            self.relations[successor, "supersedes", id_] = 1.0

    @rule(id_=consumes(ids))
    def erase(self, id_: UUID) -> None:
        try:
            self.run(self.person.forget(id_, erase=True))
        except NotFound:
            assert id_ not in self.memories
            return
        restored = self.hidden_by(id_)
        del self.memories[id_]
        for memory in self.memories.values():
            if memory.superseded_by == id_:
                memory.superseded_by = None
            # An undo does not restore that an erased memory superseded this one.
            memory.past = [
                (text, gone, None if by == id_ else by, old)
                for text, gone, by, old in memory.past
            ]
            if memory.restored is not None and memory.restored[1] == id_:
                memory.restored = None
        self.relations = {
            key: strength
            for key, strength in self.relations.items()
            if id_ not in (key[0], key[2])
        }
        self.restore(restored)

    @rule(
        from_=ids,
        to=ids,
        type_=TYPES,
        strength=st.sampled_from([0.25, 1.0]),
        remove=st.booleans(),
    )
    def relate(
        self, from_: UUID, to: UUID, type_: str, strength: float, remove: bool
    ) -> None:
        outcome = self.run(
            self.person.relate(Relation(from_, type_, to, strength), remove=remove)
        )
        ends = [self.memories.get(from_), self.memories.get(to)]
        key = (from_, type_, to)
        possible = from_ != to and all(
            end is not None and not end.forgotten for end in ends
        )
        if remove:
            assert bool(outcome.removed) is (possible and key in self.relations)
            if outcome.removed:
                del self.relations[key]
        elif possible:
            assert bool(outcome.updated) is (key in self.relations)
            self.relations[key] = strength
        else:
            assert outcome.failed

    @invariant()
    def both_agree(self) -> None:
        if not hasattr(self, "memories"):
            return

        async def look() -> tuple[dict[UUID, Any], dict[Any, float], set[UUID]]:
            connection = await asyncpg.connect(self.address)
            rows = await connection.fetch("select *, (select count(*) from revisions where memory_id = id) as changes from memories")  # fmt: skip  # noqa: E501
            ties = await connection.fetch("select * from relations")
            await connection.close()
            found = await self.person.recall("*", filters=Filters(), limit=100)
            return (
                {row["id"]: row for row in rows},
                {
                    (tie["from_id"], tie["type"], tie["to_id"]): tie["strength"]
                    for tie in ties
                },
                {result.memory.id for result in found.memories},
            )

        rows, ties, visible = self.run(look())
        assert rows.keys() == self.memories.keys()
        for id_, memory in self.memories.items():
            row = rows[id_]
            assert (row["content"], row["forgotten_at"] is not None) == (
                memory.text,
                memory.forgotten,
            )
            assert (row["superseded_by"], row["superseded_at"] is not None) == (
                memory.superseded_by,
                memory.superseded,
            )
            assert (row["changes"], row["revision"]) == (
                memory.changes,
                memory.changes + 1,
            )
        assert ties == self.relations
        assert visible == {id_ for id_, memory in self.memories.items() if memory.alive}


async def test_any_sequence_of_operations_agrees_with_the_model(address: str) -> None:
    def play() -> None:
        Life.address = address
        Life.loop = asyncio.new_event_loop()
        try:
            hypothesis.stateful.run_state_machine_as_test(
                Life,
                settings=hypothesis.settings(
                    max_examples=12, stateful_step_count=25, deadline=None
                ),
            )
        finally:
            Life.loop.close()

    await asyncio.to_thread(play)
