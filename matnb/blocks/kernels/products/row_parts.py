"""The rows of a sparse matrix in parts, whose products with a vector are made one by one or side by side."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, Dense, NumericArray
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.elementwise.tile_loops import TILE
from matnb.blocks.kernels.operands import pattern_of_loop
from matnb.blocks.kernels.products.dense_products import multiply_pattern_into

_FLOAT = np.dtype(np.float64)
# What a row costs beside its entries, in entries. It also bounds the rows of a part.
_ROW_ENTRIES = 8


def product_fits(matrix: object, x: object) -> bool:
    """Tell whether a product of two blocks is one in double precision."""
    return (
        isinstance(matrix, Csr)
        and isinstance(x, Dense)
        and x.values.ndim == 1
        and x.dtype == _FLOAT
        and x.values.flags.c_contiguous
        and x.shape[0] == matrix.shape[1]
        and (matrix.values is None or matrix.values.dtype == _FLOAT)
    )


class WholeRows:
    """All rows of a matrix, whose product with a vector is made again and again.

    Parameters
    ----------
    matrix
        With entries of double precision, or ones.
    """

    def __init__(self, matrix: Csr) -> None:
        self.matrix = matrix
        self._pointers, self._columns = pattern_of_loop(matrix)
        self._values = None if matrix.values is None else given(matrix.values)

    def multiply_into(self, x: NumericArray, out: NumericArray) -> None:
        """Write the product with a contiguous vector of double precision into contiguous memory."""
        multiply_pattern_into(self._pointers, self._columns, self._values, given(x), out)


class RowParts(WholeRows):
    """The rows of a matrix, cut in parts of about equal work.

    Parameters
    ----------
    matrix
        With entries of double precision, or ones.
    start
        Global place of the first row: where sums follow, parts begin where a tile does.
    part_work
        About how much each part is, in entries.

    Attributes
    ----------
    bounds
        Where each part begins, and the last ends.
    """

    def __init__(self, matrix: Csr, start: int, part_work: int) -> None:
        super().__init__(matrix)
        num_rows = matrix.shape[0]
        places = np.append(np.arange(-start % TILE, num_rows, TILE), num_rows)
        work = matrix.pointers[places] + _ROW_ENTRIES * places
        wanted = np.arange(1, int(work[-1]) // part_work) * part_work
        inner = np.unique(places[np.searchsorted(work, wanted)])
        self.bounds: list[int] = [0, *inner[(inner > 0) & (inner < num_rows)].tolist(), num_rows]

    def multiply_part_into(self, part: int, x: NumericArray, out: NumericArray) -> None:
        """Write the product of a part's rows with a vector of double precision."""
        pointers = self._pointers[self.bounds[part] : self.bounds[part + 1] + 1]
        multiply_pattern_into(pointers, self._columns, self._values, x, out)
