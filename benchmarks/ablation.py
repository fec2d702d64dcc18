"""Ablation: what does each part of the ranking give, and would a simpler fusion do as well?

The variants are asked through the use case, which takes every number of a ranking; the tool takes a few.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import click

from benchmarks.command_line import SETS, Benchmark, Options, main, print_json, print_table, track
from benchmarks.metrics import Sample, interval, mean, recall_at
from benchmarks.sets import Question, RetrievalSet, read_set
from benchmarks.store import Store, open_store
from folklore.memory.recall import pipeline as recall
from folklore.memory.recall.values import Question as Asked
from folklore.model import Answer
from folklore.ranking.weights import Branch, Ranking, Signals, chosen

_ENDLESS = 1e9
# Every part of the ranking: the fields of Ranking at the values that switch it off. A new signal is one line here.
PARTS: Mapping[str, Mapping[str, Any]] = {
    "dense branch": {"dense": 0.0},
    "keyword branch": {"keyword": 0.0},
    "diversity (MMR)": {"mmr_lambda": 1.0},
    "session neighbours": {"neighbours": ()},
    "neighbours: less for long texts": {"neighbours_longest": _ENDLESS},
    "neighbours: less for texts that ask": {"neighbours_asking": 1.0},
    "nearness": {"nearness": 0.0},
    "top score significance of the dense branch": {"significance": 0.0},
    "calibration: reciprocal rank fusion and MMR alone": {"fusion": "rrf"},
    "calibration: a weighted mean of similarities": {"fusion": "weighted"},
    "signal exact": {"signals": Signals(exact=0.0)},
    "signals tags, importance, confidence, priority": {
        "signals": Signals(tags=0.0, importance=0.0, confidence=0.0, priority=0.0)
    },
    "length of a text": {"length_prior": _ENDLESS},
    "frequency and position of a word in a text": {"saturation": 0.0},
    "(signal overlap added at 0.3)": {"signals": Signals(overlap=0.3)},
    "(signal recency added at 0.1)": {"signals": Signals(recency=0.1)},
}
BRANCHES = ("dense branch", "keyword branch")

Key = tuple[str, str]  # namespace and source of a memory


@dataclass(frozen=True, slots=True)
class Constant:
    """Setting of plain reciprocal rank fusion: k, the share of the dense branch, and the strength of neighbours."""

    k: float
    dense: float
    neighbours: float

    def __str__(self) -> str:
        return f"k {self.k:g}, dense {self.dense:g}, neighbours {self.neighbours:g}"


GRID = tuple(
    Constant(*setting)
    for setting in product((0, 1, 3, 10, 30, 60), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), (0, 0.4, 0.8))
)


@dataclass(frozen=True, slots=True)
class Sessions:
    """Places of memories in their sessions."""

    place: Mapping[Key, tuple[str, int]]
    at: Mapping[tuple[str, int], Key]

    @classmethod
    def of(cls, given: RetrievalSet) -> Sessions:
        """Return the places of a set's memories."""
        place: dict[Key, tuple[str, int]] = {}
        sizes: dict[str, int] = {}
        for namespace, memories in given.memories.items():
            for memory in memories:
                if memory.get("session") is not None:
                    session = f"{namespace}\0{memory['session']}"
                    position = sizes[session] = sizes.get(session, 0) + 1
                    place[(namespace, str(memory["source"]))] = (session, position)
        return cls(place, {where: key for key, where in place.items()})

    def neighbours(self, key: Key) -> Iterator[tuple[Key, int]]:
        """Yield the memories one and two places away in the session, with their distance."""
        if key not in self.place:
            return
        session, position = self.place[key]
        for gap in (-2, -1, 1, 2):
            if (other := self.at.get((session, position + gap))) is not None:
                yield other, abs(gap)


def constant_fusion(
    lists: Mapping[Branch, Sequence[Key]], setting: Constant, sessions: Sessions, limit: int
) -> list[Key]:
    """Rank by reciprocal rank fusion with constant weights.

    score = sum over branches of weight / (k + rank); each of the best spreads its score to its session neighbours,
    times the strength one place away and 0.7 times that two places away.
    """
    weights: dict[Branch, float] = {"dense": setting.dense, "keyword": 1 - setting.dense}
    scores: dict[Key, float] = {}
    for branch, keys in lists.items():
        for rank, key in enumerate(keys, start=1):
            scores[key] = scores.get(key, 0.0) + weights[branch] / (setting.k + rank)
    total = dict(scores)
    if setting.neighbours > 0:
        for key in sorted(scores, key=lambda key: (-scores[key], key))[: limit + 5]:
            for other, gap in sessions.neighbours(key):
                total[other] = total.get(other, 0.0) + setting.neighbours * (1.0, 0.7)[gap - 1] * scores[key]
    return sorted(total, key=lambda key: (-total[key], key))[:limit]


