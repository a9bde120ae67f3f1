"""Objects of other libraries as arrays; what is not an array is refused with a way to make one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
import sparse

from matnb.errors import DTypeError, FileContentWarning, ShapeError, warn

_SPARSE = (sp.sparray, sp.spmatrix, sparse.SparseArray)
# What gives an element of an array; NumPy tells by its dtype anything other than a number.
_ELEMENTS = (bool, int, float, complex, np.generic, str, bytes, type(None))
_POINTER_BYTES = 8
# What is in the memory of this process says so by one of these, or is of a library all of whose arrays are.
_HERE = (
    "__array_interface__", "__array_struct__", "__dlpack__", "__arrow_c_array__", "__arrow_c_stream__",
    "__matnb_array__",
)  # fmt: skip
_KEPT_HERE = ("matnb", "numpy", "scipy", "sparse", "pandas", "polars", "pyarrow")
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


def bytes_elsewhere(data: object) -> int:
    """Return how many bytes an object takes when its elements are read, where these are not here yet; else 0.

    So it is of Dask's arrays and frames, which are computed then, and of datasets in files (h5py, Zarr and
    others), which tell shape and dtype and give parts of themselves, but have no memory to share. What is in
    the memory of this process, and so has a buffer, NumPy's or Arrow's or DLPack's interface, is not counted.
    """
    if isinstance(data, list | tuple):
        kinds = {kind for kind in set(map(type, data)) if not issubclass(kind, (*_ELEMENTS, np.ndarray))}
        return sum(bytes_elsewhere(one) for one in data if type(one) in kinds) if kinds else 0
    if isinstance(data, (np.ndarray, *_ELEMENTS, *_SPARSE)) or not _is_elsewhere(data):
        return 0
    return _bytes_of(data)


def _bytes_of(data: Any) -> int:
    # Of an array, a column or a frame that are elsewhere.
    each = [data.dtype] if hasattr(data, "dtype") else list(data.dtypes)
    row = sum(getattr(one, "itemsize", _POINTER_BYTES) for one in each)
    if hasattr(data, "compute_chunk_sizes"):
        if any(one != one for one in data.shape):  # Dask's lengths that follow from values are NaN
            data = copy(data).compute_chunk_sizes()
    elif not all(isinstance(one, int | np.integer) for one in data.shape):
        return len(data) * row  # of Dask's frames and columns: only counting tells how many rows they have
    return prod(map(int, data.shape if hasattr(data, "dtype") else data.shape[:1])) * row


def _is_elsewhere(data: object) -> bool:
    graph = getattr(data, "__dask_graph__", None)
    if callable(graph) and graph() is not None:
        return True
    if any(hasattr(data, name) for name in _HERE) or _has_buffer(data):
        return False
    if type(data).__module__.partition(".")[0] in _KEPT_HERE or is_graph(data):
        return False
    return all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__"))


def is_graph(data: object) -> bool:
    """Tell whether an object is one of NetworkX's graphs."""
    networkx = _networkx()
    return networkx is not None and isinstance(data, networkx.Graph)


def names_of(data: Any) -> np.ndarray | None:
    """Return the nodes of a NetworkX graph in their order, text as objects, unless they count up from 0.

    They name the rows and columns of its matrix; None for anything other than such a graph.
    """
    if not is_graph(data) or all(node == place for place, node in enumerate(data)):
        return None
    if all(type(node) is int for node in data):
        return np.array(list(data))
    names = np.empty(len(data), object)
    names[:] = list(data)
    return names


def _networkx() -> ModuleType | None:
    # Who gives a graph has imported it.
    return sys.modules.get("networkx")


def _adjacency(graph: Any) -> sp.csr_array:
    networkx = _networkx()
    assert networkx is not None
    if not len(graph):
        way = 'nx.read_edgelist leaves out lines that it cannot split, unless it is given delimiter=","'
        warn(f"the graph has no vertices: {way}", FileContentWarning)
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
