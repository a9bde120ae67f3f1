"""Compiled loops around a sort of places: whole numbers that hold a key above and its place below."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.kernels.compiled import compiled

Keys = npt.NDArray[np.int64]
Packed = npt.NDArray[np.uint64]

_MOST_ALIKE = 32  # keys that share what is packed of them are put in order one by one, up to so many


@compiled
def pack(keys: Keys, least: int, dropped: int, place_bits: int, packed: Packed) -> None:
    """Write what is left of each key above ``least`` without its lowest bits, and below it its place."""
    for place in range(keys.size):
        key = np.uint64(keys[place] - least) >> np.uint64(dropped)
        packed[place] = (key << np.uint64(place_bits)) | np.uint64(place)


@compiled
def settle(keys: Keys, packed: Packed, place_bits: int) -> bool:
    """Put in order by their whole keys, then by place, what shares what is packed of its keys.

    Parameters
    ----------
    packed
        Sorted; changed here.

    Returns
    -------
    False where too many share it; nothing can be said of the order then.
    """
    shift, mask = np.uint64(place_bits), (np.uint64(1) << np.uint64(place_bits)) - np.uint64(1)
    start = 0
    while start < packed.size:
        prefix = packed[start] >> shift
        stop = start + 1
        is_alike = True
        while stop < packed.size and packed[stop] >> shift == prefix:
            is_alike = is_alike and keys[packed[stop] & mask] == keys[packed[start] & mask]
            stop += 1
        if stop - start > 1 and not is_alike:
            if stop - start > _MOST_ALIKE:
                return False
            for one in range(start + 1, stop):
                moved = packed[one]
                key = keys[moved & mask]
                place = one
                # Places of equal keys ascend already.
                while place > start and keys[packed[place - 1] & mask] > key:
                    packed[place] = packed[place - 1]
                    place -= 1
                packed[place] = moved
        start = stop
    return True
