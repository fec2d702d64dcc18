"""Training of the ranking: weights of relevance and confidence from retrieval sets, each set weighing the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.command_line import main, print_json
from benchmarks.metrics import auroc, hit_at, mean, recall_at, reciprocal_rank
from benchmarks.moments import read_cues
from benchmarks.sets import Question, RetrievalSet, evenly, read_set
from benchmarks.store import Store, open_store
from folklore import __version__
from folklore.memory import Facts
from folklore.memory.context import RequestContext
from folklore.memory.recall.pipeline import run_branches, search_of
from folklore.memory.recall.rank import read_pool
from folklore.memory.recall.values import Question as Asked, Search
from folklore.ranking.features import CONFIDENCE, OF_CUES, RELEVANCE
from folklore.ranking.fusion import leads
from folklore.ranking.trained import Weights, weights_for
from folklore.ranking.weights import Branch

WEIGHTS = Path(__file__).parent.parent / "server/folklore/ranking/weights.json"
# Memories of changelogs added to each project of the typed prompts, as in a store that was used for a while.
_BESIDE = 208
_PROMPTS = "prompts-dev"
_CHANGELOG = "changelog-dev"
_MOMENTS = "moments-dev"
_RIDGE = 1e-3
_STEPS = 30
# Which memories of the typed prompts have cues: with half of them, a store that has few is ranked as well as one that
# has many.
Cued = Literal["all", "half", "none"]
# What the provenance says of a relevance with a prior.
_MEAN = "mean with that of the bundled model"
# Parts of the relevance and of the confidence that need vectors.
_OF_VECTORS = ("meaning", "cue meaning")
# Results of a question that confidence is trained on: those that an answer shows.
_SHOWN = 10
# Questions of a set that are asked of another namespace, where nothing answers them.
_FOREIGN = 200
# Precision of the results from the lines of strong and fair matches on: fair ones shall answer in half of the cases in
# sets that training has not seen, and above .55 the line of a set rests on a handful of results. Share of answers that
# the floor keeps.
_STRONG = 0.8
_FAIR = 0.55
_KEPT = 0.97
_DIGITS = 2
# Shares of the questions of a set, those with the greatest scores first, of which precision is given.
_COVERED = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the features of its candidates (n, features), and which of them are evidence (n,)."""

    question: Question
    sources: list[str]
    relevance: Matrix
    confidence: Matrix
    right: NDArray[np.bool_]


def spaces_of(given: RetrievalSet) -> dict[str, str]:
    """Return the namespaces in which those of a set are stored."""
    return {name: f"{given.name}/{name}".replace(":", "/") for name in given.memories}


async def examples(
    store: Store, given: RetrievalSet, branches: Sequence[Branch]
) -> list[Example]:
    """Return the examples of a set: its questions, and as many as asked of a namespace that cannot answer them."""
    app = store.app
    context = await app.open(Facts(app.caller, app.now(), app.zone, app.namespace))
    spaces = spaces_of(given)
    found = [await _example(context, question, [spaces[name] for name in given.asked(question)], branches)
             for question in given.questions]  # fmt: skip
    names = list(spaces)
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    own = [
        question
        for question in given.questions
        if len(question.namespaces) == 1 and question.evidence
    ]
    for question in evenly(own, min(_FOREIGN, len(own))) if len(names) > 1 else ():
        foreign = replace(question, evidence=frozenset(), category="foreign")
        found.append(
            await _example(
                context, foreign, [spaces[following[question.namespaces[0]]]], branches
            )
        )
    return found


async def search_for(context: RequestContext, asked: Asked) -> Search:
    """Return a question in its scope; signs in it are no operators."""
    return replace(
        search_of(
            context, asked, await context.memory.find_namespaces(asked.namespaces)
        ),
        expression=False,
    )


