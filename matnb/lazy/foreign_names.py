"""What other libraries call what a DistArray has under another name, and what those get that ask for it."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from matnb.errors import MatnbError, TooLargeError, UnsupportedError, warn, ways
from matnb.lazy.registry import FUNCTIONS, implements
from matnb.pictures.quantities import bytes_text

# Missing values are in no interval, nor is what is outside of all.
CUT = "np.digitize(x, bins, right=True).where((x > bins[0]) & (x <= bins[-1])), which counts from 1"
QCUT = "np.digitize(x, x.quantile([0.25, 0.5, 0.75]), right=True).where(x.notna()), which counts from 0"
INSTEAD = ways(
    {
        "numpy values A": "x.to_numpy()",
        "itemset": "x[n] = value",
        "to_list": "x.tolist()", "getnnz": "x.nnz",
        "flat": "x.ravel(), or np.put(x, n, value)", "dt": "t[name].dt, of times",
        "to_pandas to_frame": "pandas.DataFrame(np.asarray(x)), or pandas.Series(x, index=x.labels); "
        "a pivot has P.to_pandas()",
        "name": "the name itself: t[name]",
        "head": "x[:5]", "tail": "x[-5:]", "iloc iat isel": "x[n], or x[rows, columns]",
        "loc at sel": "x[rows, columns], or, where rows have labels, A[A.labels == label]",
        "isna isnull": "np.isnan(x)", "notna notnull": "~np.isnan(x)", "dropna": "x[~np.isnan(x)]",
        "fillna": "np.where(np.isnan(x), value, x)",
        "value_counts": "np.unique(x, return_counts=True)", "nunique": "np.unique(x).size",
        "groupby": "mn.groupby(keys).sum(x)", "rolling": "mn.rolling(x, n)",
        "apply map applymap map_blocks": "mn.map_blocks(fn, x)", "visualize": "mn.visualize(x)",
        "rechunk chunk": "mn.repartition(x, n)", "chunks chunksize numblocks npartitions": "x.layout",
        "map_overlap": "mn.rolling(x, n)", "topk": "mn.topk(x, n)", "hist": "np.histogram(x), or plt.hist(x)",
        "store to_hdf5 to_zarr to_netcdf tofile to_csv to_excel": "mn.save(x, path)",
        "compute_chunk_sizes": "x.shape, which is known",
        "plot": "mn.plot(x)", "cut": CUT, "qcut": QCUT, "rename alias": 't.rename(columns={"fare": "new"})',
        "dask to_delayed to_dask_dataframe": "dask.array.from_array(x.compute())",
        "H": "x.conj().T", "getrow": "x[[i]]", "getcol": "x[:, [j]]", "setdiag": "np.fill_diagonal(x, value)",
        "indices indptr row col coords": "x.to_scipy(), which has it",
        "format": "x.to_scipy(), which has it, or mn.save(x, path)",
        "nbunch_iter adj": (
            "mn.graph.pagerank(A) and the like; NetworkX takes mn.graph.to_networkx(A)"
        ),
    }
)  # fmt: skip


def instead_of(name: str, is_sparse: bool) -> str:
    """Return what to write instead of an attribute of another library's arrays; nothing for any other name.

    Looked for are names of NumPy's, SciPy's, pandas's and Dask's arrays, and of NumPy's functions.
    """
    if name in INSTEAD:
        return INSTEAD[name]
    function = getattr(np, name, None)
    if isinstance(function, np.ufunc) or (isinstance(function, Hashable) and function in FUNCTIONS):
        return f"write np.{name}({', '.join(['x', *_others(function)])})"
    if is_sparse and (name == "data" or hasattr(sp.csr_array, name)):  # data are of each array
        return f"x.to_scipy().{name} is SciPy's"
    if hasattr(np.ndarray, name):
        return f"compute first: x.{'toarray' if is_sparse else 'compute'}().{name}"
    if hasattr(sp.csr_array, name):
        return f"scipy.sparse.csr_array(x.compute()).{name} is SciPy's"
    return ""


def _others(function: Callable[..., object]) -> list[str]:
    # Arguments that a function of NumPy's needs beyond the array.
    if isinstance(function, np.ufunc):
        return ["y"] * (function.nin - 1)
    known = list(inspect.signature(FUNCTIONS[function]).parameters.values())[1:]
    return [one.name for one in known if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


# What Dask asks of its own collections, and of what it has to tell from others.
_OF_DASK = ("__dask_graph__", "__dask_tokenize__")


def refuse_dask(name: str, owner: str, way: str = "call its compute()") -> None:
    """Raise where an attribute is asked for by which Dask would take what it cannot compute.

    It would give it back as it is, or fail when it sends it. Other libraries that ask whether something is
    Dask's get their answer.

    Raises
    ------
    UnsupportedError
        Where Dask asks.
    """
    if name not in _OF_DASK:
        return
    # Who asks decides, and nothing but the frames says who does. Between stand those of the owner, and of
    # Dask's question that other libraries ask too.
    frame = sys._getframe(1)
    while frame.f_code.co_name in ("__getattr__", "is_dask_collection") and frame.f_back is not None:
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).partition(".")[0] in ("dask", "distributed"):
        raise UnsupportedError(f"Dask cannot take {owner}, which matnb computes: {way}, and give Dask that")


def refuse_networkx() -> None:
    """Raise where a function of NetworkX's asks for the vertices or edges of a graph, and has a matrix.

    Raises
    ------
    UnsupportedError
        Where NetworkX asks.
    """
    if asks("networkx"):
        raise UnsupportedError(INSTEAD["adj"])


def refuse_dense(shape: tuple[int, ...], size: int) -> NoReturn:
    """Raise where scikit-learn asks for a sparse array's elements: as one of SciPy's it would stay sparse.

    Its checks of input ask NumPy for an array, which cannot be sparse. Some of its estimators would center
    what they refuse to center where it is sparse.

    Raises
    ------
    UnsupportedError
        In any case.
    """
    raise UnsupportedError(
        f"scikit-learn would take the sparse array of shape {shape} as a dense one of {bytes_text(size)}: "
        "give it x.to_scipy(), which stays sparse, or x.toarray()"
    )


def tell_dense(shape: tuple[int, ...], size: int) -> None:
    """Warn where SciPy's sparse functions ask for a large sparse array's elements.

    Those that factorize or build matrices make one of them themselves, which takes long.
    """
    if size > _TOLD_BYTES:
        warn(
            f"SciPy takes the sparse array of shape {shape} as a dense one of {bytes_text(size)} here: give "
            "it x.to_scipy(), which stays sparse"
        )


def raise_what_is_hidden() -> None:
    """Raise an error of ours again where SciPy is about to raise its own, with a text of the array.

    Its sparse arrays do where they are made of what cannot become NumPy's, as in spsolve.
    """
    hidden = sys.exc_info()[1]
    if isinstance(hidden, MatnbError) and asks("scipy.sparse"):
        raise hidden


def refuse_lost_edges() -> NoReturn:
    """Raise where SciPy takes a graph with stored zeros as a dense matrix, in which these would be no edges.

    Raises
    ------
    UnsupportedError
        In any case.
    """
    raise UnsupportedError(
        "SciPy takes a DistArray as a dense matrix, in which edges of weight 0 are none: give it "
        "A.to_scipy(), or use mn.graph"
    )


def refuse_dense_parts(shape: tuple[int, ...]) -> None:
    """Raise where SciPy is about to make an identity, or indices, of all elements of a large sparse array.

    Functions that ask a sparse array of SciPy's for its entries ask any other for its shape, and allocate
    before they ask for an element.

    Raises
    ------
    TooLargeError
        Where one of them asks.
    """
    if _asking(2).f_code.co_name not in _ALLOCATING or not asks("scipy.sparse"):
        return
    size = math.prod(shape) * np.dtype(np.float64).itemsize
    if size > _REFUSED_BYTES:
        raise TooLargeError(
            f"SciPy would take the sparse array of shape {shape} as a dense one of {bytes_text(size)}: give "
            "it x.to_scipy(), which stays sparse"
        )


def refuse_outputs() -> None:
    """Raise where a function of SciPy's is about to write its result into a DistArray: it would into a copy.

    Raises
    ------
    UnsupportedError
        Where it asks for that array.
    """
    if _asking(2).f_code.co_name == "_get_output" and asks("scipy.ndimage"):
        raise UnsupportedError(
            "output=x: SciPy cannot write into a DistArray; leave output= out, or give it a NumPy array"
        )


_TOLD_BYTES = 1_000_000
_REFUSED_BYTES = 100_000_000
_ALLOCATING = ("block_diag", "_ident_like")  # the last is of expm and expm_multiply


def refuse_pickling() -> NoReturn:
    """Raise where an array is to be pickled, as by joblib for its processes, which have no workers of ours.

    Raises
    ------
    UnsupportedError
        In any case.
    """
    frame: Any = sys._getframe(1)
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith("joblib.externals.loky"):
        frame = frame.f_back
    if frame is not None:
        raise UnsupportedError(
            "a DistArray cannot be sent to the processes of n_jobs: leave n_jobs=1, as each fit is parallel "
            "already"
        )
    raise UnsupportedError(
        "a DistArray cannot be pickled; write it with mn.save, or pickle x.to_numpy() or x.to_scipy()"
    )


# Where wrappers are.
_BETWEEN = (
    "matnb.lazy.array", "matnb.lazy.handles", "matnb.lazy.values", "matnb.lazy.foreign_names",
    "matnb.tables.masked", "matnb.tables.table", "matnb.learn.estimator", "matnb.errors",
)  # fmt: skip


def is_in_matplotlib() -> bool:
    """Tell whether a drawing function of matplotlib's calls what asks, which gives it NumPy's arrays then.

    It goes on with them from its first step: it looks at single elements, thousands of times.
    """
    return asks("matplotlib", "mpl_toolkits", above=3)


def asks(library: str, *others: str, above: int = 2) -> bool:
    """Tell whether what asks, so many frames above, is a module of a library."""
    if library not in sys.modules:  # asked at every operation
        return False
    name = str(_asking(above + 1).f_globals.get("__name__"))
    return f"{name}.".startswith(tuple(f"{one}." for one in (library, *others)))


def _asking(above: int) -> FrameType:
    frame = sys._getframe(above)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")) in _BETWEEN:
        frame = frame.f_back
    return frame


_SCIPYS_OPERATORS = frozenset(
    f"__{name}__" for name in ("matmul", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge")
)
_FRAMES_TO_OPERATOR = 4  # from the operator to what asks, as in __mul__, multiply and what broadcasts there


def is_scipys_operand() -> bool:
    """Tell whether an operator of SciPy's sparse arrays asks for an array, as in ``S @ x``.

    They ask NumPy for a right operand as an array, and leave the operator to what gives none. What called
    np.asanyarray is the operator's frame, or one that it called.
    """
    frame = sys._getframe(2)
    while frame.f_code.co_name == "__array__" and frame.f_back is not None:  # and the boundary around it
        frame = frame.f_back
    for _ in range(_FRAMES_TO_OPERATOR):
        if not str(frame.f_globals.get("__name__")).startswith("scipy.sparse._"):
            return False
        if frame.f_code.co_name in _SCIPYS_OPERATORS:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def refuse_inverses() -> None:
    """Raise where SciPy asks for a product with a DistArray to solve a system at every step.

    It does for ``sigma=``, of what it cannot factorize: minutes for what takes a tenth of a second.

    Raises
    ------
    UnsupportedError
        Where it asks.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and not frame.f_code.co_qualname.endswith(_INVERSES):
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).startswith("scipy.sparse."):
        raise UnsupportedError(
            "sigma= needs solutions, which SciPy finds by many products of a DistArray each: write "
            "scipy.sparse.linalg.eigsh(A.to_scipy(), k, sigma=sigma), or eigs, which factorize it here"
        )


_INVERSES = ("IterOpInv._matvec", "IterInv._matvec")  # of scipy.sparse.linalg's eigsh and eigs


def as_numpy(value: Any) -> Any:
    """Return arguments of a function with NumPy's arrays in place of matnb's."""
    if type(value) in (list, tuple):
        return type(value)(map(as_numpy, value))
    if type(value) is dict:
        return {name: as_numpy(one) for name, one in value.items()}
    is_own = type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
    return value.to_numpy() if is_own and hasattr(value, "to_numpy") else value


def _register_writer(function: Callable[..., Any]) -> None:
    # In this process, within ``compute_limit``; `mn.save` writes from the workers.
    implements(function)(lambda *args, **kwargs: function(*as_numpy(args), **as_numpy(kwargs)))


for _function in (np.save, np.savez, np.savez_compressed, np.savetxt):
    _register_writer(_function)
