"""Page Why: the steps that led to the answer of a question, and the effect of other weights."""

import json
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
from folklore.http.console.visit import Visit, number_of
from folklore.ranking.features import group_of
from folklore.ranking.weights import Ranking, numbers_of

_LIMIT = 10
_MOST = 30
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
    texts = {name: visit.query.get(name, "").strip() for name, _, _ in SLIDERS}
    weights = {
        name: _number(text, name, 0, 100) for name, text in texts.items() if text
    }
    if question:
        explanation = await _explained(visit, question, project, preset, weights)
    else:
        explanation = None
    candidates, rows = (
        ([], [])
        if explanation is None
        else (explanation.candidates, _rows(explanation))
    )
    numbers = dict(weights)
    setting: Mapping[str, object] = weights
    for item in presets:
        if item.name == preset:
            numbers = {**item.numbers, **weights}
            setting = {**item.setting, **weights}
    return await visit.render(
        "why_answer.html" if visit.query.get("part") else "why.html",
        question=question,
        project=project,
        preset=preset,
        presets=presets,
        sliders=[
            Slider(name, label, numbers.get(name, 0.0), most, name in weights)
            for name, most, label in SLIDERS
        ],
        changed=weights,
        setting=_lines_of_settings(setting),
        explanation=explanation,
        texts={item.memory.id: item.memory for item in candidates},
        rows=rows,
    )


def _lines_of_settings(setting: Mapping[str, object]) -> str:
    """Return the lines that make a preset of what differs from the default ranking."""
    default = numbers_of(Ranking())
    own = {name: value for name, value in setting.items() if value != default.get(name)}
    return f"ranking:\n  presets:\n    NAME: {json.dumps(own)}"


async def _explained(
    visit: Visit, question: str, project: str, preset: str, knobs: Mapping[str, float]
) -> Explanation:
    weights = {name: value for name, value in knobs.items() if name != _DIVERSITY}
    ranking = RankingRequest(
        preset=preset, weights=weights, mmr_lambda=knobs.get(_DIVERSITY)
    )
    limit = number_of(visit.query.get("limit") or str(_LIMIT), "limit", 1, _MOST)
    request = ExplainRequest(
        query=question, namespaces=(project or ALL,), limit=limit, ranking=ranking
    )
    return await visit.call(request)


def _number(text: str, field: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InvalidInput(field, f"must be a number from {least:g} to {most:g}.")
    return value


def _rows(explanation: Explanation) -> list[Row]:
    ranks: dict[UUID, dict[str, int]] = {}
    for branch in explanation.branches:
        for hit in branch.hits:
            ranks.setdefault(hit.id, {})[branch.branch] = hit.rank
    most = max((item.relevance for item in explanation.candidates), default=0.0) or 1.0
    return [
        Row(item, _bars(item, most), ranks.get(item.memory.id, {}))
        for item in explanation.candidates
    ]


def _bars(candidate: ExplainedCandidate, most: float) -> list[Bar]:
    bars = []
    x = 0.0
    for name, value in candidate.shares.items():
        width = round(max(value, 0.0) / most * _WIDTH, 2)
        bars.append(Bar(name, group_of(name), value, round(x, 2), width))
        x += width
    return bars
