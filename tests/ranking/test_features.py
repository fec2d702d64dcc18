"""Features of the candidates of a question have the values that docs/ranking.md gives them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from folklore.ranking.features import (
    CONFIDENCE,
    OF_CUES,
    RELEVANCE,
    CueFacts,
    Pool,
    group_of,
    neighbours,
    relations,
    signals_of,
)
from folklore.ranking.weights import Ranking, Signals
from tests.person import NOON

DIAGONALS = [[1, 0], [0.6, 0.8], [0, 1]]
# Words (or pairs of them) that candidates hold, and the neighbours of one that has two.
HELD = [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
BETWEEN = [[1, -1, 2, -1], [-1, 2, -1, -1], [-1, -1, 0, 1]]
SESSION: dict[str, Any] = {
    "keyword": [9, 3, 0, 0, 0], "lengths": [0, 60, 0, 120, 30], "asks": [0, 0, 0, 0, 1],
    "beside": [[-1, 2, -1, 3], [-1] * 4, [0, 1, -1, -1], [0, -1, 1, -1], [-1, 0, 0, 1]],
}  # fmt: skip


def pool(count: int, cues: dict[str, Any] | None = None, **facts: Any) -> Pool:
    """Return a pool of candidates of which nothing is known but these facts, and those about their cues."""
    words = len(facts.get("rarity", facts.get("letters", facts.get("names", ()))))
    zeros = np.zeros(count)
    held = np.zeros((count, words), bool)
    known: dict[str, Any] = {
        "keyword": zeros, "fetched": 30, "cosines": zeros, "vectors": np.zeros((count, 2), np.float32),
        "question": None, "unrelated": 0.0, "in_text": held, "anywhere": held, "rarity": np.ones(words),
        "letters": np.ones(words), "names": np.zeros(words, bool), "sequence": zeros, "pairs": 0.0, "dates": None,
        "lengths": zeros, "asks": zeros > 0, "beside": np.full((count, 4), -1),
    }  # fmt: skip
    of_cues: dict[str, Any] = {
        "cued": zeros > 0, "cosines": zeros, "in_cues": held, "sequence": zeros,
    }  # fmt: skip
    if cues is not None:
        facts["cues"] = CueFacts(
            **of_cues
            | {name: np.array(v, of_cues[name].dtype) for name, v in cues.items()}
        )
    types = {
        name: value.dtype
        for name, value in known.items()
        if isinstance(value, np.ndarray)
    }
    types |= {"question": np.dtype(np.float32), "dates": np.dtype(float)}
    return Pool(
        **known
        | {
            name: np.array(v, types[name]) if isinstance(v, list) else v
            for name, v in facts.items()
        }
    )


@pytest.mark.parametrize(
    ("name", "facts", "values"),
    [
        ("keyword excess", {"keyword": [8, 5, 2, 0], "fetched": 3}, [1, 1 / 2, 0, 0]),  # a full list
        ("keyword excess", {"keyword": [8, 6, 2], "fetched": 4}, [1, 3 / 4, 1 / 4]),
        ("keyword excess", {"keyword": [0.5, 0.25]}, [1, 1 / 2]),
        ("keyword excess", {"keyword": [3], "fetched": 1}, [0]),
        ("keyword excess", {"keyword": [0, 0]}, [0, 0]),
        # Of the text in the middle, the cosines with the others are 0.6 and 0.8: their mean is 0.7.
        ("scaled cosine", {"vectors": DIAGONALS, "cosines": [0.8, 0.96, 0.6]},
         [1, (1.92 - 0.7) / (1.6 - 0.3), (1.2 - 0.4) / (1.6 - 0.3)]),
        ("scaled cosine", {"vectors": DIAGONALS, "cosines": [0.8, 0.96, 0.6], "unrelated": 0.5},
         [1, (1.92 - 0.4) / (1.6 + 0.4), (1.2 + 0.2) / (1.6 + 0.4)]),
        # Eleven of one text and another one: of the eleven, the ten nearest are the others alone.
        ("scaled cosine", {"vectors": [[1, 0]] * 11 + [[0, 1]], "cosines": [0.6] * 11 + [0.8]},
         [(1.2 - 1) / 1.6] * 11 + [1]),
        ("scaled cosine", {"vectors": [[1, 0], [0, 1]], "cosines": [0.2, -0.1]}, [1, 0]),
        ("scaled cosine", {"vectors": [[1, 0], [1, 0]], "cosines": [0.7, 0.55]}, [1, 1 / 4]),
        ("scaled cosine", {"vectors": [[1, 0]], "cosines": [0.2]}, [1]),
        ("scaled cosine", {}, []),
        # One whose vector is pending is near to nothing, with a model of which unrelated texts are alike as well.
        ("scaled cosine", {"vectors": [[1, 0], [0.8, 0.6], [0, 0]], "cosines": [0.5, 0.25, 0], "unrelated": 0.6},
         [1, 1.0 / 1.5, 0]),
        ("cosine rank", {"cosines": [0.5, 0.9, 0.5, 0, -0.2]}, [1 / 1.1, 1, 1 / 1.1, 0, 1 / 1.4]),
        ("coverage", {"in_text": HELD, "rarity": [5, 3, 2]}, [1 / 2, 4 / 5, 0]),
        ("coverage", {"in_text": HELD, "rarity": [5, 3, 2], "dates": [0, 1, 0.5]}, [5 / 15, 13 / 15, 2.5 / 15]),
        ("coverage", {"in_text": HELD, "rarity": [0.2, 0.2, 0.1], "dates": [0, 0, 1]}, [0.2 / 1.5, 0.4 / 1.5, 1 / 1.5]),
        ("coverage", {"dates": [0, 1]}, [0, 1]),
        ("coverage", {"in_text": HELD, "rarity": [0, 0, 0]}, [0, 0, 0]),
        ("context", {"anywhere": HELD, "rarity": [5, 3, 2], "beside": BETWEEN}, [3 / 10, 0, 0]),
        ("context", {"anywhere": HELD, "rarity": [5, 3, 2], "beside": [[-1] * 4] * 2 + [[0, 1, -1, -1]]}, [0, 0, 0.8]),
        ("sequence", {"sequence": [2, 0, 4], "pairs": 4}, [1 / 2, 0, 1]),
        ("sequence", {"sequence": [0, 0]}, [0, 0]),
        ("neighbours", SESSION, [0, 0, 1 + 1 / 1.1, 1 / 2, 0.6]),
        ("neighbours beyond", SESSION, [0, 0, 0, 1 / 1.1 / 2, 0.6 * (1 + 1 / 1.1)]),
        ("letters held", {"in_text": HELD, "letters": [6, 3, 1]}, [6 / 15, 9 / 15, 0]),
        ("letters held", {"in_text": HELD, "letters": [2, 1, 0]}, [2 / 6, 3 / 6, 0]),
        ("letters held", {"anywhere": HELD, "letters": [6, 3, 1], "beside": BETWEEN}, [0.9 * 3 / 15, 0, 0]),
        ("letters held", {"in_text": HELD, "letters": [6, 3, 1], "dates": [0, 1, 0.5]}, [6 / 22.5, 16.5 / 22.5, 1 / 6]),
        ("sequence held", {"sequence": [2, 0, 10], "pairs": 10}, [2 / 15, 0, 10 / 15]),
        ("sequence held", {"sequence": [2, 1], "pairs": 2}, [1 / 2, 1 / 4]),
        ("sequence held", {"sequence": [0, 0]}, [0, 0]),
        ("meaning", {"vectors": DIAGONALS}, [0, 0, 0]),
        ("meaning", {"vectors": DIAGONALS, "question": [0.8, 0.6]}, [0.8, 0.96, 0.6]),
        # The first has the second beside it, and the second the third: half of (0.6, 0.8) and of (0, 1) is added.
        ("meaning", {"vectors": DIAGONALS, "question": [1, 0], "beside": BETWEEN, "unrelated": 0.5},
         [2 * 1.3 / (1.3**2 + 0.4**2) ** 0.5 - 1, 2 * 0.6 / (0.6**2 + 1.3**2) ** 0.5 - 1, -1]),
        ("meaning", {"vectors": [[0, 0], [0.3, 0]], "question": [1, 0]}, [0, 1]),
        ("cue coverage", {"cues": {"in_cues": HELD}, "rarity": [5, 3, 2]}, [1 / 2, 4 / 5, 0]),
        ("cue cosine", {"cues": {"cosines": [0.5, -0.2, 0]}}, [0.5, 0, 0]),
        ("cue words", {"cues": {"in_cues": HELD}, "letters": [6, 3, 1]}, [6 / 30, 9 / 33, 0]),
        ("cue meaning", {"cues": {"cosines": [0.5, -0.2, 0]}}, [0.5, 0, 0]),
        ("cued", {"cues": {"cued": [1, 0]}}, [1, 0]),
        ("unnamed", {"in_text": HELD, "names": [0, 0, 0]}, [0, 0, 0]),
        ("unnamed", {"in_text": HELD, "names": [0, 1, 1]}, [1, 0, 1]),
        ("unnamed", {"in_text": HELD, "anywhere": HELD, "names": [0, 1, 0], "beside": BETWEEN}, [0, 0, 1]),
    ],
)  # fmt: skip
def test_a_feature_has_the_value_of_its_formula(
    name: str, facts: dict[str, Any], values: list[float]
) -> None:
    feature = CONFIDENCE[name] if name in CONFIDENCE else RELEVANCE[name][0]

    assert feature(pool(len(values), **facts)).tolist() == pytest.approx(
        values, abs=1e-6
    )


def test_reciprocal_ranks_are_of_the_words_and_of_the_nearest_thirty() -> None:
    cosines = [1 - place / 50 for place in range(40)]
    facts = pool(
        40, keyword=[0] * 38 + [2, 2], cosines=cosines, beside=[[38, 29, 30, -1]] * 40
    )

    assert facts.reciprocal.tolist() == pytest.approx(
        [1 / (1 + r / 10) for r in range(30)] + [0] * 8 + [1, 1]
    )
    assert neighbours(facts)[0] == pytest.approx(1 + 1 / 3.9)


def test_a_related_candidate_gives_its_reciprocal_rank_times_the_strength_of_each_relation() -> (
    None
):
    related = ((2, 0, 0.5), (2, 1, 0.25), (1, 0, 1.0))
    facts = pool(3, keyword=[9, 3, 0], related=related)

    assert relations(facts).tolist() == pytest.approx([0, 1, 0.5 + 0.25 / 1.1])
    parts = signals_of(Ranking(relations=0.125), facts, [], ["crane"], NOON)
    assert {name: part.tolist() for name, part in parts.items()} == {
        # an eighth of four times its reciprocal rank
        "relations": pytest.approx([0, 0.5, 0.25 + 0.125 / 1.1])
    }


def row(*tags: str, **ratings: float) -> dict[str, Any]:
    none = dict.fromkeys(("importance", "confidence", "priority", "last_recalled_at"))
    return {"tags": tags, **none, "created_at": NOON - timedelta(days=30), **ratings}


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ([row(), row()], {}),
        (
            [row(importance=1.0), row(importance=0.0), row()],
            {"importance": [0.3, -0.3, 0]},
        ),
        ([row(confidence=0.75), row()], {"confidence": [0.1, 0]}),
        (
            [row(priority=1), row(priority=2.5), row(priority=4), row()],
            {"priority": [0.2, 0, -0.2, 0]},
        ),
        # The question has four words. A tag, its levels and its parts count, in any case of the question.
        (
            [row("area:crane"), row("boat"), row(), row("a/red", "crane", "is")],
            {"tags": [0.15, 0, 0, 0.45]},
        ),
        ([row("area/crane:red"), row("area")], {"tags": [0.3, 0]}),
    ],
)
def test_a_signal_is_a_share_or_the_distance_of_a_rating_from_its_middle(
    rows: list[Any], parts: dict[str, list[float]]
) -> None:
    found = signals_of(
        Ranking(),
        pool(len(rows)),
        rows,
        ["Which", "crane", "is", "Crane,", "Red?"],
        NOON,
    )

    assert {name: part.tolist() for name, part in found.items()} == {
        name: pytest.approx(values) for name, values in parts.items()
    }


def test_recency_halves_with_every_half_life_since_the_last_use_and_the_future_counts_as_now() -> (
    None
):
    used = [timedelta(15), timedelta(), timedelta(45), timedelta(-15)]
    rows = [row(), *(row() | {"last_recalled_at": NOON - age} for age in used)]
    ranking = Ranking(signals=Signals(tags=0, recency=2.0, half_life=timedelta(15)))

    assert signals_of(ranking, pool(5), rows, [], NOON)["recency"].tolist() == [
        0.5,
        1,
        2,
        0.25,
        2,
    ]
    tags = [
        signals_of(Ranking(), pool(1), [row("x")], pieces, NOON)["tags"].tolist()
        for pieces in ([], ["X"])
    ]
    assert tags == [[0], [0.6]]


def test_a_part_of_the_relevance_belongs_to_the_group_that_a_weight_of_a_request_moves() -> (
    None
):
    groups = {name: group_of(name) for name in (*RELEVANCE, "tags", "relations")}

    assert groups == {
        "keyword excess": "keyword", "scaled cosine": "dense", "cosine rank": "dense", "coverage": "keyword",
        "context": "neighbours", "sequence": "exact", "neighbours": "neighbours", "neighbours beyond": "neighbours",
        "cue coverage": "keyword", "cue cosine": "dense", "tags": "signals", "relations": "signals",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(OF_CUES))
def test_a_feature_of_cues_is_nothing_for_a_memory_without_any(name: str) -> None:
    feature = CONFIDENCE[name] if name in CONFIDENCE else RELEVANCE[name][0]
    facts = pool(
        2, in_text=HELD[:2], rarity=[5, 3, 2], letters=[6, 3, 1], cosines=[0.9, 0.4]
    )

    assert feature(facts).tolist() == [0, 0]
