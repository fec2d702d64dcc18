"""Effect of reflections and quality on retrieval: the same questions before and after the jobs, on the same store.

    python -m benchmarks.jobs SET.jsonl…

Each set is measured as it is, and with each piece of evidence stored five times in other words. After consolidation a
reflection in an answer counts as nothing (it has no source), or as all of its members (an upper bound). For quality,
half of the questions are asked first, which counts as use; then time passes, memories are scored, and the other half is
asked.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from folklore.app import App, Running
from folklore.bench.assistant import Assistant, assistant
from folklore.bench.metrics import mean
from folklore.bench.retrieval import store_set
from folklore.bench.scratch import scratch
from folklore.bench.sets import Question, RetrievalSet, read_set
from folklore.config import load_settings
from folklore.db.database import Database, PoolLimits
from folklore.jobs.definitions import BY_NAME
from folklore.jobs.job import JobOptions, JobRun
from folklore.jobs.scheduler import Runner
from folklore.memory.context import MemoryContext

_MARK = "\u241f"
_COPIES = 4
_DROPPED = 0.15  # of the words of a copy
_MOST_ASKED = 400
_AGES = (0, 200, 320, 400)


@dataclass(frozen=True, slots=True)
class Answered:
    """The results of one question, by id and source."""

    results: list[tuple[str, str]]

    def found(self, evidence: frozenset[str], members: Mapping[str, frozenset[str]]) -> float:
        """Return the share of the evidence in the results, as itself, a copy, or a member of a reflection."""
        sources: set[str] = set()
        for id_, source in self.results:
            sources |= members.get(id_, frozenset({source.partition(_MARK)[0]}))
        return len(evidence & sources) / len(evidence)


@dataclass(slots=True)
class Figures:
    """The figures of one set."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)


def copied(given: RetrievalSet) -> RetrievalSet:
    """Return the set with four more copies of each evidence, with words left out and two swapped."""
    rng = random.Random(11)
    evidence = {source for question in given.questions for source in question.evidence}
    memories: dict[str, list[dict[str, Any]]] = {}
    for name, held in given.memories.items():
        more = [
            {key: value for key, value in memory.items() if key not in ("session", "idempotency_key")}
            | {"content": _reworded(memory["content"], rng), "source": f"{memory['source']}{_MARK}{place}"}
            for memory in held
            if memory.get("source") in evidence
            for place in range(_COPIES)
        ]
        memories[name] = [*held, *more]
    return RetrievalSet(f"{given.name} (copied)", memories, given.questions)


def _reworded(text: str, rng: random.Random) -> str:
    words = [word for word in text.split() if rng.random() > _DROPPED] or text.split()
    if len(words) > 3:
        place = rng.randrange(len(words) - 1)
        words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)


async def ask(told: Assistant, questions: Sequence[Question]) -> list[Answered]:
    """Ask each question for ten."""
    answers = []
    for question in questions:
        arguments: dict[str, Any] = {"query": question.query, "format": "detailed"}
        if question.namespaces:
            arguments["namespaces"] = list(question.namespaces)
        answer = await told.call("memory_recall", arguments)
        answers.append(Answered([(one["id"], one.get("source") or "") for one in answer["memories"]]))
    return answers


def recall_of(
    answers: Sequence[Answered], questions: Sequence[Question], members: Mapping[str, frozenset[str]]
) -> float:
    """Return R@10."""
    return round(mean([a.found(q.evidence, members) for a, q in zip(answers, questions, strict=True)]), 4)


def runner(running: Running, database: Database, app: App, days: float = 0) -> Runner:
    """Return a runner whose clock is so many days ahead."""
    context = MemoryContext.of(database, running.library.embedder)
    run = JobRun(database, context, JobOptions(pause=0), lambda: app.now() + timedelta(days=days))
    return Runner(run, holder="bench")


async def members_of(dsn: str) -> dict[str, frozenset[str]]:
    """Return the sources of each reflection's members."""
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
        found.setdefault(str(row["from_id"]), set()).add(str(row["source"]).partition(_MARK)[0])
    return {id_: frozenset(sources) for id_, sources in found.items()}


async def measure(given: RetrievalSet) -> Figures:
    """Store, ask, consolidate, ask again."""
    figures = Figures(given.name)
    questions = [question for question in given.some(_MOST_ASKED) if question.evidence]
    async with scratch(load_settings()) as store, assistant(store.app) as told:
        await store_set(told, given, lambda _done, _words: None)
        running = await store.app.ready()
        dsn, _ = await store.app.dsn()
        database = Database(dsn, PoolLimits(minimum=0, maximum=4))
        await database.open()
        try:
            before = await ask(told, questions)
            figures.values["R@10"] = recall_of(before, questions, {})
            began = time.perf_counter()
            ran = await runner(running, database, store.app).run(BY_NAME["consolidation"])
            figures.values["consolidation"] = dict(ran.done) | {"seconds": round(time.perf_counter() - began, 1)}
            after = await ask(told, questions)
            members = await members_of(dsn)
            shown = [sum(id_ in members for id_, _ in answer.results) for answer in after]
            figures.values |= {
                "R@10 with reflections": recall_of(after, questions, {id_: frozenset() for id_ in members}),
                "R@10 if each stood for its members": recall_of(after, questions, members),
                "reflections in an answer": round(mean(shown), 2),
            }
        finally:
            await database.close()
    return figures


async def fade(given: RetrievalSet) -> Figures:
    """Ask half, let time pass, score, ask the other half."""
    figures = Figures(f"{given.name} (quality)")
    questions = [question for question in given.some(_MOST_ASKED) if question.evidence]
    first, second = questions[::2], questions[1::2]
    async with scratch(load_settings()) as store, assistant(store.app) as told:
        await store_set(told, given, lambda _done, _words: None)
        running = await store.app.ready()
        await ask(told, first)
        await store.app.usage.close()  # the second half is not logged, so it does not count as use
        database = Database((await store.app.dsn())[0], PoolLimits(minimum=0, maximum=4))
        await database.open()
        try:
            for days in _AGES:
                ran = await runner(running, database, store.app, days).run(BY_NAME["quality"])
                answers = await ask(told, second)
                figures.values[f"R@10 after {days} days"] = recall_of(answers, second, {})
            figures.values["scored"] = dict(ran.done)
        finally:
            await database.close()
    return figures


async def main() -> None:
    for path in sys.argv[1:]:
        given = read_set(Path(path))
        for work in (measure(given), measure(copied(given)), fade(given)):
            figures = await work
            print(json.dumps({"set": figures.name} | figures.values), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
