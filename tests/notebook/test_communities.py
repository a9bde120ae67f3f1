"""02_communities finds the triangles and communities that SciPy and the files' publishers do."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pytest
import scipy.sparse as sp
from kernels import COMMUNITIES, client_of, with_parameters
from scipy.sparse.csgraph import connected_components

pytestmark = pytest.mark.notebook

SAVED = """
import scipy.sparse as sp
sp.save_npz("links.npz", S.to_scipy())
np.savez(
    "found.npz", triangles=np.asarray(triangles), before=before, after=after, num_ties=len(one) // 2,
    number=np.asarray(number), number_held=np.asarray(number_held),
    community=np.asarray(community), modularity=float(modularity),
)
"""


def found_in(folder: Path, parameters: str) -> dict[str, np.ndarray]:
    book: nbformat.NotebookNode = with_parameters(COMMUNITIES, parameters, SAVED)
    client_of(book, folder).execute()
    return dict(np.load(folder / "found.npz"))


def of_three(labels: np.ndarray) -> list[int]:
    sizes = np.bincount(labels)
    return sorted(sizes[sizes > 2].tolist(), reverse=True)


@pytest.mark.slow
def test_the_made_up_communities_are_those_of_scipy(tmp_path: Path) -> None:
    found = found_in(tmp_path, "least = 3")
    links = sp.load_npz(tmp_path / "links.npz").tocsr()
    shared = (links @ links).multiply(links).tocsr()
    assert found["triangles"] == shared.sum() / 6
    number, labels = connected_components(links)
    assert found["number"] == number
    assert found["before"].tolist() == of_three(labels)
    held = sp.csr_array(shared >= 3)
    number_held, labels_held = connected_components(held)
    assert found["num_ties"] == held.count_nonzero() / 2
    assert found["number_held"] == number_held
    assert found["after"].tolist() == of_three(labels_held)
    assert len(found["after"]) > 30  # of the 40 groups that were made up
    ends = links.nonzero()
    shares = np.bincount(found["community"], links.sum(axis=1)) / links.sum()
    inside = np.mean(found["community"][ends[0]] == found["community"][ends[1]])
    assert found["modularity"] == pytest.approx(inside - (shares**2).sum(), abs=1e-12)
    assert found["modularity"] > 0.8
    assert 25 < len(of_three(found["community"])) <= 40


@pytest.mark.slow
def test_the_published_numbers_of_a_real_graph(test_data: Path, tmp_path: Path) -> None:
    path = test_data / "snap_ca-GrQc" / "ca-GrQc.txt"
    found = found_in(tmp_path, f"graph = {str(path)!r}")
    assert found["triangles"] == 48260
    assert found["before"][0] == 4158