async def _example(
    context: RequestContext,
    question: Question,
    spaces: Sequence[str],
    branches: Sequence[Branch],
) -> Example:
    search = await search_for(
        context, Asked(question.query, tuple(spaces), branches=tuple(branches))
    )
    candidates, _ = await read_pool(
        context.memory, await run_branches(context.memory, search)
    )
    ids: list[UUID] = list(candidates.all)
    sources = [str(candidates.all[id_].row["source"]) for id_ in ids]
    if not ids:
        return Example(
            question,
            [],
            np.zeros((0, len(RELEVANCE))),
            np.zeros((0, len(CONFIDENCE))),
            np.zeros(0, bool),
        )
    pool = candidates.pool()
    return Example(
        question,
        sources,
        np.stack([feature(pool) for feature, _ in RELEVANCE.values()], axis=1),
        np.stack([feature(pool) for feature in CONFIDENCE.values()], axis=1),
        np.array([source in question.evidence for source in sources]),
    )


def train_relevance(
    sets: Sequence[Sequence[Example]], columns: Sequence[int]
) -> Matrix:
    """Return the weights by pairs of one right and one other candidate; each set and each question weighs the same."""
    differences = []
    shares = []
    for one in sets:
        rows = [
            _pairs(example, columns)
            for example in one
            if example.right.any() and not example.right.all()
        ]
        differences += rows
        shares += [np.full(len(row), 1.0 / len(row) / len(rows)) for row in rows]
    pairs = np.concatenate(differences)
    # A pair and its reverse, so that there is no bias.
    return _logistic(pairs, np.ones(len(pairs)), np.concatenate(shares))


def _pairs(example: Example, columns: Sequence[int]) -> Matrix:
    features = example.relevance[:, columns]
    pairs: Matrix = features[example.right][:, None, :] - features[~example.right][None]
    return pairs.reshape(-1, len(columns))


def train_confidence(
    sets: Sequence[Sequence[Example]], relevance: Matrix, columns: Sequence[int]
) -> Matrix:
    """Return the weights and the bias: of the first ten results, those with and without an answer weighing the same."""
    features = []
    right = []
    shares = []
    for one in sets:
        for group in (
            [item for item in one if item.question.evidence],
            [item for item in one if not item.question.evidence],
        ):
            for example in group:
                best = np.argsort(-(example.relevance @ relevance), kind="stable")[
                    :_SHOWN
                ]
                features.append(example.confidence[best][:, columns])
                right.append(example.right[best].astype(float))
                shares.append(np.full(len(best), 1.0 / max(len(best), 1) / len(group)))
    matrix = np.concatenate(features)
    return _logistic(
        np.column_stack([matrix, np.ones(len(matrix))]),
        np.concatenate(right),
        np.concatenate(shares),
    )


def _logistic(
    features: Matrix, right: Matrix, shares: Matrix, fixed: Matrix | None = None
) -> Matrix:
    """Return the weights of a logistic regression by Newton's method, with a small ridge on scaled features.

    `fixed` are added to the sums.
    """
    given = np.zeros(len(features)) if fixed is None else fixed
    scale = np.where((deviation := features.std(axis=0)) > 0, deviation, 1.0)
    scaled = features / scale
    shares = shares / shares.sum()
    weights = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(weights))
    for _ in range(_STEPS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(given + scaled @ weights, -30, 30)))
        slope = scaled.T @ (shares * (right - likely)) - ridge @ weights
        curve = (scaled * (shares * likely * (1 - likely))[:, None]).T @ scaled + ridge
        weights = weights + np.linalg.solve(curve, slope)
    found: Matrix = np.round(weights / scale, _DIGITS)
    return found


def _with_and_without(
    examples: Sequence[Example],
) -> tuple[list[Example], list[Example]]:
    answered = [
        example for example in examples if example.question.evidence and example.sources
    ]
    return answered, [
        example
        for example in examples
        if not example.question.evidence and example.sources
    ]


