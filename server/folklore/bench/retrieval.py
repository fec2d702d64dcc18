"""Store a set, ask all its questions, and say how much of the evidence came back, where, and how fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from folklore.bench.assistant import Arguments, Assistant, Kept
from folklore.bench.metrics import all_at, hit_at, mean, ndcg_at, percentile, recall_at, reciprocal_rank
from folklore.bench.sets import Question, RetrievalSet

Tell = Callable[[int, str], None]
_R20 = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the sources that came back; `wide` are those of an answer of 20, if that was asked for."""

    question: Question
    sources: list[str]
    seconds: float
    degraded: bool
    wide: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to ask: `options` are further arguments of memory_recall."""

    limit: int = 10
    questions: int | None = None
    with_r20: bool = False
    options: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run over one set gave."""

    name: str
    plan: Plan
    kept: Kept
    asked: list[Asked]

    def scores(self) -> dict[str, dict[str, float]]:
        """Every metric, as the mean over questions: over all of them, then by category."""
        by_category: dict[str, list[Asked]] = {}
        for one in self.asked:
            by_category.setdefault(one.question.category, []).append(one)
        parts = {"all": self.asked} | (dict(sorted(by_category.items())) if len(by_category) > 1 else {})
        return {name: scores_of(part) for name, part in parts.items()}

    def latency(self) -> dict[str, float]:
        """Milliseconds a recall took, as the client waits."""
        taken = [one.seconds * 1000 for one in self.asked]
        return {f"p{round(share * 100)}": percentile(taken, share) for share in (0.5, 0.95, 0.99)}

    def as_json(self) -> dict[str, Any]:
        """All of it, rounded."""
        scores = {
            part: {name: value if name == "questions" else round(value, 4) for name, value in found.items()}
            for part, found in self.scores().items()
        }
        return {
            "set": self.name,
            "limit": self.plan.limit,
            "options": self.plan.options,
            "stored": self.kept.stored,
            "duplicates": self.kept.duplicates,
            "refused": self.kept.refused,
            "store_seconds": round(self.kept.seconds, 3),
            "store_rate": round(self.kept.rate),
            "degraded": sum(one.degraded for one in self.asked),
            "latency_ms": {name: round(value, 2) for name, value in self.latency().items()},
            "scores": scores,
        }


def scores_of(asked: Sequence[Asked]) -> dict[str, float]:
    """The mean over questions of each metric."""
    pairs = [(one.sources, one.question.evidence) for one in asked]
    wide = [(one.wide, one.question.evidence) for one in asked if one.wide is not None]
    scores = {
        "questions": len(asked),
        "hit@5": mean([hit_at(5, *pair) for pair in pairs]),
        "R@5": mean([recall_at(5, *pair) for pair in pairs]),
        "R@10": mean([recall_at(10, *pair) for pair in pairs]),
        "all@10": mean([all_at(10, *pair) for pair in pairs]),
        "MRR": mean([reciprocal_rank(*pair) for pair in pairs]),
        "nDCG@10": mean([ndcg_at(10, *pair) for pair in pairs]),
    }
    return scores | ({"R@20": mean([recall_at(_R20, *pair) for pair in wide])} if wide else {})


async def measure(assistant: Assistant, given: RetrievalSet, plan: Plan, tell: Tell) -> Measured:
    """Store the set and ask its questions, one after the other; `tell` hears how far it is."""
    await store_set(assistant, given, tell)
    asked = await ask_questions(assistant, given.some(plan.questions), plan, tell)
    return Measured(given.name, plan, assistant.kept, asked)


async def store_set(assistant: Assistant, given: RetrievalSet, tell: Tell) -> None:
    """Store the memories, namespace by namespace."""
    for namespace, memories in given.memories.items():
        await assistant.keep(namespace, memories)
        kept = assistant.kept
        tell(0, f"stored {kept.stored + kept.duplicates:,} of {given.size:,}")


async def ask_questions(assistant: Assistant, questions: Sequence[Question], plan: Plan, tell: Tell) -> list[Asked]:
    """Ask those questions that name evidence."""
    asked: list[Asked] = []
    answerable = [question for question in questions if question.evidence]
    for place, question in enumerate(answerable):
        if place == 0:  # the first recall of a connection prepares its statements; every later one finds them
            await assistant.ask(question.query, question.namespaces, plan.limit, plan.options)
        told = await assistant.ask(question.query, question.namespaces, plan.limit, plan.options)
        wide = None
        if plan.with_r20:
            wide = (await assistant.ask(question.query, question.namespaces, _R20, plan.options)).sources
        asked.append(Asked(question, told.sources, told.seconds, told.degraded, wide))
        tell(place + 1, f"asked {place + 1:,} of {len(answerable):,}")
    return asked
