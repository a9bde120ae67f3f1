"""NumPy-like matrix code, sparse or dense, recorded in a notebook cell and run on a Dask cluster."""

# ruff: noqa: E402  who interrupts the second that the imports take is shown one line of it

from __future__ import annotations

from typing import Any as _Any

from matnb.calls.display import show_shortly as _show_shortly

_show_shortly()

# isort: split

import numpy as _np

from matnb import errors, graph, learn, linalg, nested, sources
from matnb.blocks.semiring import semiring
from matnb.calls.boundary import guard as _guard
from matnb.calls.other_libraries import own_of_another as _own_of_another
from matnb.errors import CellCancelled, MatnbError
from matnb.extend import load_families as _load_families
from matnb.health.doctor import doctor
from matnb.lazy import functions as _functions  # noqa: F401  registers NumPy's functions
from matnb.lazy import random, special
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, coo_array, eye, full, linspace, ones, zeros
from matnb.lazy.foreign_names import CUT as _CUT
from matnb.lazy.foreign_names import QCUT as _QCUT
from matnb.lazy.functions.grouping import GroupBy, groupby, scatter_reduce
from matnb.lazy.functions.indexing import dynamic_slice, dynamic_update_slice
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import map_blocks, reduce_blocks, replicated
from matnb.lazy.functions.namespace import numpy_names as _numpy_names
from matnb.lazy.functions.ordering import topk
from matnb.lazy.functions.plots import plot, spy
from matnb.lazy.functions.reductions import reduce
from matnb.lazy.functions.scanning import associative_scan, scan
from matnb.lazy.functions.sliding import rolling
from matnb.lazy.loop import cond, iterate, iteration
from matnb.lazy.registry import METHODS as _METHODS
from matnb.lazy.registry import SPARSE_METHODS as _SPARSE_METHODS
from matnb.presto.splits import Splits, foreach, splits
from matnb.session import (
    active_session,
    align,
    compute,
    connect,
    current_session,
    history,
    load,
    progress,
    repartition,
    save,
    start,
    stop,
    visualize,
)
from matnb.session.current import memo
from matnb.session.machine_code import compile_ahead as _compile_ahead
from matnb.session.session import Session as _Session
from matnb.session.stamp import stamp
from matnb.simulation.clock import Cluster
from matnb.simulation.simulate import simulate
from matnb.tables import writing as _writing  # noqa: F401 - what reads and writes tables
from matnb.tables.columns import Column, TextColumn
from matnb.tables.concatenation import concat
from matnb.tables.datetimes import TimeMethods
from matnb.tables.groups import TableGroups
from matnb.tables.masked import MaskedColumn
from matnb.tables.pivots import Pivot
from matnb.tables.strings import SplitText as _SplitText
from matnb.tables.strings import TextMethods
from matnb.tables.summaries import Record
from matnb.tables.table import Table, table
from matnb.tables.times import TimeColumn
from matnb.version import VERSION

__version__ = VERSION

# What is matnb's own; where NumPy has the same name, this is meant.
__all__ = [
    "CellCancelled",
    "Cluster",
    "Column",
    "DistArray",
    "GroupBy",
    "MaskedColumn",
    "MatnbError",
    "Pivot",
    "Record",
    "Splits",
    "Table",
    "TableGroups",
    "TextColumn",
    "TextMethods",
    "TimeColumn",
    "TimeMethods",
    "active_session",
    "align",
    "arange",
    "asarray",
    "associative_scan",
    "compute",
    "concat",
    "cond",
    "connect",
    "coo_array",
    "current_session",
    "doctor",
    "dynamic_slice",
    "dynamic_update_slice",
    "errors",
    "eye",
    "foreach",
    "full",
    "graph",
    "groupby",
    "history",
    "iterate",
    "iteration",
    "learn",
    "linalg",
    "linspace",
    "load",
    "map_blocks",
    "matmul",
    "memo",
    "monitor",
    "nested",
    "ones",
    "plot",
    "progress",
    "random",
    "reduce",
    "reduce_blocks",
    "repartition",
    "replicated",
    "rolling",
    "save",
    "scan",
    "scatter_reduce",
    "semiring",
    "simulate",
    "sources",
    "special",
    "splits",
    "spy",
    "stamp",
    "start",
    "stop",
    "table",
    "topk",
    "visualize",
    "zeros",
]
# And NumPy's names, which lazy.functions.namespace lists.
_from_numpy = {name: one for name, one in _numpy_names().items() if name not in __all__}
globals().update(_from_numpy)
__all__ += sorted(_from_numpy)


_compile_ahead("matnb.cli.compiling")  # before the first cell needs it, where a user is at the keyboard