class Trained(Weights):
    """Weights, as they rank an example."""

    def relevances(self, example: Example) -> Matrix:
        """Return the relevance (n,) of the candidates."""
        relevance: Matrix = example.relevance @ np.array(
            [self.relevance.get(name, 0.0) for name in RELEVANCE]
        )
        return relevance

    def shown(self, example: Example) -> tuple[NDArray[np.int64], Matrix]:
        """Return the places of the first results, and what their scores are made of (n, 3)."""
        relevance = self.relevances(example)
        places = np.argsort(-relevance, kind="stable")
        best = relevance[places]
        cued = example.confidence[places, list(CONFIDENCE).index("cued")] > 0
        lead = leads(best, cued)
        weights = np.array([self.confidence.get(name, 0.0) for name in CONFIDENCE])
        doubts = example.confidence[places] @ weights + self.confidence["bias"]
        return places[:_SHOWN], np.stack([best, lead, doubts], axis=1)[:_SHOWN]

    def scores(self, made_of: Matrix) -> Matrix:
        """Return the scores of results, in order: the greatest of each and of those after it."""
        relevance, lead, doubts = made_of.T
        return self.scores_of(relevance, lead, 1.0 / (1.0 + np.exp(-doubts)))


def train(
    sets: Sequence[Sequence[Example]],
    *,
    dense: bool,
    prior: Mapping[str, float] | None = None,
) -> Trained:
    """Return weights trained on these sets; without `dense`, only of features that need no vectors.

    The relevance is the mean of what is found and of a `prior`, if there is one.
    """
    columns = [
        place
        for place, (_, group) in enumerate(RELEVANCE.values())
        if dense or group != "dense"
    ]
    judged = [
        place
        for place, name in enumerate(CONFIDENCE)
        if dense or name not in _OF_VECTORS
    ]
    weights = train_relevance(sets, columns)
    while (
        weights <= 0
    ).any():  # every feature speaks for a memory: one that the others make needless is left out
        columns = [
            column
            for column, weight in zip(columns, weights, strict=True)
            if weight > 0
        ]
        weights = train_relevance(sets, columns)
    relevance = np.zeros(len(RELEVANCE))
    relevance[columns] = weights
    if prior is not None:
        expected = np.array([prior.get(name, 0.0) for name in RELEVANCE])
        relevance = np.round((relevance + expected) / 2, _DIGITS)
    confidence = train_confidence(sets, relevance, judged)
    names = list(RELEVANCE)
    judges = list(CONFIDENCE)
    trained = Trained(
        {name: float(weight) for name, weight in zip(names, relevance, strict=True) if weight},
        {**{judges[place]: float(weight) for place, weight in zip(judged, confidence[:-1], strict=True)},
         "bias": float(confidence[-1])},
        {}, 1.0, 1.0, 0.0,
    )  # fmt: skip
    scored = _train_score(trained, sets)
    trained = replace(
        trained,
        score=dict(
            zip(("relevance", "lead", "confidence", "bias"), scored, strict=True)
        ),
    )
    shown = [
        [_shown(trained, example) for example in _with_and_without(one)[0]]
        for one in sets
    ]
    doubts = sorted(
        float(trained.shown(example)[1][:, 2].max())
        for one in sets
        for example in _with_and_without(one)[0]
    )
    floor = 1.0 / (1.0 + np.exp(-doubts[round((1 - _KEPT) * len(doubts))]))
    return replace(
        trained,
        strong=_line(shown, _STRONG),
        fair=_line(shown, _FAIR),
        floor=round(float(floor), 3),
    )


def train_cues(
    kept: Weights,
    examples: Sequence[Example],
    all_cued: Sequence[Example],
    *,
    dense: bool,
) -> Trained:
    """Return weights with those of cues trained on one set, all others kept: what has no cues is ranked as before.

    The relevance is that of `examples`, the confidence that of `all_cued`, in which all memories of the projects have
    cues: there a question without an answer must not find one among so many phrases.
    """
    relevance = {
        name: weight for name, weight in kept.relevance.items() if name not in OF_CUES
    }
    confidence = {
        name: weight for name, weight in kept.confidence.items() if name not in OF_CUES
    }
    trained = Trained(
        relevance, confidence, kept.score, kept.strong, kept.fair, kept.floor
    )
    places = [
        place
        for place, (name, (_, group)) in enumerate(RELEVANCE.items())
        if name in OF_CUES and (dense or group != "dense")
    ]
    asked = [one for one in examples if one.right.any() and not one.right.all()]
    pairs = np.concatenate([_pairs(one, range(len(RELEVANCE))) for one in asked])
    shares = [one.right.sum() * (~one.right).sum() for one in asked]
    each = np.concatenate([np.full(count, 1.0 / count) for count in shares])
    known = pairs @ np.array([relevance.get(name, 0.0) for name in RELEVANCE])
    while places:
        weights = _logistic(pairs[:, places], np.ones(len(pairs)), each, known)
        if (weights > 0).all():
            break
        places = [
            place for place, weight in zip(places, weights, strict=True) if weight > 0
        ]
    names = list(RELEVANCE)
    if places:
        relevance |= {
            names[place]: float(weight)
            for place, weight in zip(places, weights, strict=True)
        }
    return _with_confidence_of_cues(
        replace(trained, relevance=relevance), all_cued, dense=dense
    )


