"""The default ranking next to plain ones over the same questions, each set left out in training."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import click
import numpy as np

from benchmarks.command_line import main, print_json, print_table, track
from benchmarks.examples import examples, search_for, spaces_of, store_sets
from benchmarks.metrics import Sample, interval, mean, recall_at, reciprocal_rank
from benchmarks.sets import RetrievalSet
from benchmarks.store import Store, open_store
from benchmarks.training import train
from folklore.memory import Facts
from folklore.memory.recall.pipeline import run_branches
from folklore.memory.recall.rank import rank
from folklore.memory.recall.values import Question as Asked
from folklore.ranking.trained import Weights
from folklore.ranking.weights import PRESETS, Branch
from folklore.runtime import database_address

K1 = 0.9
B = 0.4
_LIMIT = 10
_METRICS: Mapping[str, Callable[[Sequence[str], frozenset[str]], float]] = {
    "R@5": partial(recall_at, 5),
    "R@10": partial(recall_at, 10),
    "MRR": reciprocal_rank,
}
_BRANCHES: tuple[Branch, ...] = ("keyword", "dense")
# Snowball stems of English words without stop words, as Postgres makes them; names are not split.
_TERMS = """
    select given.place, found.lexeme, cardinality(found.positions)
    from unnest($1::text[]) with ordinality as given (content, place)
    cross join lateral unnest(
        to_tsvector('pg_catalog.english', regexp_replace(given.content, '[^[:alnum:]]+', ' ', 'g'))) as found
"""


@dataclass(frozen=True, slots=True)
class Textbook:
    """BM25 of k1 = 0.9, b = 0.4 over texts given as counts of their terms (Robertson and Zaragoza 2009, 3.15)."""

    sources: Sequence[str]
    lengths: Sequence[int]
    postings: Mapping[str, Sequence[tuple[int, int]]]

    @classmethod
    def of(cls, sources: Sequence[str], texts: Sequence[Mapping[str, int]]) -> Textbook:
        """Invert the texts."""
        postings: dict[str, list[tuple[int, int]]] = {}
        for place, terms in enumerate(texts):
            for term, count in terms.items():
                postings.setdefault(term, []).append((place, count))
        return cls(sources, [sum(terms.values()) for terms in texts], postings)

    def ranked(self, question: Mapping[str, int], limit: int) -> list[str]:
        """Return the sources of the best texts; a term counts as often as the question has it."""
        scores = np.zeros(len(self.sources))
        total = len(self.sources)
        lengths = np.array(self.lengths) / max(mean(self.lengths), 1.0)
        for term, times in question.items():
            held = self.postings.get(term, ())
            weight = times * math.log1p((total - len(held) + 0.5) / (len(held) + 0.5))
            for place, count in held:
                scores[place] += (
                    weight
                    * count
                    * (K1 + 1)
                    / (count + K1 * (1 - B + B * lengths[place]))
                )
        best = np.argsort(-scores, kind="stable")[:limit]
        return [self.sources[place] for place in best if scores[place] > 0]


async def terms_of(dsn: str, texts: Sequence[str]) -> list[Counter[str]]:
    """Return the counts of the terms of each text."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(_TERMS, list(texts))
    finally:
        await connection.close()
    found = [Counter[str]() for _ in texts]
    for place, term, count in rows:
        found[place - 1][term] = count
    return found


async def answers(
    store: Store, given: RetrievalSet, weights: Weights
) -> list[dict[str, list[str]]]:
    """Return the sources that each question gets: by default with these weights, and from each plain ranking."""
    context = await store.app.open(
        Facts(store.app.caller, store.app.now(), store.app.zone, store.app.namespace)
    )
    spaces = spaces_of(given)
    (dsn, _), questions = await database_address(store.app.settings), given.sample(None)
    texts = {
        name: await terms_of(dsn, [one["content"] for one in held])
        for name, held in given.memories.items()
    }
    asked = await terms_of(dsn, [question.query for question in questions])
    scopes: dict[tuple[str, ...], Textbook] = {}
    found = []
    for question, terms in track([*zip(questions, asked, strict=True)], "Asking"):
        names = given.asked(question)
        if names not in scopes:
            sources = [
                str(one["source"]) for name in names for one in given.memories[name]
            ]
            scopes[names] = Textbook.of(
                sources, [text for name in names for text in texts[name]]
            )
        search = await search_for(
            context,
            Asked(question.query, tuple(spaces[name] for name in names), limit=_LIMIT),
        )
        lists = await run_branches(context.memory, search)
        ranked = await rank(context.memory, lists, weights)
        plain = replace(
            search, question=replace(search.question, ranking=PRESETS["rrf"])
        )
        orders: dict[str, Iterable[UUID]] = {
            branch: lists.hits[branch].ids for branch in _BRANCHES
        }
        orders |= {
            "default": ranked.scores,
            "rrf": (await rank(context.memory, replace(lists, search=plain))).scores,
        }
        read = {
            id_: str(candidate.row["source"])
            for id_, candidate in ranked.candidates.all.items()
        }
        by_name = {
            name: [read[id_] for id_ in order][:_LIMIT]
            for name, order in orders.items()
        }
        found.append(by_name | {"BM25": scopes[names].ranked(terms, _LIMIT)})
    return found


def _lines(
    given: RetrievalSet, found: Sequence[Mapping[str, list[str]]]
) -> list[dict[str, Any]]:
    """Return a line for each metric: its means, and the default minus each plain ranking in points, with intervals."""
    questions = given.sample(None)
    lines = []
    for metric, of in _METRICS.items():
        values = {
            name: [
                of(one[name], question.evidence)
                for one, question in zip(found, questions, strict=True)
            ]
            for name in found[0]
        }
        means = {name: mean(value) for name, value in values.items()}
        lines.append({"set": given.name, "metric": metric, **means})
        for name in ("rrf", "BM25", max(_BRANCHES, key=lambda branch: means[branch])):
            pairs = zip(values["default"], values[name], strict=True)
            by = interval(
                Sample(
                    [(own - other) * 100 for own, other in pairs],
                    given.groups(questions),
                )
            )
            column = name if name not in _BRANCHES else "better branch"
            lines[-1][f"- {column}"] = (
                f"{by.difference:+.1f} [{by.low:+.1f}, {by.high:+.1f}]"
            )
    return lines


async def measure(folder: Path, home: Path | None) -> list[dict[str, Any]]:
    """Return the lines of all sets of a folder."""
    async with open_store(home) as store:
        sets = [one async for one in store_sets(store, folder, home)]
        trained_on = {one.name: await examples(store, one, _BRANCHES) for one in sets}
        lines = []
        for one in sets:
            weights = train(
                [held for name, held in trained_on.items() if name != one.name],
                dense=True,
            )
            lines += _lines(one, await answers(store, one, weights))
        return lines


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the stored sets here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def textbook(folder: Path, home: Path | None, as_json: bool) -> None:
    """Compare the default ranking with plain ones on the sets *-dev.jsonl of FOLDER, each left out in training.

    Plain are the preset `rrf`, either branch alone, and BM25 as in textbooks: k1 = 0.9, b = 0.4, English Snowball stems
    without stop words. Differences are in points, with paired bootstrap intervals of 95 %.
    """
    lines = asyncio.run(measure(folder, home))
    print_json({"sets": lines}) if as_json else print_table(lines)


if __name__ == "__main__":
    main(textbook)
