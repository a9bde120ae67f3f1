"""Linear algebra on whole arrays, written on DistArray and iterate; and ``numpy.linalg`` under its names."""

import numpy as np

from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.namespace import recorded_in
from matnb.linalg.eigsh import Eigenpairs, eigsh

__all__ = ["Eigenpairs", "eigsh", "norm"]
_from_numpy = {name: one for name, one in recorded_in(np.linalg).items() if name not in __all__}
globals().update(_from_numpy)
__all__ += sorted(_from_numpy)
