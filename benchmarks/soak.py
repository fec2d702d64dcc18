"""Soak: many processes change one database at random; afterwards its invariants must hold.

    python -m benchmarks.soak --processes 20 --seconds 60      (or: make soak)

Each process stores, supersedes, forgets, undoes, erases, relates and updates memories in two shared namespaces. A few
counters are raised under the optimistic lock, so that a lost update shows as a missing number. A call may end with
Conflict or NotFound, since another process was first. Any other error, a deadlock above all, is a failure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from uuid import UUID

import asyncpg

from folklore import memory
from folklore.callers import Caller
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import (
    Changes,
    ForgetRequest,
    GetRequest,
    ListRequest,
    RelateRequest,
    RelationChange,
    StoreRequest,
    UndoRequest,
    UpdateRequest,
)
from folklore.db.database import Database, PoolLimits
from folklore.db.migrate import migrate
from folklore.errors import ConcurrentChange, Conflict, InvalidInput, NotFound
from folklore.memory import Facts, MemoryContext, RequestContext, Service, UsageRecorder
from folklore.model import Draft, Link, Memory
from folklore.text.clean import digest
from tests.embedders import ByLetter
from tests.temporary_engine import temporary_engine

NAMESPACES = ("soak-one", "soak-two")
COUNTERS = 4
_WORDS = tuple(
    "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima".split()
)


@dataclass
class Tally:
    """Calls of a worker that succeeded, calls that lost against another worker, and its increments of the counters."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)


class Worker:
    """A caller that changes memories at random."""

    def __init__(self, library: MemoryContext, seed: int) -> None:
        self._service = _service(library, Caller(f"worker {seed}"))
        self._random = random.Random(seed)
        self.tally = Tally()

    async def step(self) -> None:
        """Make one call at random."""
        acts: dict[Callable[[], Awaitable[object]], int] = {
            self.store: 6, self.supersede: 4, self.revise: 4, self.increment: 3, self.forget: 3, self.undo: 3,
            self.relate: 3, self.erase: 1, self.forget_by_filter: 1, self.read: 3,
        }  # fmt: skip
        [act] = self._random.choices(list(acts), list(acts.values()))
        name = act.__name__
        try:
            await act()
        except ConcurrentChange:
            self.tally.refused["raced"] += 1
        except (Conflict, NotFound) as error:
            self.tally.refused[f"{name}: {type(error).__name__}"] += 1
        except InvalidInput as error:
            # The random text is that of the memory it supersedes or is related to.
            if error.field not in ("memories[0].related", "memories[0].supersedes"):
                raise
            self.tally.refused[f"{name}: {type(error).__name__}"] += 1
        else:
            self.tally.done[name] += 1

    async def store(self) -> None:
        """Store a few; texts have few words, so that many are stored already."""
        drafts = [
            Draft(self._text(), session="s" if self._random.random() < 0.3 else None)
            for _ in range(self._random.randint(1, 6))
        ]
        await self._service.call(
            StoreRequest(memories=tuple(drafts), namespace=self._namespace())
        )

    async def supersede(self) -> None:
        """Store a memory that supersedes another and is related to a third."""
        namespace = self._namespace()
        old, other = await self._some(namespace, 2)
        draft = Draft(
            self._text(),
            supersedes=old,
            related=(Link(other, "relates_to", self._random.random()),),
        )
        await self._service.call(StoreRequest(memories=(draft,), namespace=namespace))

    async def revise(self) -> None:
        """Change a text or a tag."""
        (id_,) = await self._some(self._namespace(), 1)
        changes = [{"content": self._text()}, {"tags": [self._random.choice(_WORDS)]}]
        await self._service.call(
            UpdateRequest(
                id=id_, changes=Changes.model_validate(self._random.choice(changes))
            )
        )

    async def increment(self) -> None:
        """Raise a counter by one, unless it changed since it was read."""
        source = f"counter-{self._random.randrange(COUNTERS)}"
        found = await self._counter(source)
        number = int(found.content.rpartition(" ")[2]) + 1
        changes = Changes.model_validate({"content": f"{source} has {number}"})
        await self._service.call(
            UpdateRequest(id=found.id, changes=changes, if_revision=found.revision)
        )
        self.tally.raised[source] += 1

    async def forget(self) -> None:
        """Forget two memories."""
        ids = await self._some(self._namespace(), 2)
        await self._service.call(ForgetRequest(ids=ids))

    async def erase(self) -> None:
        """Erase two memories."""
        ids = await self._some(self._namespace(), 2)
        await self._service.call(ForgetRequest(ids=ids, erase=True))

    async def forget_by_filter(self) -> None:
        """Forget the memories with a tag."""
        filters = FiltersRequest(
            tags=(self._random.choice(_WORDS),), exclude_tags=("counter",)
        )
        await self._service.call(
            ForgetRequest(filters=filters, namespaces=(self._namespace(),))
        )

    async def undo(self) -> None:
        """Undo the last change of a memory."""
        (id_,) = await self._some(self._namespace(), 1, any_state=True)
        await self._service.call(UndoRequest(id=id_))

    async def relate(self) -> None:
        """Relate two memories, and remove another relation."""
        a, b, c = await self._some(self._namespace(), 3)
        strength = self._random.random()
        kinds = ["causes", "part_of", "supersedes"]
        written = RelationChange(
            from_id=a, to_id=b, type=self._random.choice(kinds), strength=strength
        )
        removed = RelationChange(from_id=b, to_id=c, type="causes", remove=True)
        await self._service.call(RelateRequest(relations=(written, removed)))

    async def read(self) -> None:
        """Read the details of some memories."""
        await self._service.call(GetRequest(ids=await self._some(self._namespace(), 3)))

    async def _some(
        self, namespace: str, count: int, *, any_state: bool = False
    ) -> tuple[UUID, ...]:
        """Return some of the newest memories, without the counters."""
        filters = FiltersRequest(
            exclude_tags=("counter",), include_superseded=any_state
        )
        listed = await self._service.call(
            ListRequest(namespaces=(namespace,), filters=filters, limit=60)
        )
        ids = [item.memory.id for item in listed.memories]
        if len(ids) < count:
            raise NotFound("Too few memories are left.")
        return tuple(self._random.sample(ids, count))

    async def _counter(self, source: str) -> Memory:
        filters = FiltersRequest(source_prefix=source)
        listed = await self._service.call(
            ListRequest(namespaces=(NAMESPACES[0],), filters=filters, limit=1)
        )
        return listed.memories[0].memory

    def _namespace(self) -> str:
        return self._random.choice(NAMESPACES)

    def _text(self) -> str:
        return " ".join(self._random.choices(_WORDS, k=self._random.randint(2, 5)))


