"""Rows that are shared: which blocks of one row are multiplied by several tasks, and how they are cut."""

from __future__ import annotations

SHARED_ENTRIES = 2**17  # of a block of one row: its product with a vector takes a thread 0.2 to 0.4 ms
_LEAF = 64  # entries of a row that products add in order, under a binary tree over such leaves


def is_shared(num_rows: int, num_entries: int) -> bool:
    """Tell whether the products of a block with dense arrays are worth sharing between all threads."""
    return num_rows == 1 and num_entries >= SHARED_ENTRIES


def num_leaves(num_entries: int) -> int:
    """Return how many leaves the tree over a row's entries has."""
    return -(-num_entries // _LEAF)


def leaves_of(num_entries: int, part: int, count: int) -> tuple[int, int]:
    """Return which leaves of a row are in one of ``count`` nearly equal parts; none where it has too few."""
    leaves = num_leaves(num_entries)
    return leaves * part // count, leaves * (part + 1) // count


def entries_before(leaf: int, num_entries: int) -> int:
    """Return how many of a row's entries lie before a leaf, which may be one past the last."""
    return min(leaf * _LEAF, num_entries)
