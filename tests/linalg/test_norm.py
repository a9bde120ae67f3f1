"""The norm among linear algebra is NumPy's as recorded."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def test_norm_is_numpys() -> None:
    x = np.arange(-3.0, 4)
    for ord in (None, 1, 2, np.inf):
        np.testing.assert_allclose(mn.linalg.norm(mn.asarray(x), ord).compute(), np.linalg.norm(x, ord))
