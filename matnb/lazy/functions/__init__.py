"""NumPy's functions on DistArray, by family; importing a family registers it."""

from matnb.lazy.functions import (  # noqa: F401  registers each
    access,
    assigning,
    elementwise,
    joining,
    linear,
    reductions,
    shapes,
)