async def prepare(dsn: str) -> None:
    """Create the namespaces and the counters."""
    async with _open(dsn) as library:
        counters = [
            Draft(f"counter-{n} has 0", source=f"counter-{n}", tags=("counter",))
            for n in range(COUNTERS)
        ]
        service = _service(library, Caller("soak"))
        await service.call(
            StoreRequest(memories=tuple(counters), namespace=NAMESPACES[0])
        )
        await service.call(
            StoreRequest(memories=(Draft("alpha bravo"),), namespace=NAMESPACES[1])
        )


async def work(
    dsn: str, seed: int, *, steps: int | None = None, seconds: float | None = None
) -> Tally:
    """Run one worker for a number of steps or of seconds."""
    async with _open(dsn) as library:
        worker = Worker(library, seed)
        until = None if seconds is None else monotonic() + seconds
        count = 0
        while (steps is None or count < steps) and (
            until is None or monotonic() < until
        ):
            await worker.step()
            count += 1
        return worker.tally


async def violations(connection: asyncpg.Connection, raised: Counter[str]) -> list[str]:
    """Return a sentence for each invariant that does not hold."""
    found = []
    for what, query in _INVARIANTS.items():
        count = await connection.fetchval(query)
        if count:
            found.append(f"{count} x {what}")
    for row in await connection.fetch("select id, content, digest from memories"):
        if digest(row["content"]) != bytes(row["digest"]):
            found.append(f"the digest of {row['id']} is that of another text")
    for source in (f"counter-{n}" for n in range(COUNTERS)):
        content = await connection.fetchval(
            "select content from memories where source = $1", source
        )
        if content != f"{source} has {raised[source]}":
            found.append(
                f"{source} was raised {raised[source]} times, but its text is {content!r}"
            )
    return found


