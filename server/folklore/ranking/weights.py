"""Every number of a ranking in one frozen value, with the reason for its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from folklore.errors import InvalidInput
from folklore.model import FusionMethod
from folklore.ranking.signals import Signals

Branch = Literal["dense", "keyword"]
Expansion = Literal["relations", "entities"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are found, fused and diversified."""

    # rrf: reciprocal ranks and evidence, half and half. weighted: a sum of similarities as they are.
    fusion: FusionMethod = "rrf"
    # Weights of the branches; in rrf the model's own weight and how much of the question the words cover come on top of
    # the dense one.
    dense: float = 1.0
    keyword: float = 1.0
    # Short lists of 30 need a steeper fall than the k = 60 of Cormack et al. (benchmarks/RESULTS.md).
    rrf_k: float = 3.0
    # What ranks count beside evidence, which knows how far a hit stands out: either alone lost some set.
    rrf_share: float = 0.5
    fetch_multiplier: float = 3.0
    # What a session neighbour one and two places away lends of its own evidence, to a text of at least and at most so
    # many lexemes; shorter and longer ones gain less (ranking/neighbours.py), and so does one that asks.
    neighbours: tuple[float, ...] = (0.7, 0.5)
    neighbours_least: float = 16.0
    neighbours_length: float = 80.0
    neighbours_asking: float = 0.6
    # What a memory lends to those it has a relation of strength 1 with, either way.
    relations: float = 0.5
    # How much more counts what is as near to the question as the nearest candidate than what is no nearer than usual:
    # each branch brings its best, and so says nothing of what the other or a neighbour brought.
    nearness: float = 0.7
    # The evidence of vectors counts whole if the best stands out so many times further than chance would have it
    # (ranking/standard_scores.py); 0 never asks.
    standing: float = 1.1
    signals: Signals = Signals()
    mmr_lambda: float = 0.7
    # Results with less calibrated evidence are left out.
    min_score: float = 0.0
    # What else is looked for beside the results, marked as expanded: what they are related to, what names the same.
    expand: tuple[Expansion, ...] = ()
    reflection_boost: float = 1.0
    # BM25's k1, and tokens that every memory counts as longer (in place of a fixed b).
    saturation: float = 1.2
    length_prior: float = 20.0
    # How many postings a question may read; its rarest words are read first.
    postings_budget: int = 20_000

    def bound(self, characters: int) -> int:
        """How far a lexeme's documents are counted in a question so long: far in a short one, so that all are cheap."""
        return max(200, min(self.postings_budget, 1_000_000 // max(characters, 1)))

    def fetch(self, limit: int) -> int:
        """How many candidates each branch brings for an answer of `limit`."""
        return max(limit, round(limit * self.fetch_multiplier))

    def weight(self, branch: Branch) -> float:
        """The weight of a branch in the fusion."""
        return self.dense if branch == "dense" else self.keyword


PRESETS: dict[str, Ranking] = {
    "balanced": Ranking(),
    "keyword": Ranking(dense=0.0),
    "semantic": Ranking(keyword=0.0),
    "roaming": Ranking(keyword=0.0, relations=1.0, expand=("relations", "entities")),
}
# What has a weight beside the signals.
_OWN = ("dense", "keyword", "relations", "nearness")
_RANGES: dict[str, tuple[float, float]] = {
    "rrf_k": (0, 1_000),
    "rrf_share": (0, 1),
    "fetch_multiplier": (1, 20),
    "neighbours_least": (0.001, 100_000),
    "neighbours_length": (1, 100_000),
    "neighbours_asking": (0, 1),
    "standing": (0, 100),
    "relations": (0, 10),
    "mmr_lambda": (0, 1),
    "min_score": (0, 1),
    "reflection_boost": (0, 10),
}


def chosen(preset: str = "balanced", *, weights: Mapping[str, float] | None = None, **overrides: Any) -> Ranking:
    """A preset with some numbers of the caller's; None leaves the preset's.

    `weights` are those of the branches (dense, keyword), of what relations lend, of nearness, and of the signals by
    name. Raises InvalidInput that names the number and its range.
    """
    if preset not in PRESETS:
        raise InvalidInput("ranking.preset", f"unknown preset {preset!r}.", hint=f"Use one of {', '.join(PRESETS)}.")
    ranking = PRESETS[preset]
    given = {name: value for name, value in overrides.items() if value is not None}
    if not given and not weights:
        return ranking
    for name, value in given.items():
        low, high = _RANGES.get(name, (value, value))
        if not low <= value <= high:
            raise InvalidInput(f"ranking.{name}", f"must be between {low:g} and {high:g}, not {value:g}.")
    ranking = _weighted(replace(ranking, **given), weights or {})
    if ranking.dense == 0 and ranking.keyword == 0:
        raise InvalidInput("ranking.weights", "at least one branch needs a weight above 0.")
    return ranking


def _weighted(ranking: Ranking, weights: Mapping[str, float]) -> Ranking:
    known = (*_OWN, *Signals.names())
    for name, weight in weights.items():
        if name not in known:
            raise InvalidInput("ranking.weights", f"unknown weight {name!r}.", hint=f"Use {', '.join(known)}.")
        if not 0 <= weight <= 100:
            raise InvalidInput(f"ranking.weights.{name}", "must be between 0 and 100.")
    own: dict[str, Any] = {name: weight for name, weight in weights.items() if name in _OWN}
    signals: dict[str, Any] = {name: weight for name, weight in weights.items() if name not in own}
    return replace(ranking, **own, signals=replace(ranking.signals, **signals))
