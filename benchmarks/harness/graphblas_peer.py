"""SuiteSparse:GraphBLAS, through python-graphblas, as a peer with two threads."""

from __future__ import annotations

import graphblas as gb
import numpy as np
import scipy.sparse as sp

from harness.inputs import THREADS

gb.ss.config["nthreads"] = THREADS


def matrix(given: sp.csr_array) -> gb.Matrix:
    """Return a SciPy matrix with its values."""
    return gb.Matrix.from_csr(given.indptr, given.indices, given.data, ncols=given.shape[1])


def pattern(given: sp.csr_array, dtype: type = float) -> gb.Matrix:
    """Return a SciPy matrix's pattern with one value for all entries, which GraphBLAS stores once."""
    return gb.Matrix.from_csr(given.indptr, given.indices, np.ones(1, dtype)[0], ncols=given.shape[1])


def vector(given: np.ndarray) -> gb.Vector:
    """Return a dense vector."""
    return gb.Vector.from_dense(given)
