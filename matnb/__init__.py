"""NumPy-like matrix code, sparse or dense, recorded in a notebook cell and run on a Dask cluster."""

from __future__ import annotations

from typing import Any as _Any

import numpy as _np

from matnb import errors, graph, linalg
from matnb.blocks.semiring import semiring
from matnb.errors import CellCancelled, MatnbError
from matnb.lazy import functions as _functions  # noqa: F401  registers NumPy's functions
from matnb.lazy import random, special
from matnb.lazy.array import DistArray
from matnb.lazy.columns import Columns
from matnb.lazy.creation import arange, asarray, coo_array, eye, full, linspace, ones, zeros
from matnb.lazy.functions.grouping import GroupBy, groupby, scatter_reduce
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import map_blocks, reduce_blocks, replicated
from matnb.lazy.functions.namespace import numpy_names as _numpy_names
from matnb.lazy.functions.ordering import topk
from matnb.lazy.functions.reductions import reduce
from matnb.lazy.functions.scanning import associative_scan
from matnb.lazy.functions.sliding import rolling
from matnb.lazy.indexing.dynamic import dynamic_slice, dynamic_update_slice
from matnb.lazy.loop import cond, iterate, iteration
from matnb.session import (
    active_session,
    align,
    compute,
    connect,
    current_session,
    history,
    load,
    repartition,
    save,
    start,
    stop,
    visualize,
)
from matnb.session.current import memo
from matnb.session.doctor import doctor
from matnb.session.machine_code import compile_ahead as _compile_ahead
from matnb.session.stamp import stamp
from matnb.version import VERSION

__version__ = VERSION

# What is matnb's own; where NumPy has the same name, this is meant.
__all__ = [
    "CellCancelled",
    "Columns",
    "DistArray",
    "GroupBy",
    "MatnbError",
    "active_session",
    "align",
    "arange",
    "asarray",
    "associative_scan",
    "compute",
    "cond",
    "connect",
    "coo_array",
    "current_session",
    "doctor",
    "dynamic_slice",
    "dynamic_update_slice",
    "errors",
    "eye",
    "full",
    "graph",
    "groupby",
    "history",
    "iterate",
    "iteration",
    "linalg",
    "linspace",
    "load",
    "map_blocks",
    "matmul",
    "memo",
    "monitor",
    "ones",
    "random",
    "reduce",
    "reduce_blocks",
    "repartition",
    "replicated",
    "rolling",
    "save",
    "scatter_reduce",
    "semiring",
    "special",
    "stamp",
    "start",
    "stop",
    "topk",
    "visualize",
    "zeros",
]
# And NumPy's names, which lazy.functions.namespace lists.
_from_numpy = {name: one for name, one in _numpy_names().items() if name not in __all__}
globals().update(_from_numpy)
__all__ += sorted(_from_numpy)


_compile_ahead("matnb.cli.compiling")  # before the first cell needs it, where a user is at the keyboard


def __getattr__(name: str) -> _Any:
    if name == "monitor":  # the room of what is looked at is entered when somebody does
        from matnb.widgets.monitor import monitor

        globals()["monitor"] = monitor
        return monitor
    if hasattr(_np, name):
        raise AttributeError(
            f"matnb has no {name!r}; docs/coverage.md lists what there is, and NumPy's works on computed "
            f"arrays: np.{name}, given x.compute()"
        )
    raise AttributeError(f"module 'matnb' has no attribute {name!r}")


def load_ipython_extension(shell: _Any) -> None:
    """Register the magics: what ``%load_ext matnb`` calls."""
    from matnb.magics.distmat import load as register

    register(shell)


def unload_ipython_extension(shell: _Any) -> None:
    """Leave IPython as it was: what ``%unload_ext matnb`` calls."""
    from matnb.magics.distmat import unload

    unload(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
