"""Whether entries and their mirror images are the same: a fingerprint, and the edge that differs."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from matnb.io.entries import Entries

_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # of splitmix64 (Steele, Lea and Flood 2014)


def fingerprint(entries: Entries) -> int:
    """Return a 64-bit number that follows from positions and values, in whatever order they are.

    It is the sum of a hash of each entry, so those of parts add up to that of the whole, modulo 2**64.
    """
    words = _keys(entries).astype(np.uint64)
    words += np.uint64(0x9E3779B97F4A7C15)
    _mix(words)
    if entries.values is not None:
        words ^= (entries.values.astype(np.float64) + 0.0).view(np.uint64)  # adding 0 makes -0.0 a 0.0
        _mix(words)
    return int(words.sum(dtype=np.uint64))


def _mix(words: npt.NDArray[np.uint64]) -> None:
    for shift, factor in _STEPS:
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)


def _keys(entries: Entries) -> npt.NDArray[np.int64]:
    return (entries.rows.astype(np.int64) << 32) | entries.columns


def odd_edge(
    listed: Entries, mirrored: Entries
) -> tuple[int, int, Literal["twice", "listed", "mirrored", "value"]]:
    """Return an entry by which two collections differ, as row and column, and how.

    "twice" is listed more than once, "listed" and "mirrored" are in one only, and a "value" differs.
    """
    keys, other = np.sort(_keys(listed)), np.sort(_keys(mirrored))
    for place in np.flatnonzero(keys[1:] == keys[:-1])[:1]:
        return *_position(keys[place]), "twice"
    if not np.array_equal(keys, other):
        end = np.int64(2**63 - 1)  # stands behind the shorter of the two
        shared = min(keys.size, other.size) + 1
        ours, theirs = np.append(keys, end)[:shared], np.append(other, end)[:shared]
        place = np.flatnonzero(ours != theirs)[0]
        how: Literal["listed", "mirrored"] = "listed" if ours[place] < theirs[place] else "mirrored"
        return *_position(min(ours[place], theirs[place])), how
    values, others = (np.asarray(one.values)[np.argsort(_keys(one))] for one in (listed, mirrored))
    return *_position(keys[np.argmax(values != others)]), "value"


def _position(key: np.int64) -> tuple[int, int]:
    return int(key) >> 32, int(key) & 0xFFFFFFFF
