"""Inputs of the benchmarks: R-MAT graphs, their symmetric forms, and blocks of equal entries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.formats import SparseBlock, csr_block

THREADS = 2  # matnb's and, where they can, its peers'

_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def rmat(scale: int, values: bool = False) -> sp.csr_array:
    """Return the R-MAT graph of 2**scale vertices and edge factor 16; all ones, or random values."""
    graph = mn.random.rmat(scale=scale, seed=1).to_scipy()
    if values:
        graph.data = np.random.default_rng(scale).random(graph.nnz)
    return graph


def lower_triangle(graph: sp.csr_array) -> sp.csr_array:
    """Return the strict lower triangle of ``A | A.T``, all ones."""
    both = sp.csr_array(graph + graph.T)
    lower = sp.csr_array(sp.tril(both, -1))
    lower.sum_duplicates()
    lower.data = np.ones(lower.nnz)
    return lower


def equal_entry_cuts(pointers: npt.NDArray[np.integer], count: int) -> list[int]:
    """Return where rows are cut into ``count`` parts of nearly equal entries; fewer if rows are too heavy."""
    wanted = np.linspace(0, int(pointers[-1]), count + 1)
    cuts = np.searchsorted(pointers, wanted)
    cuts[0], cuts[-1] = 0, len(pointers) - 1
    return [int(one) for one in np.unique(cuts)]


def row_blocks(matrix: sp.csr_array, count: int, pattern: bool = False) -> list[SparseBlock]:
    """Return a matrix as read-only blocks of nearly equal entries."""
    cuts = equal_entry_cuts(matrix.indptr, count)
    return [csr_block(matrix[a:b], pattern) for a, b in itertools.pairwise(cuts)]


def side_by_side(
    pool: ThreadPoolExecutor, work: Callable[[_Given], _Result], pieces: Sequence[_Given]
) -> list[_Result]:
    """Do the work on every piece over the threads of a pool."""
    return list(pool.map(work, pieces))
