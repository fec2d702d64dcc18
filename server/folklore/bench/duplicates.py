"""What near-duplicates do to an answer, and what diversity (MMR) saves of it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from folklore.bench.assistant import Arguments, Assistant, Kept
from folklore.bench.metrics import mean, recall_at
from folklore.bench.retrieval import Tell, store_set
from folklore.bench.rewording import rewordings
from folklore.bench.sets import Question, RetrievalSet
from folklore.bench.statistics import Interval, paired_bootstrap

_MARK = "\u241f"  # between a source and the number of its copy: in no source of anybody's
_PREFIX = "copied-"


@dataclass(frozen=True, slots=True)
class Counted:
    """A question's ten with many copies about, each with MMR (as the options say) and without: how many different
    evidence of its own, different evidence of any question, and different texts. Then R@10 of the plain set."""

    evidence: int
    own_with: int
    own_without: int
    any_with: int
    any_without: int
    texts_with: int
    texts_without: int
    plain_with: float
    plain_without: float


@dataclass(frozen=True, slots=True)
class Duplicated:
    """What a run over one set gave; `copied` memories were stored five times, `missing` rewordings were refused or
    known already."""

    name: str
    kept: Kept
    copied: int
    missing: int
    counted: list[Counted]

    def gain(self) -> Interval:
        """Different evidence of its own that a question gets with MMR minus without."""
        return paired_bootstrap([float(one.own_with - one.own_without) for one in self.counted])

    def cost(self) -> Interval:
        """R@10 of the plain set with MMR minus without."""
        return paired_bootstrap([one.plain_with - one.plain_without for one in self.counted])

    def as_json(self) -> dict[str, Any]:
        """All of it, rounded."""
        several = [one for one in self.counted if one.evidence > 1]
        return {
            "set": self.name,
            "stored": self.kept.stored,
            "copied": self.copied,
            "missing_copies": self.missing,
            "questions": len(self.counted),
            "distinct_evidence": _both(self.counted, "any"),
            "distinct_own_evidence": _both(self.counted, "own"),
            "distinct_own_evidence_of_several": _both(several, "own") | {"questions": len(several)},
            "distinct_texts": _both(self.counted, "texts"),
            "plain_R@10": _both(self.counted, "plain") | self.cost().as_json(),
        }


def _both(counted: Sequence[Counted], name: str) -> dict[str, Any]:
    """The means with MMR and without, and the first over the second; no ratio where there is nothing without."""
    with_, without = (mean([getattr(one, f"{name}_{which}") for one in counted]) for which in ("with", "without"))
    ratio = round(with_ / without, 3) if without else None
    return {"with": round(with_, 4), "without": round(without, 4), "ratio": ratio}


def original(source: str) -> str:
    """The source that a copy is of; its own for any other memory."""
    return source.partition(_MARK)[0]


def distinct(k: int, ranked: Sequence[str]) -> int:
    """How many different originals are among the first k."""
    return len({original(source) for source in ranked[:k]})


def distinct_evidence(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> int:
    """How many of the evidence are among the first k, as themselves or as any of their copies."""
    return len({original(source) for source in ranked[:k]} & evidence)


def evidence_by_namespace(given: RetrievalSet) -> dict[str, set[str]]:
    """The sources that are evidence of some question of the set."""
    found: dict[str, set[str]] = {name: set() for name in given.memories}
    for question in given.questions:
        for name in _asked(given, question):
            found.setdefault(name, set()).update(question.evidence)
    return found


def copied_set(given: RetrievalSet, *, in_session: bool = False) -> tuple[RetrievalSet, int, int]:
    """The set in namespaces of its own with each evidence stored five times; how many those are, and how many copies
    that makes.

    A rewording stands where somebody noted the fact again: same namespace and time, last, and in no session, so that
    neither it nor the original lends to the other; or, `in_session`, right behind the original.
    """
    evidence = evidence_by_namespace(given)
    memories: dict[str, list[Arguments]] = {}
    originals = copies = 0
    for name, held in given.memories.items():
        ordered: list[Arguments] = []
        last: list[Arguments] = []
        for memory in held:
            ordered.append(memory)
            if str(memory.get("source")) not in evidence[name]:
                continue
            originals += 1
            left_out = ("idempotency_key",) if in_session else ("idempotency_key", "session")
            kept = {field: value for field, value in memory.items() if field not in left_out}
            again = [
                kept | {"content": text, "source": f"{memory['source']}{_MARK}{place}"}
                for place, text in enumerate(rewordings(str(memory["content"])), start=2)
            ]
            copies += len(again)
            (ordered if in_session else last).extend(again)
        memories[_PREFIX + name] = ordered + last
    return RetrievalSet(given.name, memories, given.questions), originals, copies


def _asked(given: RetrievalSet, question: Question) -> Sequence[str]:
    return question.namespaces or tuple(given.memories)


async def duplicates(
    assistant: Assistant,
    given: RetrievalSet,
    questions: Sequence[Question],
    tell: Tell,
    *,
    limit: int,
    options: Arguments,
    in_session: bool = False,
) -> Duplicated:
    """Store the plain set and the one with copies; ask each question of both, with MMR and without."""
    asked = [question for question in questions if question.evidence]
    copied, originals, copies = copied_set(given, in_session=in_session)
    await store_set(assistant, given, tell)
    plain = assistant.kept.stored
    await store_set(assistant, copied, tell)
    missing = plain + copies - (assistant.kept.stored - plain)
    relevance_alone = {**options, "ranking": {**options.get("ranking", {}), "mmr_lambda": 1.0}}
    evidence, counted = evidence_by_namespace(given), []
    for place, question in enumerate(asked, start=1):
        own = tuple(_asked(given, question))
        names = tuple(_PREFIX + name for name in own)
        rankings = [
            (await assistant.ask(question.query, scope, limit, how)).sources
            for scope in (names, own)
            for how in (options, relevance_alone)
        ]
        copied_here = set().union(*(evidence[name] for name in own))
        counted.append(
            Counted(
                len(question.evidence),
                *(distinct_evidence(10, ranking, question.evidence) for ranking in rankings[:2]),
                *(distinct_evidence(10, ranking, copied_here) for ranking in rankings[:2]),
                *(distinct(10, ranking) for ranking in rankings[:2]),
                *(recall_at(10, ranking, question.evidence) for ranking in rankings[2:]),
            )
        )
        tell(place, f"asked {place:,} of {len(asked):,}, each four times")
    return Duplicated(given.name, assistant.kept, originals, missing, counted)
