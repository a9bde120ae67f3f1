"""Names for columns that are put beside others: none takes the place of another."""

from __future__ import annotations

from collections.abc import Collection


def free_name(name: str, taken: Collection[str], word: str = "") -> str:
    """Return a name for a further column: the one that is wanted, or it and a word where that is taken.

    Examples
    --------
    >>> free_name("size", ["zone"]), free_name("size", ["size"]), free_name("fare", ["fare"], "mean")
    ('size', 'size_', 'fare_mean')
    """
    while name in taken:
        name = f"{name}_{word}"
    return name
