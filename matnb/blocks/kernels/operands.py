"""What a loop over a sparse block is given: its arrays, and the dtype that the loop computes in."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, NumericArray
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.compiled import UnsignedArray, given, unsigned
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.semiring import LOR_LAND, PLUS_TIMES, Semiring
from matnb.errors import DTypeError

_SUMS = {
    "float64": np.float64, "float32": np.float32, "float16": np.float64,
    "complex64": np.complex128, "complex128": np.complex128, "int32": np.int32,
}  # fmt: skip


def check_loop_dtype(dtype: np.dtype) -> None:
    """Refuse a result of extended precision, which no compiled loop has.

    Raises
    ------
    DTypeError
        Naming the dtype.
    """
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise DTypeError(f"a sparse product of dtype {dtype}: convert to double precision with astype first")


def loop_semiring(semiring: Semiring, dtype: np.dtype) -> Semiring:
    """Return the semiring that a loop runs for a result of this dtype: booleans are added as truths."""
    return LOR_LAND if semiring is PLUS_TIMES and dtype.kind == "b" else semiring


def loop_dtype(semiring: Semiring, dtype: np.dtype) -> np.dtype:
    """Return the dtype that a loop computes in, from which a cast gives the result in ``dtype``.

    A loop is compiled anew for each, so rare ones are computed in another: whole numbers that wrap at 64 bits
    are right in fewer bits too, and half precision, which Numba lacks, in double.
    """
    if semiring.multiply == "land":
        return np.dtype(np.bool_)
    if semiring.add.name == "min":  # what wraps must wrap before it is compared
        return np.dtype(np.float64) if dtype == np.float16 else dtype
    return np.dtype(_SUMS.get(dtype.name, np.int64))


def sums_dtype(semiring: Semiring, dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a loop that computes in ``dtype`` keeps its sums: the longest of its kind."""
    if semiring.add.name != "plus":
        return dtype
    return np.dtype(np.int64) if dtype.kind == "i" else accumulator_dtype("sum", dtype)


def pattern_of_loop(block: Csr) -> tuple[UnsignedArray, UnsignedArray]:
    """Return pointers and columns as a loop takes them."""
    return unsigned(block.pointers), unsigned(block.columns)


def entries_of_loop(block: Csr, dtype: np.dtype) -> tuple[NumericArray, np.uint64]:
    """Return the entries as ``dtype`` and how far apart they are: 0 where a single 1 stands for all."""
    if block.values is None:
        return given(np.ones(1, dtype)), np.uint64(0)
    return given(cast(block.values, dtype)), np.uint64(1)
