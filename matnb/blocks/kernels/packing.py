"""Entries of a vector taken out and put back by their places; the places that a block's columns touch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Csr, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, unsigned

_WORDS: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


def can_pack(dtype: np.dtype) -> bool:
    """Tell whether elements of a dtype can be packed: they are moved as words of their size."""
    return dtype.itemsize in _WORDS


def touched(block: Csr, first: int, length: int, seen: npt.NDArray[np.uint8]) -> None:
    """Set ``seen`` to 1 at each place whose column, ``first`` + place, has an entry in a block.

    Raises
    ------
    ValueError
        When ``seen`` has not ``length`` places.
    """
    if seen.size != length:
        raise ValueError(f"{seen.size} places to mark, of {length}")
    _mark(unsigned(block.columns), np.uint64(first), np.uint64(length), seen)


def pack(values: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    """Write the elements at some places, one after the other; all are contiguous, of one dtype."""
    word: np.dtype = _WORDS[values.dtype.itemsize]
    _gather(given(values.view(word)), given(places), out.view(word))


def unpack(packed: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    """Write elements that were packed at their places; the others stay as they are."""
    word: np.dtype = _WORDS[packed.dtype.itemsize]
    _scatter(given(packed.view(word)), given(places), out.view(word))


@compiled
def _mark(columns: UnsignedArray, first: np.uint64, length: np.uint64, seen: npt.NDArray[np.uint8]) -> None:
    for k in range(columns.size):
        place = np.uint64(columns[k]) - first  # of a column before the first: more than any length
        if place < length:
            seen[place] = 1


@compiled
def _gather(values: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        out[k] = values[places[k]]


@compiled
def _scatter(packed: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        out[places[k]] = packed[k]
