"""How well the score of an answer tells a question that can be answered from one that cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from folklore.bench.assistant import Arguments, Assistant, Kept
from folklore.bench.foreign import Foreign, foreign_questions
from folklore.bench.metrics import mean, recall_at
from folklore.bench.retrieval import Tell, store_set
from folklore.bench.sets import Question, RetrievalSet
from folklore.bench.statistics import auroc, floor_keeping

FLOORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_ANSWERED = 0.95
_ROUNDING = 0.0005  # scores are told with three decimals


@dataclass(frozen=True, slots=True)
class Scored:
    """A question, the best score of its answer and that of its first result (0 if it is empty), and its R@10."""

    question: Question
    best: float
    first: float
    recall: float


@dataclass(frozen=True, slots=True)
class Floor:
    """What a min_score does. `answered` of the real questions, `refused` of the foreign ones, as shares.

    `precision`: of the questions that still get an answer, the share that has one; both kinds weigh the same.
    `recall` is R@10 as asked with this min_score, which drops single results; `whole` is R@10 if only those answers
    were refused whose best result is below it, and the others came whole. The costs are what they are below R@10
    without a floor.
    """

    min_score: float
    answered: float
    refused: float
    precision: float
    recall: float
    cost: float
    whole: float
    whole_cost: float

    def as_json(self) -> dict[str, float]:
        """Rounded."""
        values = {
            "min_score": self.min_score,
            "answered": self.answered,
            "refused": self.refused,
            "precision": self.precision,
            "R@10": self.recall,
            "cost": self.cost,
            "R@10_whole_answers": self.whole,
            "cost_whole_answers": self.whole_cost,
        }
        return {name: round(value, 4) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Abstained:
    """What a run over one set gave."""

    name: str
    kept: Kept
    foreign: Foreign
    real: list[Scored]
    strange: list[Scored]
    at_95: Floor | None
    floors: list[Floor]

    @property
    def auroc(self) -> float:
        """The probability that a real question's best score is above a foreign one's."""
        return auroc([one.best for one in self.real], [one.best for one in self.strange])

    @property
    def auroc_of_first(self) -> float:
        """The same of the first result's score, which is not always the best."""
        return auroc([one.first for one in self.real], [one.first for one in self.strange])

    def by_category(self) -> dict[str, float]:
        """The AUROC of each category of questions against its own foreign twins."""
        names = sorted({one.question.category for one in self.real})
        return {
            name: auroc(
                [one.best for one in self.real if one.question.category == name],
                [one.best for one in self.strange if one.question.category == name],
            )
            for name in names
        }

    def as_json(self) -> dict[str, Any]:
        """All of it, rounded."""
        document: dict[str, Any] = {"set": self.name, "stored": self.kept.stored}
        if self.foreign.why_not is not None or self.at_95 is None:
            return document | {"applies": False, "reason": self.foreign.why_not}
        return document | {
            "applies": True,
            "questions": len(self.real),
            "foreign": len(self.strange),
            "AUROC": round(self.auroc, 4),
            "AUROC_of_first": round(self.auroc_of_first, 4),
            "AUROC_by_category": {name: round(value, 4) for name, value in self.by_category().items()},
            "R@10": round(mean([one.recall for one in self.real]), 4),
            "at_95_answered": self.at_95.as_json(),
            "floors": [floor.as_json() for floor in self.floors],
        }


def precision(answered: float, refused: float) -> float:
    """Of the questions that get an answer the share that has one, were there as many of either kind; 1 of none."""
    wrong = 1.0 - refused
    return answered / (answered + wrong) if answered + wrong > 0 else 1.0


async def abstain(
    assistant: Assistant,
    given: RetrievalSet,
    questions: Sequence[Question],
    tell: Tell,
    *,
    limit: int,
    options: Arguments,
    floors: Sequence[float] = FLOORS,
) -> Abstained:
    """Store the set; ask its questions, the same of other conversations, and the first again at every floor."""
    asked = [question for question in questions if question.evidence]
    foreign = foreign_questions(given, asked)
    if foreign.why_not is not None:
        return Abstained(given.name, assistant.kept, foreign, [], [], None, [])
    await store_set(assistant, given, tell)
    real = await _ask(assistant, asked, limit, options, tell, 0)
    strange = await _ask(assistant, foreign.questions, limit, options, tell, len(real))
    lowest = max(floor_keeping(_ANSWERED, [one.best for one in real]) - _ROUNDING, 0.0)
    tried = []
    for place, min_score in enumerate((lowest, *floors)):
        ranking = {**options.get("ranking", {}), "min_score": min_score}
        before = len(real) + len(strange) + place * len(real)
        again = await _ask(assistant, asked, limit, {**options, "ranking": ranking}, tell, before)
        tried.append(_floor(min_score, real, strange, again))
    return Abstained(given.name, assistant.kept, foreign, real, strange, tried[0], tried[1:])


def asked_in_all(given: RetrievalSet, count: int | None, floors: Sequence[float] = FLOORS) -> int:
    """How many answers a run takes, for a bar."""
    return (3 + len(floors)) * len(given.some(count))


def _floor(min_score: float, real: Sequence[Scored], strange: Sequence[Scored], again: Sequence[Scored]) -> Floor:
    answered = mean([float(one.best >= min_score) for one in real])
    refused = mean([float(one.best < min_score) for one in strange])
    before, found = mean([one.recall for one in real]), mean([one.recall for one in again])
    whole = mean([one.recall if one.best >= min_score else 0.0 for one in real])
    return Floor(
        min_score, answered, refused, precision(answered, refused), found, before - found, whole, before - whole
    )


async def _ask(
    assistant: Assistant, questions: Sequence[Question], limit: int, options: Mapping[str, Any], tell: Tell, done: int
) -> list[Scored]:
    found = []
    for place, question in enumerate(questions, start=1):
        told = await assistant.ask(question.query, question.namespaces, limit, dict(options))
        recall = recall_at(10, told.sources, question.evidence)
        found.append(Scored(question, max(told.scores, default=0.0), next(iter(told.scores), 0.0), recall))
        tell(done + place, f"asked {place:,} of {len(questions):,}")
    return found
