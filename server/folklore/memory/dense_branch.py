"""The dense branch: what is nearest to the question, once its length is taken off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from folklore.db.found import Hits, Nearest
from folklore.ranking.length import LengthLine


def nearest_hits(nearest: Nearest, question: NDArray[np.float32], line: LengthLine | None, fetch: int) -> Hits:
    """The best `fetch` by similarity to a question's vector (dimensions,), less what length makes of it; ties by id."""
    cosines = nearest.vectors @ question
    slope, expected = (0.0, 0.0) if line is None else line.of(question)
    # Rounded, since the last bits of a product depend on the row it stands in, and equal texts must have equal scores.
    scores = np.round(cosines - slope * nearest.sizes - expected, 6)
    order = sorted(range(len(nearest.ids)), key=lambda place: (-scores[place], nearest.ids[place]))[:fetch]
    return Hits(
        tuple(nearest.ids[place] for place in order),
        tuple(scores[order].tolist()),
        tuple(cosines[order].tolist()),
    )
