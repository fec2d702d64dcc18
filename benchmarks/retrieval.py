"""Retrieval: is the evidence of a question among the first results, and how long does the client wait?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.command_line import (
    SETS,
    Benchmark,
    Options,
    main,
    print_json,
    print_table,
    track,
)
from benchmarks.metrics import (
    all_at,
    hit_at,
    mean,
    ndcg_at,
    percentile,
    recall_at,
    reciprocal_rank,
)
from benchmarks.sets import Question, RetrievalSet, read_set
from benchmarks.store import Answer, Counts, open_store


@dataclass(frozen=True, slots=True)
class Measured:
    """Questions of a set with their answers of `limit` results."""

    name: str
    limit: int
    counts: Counts
    asked: list[tuple[Question, Answer]]

    @property
    def degraded(self) -> int:
        """The number of degraded answers."""
        return sum(answer.degraded for _, answer in self.asked)

    def scores(self) -> dict[str, dict[str, float]]:
        """Return every metric as the mean over all questions, then over each category if there are several."""
        categories = sorted({question.category for question, _ in self.asked})
        found = {"all": self._scores(self.asked)}
        for name in categories if len(categories) > 1 else ():
            found[name] = self._scores(
                [one for one in self.asked if one[0].category == name]
            )
        return found

    def _scores(self, asked: Sequence[tuple[Question, Answer]]) -> dict[str, float]:
        pairs = [(answer.sources, question.evidence) for question, answer in asked]
        scores = {
            "questions": len(asked),
            "hit@5": mean([hit_at(5, *pair) for pair in pairs]),
            "R@5": mean([recall_at(5, *pair) for pair in pairs]),
            "R@10": mean([recall_at(10, *pair) for pair in pairs]),
            "all@10": mean([all_at(10, *pair) for pair in pairs]),
            "MRR": mean([reciprocal_rank(*pair) for pair in pairs]),
            "nDCG@10": mean([ndcg_at(10, *pair) for pair in pairs]),
        }
        return scores | (
            {"R@20": mean([recall_at(20, *pair) for pair in pairs])}
            if self.limit >= 20
            else {}
        )

    def latency(self) -> dict[str, float]:
        """Return percentiles of the milliseconds of a recall, as the client waits."""
        taken = [answer.seconds * 1000 for _, answer in self.asked]
        return {
            f"p{round(share * 100)}": percentile(taken, share)
            for share in (0.5, 0.95, 0.99)
        }

    def as_json(self, options: Options) -> dict[str, Any]:
        """Return everything."""
        return {
            "set": self.name,
            "limit": self.limit,
            "options": options.arguments,
            "stored": self.counts.stored,
            "duplicates": self.counts.duplicates,
            "store_seconds": self.counts.seconds,
            "store_rate": round(self.counts.rate),
            "degraded": self.degraded,
            "latency_ms": self.latency(),
            "scores": self.scores(),
        }


async def measure(given: RetrievalSet, options: Options) -> Measured:
    """Store the set and ask its questions, one after the other."""
    questions = given.sample(options.questions)
    async with open_store(options.home and options.home / given.name) as store:
        await store.fill(given)
        asked = []
        # The first recall of a connection prepares its statements, so the first question is asked twice.
        for question in track([*questions[:1], *questions], "Asking"):
            answer = await store.ask(
                question.query, question.namespaces, options.limit, options.arguments
            )
            asked.append((question, answer))
        return Measured(given.name, options.limit, store.counts, asked[1:])


@click.command(cls=Benchmark)
@SETS
def retrieval(sets: tuple[Path, ...], options: Options) -> None:
    """Store the memories of each SET through memory_store, ask its questions through memory_recall, score the answers.

    SET holds lines as import takes them, then {"type": "question", "namespaces", "query", "evidence": [source, …],
    "category"}. A result counts by its source. R@k is the mean over questions of the share of the evidence among the
    first k results of one answer of --limit; --limit 20 adds R@20. Each set has a scratch store of its own.
    """
    found = [asyncio.run(measure(read_set(path), options)) for path in sets]
    if options.as_json:
        documents = [measured.as_json(options) for measured in found]
        print_json(documents[0] if len(documents) == 1 else {"sets": documents})
        return
    for measured in found:
        counts = measured.counts
        latency = measured.latency()
        click.echo(
            f"{measured.name}: {counts.stored:,} memories, {counts.rate:,.0f} a second",
            nl=False,
        )
        click.echo(
            f", {counts.duplicates:,} duplicates, {measured.degraded:,} degraded answers"
        )
        click.echo(
            "recall: "
            + ", ".join(f"{name} {value:.1f} ms" for name, value in latency.items())
        )
        print_table(
            [{"category": part, **values} for part, values in measured.scores().items()]
        )


if __name__ == "__main__":
    main(retrieval)
