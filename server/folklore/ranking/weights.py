"""Every number of a ranking in one frozen value, with the reason for its default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from folklore.errors import InvalidInput

Branch = Literal["dense", "keyword"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How candidates are found, fused and diversified.

    rrf_k 10: short lists of 30 need a steeper fall than the 60 of Cormack et al. (benchmarks/RESULTS.md).
    """

    # Weights of the branches, in the fusion and in the evidence that re-scores its pool; the model's own weight and how
    # much of the question the words cover come on top of the dense one.
    dense: float = 1.0
    keyword: float = 1.0
    rrf_k: float = 10.0
    fetch_multiplier: float = 3.0
    # What a session neighbour one and two places away lends of its own score.
    neighbours: tuple[float, ...] = (0.5, 0.3)
    mmr_lambda: float = 0.7
    # Results with less calibrated evidence are left out.
    min_score: float = 0.0
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
}


def chosen(
    preset: str = "balanced",
    *,
    weights: dict[str, float] | None = None,
    rrf_k: float | None = None,
    fetch_multiplier: float | None = None,
    mmr_lambda: float | None = None,
    min_score: float | None = None,
) -> Ranking:
    """A preset with some numbers of the caller's. Raises InvalidInput that names the number and its range."""
    if preset not in PRESETS:
        raise InvalidInput("ranking.preset", f"unknown preset {preset!r}.", hint=f"Use one of {', '.join(PRESETS)}.")
    ranking = PRESETS[preset]
    for name, weight in (weights or {}).items():
        if name not in ("dense", "keyword"):
            raise InvalidInput("ranking.weights", f"unknown branch {name!r}.", hint="Use dense and keyword.")
        if not 0 <= weight <= 100:
            raise InvalidInput(f"ranking.weights.{name}", "must be between 0 and 100.")
        ranking = replace(ranking, dense=weight) if name == "dense" else replace(ranking, keyword=weight)
    if ranking.dense == 0 and ranking.keyword == 0:
        raise InvalidInput("ranking.weights", "at least one branch needs a weight above 0.")
    return replace(
        ranking,
        rrf_k=ranking.rrf_k if rrf_k is None else rrf_k,
        fetch_multiplier=ranking.fetch_multiplier if fetch_multiplier is None else fetch_multiplier,
        mmr_lambda=ranking.mmr_lambda if mmr_lambda is None else mmr_lambda,
        min_score=ranking.min_score if min_score is None else min_score,
    )
