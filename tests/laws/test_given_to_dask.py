"""What Dask cannot compute is refused at once in one sentence; other libraries may look."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import matnb as mn
from matnb.errors import UnsupportedError

X = np.arange(12.0).reshape(4, 3)
OWN: dict[str, Callable[[], Any]] = {
    "an array": lambda: mn.asarray(X),
    "a number": lambda: mn.asarray(X).sum(),
    "a nested array": lambda: mn.nested.from_lists([[1.0, 2.0], [3.0]]),
    "a table": lambda: mn.table({"a": [1, 2], "b": ["x", "y"]}),
    "a column": lambda: mn.table({"a": [1, 2], "b": ["x", "y"]})["b"],
    "groups": lambda: mn.table({"a": [1, 2], "b": ["x", "y"]}).groupby("b"),
}
OF_ARRAYS: dict[str, Callable[[Any], object]] = {
    "from_array": lambda x: da.from_array(x),
    "asarray": lambda x: da.asarray(x),
    "asanyarray": lambda x: da.asanyarray(x),
    "stack": lambda x: da.stack([x, x]),
    "concatenate": lambda x: da.concatenate([da.ones((4, 3), chunks=2), x]),
    "sum": lambda x: da.sum(x),
}
TAKES: dict[str, Callable[[Any], object]] = {
    "compute": lambda x: dask.compute(x),
    "compute of a list": lambda x: dask.compute([{"a": (1, x)}]),
    "persist": lambda x: dask.persist(x),
    "persist of a dict": lambda x: dask.persist({"a": [x]}),
    "visualize": lambda x: dask.visualize(x),
    "visualize of a list": lambda x: dask.visualize([x, x]),
    "delayed of a list": lambda x: dask.delayed([x]),
    "optimize": lambda x: dask.optimize(x),
    "delayed": lambda x: dask.delayed(x),
    "delayed argument": lambda x: dask.delayed(lambda one: one)(x),
    "tokenize": lambda x: dask.base.tokenize(x),
}

pytestmark = pytest.mark.session("one thread")


@pytest.mark.parametrize(
    ("take", "own"),
    [
        *((take, own) for take in TAKES for own in OWN),
        *((take, own) for take in OF_ARRAYS for own in ("an array", "a number")),
    ],
)
def test_what_dask_cannot_compute_is_refused_at_once(take: str, own: str) -> None:
    given = OWN[own]()
    with pytest.raises(UnsupportedError, match=r"^Dask cannot take an? .* matnb computes: call ") as caught:
        {**TAKES, **OF_ARRAYS}[take](given)
    assert "\n" not in str(caught.value)


@pytest.mark.cluster
def test_a_client_refuses_it_too() -> None:
    from distributed import Client

    x = mn.asarray(X)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        for take in (
            lambda: client.submit(len, x),
            lambda: client.map(len, [x]),
            lambda: client.scatter(x),
            lambda: client.scatter([x]),
            lambda: client.compute(x),
            lambda: client.persist(x),
        ):
            with pytest.raises(UnsupportedError, match=r"^Dask cannot take a DistArray"):
                take()


def test_both_arrays_go_on_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dask.config.config, "scheduler", "synchronous")  # else its threads stay
    x, D = mn.asarray(X), da.from_array(X, chunks=2)
    for made in (D + x, x + D, np.add(D, x), np.concatenate([x, D]), mn.asarray(D) + x, x @ D.T, x == D):
        assert isinstance(made, mn.DistArray)
    np.testing.assert_array_equal(np.asarray(D + x), 2 * X)
    np.testing.assert_array_equal(dask.compute(D + 1, x.compute())[1], X)


@pytest.mark.parametrize("own", OWN)
def test_other_libraries_may_ask_whether_something_is_dasks(own: str) -> None:
    # As xarray asks, through a function of its own of the same name.
    library = types.ModuleType("duckarrays")
    text = (
        "from dask.base import is_dask_collection as of_dask\n"
        "def is_dask_collection(x): return of_dask(x)\n"
        "def is_chunked(x): return is_dask_collection(x) or of_dask(x) or hasattr(x, '__dask_graph__')\n"
    )
    exec(text, vars(library))
    assert library.is_chunked(OWN[own]()) is False
