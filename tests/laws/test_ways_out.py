"""What comes out of a DistArray is within the session's limit; by SciPy's operators nothing comes out."""

from __future__ import annotations

import copy
import io
import operator
import pickle
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from fetched import counting
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import matnb as mn
from matnb.errors import MatnbError, TooLargeError
from matnb.session.overrides import choosing

LIMIT = 1_000_000
N = 2**16  # a square matrix of so many rows takes 34 GB where it is dense

Way = Callable[[mn.DistArray], object]
# Each makes something of all elements, in the memory of this process.
DENSE_WAYS: dict[str, Way] = {
    "np.asarray": np.asarray,
    "np.asarray of another dtype": lambda x: np.asarray(x, np.float32),
    "np.array of objects": lambda x: np.array(x, object),
    "np.array of a list": lambda x: np.array([x, x]),
    "np.ascontiguousarray": np.ascontiguousarray,
    "np.nditer": np.nditer,
    "np.from_dlpack": np.from_dlpack,
    "__dlpack__": lambda x: x.__dlpack__(),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "bytes": bytes,
    "np.save": lambda x: np.save(io.BytesIO(), x),
    "np.savez": lambda x: np.savez(io.BytesIO(), x),
    "np.savetxt": lambda x: np.savetxt(io.BytesIO(), x),
    "pd.DataFrame": pd.DataFrame,
    "scipy.linalg": scipy.linalg.norm,
    "csgraph": csgraph.connected_components,
    "csgraph from one vertex": lambda x: csgraph.dijkstra(x, indices=0),
    "coo_array": sp.coo_array,
    "csr_array": sp.csr_array,
    "csc_matrix": sp.csc_matrix,
    "dok_array": sp.dok_array,
    "sp.vstack": lambda x: sp.vstack([sp.csr_array(x.shape), x]),
    "sp.kron": lambda x: sp.kron(x, sp.eye_array(2)),
    "multiply of SciPy's": lambda x: sp.csr_array(x.shape).multiply(x),
}
# Each of these needs no value.
LAZY_WAYS: dict[str, Way] = {
    "repr": repr,
    "str": str,
    "format": format,
    "html": lambda x: x._repr_mimebundle_(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "first of an iteration": lambda x: next(iter(x)),
    "len": len,
}
REFUSED_WAYS: dict[str, Way] = {
    "pickle": pickle.dumps,
    "np.array2string": np.array2string,
    "item": lambda x: x.item(),
    "float": float,
}

pytestmark = pytest.mark.session("one thread", compute_limit=LIMIT)


@contextmanager
def _limit(session: mn.session.Session, size: int) -> Iterator[None]:
    before = session.config
    session.config = replace(before, compute_limit_bytes=max(1, size))
    try:
        yield
    finally:
        session.config = before


@pytest.fixture(scope="module")
def sparse() -> mn.DistArray:
    """Return a matrix of few entries."""
    return mn.asarray(sp.csr_array(([1.0, 2.0], ([0, 5], [N - 1, 3])), shape=(N, N)))


@pytest.fixture(scope="module")
def dense() -> mn.DistArray:
    """Return an array of which twice as much would come as may."""
    return mn.full((500, 500), 2.0)


@pytest.fixture(params=["sparse", "dense"])
def large(request: pytest.FixtureRequest) -> mn.DistArray:
    """Return one of them."""
    array: mn.DistArray = request.getfixturevalue(request.param)
    return array


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", DENSE_WAYS)
def test_beyond_the_limit_nothing_is_made(name: str, large: mn.DistArray) -> None:
    way = DENSE_WAYS[name]
    way(large[:1, :1])  # imports what it needs

    def refused() -> None:
        # SciPy's constructors put errors of their own before ours.
        with pytest.raises((MatnbError, ValueError, TypeError)) as caught:
            way(large)
        error = caught.value if isinstance(caught.value, MatnbError) else caught.value.__cause__
        assert isinstance(error, TooLargeError)
        words = [" GB as ", ".to_scipy() keeps it sparse"] if large.sparse else [" MB as ", "mn.save"]
        assert all(word in str(error) for word in ["1 MB", "set_compute_limit(...)", "mn.connect", *words])

    assert _peak(refused) < LIMIT


@pytest.mark.parametrize("name", LAZY_WAYS)
def test_what_needs_no_values_makes_none(name: str, large: mn.DistArray) -> None:
    assert _peak(lambda: LAZY_WAYS[name](large)) < LIMIT


@pytest.mark.parametrize("name", REFUSED_WAYS)
def test_what_is_not_done_says_so(name: str, large: mn.DistArray) -> None:
    with pytest.raises(MatnbError):
        REFUSED_WAYS[name](large)


@pytest.mark.parametrize(
    "name", sorted(DENSE_WAYS.keys() - {"csgraph", "csgraph from one vertex", "np.nditer"})
)
def test_within_the_limit_it_is_what_numpy_gives(name: str) -> None:
    values = np.array([[0.0, 2.0, 0.0], [1.5, 0.0, -1.0], [0.0, 0.0, 3.0]])
    expected = _plain(DENSE_WAYS[name](values)) if name != "__dlpack__" else None  # type: ignore[arg-type]
    for array in (mn.asarray(values), mn.asarray(sp.csr_array(values))):
        found = DENSE_WAYS[name](array)
        if name != "__dlpack__":
            assert type(_plain(found)) is type(expected)
            np.testing.assert_array_equal(_plain(found), expected)


def _plain(value: object) -> object:
    match value:
        case sp.sparray() | sp.spmatrix():
            return value.toarray()
        case pd.DataFrame():
            return value.to_numpy()
    return value


BYTES: dict[str, tuple[Way, Callable[[mn.DistArray], int]]] = {
    "np.asarray": (np.asarray, lambda x: x.nbytes),
    "np.asarray, wider": (lambda x: np.asarray(x, np.complex128), lambda x: 16 * x.size),
    "np.asarray, narrower": (lambda x: np.asarray(x, np.int8), lambda x: x.nbytes),
    "np.from_dlpack": (np.from_dlpack, lambda x: x.nbytes),
    "tobytes": (lambda x: x.tobytes(), lambda x: x.nbytes),
    "compute": (lambda x: x.compute(), lambda x: 12 * 3 + 4 * (len(x) + 1) if x.sparse else x.nbytes),
    "to_scipy": (lambda x: x.to_scipy(), lambda x: 12 * 3 + 4 * (len(x) + 1)),
}


@pytest.mark.parametrize("engine", ["auto", "interpret"])
@pytest.mark.parametrize("name", BYTES)
@given(rows=st.integers(3, 40), columns=st.integers(3, 40), is_sparse=st.booleans(), ones=st.booleans())
@settings(max_examples=8)
def test_the_limit_is_kept_to_the_byte(
    session: mn.session.Session, name: str, engine: str, rows: int, columns: int, is_sparse: bool, ones: bool
) -> None:
    way, count = BYTES[name]
    entries = np.ones(3) if ones else np.array([1.0, 2.0, -3.0])  # ones are not stored on the workers
    matrix = sp.csr_array((entries, ([0, 1, 2], [2, 0, 1])), shape=(rows, columns))
    array = mn.asarray(matrix) if is_sparse or name == "to_scipy" else mn.asarray(matrix.toarray())
    with choosing(engine=engine):
        with _limit(session, count(array)):
            way(array * 1)
        with _limit(session, count(array) - 1), pytest.raises(TooLargeError):
            way(array * 1)


def test_where_entries_are_not_counted_they_are_as_they_come(
    session: mn.session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of an interrupted run, whose arrays stay without their counts.
    matrix = sp.csr_array(np.triu(np.arange(1.0, 82).reshape(9, 9)))
    array = (mn.asarray(matrix, blocks=3) * 2).persist()
    entry = session._store.entry(array.expression)
    assert entry is not None
    bare = replace(entry, stored=replace(entry.stored, block_nnz=(), block_bytes=()))
    monkeypatch.setattr(session._store, "entry", lambda node: bare)
    size = 12 * matrix.nnz + 4 * 10
    with _limit(session, size):
        np.testing.assert_array_equal(array.to_scipy().toarray(), 2 * matrix.toarray())
    with _limit(session, size - 1), pytest.raises(TooLargeError):
        array.to_scipy()


DTYPES = ("float64", "float16", "longdouble", "int64", "uint64", "int8", "bool", "complex128", "clongdouble")


@given(shape=st.lists(st.integers(0, 9), max_size=3), dtype=st.sampled_from(DTYPES))
def test_lists_are_counted_as_they_lie_in_memory(
    session: mn.session.Session, shape: list[int], dtype: str
) -> None:
    values = np.full(shape, np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 1, dtype)
    array = mn.asarray(values)
    with choosing(engine="interpret"):
        taken = _memory_of(array.tolist())
        if taken > 1:
            with _limit(session, taken - 1), pytest.raises(TooLargeError):
                array.tolist()
        with _limit(session, 2 * taken + 100):
            array.tolist()


def _memory_of(value: object) -> int:
    if isinstance(value, bool):
        return 0
    if isinstance(value, list):
        return sys.getsizeof(value) + sum(map(_memory_of, value))
    return sys.getsizeof(value)


OPERATORS = ("matmul", "mul", "add", "sub", "truediv", "eq", "ne", "lt", "le", "gt", "ge")
FORMATS = [
    f"{one}_{kind}"
    for one in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    for kind in ("array", "matrix")
]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning", "ignore::RuntimeWarning")
def test_scipys_operators_are_recorded_and_mean_what_they_mean_of_numpys(name: str) -> None:
    rng = np.random.default_rng(0)
    theirs = getattr(sp, name)(sp.random_array((5, 5), density=0.5, rng=rng))
    dense = rng.random((5, 5)) + 1
    sparse = sp.csr_array(np.triu(dense))
    for word in OPERATORS:
        operate = getattr(operator, word)
        for other in (dense, dense[0], sparse):
            if other is sparse and word == "truediv":
                continue  # an absent element over an absent one is NaN in SciPy, and absent here
            # `*` of SciPy's matrices is the matrix product: with one of their kind, not an array.
            own = type(theirs)(other) if other is sparse else other
            for flip in (False, True):
                if flip and word == "truediv":
                    continue  # SciPy has none
                pair, expected = (theirs, mn.asarray(other)), (theirs, own)
                with counting() as fetched:
                    found = operate(*(reversed(pair) if flip else pair))
                assert isinstance(found, mn.DistArray)
                assert not fetched.sizes
                wanted = operate(*(reversed(expected) if flip else expected))
                if sp.issparse(wanted) and word not in ("eq", "le", "ge"):
                    assert found.sparse, (word, type(other))
                with choosing(engine="interpret"):
                    np.testing.assert_allclose(np.asarray(found), _plain(wanted), err_msg=f"{word} {flip}")


@pytest.mark.parametrize("name", FORMATS)
def test_products_with_scipys_stay_sparse_whatever_their_size(name: str, sparse: mn.DistArray) -> None:
    theirs = getattr(sp, name)(sp.coo_array(([1.0], ([N - 1], [N - 1])), shape=(N, N)))
    product = theirs @ sparse, sparse @ theirs, theirs + sparse, theirs - sparse
    assert all(one.sparse and one.shape == (N, N) for one in product)
    theirs *= mn.asarray(2.0)
    assert isinstance(theirs, mn.DistArray)
    assert theirs.sparse
