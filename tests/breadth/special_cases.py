"""``scipy.special``: its ufuncs, softmax and sums of exponentials."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from scipy import special

from breadth.case import Case, floats, odd, whole

LARGE = (floats(50000, 4),)
SINGLE = ("expit", "logit", "log_expit", "entr", "psi", "gammaln", "erf", "erfinv", "ndtr", "erfc")


def of(xp: ModuleType) -> Any:
    """Return what has SciPy's names beside a namespace."""
    return special if xp is np else xp.special  # type: ignore[attr-defined]  # matnb's


def _along(name: str, **options: Any) -> Any:
    return lambda xp, x: getattr(of(xp), name)(x, **options)


def _weighted(xp: Any, x: Any, factors: Any) -> Any:
    return of(xp).logsumexp(x, axis=0, b=factors)


# The digamma function has a pole at 0, of another sign at -0.0, which a sparse array does not store.
CASES = [
    *(
        Case(f"special.{name}", lambda xp, x, name=name: getattr(special, name)(x), (make,), name != "psi")
        for name in SINGLE
        for make in (odd(9, 6), whole(7, 5))
    ),
    *(
        Case(f"special.{name}", lambda xp, x, name=name: getattr(of(xp), name)(x), (floats(4, 5),))
        for name in SINGLE[:2]
    ),
    Case("special.xlogy", lambda xp, x, y: special.xlogy(x, y), (floats(9, 6), floats(9, 6)), sparse=False),
    Case("special.xlogy", lambda xp, x, y: special.xlogy(x, abs(y) + 1), (floats(9, 6), floats(9, 6))),
    Case("special.rel_entr", lambda xp, x, y: special.rel_entr(x, y), (floats(9, 6), floats(6))),
    Case("special.expit", lambda xp, x: 1 - special.expit(x * 2 + 1) ** 2, (floats(5, 4),), large=LARGE),
    *(
        Case(f"special.{name}", _along(name, axis=axis), (make,), large=LARGE if axis == 1 else ())
        for name in ("softmax", "log_softmax", "logsumexp")
        for axis, make in ((None, floats(7, 6)), (0, floats(7, 6)), (1, odd(7, 6)), ((0, 2), floats(3, 4, 5)))
    ),
    Case("special.logsumexp", _along("logsumexp", axis=1, keepdims=True), (floats(7, 6),)),
    Case("special.logsumexp", _weighted, (floats(7, 6), floats(6)), sparse=False),
    Case("special.softmax", _along("softmax", axis=0), (whole(7, 3),)),
]