# What others call what there is here under another name.
_INSTEAD = errors.ways(
    {
        "read_csv read_table read_parquet read_feather loadtxt genfromtxt mmread load_npz": "mn.load(path)",
        "load_svmlight_file": 'mn.load(path, kind="svmlight"), and y is X.labels',
        "read_edgelist": 'mn.load(path, kind="edges")',
        "savetxt savez mmwrite save_npz to_parquet to_csv": "mn.save(x, path)",
        "DataFrame from_pandas from_polars from_arrow": "mn.table(frame)", "Series": "mn.asarray(values)",
        "read_excel read_json read_sql read_html": "mn.table(pd.read_excel(path)), with pandas's own reader",
        "to_datetime": 't["when"].to_datetime(format), or mn.load, which reads times',
        "to_numeric": 't["price"].to_float(errors="coerce"), of text',
        "block_diag block_array bmat": "mn.block([[A, None], [None, B]])",
        "map_overlap": "x[:-2] + x[2:], which are slices of the array beside each other",
        "cut": _CUT, "qcut": _QCUT, "isna isnull": "x.isna()",
        "get_dummies": (
            't.with_columns(row=np.arange(len(t))).pivot("row", "zone", row_labels=np.arange(len(t)))'
        ),
        "merge join": 't.merge(other, on="zone")',
        "options set_option option_context": "t.head(n), or t.to_pandas(), which has pandas' options",
        "from_array from_numpy from_scipy matrix tensor": "mn.asarray(A)",
        "csr_array csr_matrix csc_array csc_matrix": (
            "mn.asarray(A), or mn.coo_array((values, (rows, columns)), shape=(m, n))"
        ),
        "coo_matrix": "mn.coo_array((values, (rows, columns)), shape=(m, n))",
        "issparse isspmatrix": "x.sparse",
        "csgraph": "mn.graph",
        "sparse": "mn.coo_array, mn.linalg, or mn.asarray(scipy.sparse.kron(A, A))",
        "stats": "scipy.stats itself, which takes DistArrays", "fft": "np.fft.fft(x.compute())",
        "from_networkx Graph DiGraph": "mn.asarray(G)",
        "from_pandas_edgelist": "mn.asarray(nx.from_pandas_edgelist(frame))",
        "read_gml read_graphml read_gexf": "mn.asarray(nx.read_gml(path)), with NetworkX's reader",
        "to_networkx": "mn.graph.to_networkx(A)", "draw": "mn.spy(A)",
        "hist": "plt.hist(x), or np.histogram(x)",
        "persist": "x.persist()",
        "wait": "x.persist(), which waits",
        "rechunk": "mn.repartition(x, n)",
        "delayed": "it as it is: nothing is computed until a value is asked for",
        "from_dask": "mn.asarray(x), within compute_limit",
        "from_delayed": "mn.map_blocks, or mn.sources.calls",
        "from_zarr from_npy_stack from_tiledb open_zarr": (
            "mn.asarray(dataset), of what zarr, h5py or NumPy opened, within compute_limit"
        ),
        "crosstab": 't.pivot("zone", "hour")', "pivot": 't.pivot("zone", "hour", "fare")',
        "store": "mn.save(x, path)", "init": "mn.start()",
        "Client": "mn.start(), or mn.connect(address) for a cluster that runs",
        "LocalCluster": "mn.start(workers=n)", "shutdown": "mn.stop()", "get_client": "mn.current_session()",
    }
)  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name == "monitor":  # the room of what is looked at is entered when somebody does
        from matnb.widgets.monitor import monitor

        globals()["monitor"] = monitor
        _guard([globals()])
        return globals()["monitor"]
    if name.startswith("_"):
        raise errors.no_attribute("module 'matnb'", name)
    errors.refuse_import("matnb", name, lambda: _instead_of(name))
    raise errors.no_attribute("module 'matnb'", name, instead=lambda: _instead_of(name))


_MADE_BY_SCIPY = (
    "diags", "diags_array", "dok_matrix", "lil_array", "lil_matrix", "random_array",
    "bsr_array", "bsr_matrix", "dia_array", "dia_matrix", "dok_array", "eye_array", "spdiags",
)  # fmt: skip


def _instead_of(name: str) -> str:
    # What to write, or which name was meant.
    known = {one: f"mn.{one}" for one in __all__}
    for kin in (graph, learn, linalg, sources, random, special):
        known |= {one: f"mn.{kin.__name__.rpartition('.')[2]}.{one}" for one in dir(kin) if one not in known}
    if name in _INSTEAD or name in known:
        return _INSTEAD.get(name) or f"write {known[name]}"
    if name in _MADE_BY_SCIPY:
        return f"write mn.asarray(scipy.sparse.{name}(...))"
    for words in (graph._INSTEAD, linalg._INSTEAD, learn._INSTEAD):
        if name in words:
            return words[name]
    if name in dir(_np) and callable(getattr(_np, name)):
        return f"docs/coverage.md lists what there is; compute first: np.{name}(x.compute())"
    if name in dir(_np) and isinstance(getattr(_np, name), type(_np)):
        return f"np.{name} is a module for NumPy's arrays: give its functions x.compute()"
    own = graph._instead_of(name) or _own_of_another(name)
    return own or errors.meant(name, known, lambda one: known[str(one)])


def load_ipython_extension(shell: _Any) -> None:
    """Register the magics: what ``%load_ext matnb`` calls."""
    from matnb.magics.distmat import load as register

    register(shell)


def unload_ipython_extension(shell: _Any) -> None:
    """Leave IPython as it was: what ``%unload_ext matnb`` calls."""
    from matnb.magics.distmat import unload

    unload(shell)


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


_guard(
    [
        *(globals(), _METHODS, _SPARSE_METHODS),
        *map(vars, (graph, linalg, learn, learn.models, nested, sources, random, special)),
    ],
    [_Session, random.Generator, _SplitText],
)
_load_families()
