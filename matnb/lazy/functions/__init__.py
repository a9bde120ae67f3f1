"""NumPy's functions on DistArray, by family; importing a family registers it."""

from matnb.lazy import creation  # noqa: F401  registers as well
from matnb.lazy.functions import (  # noqa: F401  registers each
    diagonals,
    dtypes,
    elementwise,
    generalized,
    grouping,
    indexing,
    linear,
    mapping,
    ordering,
    rearranging,
    reductions,
    scanning,
    shaping,
    sliding,
    statistics,
)
