"""Linear algebra on whole arrays, written on DistArray and iterate; and ``numpy.linalg`` under its names.

What takes all its iterations without converging gives what the last one came to, with a
:class:`matnb.errors.ConvergenceWarning` when it is computed.
"""

import sys

import numpy as np

from matnb.errors import offered, ways
from matnb.lazy.functions.decompositions import solve_triangular
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.namespace import recorded_in
from matnb.lazy.functions.stacks import segment_solves
from matnb.linalg import curves as _curves  # noqa: F401  NumPy's functions of curves
from matnb.linalg import sparse_methods as _sparse_methods  # noqa: F401  gives arrays SciPy's methods
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
# What SciPy has under other names, and what there is here.
_INSTEAD = ways(
    {
        "spsolve splu spilu factorized": (
            "mn.linalg.cg(A, b)[0] if A is symmetric and positive definite, else mn.linalg.gmres(A, b)[0], "
            "or scipy.sparse.linalg.spsolve(A.to_scipy().tocsc(), np.asarray(b)) where A fits in this process"
        ),
        "eigs": "mn.linalg.eigsh(A) if A is symmetric, else scipy.sparse.linalg.eigs(A.to_scipy())",
        "expm": "mn.linalg.expm_multiply(A, b), which is the product of the exponential with b",
        "LinearOperator aslinearoperator": (
            "scipy.sparse.linalg.aslinearoperator(A): a DistArray has matvec and rmatvec"
        ),
        "tsqr": "np.linalg.qr(X), which goes through a tall X in slabs",
        "cho_factor": "mn.linalg.cholesky(A)", "cho_solve": (
            "mn.linalg.solve_triangular(L.T, mn.linalg.solve_triangular(L, b, lower=True))"
        ),
    }
)  # fmt: skip


def _instead_of(name: str) -> str:
    # What to write: here, or with SciPy.
    if name in _INSTEAD or name in np.linalg.__dir__():
        return _INSTEAD.get(name, "")
    if callable(getattr(sys.modules.get("scipy.linalg"), name, None)):
        return f"compute first: scipy.linalg.{name}(A.compute())"
    if callable(getattr(sys.modules.get("scipy.sparse.linalg"), name, None)):
        return f"compute first: scipy.sparse.linalg.{name}(A.to_scipy())"
    return ""


__getattr__, __dir__ = offered(__name__, __all__, _instead_of)
