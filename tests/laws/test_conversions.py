"""What is given as an array is the right one, or is refused with the way to make one."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import itertools
from collections.abc import Callable
from pathlib import Path

import dask
import dask.array as da
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sparse
from hypothesis import given
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, MatnbError, ShapeError, TooLargeError

EYE = np.diag([1.0, 2.0])


class OnlyDlpack:
    def __dlpack__(self, **options: object) -> object:
        return np.arange(3.0).__dlpack__(**options)  # type: ignore[arg-type]  # what the protocol has

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class OnlyArray:
    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.arange(3.0)


class Refuses:
    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise TypeError("use its own way to NumPy")


class LooksLikeASequence:
    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> str:
        return ["b", "a"][place]


def _masked() -> np.ndarray:
    return np.ma.array([1, 2], mask=[False, True])


RIGHT: dict[str, tuple[Callable[[], object], object]] = {
    "frame": (lambda: pd.DataFrame({"a": [1, 2], "b": [1.5, 2]}), [[1, 1.5], [2, 2]]),
    "series": (lambda: pd.Series([1, 2], dtype="Int64"), [1, 2]),
    "series with a missing value": (lambda: pd.Series([1, None], dtype="Int64"), [1, np.nan]),
    "index": (lambda: pd.Index([3, 4]), [3, 4]),
    "range": (lambda: range(3), [0, 1, 2]),
    "deque": (lambda: collections.deque([1, 2]), [1, 2]),
    "matrix": (lambda: np.matrix([[1, 2]]), [[1, 2]]),
    "nothing masked": (lambda: np.ma.array([1, 2]), [1, 2]),
    "memoryview": (lambda: memoryview(np.arange(3.0)), [0, 1, 2]),
    "array.array": (lambda: array.array("d", [1, 2]), [1, 2]),
    "bytearray": (lambda: bytearray(b"ab"), [97, 98]),
    "other byte order": (lambda: np.arange(3, dtype=">f8"), [0, 1, 2]),
    "dlpack": (OnlyDlpack, [0, 1, 2]),
    "__array__": (OnlyArray, [0, 1, 2]),
    "dask": (lambda: da.ones((2, 2)), np.ones((2, 2))),
    "DistArrays": (lambda: [mn.ones(2), mn.zeros(2)], [[1, 1], [0, 0]]),
    "sparse DistArrays": (lambda: [mn.eye(2), mn.eye(2)], [np.eye(2)] * 2),
    "series in a list": (lambda: [pd.Series([1, 2]), pd.Series([3, 4])], [[1, 2], [3, 4]]),
    "number": (lambda: 3, 3),
}
SPARSE: dict[str, Callable[[], object]] = {
    **{
        f"{one}_{kind}": (lambda name=f"{one}_{kind}": getattr(sp, name)(EYE))
        for one in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
        for kind in ("array", "matrix")
    },
    "COO": lambda: sparse.COO.from_numpy(EYE),
    "GCXS": lambda: sparse.GCXS.from_numpy(EYE),
    "DOK": lambda: sparse.DOK.from_numpy(EYE),
    "frame of sparse columns": lambda: pd.DataFrame.sparse.from_spmatrix(sp.csr_array(EYE)),
}
REFUSED: dict[str, tuple[Callable[[], object], type[MatnbError], str]] = {
    "dict": (lambda: {0: 1.0}, DTypeError, r"dict .*list\(x.values\(\)\)"),
    "set": (lambda: {1, 2}, DTypeError, r"set .*sorted\(x\)"),
    "generator": (lambda: (one for one in range(3)), DTypeError, r"generator .*list\(x\)"),
    "dict's values": (lambda: {0: 1}.values(), DTypeError, r"list\(x\)"),
    "text": (lambda: "file.npy", DTypeError, "mn.load"),
    "ragged": (lambda: [[1, 2], [3]], ShapeError, "inhomogeneous"),
    "ragged DistArrays": (lambda: [mn.ones(2), mn.ones(3)], ShapeError, "equal"),
    "fill value": (lambda: sparse.COO.from_numpy(EYE, fill_value=1), ShapeError, "fill value"),
    "fill value, compressed": (lambda: sparse.GCXS.from_numpy(EYE, fill_value=1), ShapeError, "fill value"),
    "fill value of a frame": (
        lambda: pd.DataFrame({"a": pd.arrays.SparseArray([1, 2], fill_value=1)}),
        ShapeError,
        "fill",
    ),
    "sparse of one axis": (lambda: sp.coo_array(np.ones(2)), ShapeError, "two"),
    "sparse of three axes": (lambda: sp.coo_array(np.ones((2, 2, 2))), ShapeError, "two"),
    "list of sparse": (lambda: [sp.csr_array(EYE)] * 2, DTypeError, "np.stack"),
    "masked": (_masked, DTypeError, "filled"),
    "list of masked": (lambda: [_masked(), _masked()], DTypeError, "filled"),
    "masked in a list in a list": (lambda: [[1.0, np.ma.masked]], DTypeError, "filled"),
    "objects": (lambda: np.array([1, 2], object), DTypeError, r"astype\(float\)"),
    "large numbers": (lambda: [2**70], DTypeError, "object"),
    "mixed frame": (lambda: pd.DataFrame({"a": [1], "b": ["x"]}), DTypeError, "object"),
    "dates": (lambda: np.array(["2020-01-01"], "M8[D]"), DTypeError, r"astype\(np.int64\)"),
    "a date": (lambda: [datetime.date(2020, 1, 1)], DTypeError, "date"),
    "decimal": (lambda: [decimal.Decimal(1)], DTypeError, "Decimal"),
    "records": (lambda: np.zeros(2, [("a", float)]), DTypeError, r"x\['name'\]"),
    "a library that refuses": (Refuses, DTypeError, "own way"),
    "what only looks like a list": (LooksLikeASequence, DTypeError, "LooksLikeASequence"),
    "a list of that": (lambda: [LooksLikeASequence()] * 2, DTypeError, "LooksLikeASequence"),
    "vertices": (lambda: nx.path_graph(3).nodes, DTypeError, r"NodeView.*mn.asarray\(G\)"),
    "edges": (lambda: nx.path_graph(3).edges, DTypeError, r"EdgeView.*mn.asarray\(G\)"),
    "list of graphs": (lambda: [nx.path_graph(2)] * 2, DTypeError, "Graph"),
    "weights of text": (lambda: nx.Graph([(0, 1, {"weight": "x"})]), DTypeError, "weight=None"),
    "None": (lambda: None, DTypeError, "object"),
    "function": (lambda: len, DTypeError, "is not an array"),
}

pytestmark = pytest.mark.session("interpreter", compute_limit=1000000)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_is_an_array_is_that_array(name: str) -> None:
    make, expected = RIGHT[name]
    with dask.config.set(scheduler="synchronous"):  # which starts no threads
        found = mn.asarray(make())
    assert not found.sparse
    np.testing.assert_array_equal(np.asarray(found), expected)  # type: ignore[arg-type]  # values


@pytest.mark.parametrize("name", SPARSE)
def test_what_is_sparse_stays_sparse(name: str) -> None:
    found = mn.asarray(SPARSE[name]())
    assert found.sparse
    assert found.nnz == 2
    np.testing.assert_array_equal(np.asarray(found), EYE)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_array_is_refused_with_the_way(name: str) -> None:
    make, error, words = REFUSED[name]
    for convert in (mn.asarray, lambda one: mn.ones(2) + one, lambda one: mn.asarray(one, dtype=float)):
        if convert is not mn.asarray and name in ("objects", "decimal", "large numbers", "None"):
            continue  # Python's numbers become floats where that is asked for
        with pytest.raises(error, match=words if convert is mn.asarray else None):
            convert(make())


KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
VERTICES = st.sampled_from(["x", 7, 0, "a", (1, 2)])
WEIGHTS = st.one_of(st.none(), st.integers(-3, 3), st.floats(-2, 2))


@given(
    st.sampled_from(KINDS), st.lists(st.tuples(VERTICES, VERTICES, WEIGHTS), max_size=9), st.sets(VERTICES)
)
@pytest.mark.filterwarnings("ignore:the graph has no vertices")  # which is told
def test_a_graph_is_its_adjacency_matrix(
    kind: type[nx.Graph], edges: list[tuple[object, object, float | None]], alone: set[object]
) -> None:
    graph = kind()
    graph.add_nodes_from(sorted(alone, key=str))
    for first, second, weight in edges:
        graph.add_edge(first, second, **({} if weight is None else {"weight": weight}))
    found = mn.asarray(graph)
    assert found.sparse
    if len(graph):
        expected = nx.to_scipy_sparse_array(graph)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(found), expected.toarray())
    else:
        assert found.shape == (0, 0)


def test_algorithms_take_a_graph() -> None:
    graph = nx.gnp_random_graph(30, 0.2, seed=1)
    ranks = np.asarray(mn.graph.pagerank(graph)[0])
    np.testing.assert_allclose(ranks, list(nx.pagerank(graph, tol=1e-10).values()), atol=1e-6)


def test_a_table_becomes_a_frame_with_its_names_and_dtypes(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("fare,count,paid\n1.5,7,true\n0.5,5,false\n,3,true\n")
    table = mn.load(path)
    expected = pd.DataFrame({"fare": [1.5, 0.5, np.nan], "count": [7, 5, 3], "paid": [True, False, True]})
    pd.testing.assert_frame_equal(table.to_pandas(), expected)
    pd.testing.assert_frame_equal(table[["count", "fare"]].to_pandas(), expected[["count", "fare"]])
    for convert in (mn.asarray, np.asarray, np.array):
        np.testing.assert_array_equal(np.asarray(convert(table)), np.asarray(expected.astype(float)))


def test_a_table_beyond_the_limit_becomes_no_frame(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 70_000)
    with pytest.raises(TooLargeError, match="1 MB"):
        mn.load(path).to_pandas()


def test_dense_is_made_on_the_workers() -> None:
    n = 2**16
    large = sp.csr_array(([1.0], ([3], [n - 1])), shape=(n, n))
    small = sp.csr_array(EYE)
    for convert in (lambda one: one, mn.asarray):
        assert mn.asarray(convert(large), format="dense").shape == (n, n)  # 34 GB, nowhere yet
        dense = mn.asarray(convert(small), format="dense")
        assert not dense.sparse
        np.testing.assert_array_equal(np.asarray(dense), EYE)


def test_long_lists_are_looked_through_by_kind() -> None:
    numbers = list(itertools.chain(range(10**5), [2.5]))
    np.testing.assert_array_equal(np.asarray(mn.asarray(numbers)), np.asarray(numbers))
