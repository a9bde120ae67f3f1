"""Arrays that are made from numbers: what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.errors import OptionError


def test_a_range_longer_than_any_array_is_refused() -> None:
    # NumPy's unsigned numbers go round; its own count does too, and gives an empty array.
    with np.errstate(over="ignore"), pytest.raises(OptionError, match="too many for an array"):
        mn.arange(1, np.uint64(0), 2)
