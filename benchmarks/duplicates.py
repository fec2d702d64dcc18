"""Duplicates: how much do near-duplicates take of an answer, and how much of it does diversity (MMR) give back?"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import asdict, dataclass
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
from benchmarks.metrics import Sample, interval, mean, recall_at
from benchmarks.sets import RetrievalSet, read_set
from benchmarks.store import Arguments, open_store

COUNTS = ("distinct evidence", "distinct own evidence", "distinct texts", "plain R@10")
COPIES = 5  # of each text: its own wording and four others
_MARK = "\u241f"  # separates a source from the number of its copy; occurs in no source
_PREFIX = "copied-"

# Rewordings: rules without chance, as people note a fact several times. Names, numbers and content words stay.

_SPEAKER = re.compile(r"[^\W\d_][^:\n(){}\[\]]{0,29}:\s+")
_CONTRACTIONS = {
    "i'm": "I am", "i've": "I have", "i'll": "I will", "it's": "it is", "that's": "that is", "don't": "do not",
    "doesn't": "does not", "didn't": "did not", "can't": "cannot", "isn't": "is not", "we're": "we are",
    "we've": "we have", "you're": "you are", "you've": "you have", "there's": "there is", "won't": "will not",
}  # fmt: skip
_EXPANDED = {long.casefold(): short for short, long in _CONTRACTIONS.items()}
_SYNONYMS = {
    "also": "too", "because": "since", "but": "yet", "however": "though", "really": "truly", "very": "quite",
    "maybe": "perhaps", "about": "around", "often": "frequently", "must": "has to", "get": "obtain",
    "got": "obtained", "big": "large", "start": "begin", "started": "began", "lots of": "many",
    "a lot of": "plenty of", "in order to": "to", "for example": "for instance", "such as": "like",
    "wanted to": "wished to", "want to": "wish to",
}  # fmt: skip
_LOWERED = frozenset(
    "a an he it its my our she that the there these they this those we what when you your".split()
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CLAUSES = re.compile(
    r"^(\S.*?\S),?\s+(because|since|when|if|while|although)\s+(\S.*?\S)([.!?]*)$",
    re.I | re.S,
)


def rewordings(text: str, count: int = COPIES - 1) -> list[str]:
    """Return `count` rewordings; no two of them, nor the text, have the same normalised words."""
    speaker = _SPEAKER.match(text)
    start = speaker.end() if speaker else 0
    head = text[:start]
    body = text[start:]
    seen = {normalised(text)}
    found = []
    for place in range(count):
        lead, rule = _RULES[place % len(_RULES)]
        worded = _led(lead, rule(body))
        while normalised(head + worded) in seen:  # every lead adds words, so this ends
            worded = _led("Once more:", worded)
        seen.add(normalised(head + worded))
        found.append(head + worded)
    return found


def normalised(text: str) -> str:
    """Return the words alone: lower case, composed, without punctuation and white space."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _with_synonyms(text: str) -> str:
    return _replaced(text, _SYNONYMS)


def _with_contractions(text: str) -> str:
    opened = _replaced(text.replace("\u2019", "'"), _CONTRACTIONS)
    return _replaced(text, _EXPANDED) if opened == text else opened


def _with_clauses_moved(text: str) -> str:
    """Swap the first two sentences, or the two clauses of a single sentence."""
    if "\n" in text.strip():
        return text  # code and lists have an order
    sentences = _SENTENCE_END.split(text.strip())
    if len(sentences) > 1:
        return " ".join([sentences[1], sentences[0], *sentences[2:]])
    clauses = _CLAUSES.match(text.strip())
    if clauses is None:
        return text
    first, word, second, end = clauses.groups()
    return f"{word[:1].upper()}{word[1:]} {second}, {_lowered(first)}{end}"


def _with_other_punctuation(text: str) -> str:
    return re.sub(
        r"\s+[-\u2013\u2014]+\s+",
        ", ",
        re.sub(r"[!?]+(?=\s|$)", ".", text.replace(";", ",")),
    )


_RULES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("So,", _with_synonyms),
    ("Just to note:", _with_contractions),
    ("As I said,", _with_clauses_moved),
    ("By the way,", _with_other_punctuation),
)


def _led(lead: str, text: str) -> str:
    return f"{lead} {_lowered(text)}".rstrip()


def _lowered(text: str) -> str:
    first = re.match(r"\w+", text)
    return (
        text[:1].lower() + text[1:]
        if first and first.group().casefold() in _LOWERED
        else text
    )


def _replaced(text: str, words: Mapping[str, str]) -> str:
    choices = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))

    def other(match: re.Match[str]) -> str:
        word = words[match.group().casefold()]
        return word[:1].upper() + word[1:] if match.group()[:1].isupper() else word

    return re.sub(
        rf"(?<![\w'])(?:{choices})(?![\w'])",
        other,
        text,
        flags=re.IGNORECASE | re.ASCII,
    )


# The measurement


