"""07_recommender misses held-out ratings of MovieLens by as much as is known of least squares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernels import RECOMMENDER, client_of, with_parameters

pytestmark = pytest.mark.notebook

SAVED = 'np.savez("found.npz", held=held, learned=learned, costs=costs, shape=shape, size=len(stars))'


@pytest.mark.slow
def test_held_out_ratings_of_movielens(test_data: Path, tmp_path: Path) -> None:
    path = test_data / "ml-latest-small" / "ratings.csv"
    parameters = f"ratings, regularization = {str(path)!r}, 0.15"
    client_of(with_parameters(RECOMMENDER, parameters, SAVED), tmp_path).execute()
    found = dict(np.load(tmp_path / "found.npz"))
    assert (found["shape"].tolist(), found["size"]) == ([610, 9724], 100836)
    assert 0.84 < found["held"].min() < 0.92
    # Less regularization always fits better what is learned from, and not always what is hidden.
    assert (np.diff(found["learned"]) > 0).all()
    assert 0 < found["held"].argmin() < len(found["costs"]) - 1
