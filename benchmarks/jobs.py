"""Jobs: what do reflections (consolidation) and quality do to retrieval? The same questions before and after, on the
same store.

    python -m benchmarks.jobs SET.jsonl…

Each set is asked plain, and again with each evidence stored four more times in other words. After consolidation a
reflection, which has no source, counts for nothing; then for all its members, the most it could be worth. For quality,
half of the questions are asked first, which records use of their results; then time passes, memories are scored, and
the other half is asked.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import click

from benchmarks.command_line import SETS, main, print_json
from benchmarks.metrics import mean
from benchmarks.sets import Question, RetrievalSet, evenly, read_set
from benchmarks.store import Store, open_store
from folklore.db.database import Database, PoolLimits
from folklore.jobs.definitions import BY_NAME
from folklore.jobs.job import JobOptions, JobRun
from folklore.jobs.scheduler import Runner
from folklore.memory.context import MemoryContext
from folklore.runtime import database_address

_MARK = "\u241f"  # separates a source from the number of its copy
_COPIES = 4
_DROPPED = 0.15  # of the words of a copy
_QUESTIONS = 400
_AGES = (0, 200, 320, 400)  # days

Members = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of one question by id and source."""

    results: list[tuple[str, str]]

    def found(self, evidence: frozenset[str], members: Members) -> float:
        """Return the share of the evidence in it, as itself, as a copy, or as a member of a reflection."""
        sources: set[str] = set()
        for id_, source in self.results:
            sources |= members.get(id_, frozenset({source.partition(_MARK)[0]}))
        return len(evidence & sources) / len(evidence)


def with_copies(given: RetrievalSet) -> RetrievalSet:
    """Return the set with each evidence four more times, some words left out and two swapped each time."""
    rng = random.Random(11)
    evidence = {source for question in given.questions for source in question.evidence}
    memories: dict[str, list[dict[str, Any]]] = {}
    for name, held in given.memories.items():
        more = [
            {
                key: value
                for key, value in memory.items()
                if key not in ("session", "idempotency_key")
            }
            | {
                "content": _reworded(memory["content"], rng),
                "source": f"{memory['source']}{_MARK}{place}",
            }
            for memory in held
            if memory.get("source") in evidence
            for place in range(_COPIES)
        ]
        memories[name] = [*held, *more]
    return replace(given, name=f"{given.name} (copied)", memories=memories)


def _reworded(text: str, rng: random.Random) -> str:
    words = [word for word in text.split() if rng.random() > _DROPPED] or text.split()
    if len(words) > 3:
        place = rng.randrange(len(words) - 1)
        words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


async def ask(store: Store, questions: Sequence[Question]) -> list[Answer]:
    """Ask each question for ten results."""
    answers = []
    for question in questions:
        arguments: dict[str, Any] = {"query": question.query, "format": "detailed"}
        arguments["namespaces"] = list(question.namespaces) or ["*"]
        answer = await store.call("memory_recall", arguments)
        answers.append(
            Answer([(one["id"], one.get("source") or "") for one in answer["memories"]])
        )
    return answers


def recall_of(
    answers: Sequence[Answer], questions: Sequence[Question], members: Members
) -> float:
    """Return R@10."""
    return mean(
        [
            answer.found(one.evidence, members)
            for answer, one in zip(answers, questions, strict=True)
        ]
    )


async def members_of(dsn: str) -> dict[str, frozenset[str]]:
    """Return the sources of the members of each reflection."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(
            "select r.from_id, m.source from relations r"
            " join memories m on m.id = r.to_id where r.type = 'derived_from'"
        )
    finally:
        await connection.close()
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(str(row["from_id"]), set()).add(
            str(row["source"]).partition(_MARK)[0]
        )
    return {id_: frozenset(sources) for id_, sources in found.items()}


async def run_job(store: Store, name: str, days: float = 0) -> dict[str, int]:
    """Run a job as if so many days had passed; return its counts."""
    app = store.app
    database = Database(
        (await database_address(app.settings))[0], PoolLimits(minimum=0, maximum=4)
    )
    await database.open()
    try:
        context = MemoryContext.of(database, (await app.ready()).memory.embedder)
        run = JobRun(
            database,
            context,
            JobOptions(pause=0),
            lambda: app.now() + timedelta(days=days),
        )
        report = await Runner(run, holder="bench").run(BY_NAME[name])
        return dict(report.done)
    finally:
        await database.close()


async def consolidate(given: RetrievalSet) -> dict[str, Any]:
    """Store, ask, consolidate, ask again."""
    questions = evenly(given.sample(None), _QUESTIONS)
    async with open_store() as store:
        await store.fill(given)
        before = await ask(store, questions)
        began = time.perf_counter()
        done = await run_job(store, "consolidation")
        seconds = time.perf_counter() - began
        after = await ask(store, questions)
        members = await members_of((await database_address(store.app.settings))[0])
        return {
            "set": given.name,
            "R@10": recall_of(before, questions, {}),
            "consolidation": done | {"seconds": seconds},
            "R@10 with reflections": recall_of(
                after, questions, {id_: frozenset() for id_ in members}
            ),
            "R@10 if a reflection counts for its members": recall_of(
                after, questions, members
            ),
            "reflections in an answer": mean(
                [sum(id_ in members for id_, _ in answer.results) for answer in after]
            ),
        }


async def fade(given: RetrievalSet) -> dict[str, Any]:
    """Ask half of the questions, let time pass, score the memories, ask the other half."""
    questions = evenly(given.sample(None), _QUESTIONS)
    first = questions[::2]
    second = questions[1::2]
    figures: dict[str, Any] = {"set": f"{given.name} (quality)"}
    async with open_store() as store:
        await store.fill(given)
        await ask(store, first)
        # later answers are not recorded, so they do not count as use
        await store.app.usage.close()
        for days in _AGES:
            figures["scored"] = await run_job(store, "quality", days)
            figures[f"R@10 after {days} days"] = recall_of(
                await ask(store, second), second, {}
            )
    return figures


@click.command()
@SETS
def jobs(sets: tuple[Path, ...]) -> None:
    """Ask the questions of each SET before and after consolidation, and as quality fades."""
    for path in sets:
        given = read_set(path)
        for work in (consolidate(given), consolidate(with_copies(given)), fade(given)):
            print_json(asyncio.run(work))


if __name__ == "__main__":
    main(jobs)
