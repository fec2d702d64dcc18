"""What ablated sets say together: each part over all sets, and whether any other choice would have been better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from folklore.bench.ablation import Ablated
from folklore.bench.metrics import mean
from folklore.bench.statistics import Interval, mean_of_sets
from folklore.bench.sweep import GRID, Constant


@dataclass(frozen=True, slots=True)
class Effect:
    """R@10 without a part on one set (or the mean of the sets), and its difference to the default."""

    part: str
    score: float
    interval: Interval
    unchanged: bool = False

    def as_json(self) -> dict[str, Any]:
        """Rounded."""
        return {"without": self.part, "R@10": round(self.score, 4)} | (
            {"unchanged": True} if self.unchanged else self.interval.as_json()
        )


@dataclass(frozen=True, slots=True)
class Regret:
    """One line of the no-regret table; differences are the default's R@10 minus the other's."""

    name: str
    default: float
    branch: str
    better_branch: float | None
    constant: str
    best_constant: float

    def as_json(self) -> dict[str, Any]:
        """Rounded."""
        over_branch = None if self.better_branch is None else round(self.default - self.better_branch, 4)
        return {
            "set": self.name,
            "default": round(self.default, 4),
            "better_branch": self.branch,
            "better_branch_R@10": None if self.better_branch is None else round(self.better_branch, 4),
            "over_branch": over_branch,
            "best_constant_rrf": self.constant,
            "best_constant_rrf_R@10": round(self.best_constant, 4),
            "over_constant_rrf": round(self.default - self.best_constant, 4),
        }


def effects(ablated: Ablated) -> list[Effect]:
    """Every part switched off on one set."""
    return [
        Effect(one.name, mean(one.recalls), ablated.difference(one.recalls), one.unchanged) for one in ablated.without
    ]


def mean_effects(sets: Sequence[Ablated]) -> list[Effect]:
    """Every part switched off, as the mean of the sets."""
    together = []
    for parts in zip(*(ablated.without for ablated in sets), strict=True):
        differences = [
            [without - default for without, default in zip(part.recalls, ablated.recalls, strict=True)]
            for part, ablated in zip(parts, sets, strict=True)
        ]
        score = mean([mean(part.recalls) for part in parts])
        unchanged = all(part.unchanged for part in parts)
        together.append(Effect(parts[0].name, score, mean_of_sets(differences), unchanged))
    return together


def regrets(sets: Sequence[Ablated]) -> list[Regret]:
    """The default beside the better branch and the best constant of each set; then the means of the sets.

    In the line of the means each set has its own better branch and its own best constant, which no single choice can
    reach; the last line is the one constant that is best for all of them.
    """
    lines = [_regret(ablated) for ablated in sets]
    if len(sets) > 1:
        branches = [line.better_branch for line in lines if line.better_branch is not None]
        default, branch = mean([line.default for line in lines]), mean(branches) if branches else None
        each = mean([line.best_constant for line in lines])
        one = best_for_all(sets)
        lines.append(Regret("mean", default, "each set's", branch, "each set's", each))
        lines.append(Regret("mean", default, "each set's", branch, str(one), _over_sets(sets, one)))
    return lines


def best_for_all(sets: Sequence[Ablated]) -> Constant:
    """The setting of the sweep whose mean over the sets is greatest."""
    return max(GRID, key=lambda setting: _over_sets(sets, setting))


def as_json(sets: Sequence[Ablated]) -> dict[str, Any]:
    """All of it."""
    documents = [
        ablated.measured.as_json()
        | {
            "answered_otherwise_by_the_use_case": ablated.differing,
            "ablations": [effect.as_json() for effect in effects(ablated)],
            "constant_rrf": [
                {"k": setting.k, "dense": setting.dense, "R@10": round(mean(recalls), 4)}
                for setting, recalls in ablated.sweep.items()
            ],
        }
        for ablated in sets
    ]
    return {
        "sets": documents,
        "mean": {
            "R@10": round(mean([ablated.score for ablated in sets]), 4),
            "ablations": [effect.as_json() for effect in mean_effects(sets)],
        },
        "regret": [line.as_json() for line in regrets(sets)],
    }


def _regret(ablated: Ablated) -> Regret:
    branch, constant = ablated.better_branch(), ablated.best_constant
    return Regret(
        ablated.measured.name,
        ablated.score,
        "" if branch is None else branch.name,
        None if branch is None else mean(branch.recalls),
        str(constant),
        mean(ablated.sweep[constant]),
    )


def _over_sets(sets: Sequence[Ablated], setting: Constant) -> float:
    return mean([mean(ablated.sweep[setting]) for ablated in sets])
