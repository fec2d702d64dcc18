"""Abstention: does the score of an answer separate questions that have an answer from questions that have none?

A question of one conversation has no answer in another one. It is asked there as it is, and with the names of that
one's speakers: then the style and the names are the same, and no memory holds the answer.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.command_line import (
    Benchmark,
    Options,
    main,
    print_json,
    print_table,
    track,
)
from benchmarks.metrics import auroc, floor_keeping, mean, recall_at
from benchmarks.sets import Question, RetrievalSet, read_set
from benchmarks.store import Arguments, Store, open_store

FLOORS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_ANSWERED = 0.95
_ROUNDING = 0.0005  # answers give scores with three decimals
# A turn begins with its speaker: "Caroline: Hey!".
_SPEAKER = re.compile(r"([^\W\d_][^:\n(){}\[\]]{0,29}):\s")
# Below this share of the turns a name before a colon is a quotation or a heading.
_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Foreign:
    """Questions without an answer: with the names of the hosts and as they are, or the reason why a set has none."""

    questions: list[Question]
    as_they_are: list[Question] = field(default_factory=list)
    reason: str | None = None


def speakers_of(contents: Sequence[str]) -> list[str]:
    """Return the names before a colon that at least a fifth of the turns begin with."""
    found = Counter(
        match.group(1) for text in contents if (match := _SPEAKER.match(text))
    )
    return [
        name for name, count in found.most_common() if count >= _SHARE * len(contents)
    ]


def renamed(guests: Sequence[str], hosts: Sequence[str]) -> dict[str, str]:
    """Map each guest to a host: a shared name stays, the other guests take the other hosts' names in turn."""
    free = [name for name in hosts if name not in guests] or list(hosts)
    strangers = [name for name in guests if name not in hosts]
    return {name: name for name in guests if name in hosts} | {
        name: free[place % len(free)] for place, name in enumerate(strangers)
    }


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replace whole names, all at once and in any case."""
    if not names:
        return text
    lowered = {name.casefold(): host for name, host in names.items()}
    choices = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(
        rf"(?<!\w)(?:{choices})(?!\w)",
        lambda match: lowered.get(match.group().casefold(), match.group()),
        text,
        flags=re.IGNORECASE,
    )


def foreign_questions(given: RetrievalSet, questions: Sequence[Question]) -> Foreign:
    """Return each question of one conversation, asked of the next one of the set (of the first after the last)."""
    if len(given.memories) < 2:
        return Foreign(
            [],
            reason="the set has one namespace: there is no other conversation to ask",
        )
    speakers = {
        name: found
        for name, memories in given.memories.items()
        if (found := speakers_of([str(memory["content"]) for memory in memories]))
    }
    if len(speakers) < 2:
        return Foreign(
            [],
            reason="the memories name no speakers (Name: …), so these are not conversations",
        )
    names = list(speakers)
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    asked = []
    as_they_are = []
    for question in questions:
        own = question.namespaces[0] if len(question.namespaces) == 1 else None
        if own in following:
            host = following[own]
            query = with_names(question.query, renamed(speakers[own], speakers[host]))
            asked.append(replace(question, query=query, namespaces=(host,)))
            as_they_are.append(replace(question, namespaces=(host,)))
    if not asked:
        return Foreign([], reason="no question is asked of one conversation alone")
    return Foreign(asked, as_they_are)


@dataclass(frozen=True, slots=True)
class Scored:
    """A question, the best score and the first score of its answer (0 if it is empty), its R@10, and its match.

    `fits` is true if any result is a strong or fair match; `tokens` are those of the answer as JSON.
    """

    question: Question
    best: float
    first: float
    recall: float
    fits: bool
    tokens: float


@dataclass(frozen=True, slots=True)
class Floor:
    """Effect of a `min_score`, as shares.

    `precision` is answered / (answered + 1 - refused): the share of answerable questions among those that get an
    answer, if there are as many of either kind. `recall` is R@10 asked with this floor, which drops single results;
    the last one is R@10 if only answers whose best result is below the floor are refused.
    """

    min_score: float
    answered: float
    refused: float
    precision: float
    recall: float
    recall_of_whole_answers: float


@dataclass(frozen=True, slots=True)
class Abstained:
    """Result of a run: scores of the answerable and of the foreign questions, and the floors; the first one keeps 95 %
    of the answerable questions. `as_they_are` are foreign questions with their own names, `whole` the answerable ones
    without any floor."""

    name: str
    stored: int
    reason: str | None
    real: list[Scored]
    foreign: list[Scored]
    floors: list[Floor]
    as_they_are: list[Scored] = field(default_factory=list)
    whole: list[Scored] = field(default_factory=list)

    def areas(self) -> dict[str, float]:
        """Return the AUROC by the best score, by the first score, and by the best score in each category."""
        found = {
            "as they are": auroc(
                [one.best for one in self.real], [one.best for one in self.as_they_are]
            ),
            "best score": auroc(
                [one.best for one in self.real], [one.best for one in self.foreign]
            ),
            "first score": auroc(
                [one.first for one in self.real], [one.first for one in self.foreign]
            ),
        }
        for name in sorted({one.question.category for one in self.real}):
            sides = [
                [one.best for one in side if one.question.category == name]
                for side in (self.real, self.foreign)
            ]
            found[name] = auroc(*sides)
        return found

    def silence(self) -> list[dict[str, Any]]:
        """Return, for each kind of question, the share with a strong or fair match, the mean tokens, and R@10."""
        kinds = {
            "answerable": self.real,
            "answerable, without the floor": self.whole,
            "foreign, as they are": self.as_they_are,
            "foreign, with the names": self.foreign,
        }
        return [
            {
                "questions": name,
                "strong or fair": mean([float(one.fits) for one in asked]),
                "tokens": mean([one.tokens for one in asked]),
                "R@10": mean([one.recall for one in asked]),
            }
            for name, asked in kinds.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """Return everything."""
        document: dict[str, Any] = {
            "set": self.name,
            "stored": self.stored,
            "applies": self.reason is None,
        }
        if self.reason is not None:
            return document | {"reason": self.reason}
        floors = [asdict(floor) for floor in self.floors]
        return document | {
            "questions": len(self.real),
            "foreign": len(self.foreign),
            "AUROC": self.areas(),
            "R@10": mean([one.recall for one in self.real]),
            "silence": self.silence(),
            "at_95_answered": floors[0],
            "floors": floors[1:],
        }


def precision(answered: float, refused: float) -> float:
    """Return answered / (answered + 1 - refused); 1 if no question gets an answer."""
    wrong = 1.0 - refused
    return answered / (answered + wrong) if answered + wrong > 0 else 1.0


async def abstain(
    given: RetrievalSet, options: Options, floors: Sequence[float]
) -> Abstained:
    """Store the set; ask its questions, their foreign twins, and its questions again with every floor."""
    questions = given.sample(options.questions)
    foreign = foreign_questions(given, questions)
    if foreign.reason is not None:
        return Abstained(given.name, 0, foreign.reason, [], [], [])
    async with open_store(options.home and options.home / given.name) as store:
        await store.fill(given)
        real = await _ask(store, questions, options.limit, options.arguments)
        strange = await _ask(store, foreign.questions, options.limit, options.arguments)
        as_they_are = await _ask(
            store, foreign.as_they_are, options.limit, options.arguments
        )
        lifted = {"ranking": {**options.ranking, "min_score": 0.0}}
        whole = await _ask(store, questions, options.limit, options.arguments | lifted)
        lowest = max(
            floor_keeping(_ANSWERED, [one.best for one in real]) - _ROUNDING, 0.0
        )
        found = []
        for min_score in (lowest, *floors):
            ranking = {"ranking": {**options.ranking, "min_score": min_score}}
            found.append(
                _floor(
                    min_score,
                    real,
                    strange,
                    await _ask(store, questions, options.limit, ranking),
                )
            )
        return Abstained(
            given.name,
            store.counts.stored,
            None,
            real,
            strange,
            found,
            as_they_are,
            whole,
        )


def _floor(
    min_score: float,
    real: Sequence[Scored],
    foreign: Sequence[Scored],
    again: Sequence[Scored],
) -> Floor:
    answered = mean([float(one.best >= min_score) for one in real])
    refused = mean([float(one.best < min_score) for one in foreign])
    whole = mean([one.recall if one.best >= min_score else 0.0 for one in real])
    return Floor(
        min_score,
        answered,
        refused,
        precision(answered, refused),
        mean([one.recall for one in again]),
        whole,
    )


async def _ask(
    store: Store, questions: Sequence[Question], limit: int, options: Arguments
) -> list[Scored]:
    found = []
    for question in track(questions, "Asking"):
        answer = await store.ask(
            question.query, question.namespaces, limit, options | {"format": "concise"}
        )
        recall = recall_at(10, answer.sources, question.evidence)
        best = max(answer.scores, default=0.0)
        first = next(iter(answer.scores), 0.0)
        found.append(Scored(question, best, first, recall, answer.fits, answer.tokens))
    return found


@click.command(cls=Benchmark)
@click.argument(
    "set_", metavar="SET.jsonl", type=click.Path(path_type=Path, dir_okay=False)
)
@click.option(
    "--floor",
    "floors",
    type=click.FloatRange(0, 1),
    multiple=True,
    help="A min_score; repeatable. Default: six.",
)
def abstention(set_: Path, floors: tuple[float, ...], options: Options) -> None:
    """Compare the scores of questions that SET answers with those of questions that it does not answer.

    The unanswerable questions are the set's own, each asked of the next conversation (namespace) of the set, as it is
    and with the names of its speakers replaced by that one's. Speakers are the names before a colon that at least a
    fifth of a namespace's memories begin with. A set with one namespace or without speakers cannot be measured.

    The score of an answer is that of its best result, 0 if it is empty. AUROC is the probability that the score of a
    real question is above that of an unanswerable one. For each floor: the share of real questions answered and of the
    others refused, the precision, and R@10.
    """
    found = asyncio.run(abstain(read_set(set_), options, floors or FLOORS))
    if options.as_json:
        print_json(found.as_json())
    elif found.reason is not None:
        click.echo(f"{found.name}: does not apply: {found.reason}.")
    else:
        click.echo(
            f"{found.name}: {len(found.real):,} questions, {len(found.foreign):,} without an answer"
        )
        print_table(found.silence())
        print_table(
            [{"by": name, "AUROC": value} for name, value in found.areas().items()]
        )
        click.echo(
            f"At 95 % answered {found.floors[0].refused:.1%} of the others are refused"
        )
        print_table([asdict(floor) for floor in found.floors])


if __name__ == "__main__":
    main(abstention)
