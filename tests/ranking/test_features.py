"""Features of the candidates of a question."""

from types import SimpleNamespace
from typing import cast

import numpy as np

from folklore.ranking.features import Pool, scaled_cosine


def test_a_pending_vector_is_near_to_nothing_with_a_model_whose_unrelated_texts_are_alike() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 0]], dtype=np.float32)
    pool = SimpleNamespace(vectors=vectors, cosines=np.array([0.5, 0.2, 0.0]), unrelated=0.6)

    assert (scaled_cosine(cast(Pool, pool)) > 0).tolist() == [True, True, False]
