"""Page Why: the steps that led to the answer of a question, and the effect of other weights."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from starlette.responses import Response

from folklore.contract.filters import ALL
from folklore.contract.recall import (
    ExplainedCandidate,
    ExplainRequest,
    Explanation,
    ListPresetsRequest,
    RankingRequest,
)
from folklore.errors import InvalidInput
from folklore.ranking.features import group_of
from folklore.ranking.weights import Ranking, numbers_of
from folklore.server.console.visit import Visit, number_of

_LIMIT = 10
_MOST = 30
_MOST_WEIGHT = 100
_DIVERSITY = "mmr_lambda"
# The numbers that have a slider: name, greatest value, meaning.
SLIDERS: Sequence[tuple[str, float, str]] = (
    ("dense", 3, "Meaning: the dense branch"),
    ("keyword", 3, "Words: the keyword branch"),
    ("neighbours", 3, "Neighbours in the session"),
    ("relations", 2, "Score that related memories share"),
    ("exact", 3, "The question's words in sequence"),
    ("tags", 2, "Words of the question that are tags"),
    ("importance", 2, "Importance"),
    ("recency", 2, "Recent use"),
    (_DIVERSITY, 1, "Relevance against diversity"),
)
_WIDTH = 100.0


@dataclass(frozen=True, slots=True)
class Slider:
    """Number of the ranking with its value; `changed` if it differs from the preset's."""

    name: str
    label: str
    value: float
    most: float
    changed: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """Part of a candidate's relevance, drawn as a bar of at most 100 units in the colour of its group."""

    name: str
    group: str
    value: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Row:
    """Candidate with the bars of its shares, and its ranks in the lists of the branches."""

    candidate: ExplainedCandidate
    bars: Sequence[Bar]
    ranks: Mapping[str, int]


async def show(visit: Visit) -> Response:
    """Show the explanation of a question; a script asks for the part below the form alone."""
    question = visit.query.get("q", "").strip()
    project = visit.query.get("project", "").strip()
    preset = visit.query.get("preset", "") or "balanced"
    presets = await visit.call(ListPresetsRequest())
    weights = _weights(visit)
    explanation: Explanation | None = None
    rows: list[Row] = []
    if question:
        explanation = await _explained(visit, question, project, preset, weights)
        rows = _rows(explanation)

    numbers: Mapping[str, float] = {}
    setting: Mapping[str, object] = {}
    for known in presets:
        if known.name == preset:
            numbers = known.numbers
            setting = known.setting
    return await visit.render(
        "why_answer.html" if visit.query.get("part") else "why.html",
        question=question,
        project=project,
        preset=preset,
        presets=presets,
        sliders=_sliders(numbers, weights),
        changed=weights,
        setting=_lines_of_settings({**setting, **weights}),
        explanation=explanation,
        texts={row.candidate.memory.id: row.candidate.memory for row in rows},
        rows=rows,
    )


def _weights(visit: Visit) -> dict[str, float]:
    """Return the numbers that the address states. Raises InvalidInput."""
    weights = {}
    for name, _, _ in SLIDERS:
        text = visit.query.get(name, "").strip()
        if text:
            weights[name] = _weight(text, name)
    return weights


def _sliders(
    numbers: Mapping[str, float], weights: Mapping[str, float]
) -> list[Slider]:
    """Return the sliders at the numbers of a preset, or where the address moved them."""
    sliders = []
    for name, most, label in SLIDERS:
        value = weights.get(name, numbers.get(name, 0.0))
        sliders.append(Slider(name, label, value, most, name in weights))
    return sliders


def _lines_of_settings(setting: Mapping[str, object]) -> str:
    """Return the lines that make a preset of what differs from the default ranking."""
    default = numbers_of(Ranking())
    own = {name: value for name, value in setting.items() if value != default.get(name)}
    return f"ranking:\n  presets:\n    NAME: {json.dumps(own)}"


async def _explained(
    visit: Visit, question: str, project: str, preset: str, numbers: Mapping[str, float]
) -> Explanation:
    weights = dict(numbers)
    mmr_lambda = weights.pop(_DIVERSITY, None)
    ranking = RankingRequest(preset=preset, weights=weights, mmr_lambda=mmr_lambda)
    limit = number_of(visit.query.get("limit") or str(_LIMIT), "limit", 1, _MOST)
    request = ExplainRequest(
        query=question, namespaces=(project or ALL,), limit=limit, ranking=ranking
    )
    return await visit.call(request)


def _weight(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= _MOST_WEIGHT:
        raise InvalidInput(name, f"must be a number from 0 to {_MOST_WEIGHT}.")
    return value


def _rows(explanation: Explanation) -> list[Row]:
    ranks = defaultdict[UUID, dict[str, int]](dict)
    for branch in explanation.branches:
        for hit in branch.hits:
            ranks[hit.id][branch.branch] = hit.rank
    candidates = explanation.candidates
    most = max((candidate.relevance for candidate in candidates), default=0.0) or 1.0
    return [
        Row(candidate, _bars(candidate, most), ranks[candidate.memory.id])
        for candidate in candidates
    ]


def _bars(candidate: ExplainedCandidate, most: float) -> list[Bar]:
    bars = []
    x = 0.0
    for name, value in candidate.shares.items():
        width = round(max(value, 0.0) / most * _WIDTH, 2)
        bars.append(Bar(name, group_of(name), value, round(x, 2), width))
        x += width
    return bars
