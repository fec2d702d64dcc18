"""Textbook BM25 next to the keyword branch alone and to the default ranking, over the same memories and questions."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import click
import numpy as np

from benchmarks.command_line import SETS, Benchmark, Options, main, print_json, print_table, track
from benchmarks.metrics import Sample, interval, mean, recall_at
from benchmarks.sets import RetrievalSet, read_set
from benchmarks.store import open_store

K1, B = 0.9, 0.4
# Each alone is asked with the preset.
PRESETS = ("keyword", "balanced")
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
        scores, total = np.zeros(len(self.sources)), len(self.sources)
        lengths = np.array(self.lengths) / max(mean(self.lengths), 1.0)
        for term, times in question.items():
            held = self.postings.get(term, ())
            weight = times * math.log1p((total - len(held) + 0.5) / (len(held) + 0.5))
            for place, count in held:
                scores[place] += weight * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[place]))
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


async def measure(given: RetrievalSet, options: Options) -> dict[str, list[float]]:
    """Return the recall of each question under BM25 and each preset."""
    questions = given.sample(options.questions)
    async with open_store(options.home and options.home / given.name) as store:
        await store.fill(given)
        dsn = await store.app.dsn()
        texts = {name: await terms_of(dsn, [one["content"] for one in held]) for name, held in given.memories.items()}
        asked = await terms_of(dsn, [question.query for question in questions])
        scopes: dict[tuple[str, ...], Textbook] = {}
        recalls: dict[str, list[float]] = {"textbook": [], **{preset: [] for preset in PRESETS}}
        for question, terms in track([*zip(questions, asked, strict=True)], "Asking"):
            spaces = given.asked(question)
            if spaces not in scopes:
                sources = [str(one["source"]) for name in spaces for one in given.memories[name]]
                scopes[spaces] = Textbook.of(sources, [text for name in spaces for text in texts[name]])
            found = scopes[spaces].ranked(terms, options.limit)
            recalls["textbook"].append(recall_at(options.limit, found, question.evidence))
            for preset in PRESETS:
                arguments = {"ranking": {"preset": preset, **options.ranking}}
                answer = await store.ask(question.query, question.namespaces, options.limit, arguments)
                recalls[preset].append(recall_at(options.limit, answer.sources, question.evidence))
        return recalls


def _line(given: RetrievalSet, options: Options) -> dict[str, Any]:
    """Return a line of the table: the recalls, and the keyword branch minus BM25 in points with its interval."""
    recalls = asyncio.run(measure(given, options))
    pairs = zip(recalls["keyword"], recalls["textbook"], strict=True)
    sample = Sample([own - other for own, other in pairs], given.groups(given.sample(options.questions)))
    difference = interval(sample)
    return {
        "set": given.name,
        "questions": len(recalls["textbook"]),
        **{f"R@{options.limit} {name}": mean(values) for name, values in recalls.items()},
        "keyword - textbook": difference.difference * 100,
        "low": difference.low * 100,
        "high": difference.high * 100,
    }


@click.command(cls=Benchmark)
@SETS
def textbook(sets: tuple[Path, ...], options: Options) -> None:
    """Compare BM25 as in textbooks with the presets `keyword` and `balanced`.

    BM25 has k1 = 0.9, b = 0.4, English Snowball stems without stop words, and no other feature. The difference is in
    points of R@k, with a paired bootstrap interval of 95 %.
    """
    lines = [_line(read_set(path), options) for path in sets]
    if options.as_json:
        print_json({"sets": lines})
    else:
        print_table(lines)


if __name__ == "__main__":
    main(textbook)
