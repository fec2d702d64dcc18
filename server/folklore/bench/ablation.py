"""What each part of the ranking gives: the same questions with one part switched off, beside the default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from folklore.bench.assistant import Assistant
from folklore.bench.metrics import mean, recall_at
from folklore.bench.retrieval import Measured, Plan, Tell, ask_questions, store_set
from folklore.bench.sets import Question, RetrievalSet
from folklore.bench.statistics import Interval, paired_bootstrap
from folklore.bench.sweep import GRID, Constant, Lists, Place, Sessions, ranked
from folklore.memory.context import MemoryContext
from folklore.memory.recall.pipeline import MAX_LIMIT, RecallRequest, recall
from folklore.model import Answer
from folklore.ranking.neighbours import guessed_length, room
from folklore.ranking.signals import Signals
from folklore.ranking.weights import Branch, Ranking
from folklore.text.words import is_question

KEYWORD_ALONE = "keyword branch alone"
DENSE_ALONE = "dense branch alone"
_ENDLESS = 1e9


@dataclass(frozen=True, slots=True)
class Ablation:
    """A part's name and the fields of Ranking that switch it off."""

    name: str
    changes: Mapping[str, Any]

    def of(self, ranking: Ranking) -> Ranking:
        """The ranking without this part."""
        return replace(ranking, **self.changes)


# A signal is one line: the fields of Ranking, at the values that take it out.
ABLATIONS: tuple[Ablation, ...] = (
    Ablation(KEYWORD_ALONE, {"dense": 0.0}),
    Ablation(DENSE_ALONE, {"keyword": 0.0}),
    Ablation("no diversity (MMR)", {"mmr_lambda": 1.0}),
    Ablation("no session neighbours", {"neighbours": ()}),
    Ablation("long texts gain from neighbours like short ones", {"neighbours_length": _ENDLESS}),
    Ablation("texts of few words gain from neighbours like others", {"neighbours_least": 1.0}),
    Ablation("texts that ask gain from neighbours like others", {"neighbours_asking": 1.0}),
    Ablation("nearness of every candidate not counted", {"nearness": 0.0}),
    Ablation("vectors' evidence counts whole, however far the best stands out", {"standing": 0.0}),
    Ablation("evidence alone, no ranks", {"rrf_share": 0.0}),
    Ablation("ranks alone, no evidence", {"rrf_share": 1.0}),
    Ablation("weighted sum in place of RRF", {"fusion": "weighted"}),
    Ablation("signal exact off", {"signals": Signals(exact=0.0)}),
    Ablation("signal overlap on (0.3)", {"signals": Signals(overlap=0.3)}),
    Ablation("signal recency on (0.1)", {"signals": Signals(recency=0.1)}),
    Ablation(
        "signals tags, importance, confidence, priority off",
        {"signals": Signals(tags=0.0, importance=0.0, confidence=0.0, priority=0.0)},
    ),
    Ablation("length of a text not counted", {"length_prior": _ENDLESS}),
    Ablation("how often and how early a word stands not counted", {"saturation": 0.0}),
)


@dataclass(frozen=True, slots=True)
class Without:
    """R@10 of each question with one part switched off; `unchanged` if it was off anyway."""

    name: str
    recalls: list[float]
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Ablated:
    """A set asked with everything, with each part off, and by the constant-weight RRF of the grid.

    `recalls` are of the default, through the tool; `differing` counts questions whose sources the use case, which the
    variants are asked of, answered otherwise. `sweep` holds the R@10 of each question for each setting.
    """

    measured: Measured
    recalls: list[float]
    differing: int
    without: list[Without]
    sweep: dict[Constant, list[float]] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """The default's R@10."""
        return mean(self.recalls)

    @property
    def best_constant(self) -> Constant:
        """The best setting of the sweep on this very set."""
        return max(self.sweep, key=lambda setting: mean(self.sweep[setting]))

    def better_branch(self) -> Without | None:
        """The branch that alone finds more; None if the default is but one."""
        alone = [one for one in self.without if one.name in (KEYWORD_ALONE, DENSE_ALONE) and not one.unchanged]
        return max(alone, key=lambda one: mean(one.recalls), default=None)

    def difference(self, recalls: Sequence[float]) -> Interval:
        """R@10 of a variant minus the default's, question by question."""
        return paired_bootstrap([with_ - by for with_, by in zip(recalls, self.recalls, strict=True)])


