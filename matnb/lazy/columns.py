"""Named columns: what a table file gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn, overload

import numpy as np
import numpy.typing as npt

from matnb.errors import ColumnError, UnsupportedError
from matnb.lazy.array import DistArray
from matnb.pictures.arrays import array_html, columns_text

if TYPE_CHECKING:
    import pandas as pd


class Columns(Mapping[str, DistArray]):
    """The columns of a table by name, each with one axis; ``array`` is all of them, rows by columns.

    ``table["fare"]`` is a column, and ``table[["fare", "distance"]]`` these columns, in this order.

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

    @overload
    def __getitem__(self, name: str) -> DistArray: ...
    @overload
    def __getitem__(self, name: list[str]) -> Columns: ...
    def __getitem__(self, name: str | list[str]) -> DistArray | Columns:
        if isinstance(name, list):
            places = [self._place(one) for one in name]
            return Columns(tuple(name), self.array[:, places], tuple(self.dtypes[one] for one in places))
        place = self._place(name)
        column = self.array[:, place]
        return column if column.dtype == self.dtypes[place] else column.astype(self.dtypes[place])

    def to_pandas(self) -> pd.DataFrame:
        """Compute the columns in one run and return them as a pandas frame, with their names and dtypes.

        Raises
        ------
        TooLargeError
            When ``array`` exceeds the session's ``compute_limit``.
        UnsupportedError
            Where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise UnsupportedError(
                f"to_pandas() needs pandas: {error}; table.array.compute() does not"
            ) from None
        values = np.asarray(self.array.compute())
        return pandas.DataFrame(
            {
                name: values[:, place].astype(dtype)
                for place, (name, dtype) in enumerate(zip(self.names, self.dtypes, strict=True))
            }
        )

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        # pandas asks for this, too, and would lose the names.
        raise UnsupportedError(
            f"a table of columns {', '.join(self.names)} is no single array: table.to_pandas() is a frame, "
            f"table.array has all columns as {self.array.dtype}, table[{self.names[0]!r}] is one"
        )

    def _place(self, name: object) -> int:
        if name not in self.names:
            raise ColumnError(f"no column {name!r}; there are: {', '.join(self.names)}")
        return self.names.index(name)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"columns have no attribute {name!r}; table[NAME] is a column, table.names are their names, and "
            "table.array is all of them"
        )

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return columns_text(self.array.facts(), self._told())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": array_html(self.array.facts(), self._told())}

    def _told(self) -> dict[str, str]:
        return {name: str(dtype) for name, dtype in zip(self.names, self.dtypes, strict=True)}
