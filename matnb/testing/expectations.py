"""What tests of contracts compare: arrays with arrays, and errors with what they have to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, to_scipy
from matnb.blocks.grid import Grid, region_shape
from matnb.blocks.kernels.shaping.shaping import join
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray


def expect(condition: object, text: str) -> None:
    """Fail with a text unless a condition holds; where Python is run with -O, too."""
    if not condition:
        raise AssertionError(text)


@contextmanager
def expect_error(kinds: type[BaseException] | tuple[type[BaseException], ...], text: str) -> Iterator[None]:
    """Fail with a text unless the block raises an error of these kinds."""
    try:
        yield
    except kinds:
        return
    raise AssertionError(text)


def expect_same(found: Any, wanted: Any, tolerance: float, where: str) -> None:
    """Fail unless two arrays have one shape, dtype and format, and the same elements and stored entries.

    Without a ``tolerance`` they have the same bits, but that any NaN is like any other.
    """
    expect(found.shape == wanted.shape, f"{where}: shape {found.shape}, where {wanted.shape} is expected")
    expect(found.dtype == wanted.dtype, f"{where}: dtype {found.dtype}, where {wanted.dtype} is expected")
    is_sparse = sp.issparse(wanted)
    words = {True: "sparse", False: "dense"}
    expect(
        sp.issparse(found) == is_sparse,
        f"{where}: the result is {words[not is_sparse]}, where a {words[is_sparse]} one is expected",
    )
    if is_sparse:
        found, wanted = sp.csr_array(found), sp.csr_array(wanted)
        wanted.sort_indices()
        for name in ("indptr", "indices"):
            np.testing.assert_array_equal(
                getattr(found, name), getattr(wanted, name), err_msg=f"{where}: entries lie elsewhere"
            )
        found, wanted = found.data, wanted.data
    if tolerance:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
        return
    np.testing.assert_array_equal(found, wanted, err_msg=where)
    if wanted.dtype.kind in "fc":
        for part in ("real", "imag") if wanted.dtype.kind == "c" else ("real",):
            np.testing.assert_array_equal(
                np.signbit(getattr(found, part)[wanted == 0]),
                np.signbit(getattr(wanted, part)[wanted == 0]),
                err_msg=f"{where}: signs of zeros differ",
            )


def array_of(blocks: Sequence[Block], grid: Grid, dtype: np.dtype, sparse: bool, where: str) -> Any:
    """Return NumPy's or SciPy's array of blocks, each of which has the form of its region."""
    parts: list[tuple[tuple[int, ...], Block]] = []
    for block, region in zip(blocks, grid.regions(), strict=True):
        form = block.shape, block.dtype, not isinstance(block, Dense)
        wanted = region_shape(region), dtype, sparse
        expect(form == wanted, f"{where}: a block of {form} where {wanted} belongs")
        parts.append((tuple(start for start, _ in region), block))
    whole = join(parts, grid.shape, dtype, sparse)
    return whole.values if isinstance(whole, Dense) else to_scipy(whole)


def cut_anywhere(arrays: Sequence[Any], seed: int) -> list[DistArray]:
    """Return arrays as handles, cut into blocks in a way that follows from the seed; 0 leaves them whole."""
    draws = np.random.default_rng(seed)
    found = []
    for array in arrays:
        cuts = [
            [0, *sorted({int(one) for one in draws.integers(1, length, 3)}), length] if length > 1 else None
            for length in array.shape
        ]
        found.append(asarray(array, blocks=cuts) if seed and any(cuts) else asarray(array))
    return found
