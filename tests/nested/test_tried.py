"""What users try first on nested arrays, in scripts: it is right, or one error says what to write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import matnb as mn


@pytest.fixture(autouse=True, scope="module")
def _session() -> Iterator[None]:
    with mn.start(workers=1, threads=2):
        yield


def test_segments_are_taken_again_after_the_same_ones_were_computed() -> None:
    # The passes make of the second selection what the first one stored, so that there is nothing to plan.
    values = mn.asarray(np.arange(5006.0))
    counts = [1, 0, 5000, 2, 0, 3]
    mn.nested.unflatten(values, counts, strategy="uniform")[::-1].values.compute()
    again = mn.nested.unflatten(values, counts, strategy="segmented")[::-1]
    assert again.tolist()[:2] == [[5003.0, 5004.0, 5005.0], []]