_INVARIANTS = {
    "a memory's revision is not one more than its changes": """
        select count(*) from memories m where m.revision <> 1 + (
            select count(*) from revisions r where r.namespace_id = m.namespace_id and r.memory_id = m.id)
    """,
    "a superseded memory without the relation supersedes of its successor": """
        select count(*) from memories m where m.superseded_by is not null and not exists (
            select from relations r where r.namespace_id = m.namespace_id and r.from_id = m.superseded_by
                and r.type = 'supersedes' and r.to_id = m.id)
    """,
    "a relation supersedes to a memory that is not superseded by it": """
        select count(*) from relations r join memories m on m.namespace_id = r.namespace_id and m.id = r.to_id
        where r.type = 'supersedes' and m.superseded_by is distinct from r.from_id
    """,
    "a superseded memory without superseded_at": """
        select count(*) from memories where superseded_by is not null and superseded_at is null
    """,
    "a memory that is not exactly once fresh or packed": """
        select count(*) from (
            select from (
                select namespace_id, uuid_send(id) as id, 1 as stored, 0 as indexed from memories
                union all
                select namespace_id, uuid_send(memory_id), 0, 1 from fresh_words
                union all
                select namespace_id, substring(ids from place * 16 + 1 for 16), 0, 1
                from packed_memories, generate_series(0, octet_length(ids) / 16 - 1) as place
                where substring(ids from place * 16 + 1 for 16) <> decode(repeat('00', 16), 'hex')
            ) found
            group by namespace_id, id
            having (sum(stored), sum(indexed)) <> (1, 1)
        ) strange
    """,
    "a fresh memory with other words than its text": """
        select count(*) from fresh_words f join memories m on m.namespace_id = f.namespace_id and m.id = f.memory_id
        where (f.words, f.length) <> (
            (select string_agg(int4send(word), '')
                from folklore_named_words(m.search, coalesce(m.occurred_at, m.created_at))),
            folklore_length(m.search))
    """,
    "a namespace with other numbers of packed memories than its list": """
        select count(*) from packed_namespaces n where (n.documents, n.next) <> (
            select count(*) filter (where substring(ids from place * 16 + 1 for 16) <> decode(repeat('00', 16), 'hex')),
                count(*)
            from packed_memories p, generate_series(0, octet_length(ids) / 16 - 1) as place
            where p.namespace_id = n.namespace_id)
    """,
    "a memory without its vector, or with more than one": """
        select count(*) from memories m where 1 <> (
            select count(*) from embeddings e
            where e.namespace_id = m.namespace_id and e.memory_id = m.id and e.passage = 0)
    """,
    "a vector with another length than its memory": """
        select count(*) from embeddings e join memories m on m.namespace_id = e.namespace_id and m.id = e.memory_id
        where folklore_length(m.search) <> e.length and e.passage = 0
    """,
    "two memories at one position of a session": """
        select count(*) from (
            select from memories where session is not null group by namespace_id, session, position having count(*) > 1
        ) twice
    """,
    "a cycle of superseded memories": """
        with recursive chain as (
            select namespace_id, id, superseded_by, 1 as depth from memories where superseded_by is not null
            union all
            select c.namespace_id, c.id, m.superseded_by, c.depth + 1 from chain c
            join memories m on m.namespace_id = c.namespace_id and m.id = c.superseded_by
            where m.superseded_by is not null and c.depth < 10000
        )
        select count(*) from chain where depth >= 10000
    """,
    "a deadlock, even if no call reported it": """
        select deadlocks from pg_stat_database where datname = current_database()
    """,
}


@asynccontextmanager
async def _open(dsn: str) -> AsyncIterator[MemoryContext]:
    database = Database(dsn, PoolLimits(minimum=0, maximum=2))
    await database.open()
    try:
        yield MemoryContext.of(database, ByLetter())
    finally:
        await database.close()


def _service(library: MemoryContext, caller: Caller) -> Service:
    async def opened(facts: Facts) -> RequestContext:
        return RequestContext(library, facts.caller, facts.now)

    return Service(
        memory.Memory(opened, UsageRecorder),
        lambda: Facts(caller, datetime.now(UTC)),
        lambda: caller,
        lambda: NAMESPACES[0],
    )


async def soak(dsn: str, processes: int, seconds: float) -> list[str]:
    """Run the workers, each as a process, and return the invariants that do not hold."""
    await prepare(dsn)
    command = [
        sys.executable,
        "-m",
        "benchmarks.soak",
        "--seconds",
        str(seconds),
        "--dsn",
        dsn,
        "--worker",
    ]
    workers = [
        await asyncio.create_subprocess_exec(
            *command, str(seed), stdout=asyncio.subprocess.PIPE
        )
        for seed in range(processes)
    ]
    total = Tally()
    problems = []
    for seed, worker in enumerate(workers):
        output, _ = await worker.communicate()
        if worker.returncode:
            problems.append(f"worker {seed} failed")
            continue
        for name, counts in json.loads(output).items():
            getattr(total, name).update(counts)
    connection = await asyncpg.connect(dsn)
    problems += await violations(connection, total.raised)
    memories, revisions, relations = [
        await connection.fetchval(f"select count(*) from {table}")
        for table in ("memories", "revisions", "relations")
    ]
    await connection.close()
    print(
        f"{processes} processes, {seconds:g} s: {sum(total.done.values()):,} calls done",
        dict(total.done),
    )
    print(
        f"refused, since another process was first: {sum(total.refused.values()):,}",
        dict(total.refused),
    )
    print(f"counters raised {sum(total.raised.values()):,} times; left: {memories:,} memories, {revisions:,} revisions,"
          f" {relations:,} relations")  # fmt: skip
    return problems


def main() -> int:
    """Return 0 if every invariant holds."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dsn", help="an empty database; default: a new engine")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker is not None:
        tally = asyncio.run(work(asked.dsn, asked.worker, seconds=asked.seconds))
        print(
            json.dumps(
                {"done": tally.done, "refused": tally.refused, "raised": tally.raised}
            )
        )
        return 0

    async def whole(dsn: str) -> list[str]:
        await migrate(dsn)
        return await soak(dsn, asked.processes, asked.seconds)

    if asked.dsn:
        problems = asyncio.run(whole(asked.dsn))
    else:
        with temporary_engine(shared_buffers="128MB") as dsn:
            problems = asyncio.run(whole(dsn))
    print("\n".join(problems) or "every invariant holds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