def _with_confidence_of_cues(
    trained: Trained, examples: Sequence[Example], *, dense: bool
) -> Trained:
    """Return weights with those of cues in the confidence, as far as they differ between results of one set."""
    judges = [
        name
        for name in CONFIDENCE
        if name in OF_CUES and (dense or name not in _OF_VECTORS)
    ]
    columns = [place for place, name in enumerate(CONFIDENCE) if name in judges]
    features = []
    right = []
    shares = []
    known = []
    for group in _with_and_without(examples):
        for example in group:
            places, made_of = trained.shown(example)
            features.append(example.confidence[places][:, columns])
            right.append(example.right[places].astype(float))
            shares.append(np.full(len(places), 1.0 / len(places) / len(group)))
            known.append(made_of[:, 2])
    matrix = np.concatenate(features)
    # The bias takes up how seldom anything answers in this set, and is left out.
    found = _logistic(
        np.column_stack([matrix, np.ones(len(matrix))]),
        np.concatenate(right),
        np.concatenate(shares),
        np.concatenate(known),
    )[:-1]
    of_cues = {name: float(weight) for name, weight in zip(judges, found, strict=True)}
    return replace(trained, confidence={**trained.confidence, **of_cues})


def _train_score(trained: Trained, sets: Sequence[Sequence[Example]]) -> list[float]:
    """Return the weights of relevance, lead and confidence in the score, and the bias."""
    features = []
    right = []
    shares = []
    for one in sets:
        for group in _with_and_without(one):
            for example in group:
                places, made_of = trained.shown(example)
                features.append(made_of)
                right.append(example.right[places].astype(float))
                shares.append(np.full(len(places), 1.0 / len(places) / len(group)))
    matrix = np.concatenate(features)
    found = _logistic(
        np.column_stack([matrix, np.ones(len(matrix))]),
        np.concatenate(right),
        np.concatenate(shares),
    )
    return [float(weight) for weight in found]


def _shown(trained: Trained, example: Example) -> tuple[Matrix, NDArray[np.bool_]]:
    places, made_of = trained.shown(example)
    return trained.scores(made_of), example.right[places]


def _silence(trained: Trained, examples: Sequence[Example]) -> dict[str, float]:
    """Return how well the greatest confidence separates questions with an answer from others, if there are any."""
    sides = [
        [float(trained.shown(example)[1][:, 2].max()) for example in side]
        for side in _with_and_without(examples)
    ]
    return {"AUROC": auroc(*sides)} if all(sides) else {}


def _line(
    sets: Sequence[Sequence[tuple[Matrix, NDArray[np.bool_]]]], precision: float
) -> float:
    """Return the least score from which on this share of the results is right in every set, or that a set never has."""
    return round(max(_line_of(one, precision) for one in sets), _DIGITS)


def _line_of(
    answers: Sequence[tuple[Matrix, NDArray[np.bool_]]], precision: float
) -> float:
    scores = np.concatenate([score for score, _ in answers])
    right = np.concatenate([right for _, right in answers])
    order = np.argsort(-scores, kind="stable")
    held = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero((held >= precision) & (np.arange(len(order)) >= _SHOWN))
    return (
        float(scores[order[enough[-1]]])
        if len(enough)
        else float(scores[order[min(_SHOWN, len(order) - 1)]])
    )


