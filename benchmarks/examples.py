"""Retrieval sets as examples to train the ranking on: stored, asked, and read with the features of their candidates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.moments import read_cues
from benchmarks.sets import Question, RetrievalSet, evenly, read_set
from benchmarks.store import Store, open_store
from folklore.memory import Facts
from folklore.memory.context import RequestContext
from folklore.memory.recall.pipeline import run_branches, search_of
from folklore.memory.recall.rank import read_pool
from folklore.memory.recall.values import Question as Asked, Search
from folklore.ranking.features import CONFIDENCE, RELEVANCE
from folklore.ranking.weights import Branch

Matrix = NDArray[np.float64]
# Which memories of the typed prompts have cues: with half of them, a store that has few is ranked as well as one that
# has many.
Cued = Literal["all", "half", "none"]

PROMPTS = "prompts-dev"
_CHANGELOG = "changelog-dev"
_MOMENTS = "moments-dev"
# Memories of changelogs added to each project of the typed prompts, as in a store that was used for a while.
_BESIDE = 208
# Category of a question that is asked of another namespace.
FOREIGN = "foreign"
# Questions of a set that are asked of another namespace, where nothing answers them.
_FOREIGN = 200


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the features of its candidates (n, features), and which of them are evidence (n,)."""

    question: Question
    sources: list[str]
    relevance: Matrix
    confidence: Matrix
    right: NDArray[np.bool_]


async def read_examples(
    folder: Path,
    home: Path | None,
    branches: Sequence[Branch],
    share: Cued = "half",
    only: str = "",
) -> dict[str, list[Example]]:
    """Return the examples of the sets of a folder, or of one of them, by the names of the sets."""
    found = {}
    async with open_store(home) as store:
        async for given in store_sets(store, folder, home, share, only):
            found[given.name] = await examples(store, given, branches)
    return dict(sorted(found.items()))


async def store_sets(
    store: Store, folder: Path, home: Path | None, share: Cued = "half", only: str = ""
) -> AsyncIterator[RetrievalSet]:
    """Store the sets of a folder, unless this home has them, and yield each, or the one of a name."""
    # Small sets first: a model that reads in context takes long for the others, and a run may be stopped and repeated.
    paths = sorted(paths_of_sets(folder), key=lambda path: path.stat().st_size)
    sets = {given.name: given for given in map(read_set, paths)}
    for given in sets.values():
        if only not in ("", given.name):
            continue
        if given.name == PROMPTS:
            given = _with_cues(given, folder / f"{PROMPTS}.cues.jsonl", share)
            if _CHANGELOG in sets:
                given = _with_others(given, sets[_CHANGELOG])
        await _store(store, given, home)
        yield given


def paths_of_sets(folder: Path) -> list[Path]:
    """Return the sets of a folder; moments have no memories of their own."""
    return [path for path in folder.glob("*-dev.jsonl") if path.stem != _MOMENTS]


def spaces_of(given: RetrievalSet) -> dict[str, str]:
    """Return the namespaces in which those of a set are stored."""
    return {name: f"{given.name}/{name}".replace(":", "/") for name in given.memories}


async def _store(store: Store, given: RetrievalSet, home: Path | None) -> None:
    stored = None if home is None else home / f"{given.name}.stored"
    if stored is not None and stored.exists():
        return
    for name, space in spaces_of(given).items():
        await store.add(space, given.memories[name])
    if stored is not None:
        stored.touch()


def _with_cues(given: RetrievalSet, path: Path, share: Cued) -> RetrievalSet:
    """Return a set in which this share of the memories, every second one of a namespace for a half, has its cues."""
    if share == "none" or not path.exists():
        return given
    step = 2 if share == "half" else 1
    cues = read_cues(path)
    memories = {}
    for name, lines in given.memories.items():
        cued = list(lines)
        for number in range(0, len(cued), step):
            line = cued[number]
            cued[number] = {**line, "cues": cues.get((name, line["source"]), [])}
        memories[name] = cued
    return replace(given, name=f"{given.name}-{share}-cued", memories=memories)


def _with_others(given: RetrievalSet, beside: RetrievalSet) -> RetrievalSet:
    """Return a set with memories of another one in each of its namespaces."""
    lines = []
    for memories in beside.memories.values():
        lines += memories
    others = [
        {**line, "source": f"beside:{line['source']}"}
        for line in evenly(lines, _BESIDE)
    ]
    both = {name: [*memories, *others] for name, memories in given.memories.items()}
    return replace(given, memories=both)


async def examples(
    store: Store, given: RetrievalSet, branches: Sequence[Branch]
) -> list[Example]:
    """Return the examples of a set: its questions, and as many as asked of a namespace that cannot answer them."""
    app = store.app
    context = await app.open(Facts(app.caller, app.now(), app.zone, app.namespace))
    spaces = spaces_of(given)
    found = []
    for question in given.questions:
        asked_in = [spaces[name] for name in given.asked(question)]
        found.append(await _example(context, question, asked_in, branches))
    if len(spaces) == 1:
        return found
    # A question in one namespace is asked of the next one instead; in the last, of the first.
    stored_in = list(spaces.values())
    following = dict(zip(spaces, [*stored_in[1:], stored_in[0]], strict=True))
    own = []
    for question in given.questions:
        if len(question.namespaces) == 1 and question.evidence:
            own.append(question)
    for question in evenly(own, min(_FOREIGN, len(own))):
        space = following[question.namespaces[0]]
        foreign = replace(question, evidence=frozenset(), category=FOREIGN)
        found.append(await _example(context, foreign, [space], branches))
    return found


async def search_for(context: RequestContext, asked: Asked) -> Search:
    """Return a question in its scope; signs in it are no operators."""
    namespaces = await context.memory.find_namespaces(asked.namespaces)
    return replace(search_of(context, asked, namespaces), expression=False)


async def _example(
    context: RequestContext,
    question: Question,
    spaces: Sequence[str],
    branches: Sequence[Branch],
) -> Example:
    asked = Asked(question.query, tuple(spaces), branches=tuple(branches))
    search = await search_for(context, asked)
    found = await run_branches(context.memory, search)
    candidates, _ = await read_pool(context.memory, found)
    sources = [str(candidate.row["source"]) for candidate in candidates.all.values()]
    if not sources:
        return Example(
            question,
            sources,
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
