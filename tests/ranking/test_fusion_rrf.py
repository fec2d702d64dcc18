"""The fusion `rrf` is reciprocal rank fusion followed by maximal marginal relevance, as in the papers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.embedding.protocol import Embedder
from folklore.model import Draft
from folklore.ranking.weights import named_presets
from tests.person import Person

CONVERSATION = (
    "Who paints the harbour office?", "Ada paints the harbour office in autumn.", "Boats sleep.", "Cats purr.",
    "Ada paints the harbour office in spring.",
    "The harbour master is called Ines.", "Ines closed the harbour on Sunday.", "The harbour was built in 1871.",
    "Ships pay for the harbour by length.", "The office of the harbour has new chairs.", "An office needs paint.",
    "Paint dries slowly in autumn.", "The lease of the office ends in March.", "Nobody painted the boats.",
)  # fmt: skip


def reference(
    ranks: Mapping[str, Sequence[int]],
    vectors: NDArray[np.float64],
    texts: Sequence[str],
    k: float,
    trade_off: float,
) -> list[str]:
    """Fuse and diversify texts, written directly from the formulas."""
    fused = {text: sum(1 / (k + rank) for rank in ranks[text]) for text in ranks}
    best = max(fused.values())
    row = {text: vectors[place] for place, text in enumerate(texts)}
    chosen: list[str] = []
    while len(chosen) < len(fused):
        values = {
            text: trade_off * score / best
            - (1 - trade_off)
            * max((float(row[text] @ row[other]) for other in chosen), default=0.0)
            for text, score in fused.items()
            if text not in chosen
        }
        chosen.append(max(values, key=lambda text: values[text]))
    return chosen


@pytest.mark.parametrize(
    ("k", "trade_off"), [(60, 0.7), (60, 1.0), (60, 0.3), (5, 0.5)]
)
async def test_the_order_is_that_of_a_direct_implementation(
    person: Person, embedder: Embedder, k: float, trade_off: float
) -> None:
    await person.keep(
        *(
            Draft(text, session="s", importance=place / 14)
            for place, text in enumerate(CONVERSATION)
        )
    )
    vectors = np.asarray(await embedder.embed(CONVERSATION), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ranking = named_presets(
        {"ours": {"fusion": "rrf", "rrf_k": k, "mmr_lambda": trade_off}}
    )["ours"]

    answer = await person.recall(
        "Who will paint the harbour office?", limit=30, ranking=ranking, explain=True
    )

    explained: dict[str, Any] = {
        result.memory.content: result.explain for result in answer.memories
    }
    ranks = {
        text: [branch["rank"] for branch in value["branches"].values()]
        for text, value in explained.items()
    }
    assert all(ranks.values())
    assert {len(found) for found in ranks.values()} == {1, 2}
    for text, value in explained.items():
        assert value["rrf"] == pytest.approx(
            sum(1 / (k + rank) for rank in ranks[text]), abs=1e-5
        )
        assert value["parts"].keys() == {"reciprocal ranks"}
    assert list(explained) == reference(ranks, vectors, CONVERSATION, k, trade_off)