def _by_coverage(shown: Sequence[tuple[Matrix, NDArray[np.bool_]]]) -> dict[str, float]:
    """Return how often the first result is right, in the shares of the questions whose first results score most."""
    best_first = sorted(
        ((float(scores[0]), bool(right[0])) for scores, right in shown),
        key=lambda pair: -pair[0],
    )
    counts = {share: max(round(share * len(best_first)), 1) for share in _COVERED}
    return {f"first right in {share:.0%}": mean([right for _, right in best_first[:count]])
            for share, count in counts.items()}  # fmt: skip


def measured(trained: Trained, examples: Sequence[Example]) -> dict[str, float]:
    """Return the figures of a set that was left out."""
    asked = [example for example in examples if example.question.evidence]
    orders = [
        np.argsort(-trained.relevances(example), kind="stable") for example in asked
    ]
    answers = [
        [example.sources[place] for place in order]
        for example, order in zip(asked, orders, strict=True)
    ]
    pairs = [
        (answer, example.question.evidence)
        for answer, example in zip(answers, asked, strict=True)
    ]
    shown = [_shown(trained, example) for example in asked if example.sources]
    scores = np.concatenate([one for one, _ in shown])
    right = np.concatenate([one for _, one in shown])
    lines = {
        "strong": scores >= trained.strong,
        "fair": scores >= trained.fair,
        "weak": scores < trained.fair,
    }
    return {
        "questions": len(asked),
        "R@10": mean([recall_at(10, *pair) for pair in pairs]),
        "R@5": mean([recall_at(5, *pair) for pair in pairs]),
        "MRR": mean([reciprocal_rank(*pair) for pair in pairs]),
        "hit@5": mean([hit_at(5, *pair) for pair in pairs]),
        **_silence(trained, examples),
        **{
            name: float(right[chosen].mean()) if chosen.any() else 1.0
            for name, chosen in lines.items()
        },
        **{f"{name} results": int(chosen.sum()) for name, chosen in lines.items()},
        **_by_coverage(shown),
    }


def _with_cues(one: RetrievalSet, path: Path, share: Cued) -> RetrievalSet:
    """Return a set in which this share of the memories, every second one of a namespace for a half, has its cues."""
    if share == "none" or not path.exists():
        return one
    step = 2 if share == "half" else 1
    cues = read_cues(path)
    memories = {
        name: [
            {**line, "cues": cues.get((name, line["source"]), [])}
            if place % step == 0
            else line
            for place, line in enumerate(held)
        ]
        for name, held in one.memories.items()
    }
    return replace(one, name=f"{one.name}-{share}-cued", memories=memories)


def _with_others(one: RetrievalSet, beside: RetrievalSet) -> RetrievalSet:
    """Return a set with memories of another one in each of its namespaces."""
    lines = evenly(
        [line for held in beside.memories.values() for line in held], _BESIDE
    )
    noise = [{**line, "source": f"beside:{line['source']}"} for line in lines]
    memories = {name: [*held, *noise] for name, held in one.memories.items()}
    return replace(one, memories=memories)


async def store_sets(
    store: Store, folder: Path, home: Path | None, share: Cued = "half", only: str = ""
) -> AsyncIterator[RetrievalSet]:
    """Store the sets of a folder, unless this home has them, and yield each, or the one of a name."""
    # Small sets first: a model that reads in context takes long for the others, and a run may be stopped and repeated.
    given = [
        read_set(path)
        for path in sorted(_paths(folder), key=lambda path: path.stat().st_size)
    ]
    beside = next((one for one in given if one.name == _CHANGELOG), None)
    for one in given:
        if only not in ("", one.name):
            continue
        if one.name == _PROMPTS:
            one = _with_cues(one, folder / f"{_PROMPTS}.cues.jsonl", share)
            one = one if beside is None else _with_others(one, beside)
        if home is None or not (home / f"{one.name}.stored").exists():
            for name, space in spaces_of(one).items():
                await store.add(space, one.memories[name])
            if home is not None:
                (home / f"{one.name}.stored").touch()
        yield one