@dataclass(frozen=True, slots=True)
class Direct:
    """Asks the use case behind memory_recall, which takes every number of a ranking where the tool takes a few."""

    library: MemoryContext
    request: RecallRequest
    assistant: Assistant
    now: Callable[[], datetime]

    async def answer(self, question: Question, ranking: Ranking, **more: Any) -> Answer:
        """Recall with this ranking."""
        request = replace(self.request, query=question.query, namespaces=question.namespaces, ranking=ranking, **more)
        return await recall(self.library, request, now=self.now())

    async def sources(self, question: Question, ranking: Ranking) -> list[str]:
        """The sources of the results, best first."""
        return [result.memory.source or "" for result in (await self.answer(question, ranking)).memories]

    async def lists(self, question: Question, ranking: Ranking, fetched: int) -> Lists[str]:
        """What each branch alone brings, as its own ranks say."""
        found: dict[Branch, list[str]] = {"dense": [], "keyword": []}
        for branch, other in (("dense", "keyword"), ("keyword", "dense")):
            alone: dict[str, Any] = {branch: 1.0, other: 0.0}
            plain = replace(ranking, neighbours=(), mmr_lambda=1.0, min_score=0.0, fetch_multiplier=1.0, **alone)
            answer = await self.answer(question, plain, limit=fetched, explain=True, max_tokens=None, sort="score")
            places = []
            for result in answer.memories:
                branches = (result.explain or {}).get("branches")
                if isinstance(branches, dict) and branch in branches:
                    places.append((int(branches[branch]["rank"]), str(result.memory.id)))
            found[branch] = [id_ for _, id_ in sorted(places)]  # type: ignore[index]
        return Lists(found["dense"], found["keyword"])


async def ablate(direct: Direct, given: RetrievalSet, plan: Plan, tell: Tell) -> Ablated:
    """Store the set once and ask its questions in every way; `tell` hears how far it is."""
    assistant, default = direct.assistant, direct.request.ranking
    await store_set(assistant, given, tell)
    asked = await ask_questions(assistant, given.some(plan.questions), plan, tell)
    questions = [one.question for one in asked]
    recalls = [recall_at(10, one.sources, one.question.evidence) for one in asked]
    again = await _ask_all(direct, questions, default, partial(_hear, tell, "as it is", len(asked)))
    differing = sum(ours != one.sources for ours, one in zip(again, asked, strict=True))
    without = []
    for turn, ablation in enumerate(ABLATIONS, start=2):
        changed = ablation.of(default)
        if changed == default:
            without.append(Without(ablation.name, recalls, unchanged=True))
        elif changed.dense or changed.keyword:  # else the default is this one branch, and nothing would be left
            heard = partial(_hear, tell, f"without {ablation.name}", turn * len(asked))
            found = await _ask_all(direct, questions, changed, heard)
            pairs = zip(found, questions, strict=True)
            without.append(Without(ablation.name, [recall_at(10, ranking, one.evidence) for ranking, one in pairs]))
    done = (len(ABLATIONS) + 2) * len(asked)
    sweep = await _sweep(direct, questions, partial(_hear, tell, "sweeping constant-weight RRF", done))
    return Ablated(Measured(given.name, plan, assistant.kept, asked), recalls, differing, without, sweep)


async def _ask_all(
    direct: Direct, questions: Sequence[Question], ranking: Ranking, heard: Callable[[int], None]
) -> list[list[str]]:
    found = []
    for place, question in enumerate(questions, start=1):
        found.append(await direct.sources(question, ranking))
        heard(place)
    return found


def _hear(tell: Tell, words: str, before: int, place: int) -> None:
    tell(before + place, words)


async def _sweep(
    direct: Direct, questions: Sequence[Question], heard: Callable[[int], None]
) -> dict[Constant, list[float]]:
    ranking, limit = direct.request.ranking, direct.request.limit
    sources, sessions = await everything(direct.assistant, ranking)
    fetched = min(ranking.fetch(limit), MAX_LIMIT)
    found: dict[Constant, list[float]] = {setting: [] for setting in GRID}
    for place, question in enumerate(questions, start=1):
        lists = await direct.lists(question, ranking, fetched)
        for setting, recalls in found.items():
            best = ranked(lists, setting, sessions, ranking.neighbours, fetched=fetched, limit=limit)
            recalls.append(recall_at(10, [sources[id_] for id_ in best], question.evidence))
        heard(place)
    return found


async def everything(assistant: Assistant, ranking: Ranking = Ranking()) -> tuple[dict[str, str], Sessions[str]]:
    """The source of every memory stored, by id, and where those of a session stand; listed page by page."""
    sources: dict[str, str] = {}
    places: dict[str, Place] = {}
    rooms: dict[str, float] = {}
    cursor: str | None = None
    while True:
        page: dict[str, Any] = {"query": "*", "limit": 100, "format": "detailed"}
        answer = await assistant.call("memory_recall", page | ({"cursor": cursor} if cursor else {}))
        for memory in answer["memories"]:
            sources[memory["id"]] = memory["source"]
            text = memory["content"]
            rooms[memory["id"]] = room(guessed_length(text), ranking, asks=is_question(text))
            if "session" in memory and "position" in memory:
                places[memory["id"]] = (memory["namespace"], memory["session"], memory["position"])
        cursor = answer.get("cursor")
        if cursor is None:
            return sources, Sessions.of(places, rooms)
