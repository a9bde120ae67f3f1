"""NumPy-like matrix code, sparse or dense, recorded in a notebook cell and run on a Dask cluster."""

from __future__ import annotations

from typing import Any as _Any

import numpy as _np

from matnb import errors, graph, linalg
from matnb.errors import CellCancelled, MatnbError
from matnb.lazy import functions as _functions  # noqa: F401  registers NumPy's functions
from matnb.lazy import random
from matnb.lazy.array import DistArray
from matnb.lazy.branch import cond
from matnb.lazy.columns import Columns
from matnb.lazy.creation import arange, asarray, eye, full, linspace, ones, zeros
from matnb.lazy.functions.access import replicated, scatter_reduce
from matnb.lazy.functions.linear import matmul
from matnb.lazy.loop import iterate, iteration
from matnb.lazy.registry import FUNCTIONS as _FUNCTIONS
from matnb.session import (
    active_session,
    compute,
    connect,
    current_session,
    load,
    memo,
    save,
    start,
    stop,
    visualize,
)
from matnb.version import VERSION

__version__ = VERSION

__all__ = [
    "CellCancelled",
    "Columns",
    "DistArray",
    "MatnbError",
    "active_session",
    "arange",
    "asarray",
    "compute",
    "cond",
    "connect",
    "current_session",
    "errors",
    "eye",
    "full",
    "graph",
    "iterate",
    "iteration",
    "linalg",
    "linspace",
    "load",
    "matmul",
    "memo",
    "ones",
    "random",
    "replicated",
    "save",
    "scatter_reduce",
    "start",
    "stop",
    "visualize",
    "zeros",
]


def __getattr__(name: str) -> _Any:
    # mn.sqrt, mn.add and the other ufuncs are NumPy's own, which record when they meet a DistArray.
    found = getattr(_np, name, None)
    if isinstance(found, _np.ufunc):
        return found
    if found in _FUNCTIONS:
        return _FUNCTIONS[found]
    raise AttributeError(f"module 'matnb' has no attribute {name!r}")


def load_ipython_extension(shell: _Any) -> None:
    """Register the magics: what ``%load_ext matnb`` calls."""
    from matnb.magics.distmat import load as register

    register(shell)


def unload_ipython_extension(shell: _Any) -> None:
    """Leave IPython as it was: what ``%unload_ext matnb`` calls."""
    from matnb.magics.distmat import unload

    unload(shell)