async def _read(
    folder: Path,
    home: Path | None,
    branches: Sequence[Branch],
    share: Cued = "half",
    only: str = "",
) -> dict[str, list[Example]]:
    async with open_store(home) as store:
        found = {
            one.name: await examples(store, one, branches)
            async for one in store_sets(store, folder, home, share, only)
        }
    return dict(sorted(found.items()))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--model",
    type=click.Choice(["bundled", "contextual", "none"]),
    default="bundled",
    show_default=True,
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the stored sets here.",
)
@click.option(
    "--cues",
    "share",
    type=click.Choice(["all", "half", "none"]),
    default="half",
    show_default=True,
    help="Memories of prompts-dev that have the cues of prompts-dev.cues.jsonl.",
)
@click.option(
    "--only-cues",
    is_flag=True,
    help="Train the weights of cues on prompts-dev; keep the others.",
)
def train_ranking(
    folder: Path, model: str, home: Path | None, share: Cued, only_cues: bool
) -> None:
    """Train the ranking on the sets *-dev.jsonl of FOLDER; print each set's figures, left out; write the weights.

    The vectors are those of the embedding model of the settings; `none` trains the weights for words alone.
    """
    branches: Sequence[Branch] = (
        ("keyword",) if model == "none" else ("dense", "keyword")
    )
    dense = model != "none"
    if only_cues:
        [prompts] = asyncio.run(_read(folder, home, branches, share, _PROMPTS)).values()
        [cued] = asyncio.run(_read(folder, home, branches, "all", _PROMPTS)).values()
        _write(model, train_cues(weights_for(model), prompts, cued, dense=dense), {
            "cues": {"code": __version__, "date": _today(), "share": share, "sets": {
                path.stem: _digest(path)
                for path in (folder / f"{_PROMPTS}.jsonl", folder / f"{_PROMPTS}.cues.jsonl")}}})  # fmt: skip
        return
    sets = asyncio.run(_read(folder, home, branches, share))
    prior = _prior(model)
    left_out = {name: measured(
        train([sets[other] for other in sets if other != name], dense=dense, prior=prior), sets[name])
                for name in sets}  # fmt: skip
    trained = train(list(sets.values()), dense=dense, prior=prior)
    cues = [] if share == "none" else [*folder.glob(f"{_PROMPTS}.cues.jsonl")]
    of_sets: dict[str, Any] = {
        "code": __version__,
        "cues of": share,
        "date": _today(),
        "sets": {path.stem: _digest(path) for path in sorted([*_paths(folder), *cues])},
    }
    if prior is not None:
        of_sets["relevance"] = _MEAN
    _write(model, trained, of_sets, replaced=True)
    print_json({"left out": left_out, "weights": asdict(trained)})


def _prior(model: str) -> Mapping[str, float] | None:
    """Return the relevance of the bundled model for one that reads in context: it saw more sets, of long chats too.

    What the two share, words and neighbours, is then learned from all of them.
    """
    if model != "contextual":
        return None
    bundled = weights_for("bundled").relevance
    return {name: weight for name, weight in bundled.items() if name not in OF_CUES}


def _write(
    model: str,
    trained: Trained,
    provenance: Mapping[str, Any],
    *,
    replaced: bool = False,
) -> None:
    """Write the weights of a model, with where they are from, which is added unless all were `replaced`."""
    weights: dict[str, Any] = (
        json.loads(WEIGHTS.read_text())
        if WEIGHTS.exists()
        else {"provenance": {}, "models": {}}
    )
    weights["models"][model] = asdict(trained)
    earlier = {} if replaced else weights["provenance"].get(model, {})
    weights["provenance"][model] = {**earlier, **provenance}
    WEIGHTS.write_text(json.dumps(weights, indent=1, sort_keys=True) + "\n")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _paths(folder: Path) -> list[Path]:
    """Return the sets of a folder; moments have no memories of their own."""
    return [path for path in folder.glob("*-dev.jsonl") if path.stem != _MOMENTS]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main(train_ranking)
