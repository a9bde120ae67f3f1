"""NumPy's functions on DistArray, by family; importing a family registers it."""

from matnb.lazy.functions import access, assigning, elementwise, linear, reductions, shapes  # noqa: F401  registers each
