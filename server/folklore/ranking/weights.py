"""Settings of a ranking in one frozen value, and the named presets. The weights themselves are trained."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Literal, get_args

from folklore.errors import ConfigInvalid, InvalidInput
from folklore.ranking.numbers import FETCHED, LEAST_FETCHED, RRF_K

Branch = Literal["dense", "keyword"]
Expansion = Literal["relations", "entities"]
# trained: the sum of features times weights (docs/ranking.md). rrf: reciprocal rank fusion alone, then maximal marginal
# relevance.
Fusion = Literal["trained", "rrf"]


@dataclass(frozen=True, slots=True)
class Signals:
    """The weight of each signal, which no development set has: it is added to the relevance of a memory that has it."""

    # Share of the question's words that are tags of the memory.
    tags: float = 0.6
    # Ratings by the author or the team, against the middle value, which a memory without a rating has.
    importance: float = 0.6
    confidence: float = 0.4
    priority: float = 0.4
    # 0.5^(age / half-life) since the last use. Off: old is not less true.
    recency: float = 0.0
    half_life: timedelta = timedelta(days=30)


SIGNALS = tuple(field.name for field in fields(Signals) if field.name != "half_life")
# Factors on the trained weights of groups of features.
SCALES = ("dense", "keyword", "exact", "neighbours")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Settings of a ranking."""

    fusion: Fusion = "trained"
    # Factors on the weights of the features of the branches, of pairs of words in sequence, and of session neighbours.
    dense: float = 1.0
    keyword: float = 1.0
    exact: float = 1.0
    neighbours: float = 1.0
    rrf_k: float = RRF_K
    # Candidates of each branch, in limits, and how many at least.
    fetch_multiplier: float = FETCHED
    least_fetched: int = LEAST_FETCHED
    # Share of its reciprocal ranks that a memory adds over a relation of strength 1, in both directions.
    relations: float = 0.5
    signals: Signals = Signals()
    mmr_lambda: float = 0.7
    # Results of lower confidence are left out; 0 leaves all, None shortens weak ones.
    min_score: float | None = None
    # Memories that are added after the results: related to several of them, or naming the same entities.
    expand: tuple[Expansion, ...] = ()
    # Postings that a question may read; its rarest words are read first.
    postings_budget: int = 20_000

    def fetch(self, limit: int) -> int:
        """Return the number of candidates that each branch brings for an answer of `limit`."""
        return max(self.least_fetched, limit, round(limit * self.fetch_multiplier))

    def scale(self, group: str) -> float:
        """Return the factor on the weights of a group of features, such as those of a branch."""
        return float(getattr(self, group))


PRESETS: Mapping[str, Ranking] = {
    "balanced": Ranking(),
    "keyword": Ranking(dense=0.0),
    "semantic": Ranking(keyword=0.0, exact=0.0),
    "roaming": Ranking(
        keyword=0.0, exact=0.0, relations=1.0, expand=("relations", "entities")
    ),
    "rrf": Ranking(fusion="rrf"),
}
_MAX_WEIGHT = 100.0
# The names that `weights` of a request takes.
_WEIGHTS = (*SCALES, "relations", *SIGNALS)
# Every number of a ranking that a preset or a request may set, with its range.
_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(_WEIGHTS, (0, _MAX_WEIGHT)),
    "half_life_days": (0.001, 100_000),
    "rrf_k": (0, 1_000),
    "fetch_multiplier": (1, 20),
    "mmr_lambda": (0, 1),
    "min_score": (0, 1),
    "postings_budget": (200, 10_000_000),
}


def chosen(
    preset: str = "balanced",
    presets: Mapping[str, Ranking] = PRESETS,
    *,
    weights: Mapping[str, float] | None = None,
    **overrides: Any,
) -> Ranking:
    """Return a preset with the numbers of a request in place of its own; None leaves the preset's.

    `weights` are factors on the trained weights of groups of features, and the weights of relations and of the signals.
    Raises InvalidInput that names the number and its range.
    """
    if preset not in presets:
        raise InvalidInput(
            "ranking.preset",
            f"unknown preset {preset!r}.",
            hint=f"Use one of {', '.join(presets)}, or add it to the setting ranking.presets.",
        )
    for name in weights or {}:
        if name not in _WEIGHTS:
            raise InvalidInput(
                "ranking.weights",
                f"unknown weight {name!r}.",
                hint=f"Use {', '.join(_WEIGHTS)}.",
            )
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
            presets[name] = with_numbers(
                PRESETS.get(name, Ranking()), values, f"ranking.presets.{name}"
            )
        except InvalidInput as error:
            reason = error.message.removeprefix(f"{error.field}: ")
            raise ConfigInvalid(error.field, reason, hint=error.hint) from error
    return presets


def numbers_of(ranking: Ranking) -> dict[str, float]:
    """Return the numbers that `weights` of a request takes, and mmr_lambda and min_score, as this ranking has them."""
    numbers = {}
    for name in (*SCALES, "relations", "mmr_lambda"):
        numbers[name] = float(getattr(ranking, name))
    for name in SIGNALS:
        numbers[name] = float(getattr(ranking.signals, name))
    if ranking.min_score is not None:
        numbers["min_score"] = ranking.min_score
    return numbers


def setting_of(ranking: Ranking) -> dict[str, Any]:
    """Return what the setting `ranking.presets` needs to hold for a preset to be this ranking."""
    default = _settable(Ranking())
    own = _settable(ranking)
    return {name: value for name, value in own.items() if value != default[name]}


def _settable(ranking: Ranking) -> dict[str, Any]:
    signals = ranking.signals
    values: dict[str, Any] = {
        "fusion": ranking.fusion,
        "expand": list(ranking.expand),
    }
    for name in _RANGES:
        if name == "half_life_days":
            values[name] = signals.half_life / timedelta(days=1)
        elif name in SIGNALS:
            values[name] = getattr(signals, name)
        else:
            values[name] = getattr(ranking, name)
    return values


def with_numbers(ranking: Ranking, values: Mapping[str, Any], parent: str) -> Ranking:
    """Return a ranking with other numbers, signals among them; `parent` is the field that has them. Raises InvalidInput."""
    if not values:
        return ranking
    own = {name: _checked(name, value, parent) for name, value in values.items()}
    signals = {name: own.pop(name) for name in SIGNALS if name in own}
    if "half_life_days" in own:
        signals["half_life"] = timedelta(days=own.pop("half_life_days"))
    changed = replace(ranking, **own, signals=replace(ranking.signals, **signals))
    if changed.dense == 0 and changed.keyword == 0:
        raise InvalidInput(
            parent,
            "gives no branch a weight above 0.",
            hint="Give dense or keyword one.",
        )
    return changed


def _checked(name: str, value: Any, parent: str) -> Any:
    """Return the value of one number as Ranking has it. Raises InvalidInput."""
    field = f"{parent}.{name}"
    if name == "fusion":
        return _one_of(value, get_args(Fusion), field)
    if name == "expand":
        return tuple(_one_of(item, get_args(Expansion), field) for item in value)
    if name not in _RANGES:
        known = ", ".join(("fusion", "expand", *_RANGES))
        raise InvalidInput(field, "is not a number of a ranking.", hint=f"Use {known}.")
    low, high = _RANGES[name]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        shown = f", got {value:g}" if number else ""
        raise InvalidInput(
            field, f"must be a number between {low:g} and {high:g}{shown}."
        )
    return value


def _one_of(value: Any, allowed: tuple[str, ...], field: str) -> Any:
    if value not in allowed:
        raise InvalidInput(field, f"must be one of {', '.join(allowed)}.")
    return value
