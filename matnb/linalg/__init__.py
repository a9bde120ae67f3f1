"""Linear algebra on whole arrays, written on DistArray and iterate; and ``numpy.linalg`` under its names.

What takes all its iterations without converging gives what the last one came to, with a
:class:`matnb.errors.ConvergenceWarning` when it is computed.
"""

import numpy as np

from matnb.errors import offered
from matnb.lazy.functions.decompositions import solve_triangular
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.namespace import recorded_in
from matnb.lazy.functions.stacks import segment_solves
from matnb.linalg.bicgstab import bicgstab
from matnb.linalg.conjugate_gradients import cg
from matnb.linalg.eigsh import Eigenpairs, eigsh
from matnb.linalg.exponential import expm_multiply
from matnb.linalg.gmres import gmres
from matnb.linalg.lobpcg import lobpcg
from matnb.linalg.lsmr import LeastResidual, lsmr
from matnb.linalg.lsqr import LeastSquares, lsqr
from matnb.linalg.minimal_residuals import minres
from matnb.linalg.svds import SingularTriplets, svds
from matnb.linalg.systems import Solution

__all__ = [
    "Eigenpairs",
    "LeastResidual",
    "LeastSquares",
    "SingularTriplets",
    "Solution",
    "bicgstab",
    "cg",
    "eigsh",
    "expm_multiply",
    "gmres",
    "lobpcg",
    "lsmr",
    "lsqr",
    "minres",
    "norm",
    "segment_solves",
    "solve_triangular",
    "svds",
]
_from_numpy = {name: one for name, one in recorded_in(np.linalg).items() if name not in __all__}
globals().update(_from_numpy)
__all__ += sorted(_from_numpy)
__getattr__, __dir__ = offered(__name__, __all__)