@dataclass(frozen=True, slots=True)
class Direct:
    """Asks the use case of memory_recall, with any ranking."""

    store: Store
    limit: int

    async def answer(self, question: Question, ranking: Ranking, **more: Any) -> Answer:
        """Recall with this ranking; `more` are further fields of the request."""
        values = {"limit": self.limit} | more
        request = Asked(question.query, namespaces=question.namespaces, ranking=ranking, **values)
        app = self.store.app
        return await recall.answer(await app.context(app.caller, app.namespace), request)

    async def recalls(self, questions: Sequence[Question], ranking: Ranking, label: str) -> list[float]:
        """Return R@10 of each question."""
        found = []
        for question in track(questions, label):
            answer = await self.answer(question, ranking)
            sources = [result.memory.source or "" for result in answer.memories]
            found.append(recall_at(10, sources, question.evidence))
        return found

    async def lists(self, question: Question, ranking: Ranking) -> dict[Branch, list[Key]]:
        """Return the list that each branch brings, in its own order."""
        fetched = min(ranking.fetch(self.limit), 100)
        found: dict[Branch, list[Key]] = {}
        for branch in ("dense", "keyword"):
            weights = {"dense": 0.0, "keyword": 0.0, branch: 1.0}
            alone = replace(ranking, neighbours=(), mmr_lambda=1.0, fetch_multiplier=1.0, **weights)  # type: ignore[arg-type]
            answer = await self.answer(question, alone, limit=fetched, explain=True)
            ranked: list[tuple[int, Key]] = []
            for result in answer.memories:
                branches = (result.explain or {}).get("branches")
                if isinstance(branches, dict) and branch in branches:
                    rank = int(branches[branch]["rank"])
                    ranked.append((rank, (result.memory.namespace, result.memory.source or "")))
            found[branch] = [key for _, key in sorted(ranked)]
        return found


@dataclass(frozen=True, slots=True)
class Ablated:
    """R@10 of each question of a set: with the whole ranking, without each part, and for each setting of the grid."""

    name: str
    groups: list[Hashable]
    whole: list[float]
    without: dict[str, list[float]]
    constants: dict[Constant, list[float]]

    def difference(self, part: str) -> Sample:
        """Return R@10 without the part minus R@10 with it, question by question."""
        pairs = zip(self.without[part], self.whole, strict=True)
        return Sample([without - whole for without, whole in pairs], self.groups)

    def score(self, part: str | None = None) -> float:
        """Return R@10 without the part, or of the whole ranking."""
        return mean(self.whole if part is None else self.without[part])


def effects(sets: Sequence[Ablated]) -> list[dict[str, Any]]:
    """Return a line per part: R@10 without it, and the difference with its interval; means over the sets."""
    return [
        {"without": part, "R@10": mean([ablated.score(part) for ablated in sets])}
        | asdict(interval(*(ablated.difference(part) for ablated in sets)))
        for part in sets[0].without
    ]


def comparisons(sets: Sequence[Ablated]) -> list[dict[str, Any]]:
    """Return per set, then for their mean, R@10 of the ranking, of its better branch alone and of the best constant
    fusion. In the mean, each set has its own better branch; one setting is the best constant for all sets together."""
    lines = [_comparison(ablated, max(GRID, key=lambda one: mean(ablated.constants[one]))) for ablated in sets]
    if len(sets) > 1:
        best = max(GRID, key=lambda one: mean([mean(ablated.constants[one]) for ablated in sets]))
        each = [_comparison(ablated, best) for ablated in sets]
        means = {name: mean([line[name] for line in each]) for name, value in each[0].items() if value != str(value)}
        lines.append(each[0] | {"set": "mean", "better branch": "of each set"} | means)
    return lines


def _comparison(ablated: Ablated, setting: Constant) -> dict[str, Any]:
    branches = [part for part in BRANCHES if part in ablated.without]
    worse = max(branches, key=ablated.score, default=None)
    return {
        "set": ablated.name,
        "R@10": ablated.score(),
        "better branch": "none" if worse is None else f"without the {worse}",
        "R@10 of branch": ablated.score(worse),
        "constant fusion": str(setting),
        "R@10 of constant": mean(ablated.constants[setting]),
    }


async def ablate(given: RetrievalSet, options: Options) -> Ablated:
    """Store the set once, then ask its questions with every variant of the ranking."""
    questions, default = given.sample(options.questions), chosen(**options.ranking)
    async with open_store(options.home and options.home / given.name) as store:
        await store.fill(given)
        direct = Direct(store, options.limit)
        whole = await direct.recalls(questions, default, "whole")
        without = {}
        for part, changes in PARTS.items():
            changed = replace(default, **changes)
            if changed.dense or changed.keyword:  # a ranking of one branch has no variant without it
                without[part] = await direct.recalls(questions, changed, part)
        lists = [await direct.lists(question, default) for question in track(questions, "constant fusion")]
    sessions = Sessions.of(given)
    constants: dict[Constant, list[float]] = {setting: [] for setting in GRID}
    for setting, (question, found) in product(GRID, list(zip(questions, lists, strict=True))):
        best = constant_fusion(found, setting, sessions, options.limit)
        constants[setting].append(recall_at(10, [source for _, source in best], question.evidence))
    return Ablated(given.name, given.groups(questions), whole, without, constants)


@click.command(cls=Benchmark)
@SETS
def ablation(sets: tuple[Path, ...], options: Options) -> None:
    """Ask the questions of each SET with every part of the ranking switched off alone, and by simpler fusions.

    A difference is R@10 without the part minus R@10 with it, with the 95 % interval of a paired bootstrap (percentiles
    of 10,000 draws, the same in every run) over the questions, or over the namespaces of a set that has several: the
    questions of one conversation depend on each other. The mean draws from each set independently.

    The last table compares the ranking with its better branch alone, and with reciprocal rank fusion of constant
    weights, the best of a grid on the very questions that judge it.
    """
    found = [asyncio.run(ablate(read_set(path), options)) for path in sets]
    tables = {ablated.name: [ablated] for ablated in found} | ({"mean": found} if len(found) > 1 else {})
    if options.as_json:
        documents = [
            {"set": name, "R@10": mean([one.score() for one in part]), "ablations": effects(part)}
            for name, part in tables.items()
        ]
        print_json({"sets": documents, "comparisons": comparisons(found)})
        return
    for name, part in tables.items():
        click.echo(f"{name}: R@10 {mean([one.score() for one in part]):.4f}")
        print_table(effects(part))
    print_table(comparisons(found))


if __name__ == "__main__":
    main(ablation)