@dataclass(frozen=True, slots=True)
class Duplicated:
    """Result of a run: `copied` memories were stored five times.

    `counted` has a pair per question, with MMR and without: distinct evidence of any question among ten, distinct
    evidence of its own, distinct texts, and R@10 of the plain set.
    """

    name: str
    stored: int
    duplicates: int
    copied: int
    counted: Mapping[str, list[tuple[float, float]]]

    def table(self) -> list[dict[str, Any]]:
        """Return a line per count: the means with MMR and without, their ratio, and the interval of the difference."""
        lines = []
        for name, pairs in self.counted.items():
            with_mmr = mean([one for one, _ in pairs])
            without = mean([other for _, other in pairs])
            means = {
                "with": with_mmr,
                "without": without,
                "ratio": with_mmr / without if without else None,
            }
            lines.append(
                {"in ten": name}
                | means
                | asdict(interval(Sample([one - other for one, other in pairs])))
            )
        return lines


def original(source: str) -> str:
    """Return the source that a copy is of; any other source is its own."""
    return source.partition(_MARK)[0]


def distinct(k: int, ranked: Sequence[str]) -> int:
    """Return the number of different originals among the first k."""
    return len({original(source) for source in ranked[:k]})


def distinct_evidence(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> int:
    """Return how many of the evidence are among the first k, as themselves or as any of their copies."""
    return len({original(source) for source in ranked[:k]} & evidence)


def evidence_by_namespace(given: RetrievalSet) -> dict[str, set[str]]:
    """Return the sources that are evidence of any question of the set."""
    found: dict[str, set[str]] = {name: set() for name in given.memories}
    for question in given.questions:
        for name in given.asked(question):
            found.setdefault(name, set()).update(question.evidence)
    return found


def copied_set(given: RetrievalSet) -> tuple[RetrievalSet, int]:
    """Return the set in other namespaces with each evidence stored five times, and the number of those.

    The copies come last in their namespace and in no session, so that they get no score from neighbours.
    """
    evidence = evidence_by_namespace(given)
    memories: dict[str, list[Arguments]] = {}
    originals = 0
    for name, held in given.memories.items():
        copies: list[Arguments] = []
        for memory in held:
            if str(memory.get("source")) in evidence[name]:
                originals += 1
                kept = {
                    field: value
                    for field, value in memory.items()
                    if field not in ("idempotency_key", "session")
                }
                copies += [
                    kept
                    | {"content": text, "source": f"{memory['source']}{_MARK}{place}"}
                    for place, text in enumerate(
                        rewordings(str(memory["content"])), start=2
                    )
                ]
        memories[_PREFIX + name] = [*held, *copies]
    return RetrievalSet(given.name, memories, given.questions), originals


async def measure(given: RetrievalSet, options: Options) -> Duplicated:
    """Store the plain set and the one with copies; ask each question of both, with MMR and without."""
    copied, originals = copied_set(given)
    evidence = evidence_by_namespace(given)
    rankings = (options.arguments, {"ranking": {**options.ranking, "mmr_lambda": 1.0}})
    counted: dict[str, list[tuple[float, float]]] = {name: [] for name in COUNTS}
    async with open_store(
        options.home and options.home / f"{given.name}-copied"
    ) as store:
        await store.fill(
            RetrievalSet(given.name, given.memories | copied.memories, given.questions)
        )
        for question in track(given.sample(options.questions), "Asking"):
            own = given.asked(question)
            among, plain = [
                [
                    (
                        await store.ask(question.query, names, options.limit, ranking)
                    ).sources
                    for ranking in rankings
                ]
                for names in ([_PREFIX + name for name in own], own)
            ]
            copied_here = set().union(*(evidence[name] for name in own))
            both = [
                (
                    distinct_evidence(10, copies, copied_here),
                    distinct_evidence(10, copies, question.evidence),
                    distinct(10, copies),
                    recall_at(10, ranked, question.evidence),
                )
                for copies, ranked in zip(among, plain, strict=True)
            ]
            for name, with_mmr, without in zip(COUNTS, *both, strict=True):
                counted[name].append((with_mmr, without))
        return Duplicated(
            given.name, store.counts.stored, store.counts.duplicates, originals, counted
        )


@click.command(cls=Benchmark)
@click.argument(
    "set_", metavar="SET.jsonl", type=click.Path(path_type=Path, dir_okay=False)
)
def duplicates(set_: Path, options: Options) -> None:
    """Ask the questions of SET where each evidence is stored five times, with diversity (MMR) and without.

    Every memory that is evidence of a question is stored in its own words and in four rewordings made by rules:
    synonyms of function words, contractions opened or closed, clauses moved, other punctuation, each with a lead such
    as "So,". No two of the five have the same words, so this measures MMR and not the detection of same words.

    Distinct evidence is the number of different originals among the first ten, as themselves or as any of their copies:
    of all memories stored five times, then of the question's own evidence. The last row is R@10 on the plain set: the
    cost of diversity where nothing is stored twice.
    """
    found = asyncio.run(measure(read_set(set_), options))
    if options.as_json:
        values = {
            "set": found.name,
            "stored": found.stored,
            "duplicates": found.duplicates,
            "copied": found.copied,
        }
        print_json(values | {str(line.pop("in ten")): line for line in found.table()})
        return
    click.echo(
        f"{found.name}: {found.copied:,} of {found.stored:,} memories stored five times"
    )
    print_table(found.table())


if __name__ == "__main__":
    main(duplicates)
