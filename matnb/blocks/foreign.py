"""Objects of other libraries as arrays; what is not an array is refused with a way to make one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparse

from matnb.errors import DTypeError, ShapeError

_SPARSE = (sp.sparray, sp.spmatrix, sparse.SparseArray)
# What gives an element of an array; NumPy tells by its dtype anything other than a number.
_ELEMENTS = (bool, int, float, complex, np.generic, str, bytes, type(None))
_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__")


def array_of(data: object) -> Any:
    """Return what an object stands for in a form that NumPy or SciPy know; the object itself if it is one.

    A NetworkX graph stands for its adjacency matrix, with rows and columns in the order of its nodes, weights
    as values (1 where there are none) and those of parallel edges added, as ``nx.to_scipy_sparse_array`` has
    it; a pandas frame of sparse columns for a sparse matrix. Neither library is imported.

    Raises
    ------
    DTypeError
        For anything other than an array, number or list of them, and for masked elements; the message says
        how to convert it.
    ShapeError
        For a pandas frame of sparse columns with a fill value other than 0.
    """
    if isinstance(data, (np.ndarray, *_ELEMENTS, *_SPARSE)):
        _check_unmasked(data)
        return data
    if is_graph(data):
        return _adjacency(data)
    if isinstance(data, list | tuple) or (isinstance(data, Sequence) and not _has_elements_of_its_own(data)):
        _check_items(data)
        return data
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return _frame(pandas, data)
    if any(hasattr(data, name) for name in _PROTOCOLS) or _has_buffer(data):
        return data
    if hasattr(data, "__dlpack__"):
        return np.from_dlpack(data)
    raise DTypeError(f"{_named(data)} is not an array: {_way(data)}")


def is_missing_value(value: object) -> bool:
    """Tell whether a value stands for a missing one: None, NaN, NaT, or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    is_number = isinstance(value, float | complex | np.generic)
    return is_number and bool(value != value)


def is_graph(data: object) -> bool:
    """Tell whether an object is one of NetworkX's graphs."""
    networkx = _networkx()
    return networkx is not None and isinstance(data, networkx.Graph)


def _networkx() -> ModuleType | None:
    # Who gives a graph has imported it.
    return sys.modules.get("networkx")


def _adjacency(graph: Any) -> sp.csr_array:
    networkx = _networkx()
    assert networkx is not None
    if not len(graph):
        return sp.csr_array((0, 0))
    try:
        matrix: sp.csr_array = networkx.to_scipy_sparse_array(graph, format="csr")
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"{_named(graph)} with weights that are not numbers: {error}; without them it is "
            "nx.to_scipy_sparse_array(G, weight=None)"
        ) from None
    return matrix


def _frame(pandas: ModuleType, data: Any) -> Any:
    if not data.shape[1] or not all(isinstance(one, pandas.SparseDtype) for one in data.dtypes):
        return data
    try:
        return data.sparse.to_coo()
    except ValueError as error:
        raise ShapeError(
            f"a DataFrame of sparse columns: {error}; data.sparse.to_dense() is a dense one"
        ) from None


def _check_unmasked(data: object) -> None:
    if np.ma.is_masked(data):
        raise DTypeError("an array with masked elements: fill or drop masked elements first: x.filled(0)")


def _check_items(items: Sequence[object]) -> None:
    # By the kinds of what is in a list, so that a long list of numbers takes no time.
    for kind in set(map(type, items)):
        if issubclass(kind, _ELEMENTS):
            continue
        for item in items:
            if type(item) is not kind:
                continue
            if issubclass(kind, _SPARSE) or array_of(item) is not item:
                raise DTypeError(
                    f"a list of {kind.__name__} is not an array: give mn.asarray of each, and np.concatenate "
                    "or np.stack to put them together"
                )


def _has_elements_of_its_own(data: object) -> bool:
    # What tells NumPy of its elements in another way than one by one.
    return any(hasattr(data, name) for name in _PROTOCOLS) or _has_buffer(data)


def _has_buffer(data: object) -> bool:
    try:
        memoryview(data)  # type: ignore[arg-type]  # or it raises
    except TypeError:
        return False
    return True


def _named(data: object) -> str:
    return f"a {type(data).__module__.partition('.')[0]} {type(data).__name__}".replace("a builtins ", "a ")


def _way(data: object) -> str:
    if (
        type(data).__module__.partition(".")[0] == "networkx"
    ):  # its views of vertices and edges are mappings too
        return "give the graph itself, mn.asarray(G), for its adjacency matrix"
    if isinstance(data, Mapping):
        return "give np.array(list(x.values())), or mn.asarray of each value"
    if isinstance(data, Set):
        return "give np.array(sorted(x)), which has an order"
    if isinstance(data, Iterable):
        return "give a list of its elements, list(x), if these are numbers"
    return "give a NumPy array, numbers in lists, or one of SciPy's sparse arrays"
