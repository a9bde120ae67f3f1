"""Matrices whose rows and columns have labels, as pivots of tables: which may be taken for graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.errors import ShapeError

_SHOWN = 3  # labels of a kind in an error


def check_one_set(A: object, name: str) -> None:
    """Refuse a matrix as a graph, or another map of vertices to themselves, whose axes name different things.

    Raises
    ------
    ShapeError
        For row labels that are not the column labels; it lists some that only one side has.
    """
    rows, columns = (getattr(A, f"{word}_labels", None) for word in ("row", "column"))
    if rows is None or columns is None or are_same(rows, columns):
        return
    raise ShapeError(
        f"{name}: rows and columns have different labels, and a vertex is a row and a column of one label: "
        f"{difference(rows, columns, ('a row', 'a column'))}. Number both columns of the table by one list, "
        "names = np.union1d(A.row_labels, A.column_labels) and np.searchsorted(names, ...), and give "
        "mn.coo_array the numbers; A.without_labels() is the matrix alone"
    )


def are_same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Tell whether two axes have the same labels in the same order."""
    return one is other or (len(one) == len(other) and bool(np.all(one == other)))


def difference(one: npt.NDArray[Any], other: npt.NDArray[Any], names: tuple[str, str]) -> str:
    """Return in words where the labels of two axes differ, each of which has a name."""
    parts = []
    for name, own, others in ((names[0], one, other), (names[1], other, one)):
        known = set(others.tolist())
        alone = [repr(label) for label in own.tolist() if label not in known]
        if alone:
            more = f" and {len(alone) - _SHOWN:,} more" if len(alone) > _SHOWN else ""
            parts.append(f"only {name} is labelled {', '.join(alone[:_SHOWN])}{more}")
    if parts:
        return "; ".join(parts)
    length = min(len(one), len(other))
    place = int(np.argmax(one[:length] != other[:length])) if length else 0
    place = place if place < length else length - 1
    return (
        f"they are in another order: number {place} of one is {one[place]!r}, of the other {other[place]!r}"
    )
