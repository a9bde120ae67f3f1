"""Named columns: what a table file gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from matnb.errors import IndexingError
from matnb.lazy.array import DistArray
from matnb.pictures.arrays import array_html, array_text


class Columns(Mapping[str, DistArray]):
    """The columns of a table by name, each with one axis; ``array`` is all of them, rows by columns.

    A column of whole numbers is int64 and one of true and false is bool where no value is missing; every
    other is float64, and so is ``array``. Missing values are NaN.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> np.savetxt("trips.csv", [[1.5, 7], [0.5, 5]], delimiter=",", header="distance,fare", comments="")
    >>> trips = mn.load("trips.csv", columns=["distance", "fare"])
    >>> float(trips["fare"].mean())
    6.0
    """

    def __init__(self, names: tuple[str, ...], array: DistArray, dtypes: tuple[np.dtype, ...] = ()) -> None:
        self.names, self.array = names, array
        self.dtypes = dtypes or (array.dtype,) * len(names)

    def __getitem__(self, name: str) -> DistArray:
        if name not in self.names:
            raise IndexingError(f"no column {name!r}; there are: {', '.join(self.names)}")
        place = self.names.index(name)
        column = self.array[:, place]
        return column if column.dtype == self.dtypes[place] else column.astype(self.dtypes[place])

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"columns {', '.join(self.names)} of\n{array_text(self.array.facts())}"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": array_html(self.array.facts())}
