"""The k largest are counted with their copies: eigenvalues, singular values, and what is computed by them."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn


@pytest.mark.parametrize("exponent", [-300, -170, 153, 300])
def test_numbers_whose_squares_are_not_there_are_refused(exponent: int) -> None:
    A = sp.random_array((60, 60), density=0.2, rng=np.random.default_rng(0)).tocsr()
    S = (A + A.T).tocsr()
    unit = 10.0**exponent
    with pytest.raises(mn.errors.MatnbError, match=r"eigsh: .*(1e140|multiply the values)"):
        mn.linalg.eigsh(S * unit, 3).values.compute()
    with pytest.raises(mn.errors.MatnbError, match=r"svds: .*(1e140|multiply the values)"):
        mn.linalg.svds(A * unit, 3).s.compute()


@pytest.mark.parametrize("exponent", [-135, 135])
def test_values_follow_the_unit(exponent: int) -> None:
    A = sp.random_array((60, 60), density=0.2, rng=np.random.default_rng(0)).tocsr()
    unit = 10.0**exponent
    expected = np.linalg.svd(A.toarray(), compute_uv=False)[2::-1]
    np.testing.assert_allclose(mn.linalg.svds(A * unit, 3).s.compute() / unit, expected, rtol=1e-10)


ORDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "LA": lambda values: -values, "SA": lambda values: values, "LM": lambda values: -abs(values),
}  # fmt: skip

pytestmark = pytest.mark.session("one thread")


def adjacency(graph: nx.Graph) -> sp.csr_array:
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


def laplacian(graph: nx.Graph) -> sp.csr_array:
    return sp.csr_array(nx.laplacian_matrix(graph).astype(float))


def drawn(values: list[float], seed: int = 0) -> np.ndarray:
    """Return a symmetric matrix with these eigenvalues, in a drawn basis."""
    n = len(values)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * np.array(values)) @ Q.T


MATRICES: dict[str, Callable[[], sp.csr_array | np.ndarray]] = {
    "ring": lambda: adjacency(nx.cycle_graph(48)),
    "torus": lambda: adjacency(nx.grid_2d_graph(8, 8, periodic=True)),
    "grid": lambda: laplacian(nx.grid_2d_graph(9, 9)),
    "hypercube": lambda: adjacency(nx.hypercube_graph(6)),
    "six components": lambda: laplacian(nx.disjoint_union_all([nx.path_graph(5 + i) for i in range(6)])),
    "equal components": lambda: adjacency(nx.disjoint_union_all([nx.star_graph(6)] * 7)),
    "complete": lambda: adjacency(nx.complete_graph(40)),
    "bipartite": lambda: adjacency(nx.complete_multipartite_graph(15, 25)),
    "nothing": lambda: sp.csr_array((30, 30)),
    "identity": lambda: sp.eye_array(50).tocsr(),
    "blocks of it": lambda: sp.diags_array(np.repeat([3.0, -3.0, 2.0, 1.0], 12)).tocsr(),
    "of rank 3": lambda: drawn([2.0, 2.0, -1.0] + [0.0] * 40),
    "near each other": lambda: drawn([1.0, 1.0, 1 - 1e-5, 1 - 1e-5, *np.linspace(-0.5, 0.5, 56)]),
}


@pytest.mark.parametrize(
    "which", ["LA", *(pytest.param(one, marks=pytest.mark.slow) for one in ("SA", "LM"))]
)
@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues(name: str, which: str) -> None:
    matrix = MATRICES[name]()
    check_eigenvalues(matrix, 6, which)


def test_components_are_counted_by_the_smallest_of_the_laplacian() -> None:
    check_eigenvalues(MATRICES["six components"](), 7, "SA")


def check_eigenvalues(matrix: sp.csr_array | np.ndarray, k: int, which: str, seed: int = 0) -> None:
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    known = np.linalg.eigvalsh(dense)
    wanted = np.sort(ORDERS[which](known))[:k]  # of equal magnitudes either sign will do
    values, vectors = (one.compute() for one in mn.linalg.eigsh(matrix, k, which, seed=seed))
    scale = max(abs(known).max(), 1e-300)
    np.testing.assert_allclose(np.sort(ORDERS[which](values)), wanted, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)
    assert abs(dense @ vectors - vectors * values).max() <= 1e-8 * scale


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 1.5, 2.0]), min_size=30, max_size=60), st.data())
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
def test_eigenvalues_of_drawn_copies(values: list[float], data: st.DataObject) -> None:
    k, which = data.draw(st.integers(1, 8)), data.draw(st.sampled_from(list(ORDERS)))
    check_eigenvalues(drawn(values, data.draw(st.integers(0, 9))), k, which)


def rectangle(values: list[float], rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    left = np.linalg.qr(rng.standard_normal((rows, len(values))))[0]
    right = np.linalg.qr(rng.standard_normal((columns, len(values))))[0]
    return (left * np.array(values)) @ right.T


WITHOUT_SQUARE: dict[str, Callable[[], sp.csr_array | np.ndarray]] = {
    "tall": lambda: rectangle([5.0, 5.0, 5.0, 3.0, 3.0, 1.0], 70, 40),
    "wide": lambda: rectangle([5.0, 3.0, 3.0, 3.0, 3.0, *np.linspace(0, 1, 20)], 40, 70),
    "blocks": lambda: sp.csr_array(sp.block_diag([np.full((4, 3), float(i % 3)) for i in range(12)])),
    "of the rank of k": lambda: rectangle([2.0, 2.0, 2.0, 2.0, 1.0], 45, 45),
}


@pytest.mark.parametrize("name", [*MATRICES, *WITHOUT_SQUARE])
def test_singular_values(name: str) -> None:
    matrix = (MATRICES | WITHOUT_SQUARE)[name]()
    dense = matrix.toarray() if sp.issparse(matrix) else matrix
    wanted = np.linalg.svd(dense, compute_uv=False)[:5][::-1]
    u, s, vh = (one.compute() for one in mn.linalg.svds(matrix, 5))
    scale = max(wanted[-1], 1e-300)
    np.testing.assert_allclose(s, wanted, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(u.T @ u, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(vh @ vh.T, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(dense @ vh.T, u * s, atol=1e-7 * scale)


def test_singular_values_of_centered_copies() -> None:
    matrix = np.kron(np.eye(12), [[1.0, -1.0], [-1.0, 1.0]])  # whose columns have mean 0
    np.testing.assert_allclose(mn.linalg.svds(matrix, 5, center=True).s.compute(), 2)
    model = mn.learn.PCA(4, svd_solver="arpack", random_state=0).fit(sp.csr_array(matrix))
    np.testing.assert_allclose(model.singular_values_.compute(), 2)


def test_components_of_a_ring() -> None:
    ring = adjacency(nx.cycle_graph(200))
    wanted = 2 * np.cos(2 * np.pi * np.array([0, 0, 1, 1, 1]) / 200)
    model = mn.learn.TruncatedSVD(5, algorithm="arpack", random_state=0).fit(ring)
    np.testing.assert_allclose(model.singular_values_.compute(), wanted, rtol=1e-9)
    np.testing.assert_allclose(mn.linalg.svds(ring, k=5).s.compute(), wanted[::-1], rtol=1e-9)


def test_a_ring_is_embedded_as_a_ring() -> None:
    ring = adjacency(nx.cycle_graph(60))
    found = mn.learn.SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(ring)
    places = found.compute()
    radii = np.linalg.norm(places, axis=1)
    np.testing.assert_allclose(radii, radii[0], rtol=1e-6)


@pytest.mark.parametrize("which", ["LM", "LA", "SA"])
def test_values_near_a_number_have_their_copies(which: str) -> None:
    values = [0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0, *np.linspace(10, 30, 33)]
    matrix, sigma = drawn(values), 1.6
    inverse = np.linalg.inv(matrix - sigma * np.eye(len(values)))
    found, _ = mn.linalg.eigsh(matrix, k=3, which=which, sigma=sigma, OPinv=inverse)
    wanted = {"LM": [2, 2, 1], "LA": [2, 2, 3], "SA": [1, 1, 1]}[which]
    np.testing.assert_allclose(found.compute(), np.sort(wanted), atol=1e-8)
