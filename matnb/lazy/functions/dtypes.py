"""Functions of dtypes, and what the array API standard has a namespace tell of itself."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import check_device
from matnb.lazy.registry import implements

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_GROUPS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


def _dtype_of(value: object) -> object:
    return value.dtype if isinstance(value, DistArray | np.ndarray | np.generic) else value


@implements(np.result_type)
def result_type(*arrays_and_dtypes: object) -> np.dtype:
    """``numpy.result_type``: the common dtype of arrays, dtypes and Python numbers."""
    try:
        return np.result_type(*map(_dtype_of, arrays_and_dtypes))  # type: ignore[arg-type]  # or it raises
    except TypeError as error:
        raise DTypeError(f"result_type: {error}") from None


@implements(np.can_cast)
def can_cast(from_: object, to: npt.DTypeLike, casting: str = "safe") -> bool:
    """``numpy.can_cast``."""
    try:
        return np.can_cast(_dtype_of(from_), to, casting)  # type: ignore[arg-type]  # or it raises
    except TypeError as error:
        raise DTypeError(f"can_cast: {error}") from None


class finfo:
    """The limits of a floating dtype, as ``numpy.finfo``; Python numbers where they fit.

    Parameters
    ----------
    dtype
        A dtype, an array or a number.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.finfo(mn.float32).bits
    32
    """

    def __init__(self, dtype: object) -> None:
        found = _dtype_of(dtype)
        try:
            self._numpy = np.finfo(found)  # type: ignore[call-overload]  # or it raises
        except (TypeError, ValueError):
            raise DTypeError(f"finfo: {found!r} is not a floating dtype") from None

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._numpy, name)
        return float(found) if isinstance(found, np.floating) and found.dtype.itemsize <= 8 else found

    def __repr__(self) -> str:
        return repr(self._numpy)


class iinfo(np.iinfo):
    """``numpy.iinfo``, also of a DistArray."""

    def __init__(self, dtype: object) -> None:
        super().__init__(_dtype_of(dtype))  # type: ignore[call-overload]  # or it raises


class NamespaceInfo:
    """What ``matnb.__array_namespace_info__()`` gives: the array API standard's inspection."""

    def capabilities(self) -> dict[str, bool | int]:
        """Tell what parts of the standard that may be missing are there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the only device: the workers' memory."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return all devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype]:
        """Return the dtypes that functions choose where none is given."""
        check_device(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """Return the standard's dtypes by name, of all kinds or of those asked for."""
        check_device(device)
        asked = tuple(_KINDS) if kind is None else (kind,) if isinstance(kind, str) else kind
        names: list[str] = []
        for one in asked:
            for each in _GROUPS.get(one, (one,)):
                if each not in _KINDS:
                    raise OptionError(f"kind={one!r}: choose from {', '.join((*_KINDS, *_GROUPS))}")
                names.extend(_KINDS[each])
        return {name: np.dtype(name) for name in names}
