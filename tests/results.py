"""What a DistArray is worth by the reference evaluator, compared with NumPy's."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import matnb as mn
from matnb.ops.interpret import interpret


def value(array: mn.DistArray) -> np.ndarray:
    found = interpret(array.expression)
    return found.toarray() if sp.issparse(found) else found


def check(mine: object, theirs: object, text: str = "") -> None:
    assert isinstance(mine, mn.DistArray), text
    expected = np.asarray(theirs)
    assert (mine.shape, mine.dtype) == (expected.shape, expected.dtype), text
    np.testing.assert_allclose(value(mine), expected, rtol=1e-6, atol=1e-6, err_msg=text)
