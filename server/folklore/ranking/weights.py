"""Every number of a ranking in one frozen value, with the reason for its default, and the named presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal, get_args

from folklore.errors import ConfigInvalid, InvalidInput

Branch = Literal["dense", "keyword"]
Expansion = Literal["relations", "entities"]
# calibrated: standardised scores, then signals, neighbours and nearness (docs/ranking.md).
# rrf: reciprocal rank fusion alone, then maximal marginal relevance. weighted: a weighted mean of similarities.
Fusion = Literal["calibrated", "rrf", "weighted"]

# Signals that a memory may lack.
RATINGS = ("importance", "confidence", "priority")


@dataclass(frozen=True, slots=True)
class Signals:
    """The weight of each signal. A weight of 1 doubles the own score of a memory whose signal is 1."""

    # Share of the question that the text contains literally, in adjacent words (text/exact.py).
    exact: float = 1.0
    # Share of the question's weight that the memory's words cover. Off: the branches count it already.
    overlap: float = 0.0
    # Share of the question's words that are tags of the memory.
    tags: float = 0.2
    # Ratings by the author or the team; a memory without a rating has the middle value.
    importance: float = 0.2
    confidence: float = 0.1
    priority: float = 0.1
    # 0.5^(age / half-life) since the last use. Off: old is not less true.
    recency: float = 0.0
    half_life: timedelta = timedelta(days=30)


SIGNALS = tuple(field.name for field in fields(Signals) if field.name != "half_life")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The numbers by which candidates are found, fused and diversified."""

    fusion: Fusion = "calibrated"
    # Weights of the branches. The calibrated dense weight is also multiplied by that of the model.
    dense: float = 1.0
    keyword: float = 1.0
    # k of reciprocal rank fusion, as in Cormack et al. The calibrated fusion orders equal scores by it.
    rrf_k: float = 60.0
    # Candidates of each branch, in limits.
    fetch_multiplier: float = 3.0
    # Shares of its score that a memory spreads to session neighbours one and two places away.
    neighbours: tuple[float, ...] = (0.7, 0.5)
    # Lexemes of a text beyond which it takes less from its neighbours.
    neighbours_longest: float = 80.0
    # Factor on what a text that asks a question takes.
    neighbours_asking: float = 0.6
    # Share of its score that a memory spreads over a relation of strength 1, in both directions.
    relations: float = 0.5
    # The candidate nearest to the question counts by so much more than one of average nearness.
    nearness: float = 0.7
    # The dense scores count in full if the best is so many times as significant as chance; 0 always.
    significance: float = 1.1
    signals: Signals = Signals()
    mmr_lambda: float = 0.7
    # Results of lower confidence are left out; 0 leaves all, None shortens weak ones and leaves three of them.
    min_score: float | None = None
    # Memories that are added after the results: related to several of them, or naming the same entities.
    expand: tuple[Expansion, ...] = ()
    reflection_boost: float = 1.0
    # BM25's k1, and the length in lexemes below which texts count as nearly equally long (in place of its b).
    saturation: float = 1.5
    length_prior: float = 40.0
    # Postings that a question may read; its rarest words are read first.
    postings_budget: int = 20_000

    def count_bound(self, characters: int) -> int:
        """Return the number at which counting the documents of a lexeme stops, lower for a longer question."""
        return max(200, min(self.postings_budget, 1_000_000 // max(characters, 1)))

    def fetch(self, limit: int) -> int:
        """Return the number of candidates that each branch brings for an answer of `limit`."""
        return max(limit, round(limit * self.fetch_multiplier))

    def weight(self, branch: Branch) -> float:
        """Return the weight of a branch."""
        return self.dense if branch == "dense" else self.keyword


PRESETS: Mapping[str, Ranking] = {
    "balanced": Ranking(),
    "keyword": Ranking(dense=0.0),
    "semantic": Ranking(keyword=0.0),
    "roaming": Ranking(keyword=0.0, relations=1.0, expand=("relations", "entities")),
    "rrf": Ranking(fusion="rrf"),
}
_MAX_WEIGHT = 100.0
# Every number of a ranking that a preset or a request may set, with its range.
_RANGES: Mapping[str, tuple[float, float]] = {
    "dense": (0, _MAX_WEIGHT),
    "keyword": (0, _MAX_WEIGHT),
    "relations": (0, _MAX_WEIGHT),
    "nearness": (0, _MAX_WEIGHT),
    **dict.fromkeys(SIGNALS, (0, _MAX_WEIGHT)),
    "half_life_days": (0.001, 100_000),
    "rrf_k": (0, 1_000),
    "fetch_multiplier": (1, 20),
    "neighbours_longest": (1, 100_000),
    "neighbours_asking": (0, 1),
    "significance": (0, 100),
    "mmr_lambda": (0, 1),
    "min_score": (0, 1),
    "reflection_boost": (0, 10),
    "saturation": (0, 100),
    "length_prior": (0, 1_000_000_000),
    "postings_budget": (200, 10_000_000),
}
# The names that `weights` of a request takes.
_WEIGHTS = ("dense", "keyword", "relations", "nearness", *SIGNALS)


def chosen(
    preset: str = "balanced",
    presets: Mapping[str, Ranking] = PRESETS,
    *,
    weights: Mapping[str, float] | None = None,
    **overrides: Any,
) -> Ranking:
    """Return a preset with the numbers of a request in place of its own; None leaves the preset's.

    `weights` are those of the branches, of relations, of nearness, and of the signals. Raises InvalidInput that names
    the number and its range.
    """
    if preset not in presets:
        raise InvalidInput("ranking.preset", f"unknown preset {preset!r}.", hint=f"Use one of {', '.join(presets)}.")
    for name in weights or {}:
        if name not in _WEIGHTS:
            raise InvalidInput("ranking.weights", f"unknown weight {name!r}.", hint=f"Use {', '.join(_WEIGHTS)}.")
    given = {name: value for name, value in overrides.items() if value is not None}
    ranking = with_numbers(presets[preset], weights or {}, "ranking.weights")
    return with_numbers(ranking, given, "ranking")


def named_presets(given: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Ranking]:
    """Return the built-in presets and those of the settings, each the default ranking with other numbers.

    A preset with the name of a built-in one changes that one. Raises ConfigInvalid, which names preset and number.
    """
    presets = dict(PRESETS)
    for name, values in given.items():
        try:
            presets[name] = with_numbers(PRESETS.get(name, Ranking()), values, f"ranking.presets.{name}")
        except InvalidInput as error:
            reason = error.message.removeprefix(f"{error.field}: ")
            raise ConfigInvalid(error.field, reason, hint=error.hint) from error
    return presets


def numbers_of(ranking: Ranking) -> dict[str, float]:
    """Return the numbers that `weights` of a request takes, and mmr_lambda and min_score, as this ranking has them."""
    own = {name: float(getattr(ranking, name)) for name in ("dense", "keyword", "relations", "nearness", "mmr_lambda")}
    signals = {name: float(getattr(ranking.signals, name)) for name in SIGNALS}
    return own | signals | ({} if ranking.min_score is None else {"min_score": ranking.min_score})


def with_numbers(ranking: Ranking, values: Mapping[str, Any], place: str) -> Ranking:
    """Return a ranking with other numbers, signals among them; `place` is where they are. Raises InvalidInput."""
    if not values:
        return ranking
    own = {name: _checked(name, value, place) for name, value in values.items()}
    signals = {name: own.pop(name) for name in SIGNALS if name in own}
    if "half_life_days" in own:
        signals["half_life"] = timedelta(days=own.pop("half_life_days"))
    changed = replace(ranking, **own, signals=replace(ranking.signals, **signals))
    if changed.dense == 0 and changed.keyword == 0:
        raise InvalidInput(place, "gives no branch a weight above 0.", hint="Give dense or keyword one.")
    return changed


def _checked(name: str, value: Any, place: str) -> Any:
    """Return the value of one number as Ranking has it. Raises InvalidInput."""
    field = f"{place}.{name}"
    if name == "fusion":
        return _one_of(value, get_args(Fusion), field)
    if name == "expand":
        return tuple(_one_of(item, get_args(Expansion), field) for item in value)
    if name == "neighbours":
        return tuple(_in_range(item, (0, _MAX_WEIGHT), field) for item in value)
    if name not in _RANGES:
        known = ", ".join(("fusion", "expand", "neighbours", *_RANGES))
        raise InvalidInput(field, "is not a number of a ranking.", hint=f"Use {known}.")
    return _in_range(value, _RANGES[name], field)


def _one_of(value: Any, allowed: tuple[str, ...], field: str) -> Any:
    if value not in allowed:
        raise InvalidInput(field, f"must be one of {', '.join(allowed)}.")
    return value


def _in_range(value: Any, limits: tuple[float, float], field: str) -> float:
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        shown = f", got {value:g}" if isinstance(value, int | float) else ""
        raise InvalidInput(field, f"must be a number between {low:g} and {high:g}{shown}.")
    return value
