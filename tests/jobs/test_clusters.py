"""Clusters: stars of a similarity graph, independent of the order of the arithmetic."""

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from folklore.jobs.consolidation import Clustering, nearest, stars

RULES = Clustering(block=3)


def unit(rows: list[list[float]]) -> NDArray[np.float32]:
    matrix = np.asarray(rows, dtype=np.float32).reshape(len(rows), 3)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix


def clusters(
    vectors: NDArray[np.float32], rules: Clustering = RULES
) -> list[tuple[int, ...]]:
    return stars([row for block in nearest(vectors, rules) for row in block], rules)


matrices = st.integers(0, 14).flatmap(
    lambda rows: st.lists(
        st.lists(st.integers(-3, 3).map(float), min_size=3, max_size=3),
        min_size=rows,
        max_size=rows,
    ).map(unit)
)


@given(matrices)
def test_every_member_is_near_its_centre_and_in_one_cluster(
    vectors: NDArray[np.float32],
) -> None:
    found = clusters(vectors)

    members = [row for cluster in found for row in cluster]
    assert len(members) == len(set(members))
    for centre, *others in found:
        assert len(others) + 1 >= RULES.smallest
        assert all(
            float(vectors[centre] @ vectors[other]) >= RULES.near - 1e-4
            for other in others
        )


@given(matrices, st.integers(1, 20))
def test_the_size_of_a_block_does_not_change_the_clusters(
    vectors: NDArray[np.float32], block: int
) -> None:
    assert clusters(vectors, Clustering(block=block)) == clusters(vectors)


def test_two_similar_memories_form_no_cluster_and_three_do() -> None:
    alike = [1.0, 0.1, 0.0]
    other = [0.0, 0.0, 1.0]

    assert clusters(unit([alike, alike, other])) == []
    assert clusters(unit([other, alike, alike, alike])) == [(1, 2, 3)]


def test_a_chain_does_not_become_one_cluster() -> None:
    """Each memory is near the next one and the ends are far from each other."""
    angles = np.linspace(0, 2.4, 7)
    vectors = unit(
        [[float(np.cos(angle)), float(np.sin(angle)), 0.0] for angle in angles]
    )

    for centre, *others in clusters(vectors):
        assert all(float(vectors[centre] @ vectors[other]) >= 0.75 for other in others)
    assert max(map(len, clusters(vectors))) < 7


def test_a_large_group_is_cut_to_the_nearest() -> None:
    rules = Clustering(largest=4)
    found = clusters(unit([[1.0, place / 100, 0.0] for place in range(9)]), rules)

    assert [len(cluster) for cluster in found] == [4, 4]


def test_zero_vectors_belong_to_no_cluster() -> None:
    assert clusters(unit([[0.0, 0.0, 0.0]] * 5)) == []
