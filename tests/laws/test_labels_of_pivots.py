"""Labels follow a pivot, and what takes a square matrix for a graph refuses two sets of labels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import MatnbError, ShapeError

EDGES = {"src": ["alice", "bob", "carol", "alice"], "dst": ["bob", "carol", "dave", "bob"]}


def takes_a_graph(function: Any) -> bool:
    parameters = [] if not inspect.isfunction(function) else list(inspect.signature(function).parameters)
    return bool(parameters) and parameters[0] == "A"


GRAPHS = sorted(name for name, one in vars(mn.graph).items() if takes_a_graph(one))
OTHERS: dict[str, Callable[[Any], object]] = {
    "eigsh": lambda A: mn.linalg.eigsh(A, 1),
    "expm_multiply": lambda A: mn.linalg.expm_multiply(A, np.ones(A.shape[0])),
    "matrix_power": lambda A: np.linalg.matrix_power(A, 2),
    "SpectralEmbedding": lambda A: mn.learn.SpectralEmbedding(1, affinity="precomputed").fit(A),
}

pytestmark = pytest.mark.session("interpreter")


def pivot(edges: dict[str, list[Any]] = EDGES) -> mn.Pivot:
    return mn.table(edges).pivot("src", "dst")


def with_defaults(name: str, A: Any) -> object:
    function = getattr(mn.graph, name)
    rest = list(inspect.signature(function).parameters.values())[1:]
    return function(
        A, *(0 for one in rest if one.default is one.empty and one.kind == one.POSITIONAL_OR_KEYWORD)
    )


def test_there_are_graph_algorithms() -> None:
    assert len(GRAPHS) >= 30


@pytest.mark.parametrize("name", [*GRAPHS, *OTHERS])
def test_two_sets_of_labels_are_not_one_graph(name: str) -> None:
    call = OTHERS.get(name) or (lambda A: with_defaults(name, A))
    A = pivot()
    for matrix in (
        A,
        A.T,
        2 * A,
        A > 0,
        A.astype(float),
        np.abs(A),
        A[[1, 0, 2]],
        A.pattern(),
        mn.asarray(A, blocks=2),
        np.where(A > 0, A, 0),
        np.clip(A, 0, 1),
        np.round(A),
        A.round(),
        np.nan_to_num(A),
        np.triu(A),
    ):
        with pytest.raises(ShapeError, match=r"'alice'|'dave'") as told:
            call(matrix)
        assert isinstance(told.value, MatnbError)
        assert "from_pandas_edgelist" in str(told.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda A: np.where(A > 0, A, 0),
        lambda A: mn.where(A > 0, A, 0),
        lambda A: np.clip(A, 0, 1),
        lambda A: np.round(A * 1.5),
        lambda A: np.nan_to_num(A * 1.0),
        lambda A: A.real,
        lambda A: np.triu(A),
        lambda A: mn.tril(A),
        lambda A: np.flip(A, 0),
        lambda A: np.roll(A, 1, axis=1),
        lambda A: mn.rot90(A, 3),
        lambda A: A.reshape(A.shape),
        lambda A: mn.diag(mn.ones(3)) @ A,
        lambda A: A @ mn.diag(mn.ones(3)),
        lambda A: np.dot(mn.diag(mn.ones(3)), A),
    ],
)
def test_labels_follow_what_is_made_of_a_pivot(change: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match=r"'alice'|'dave'"):
        mn.graph.pagerank(change(pivot()))


@pytest.mark.parametrize(
    "move",
    [
        *(lambda A: np.flip(A), lambda A: np.flip(A, 1), lambda A: np.fliplr(A), lambda A: np.flipud(A)),
        *(lambda A: np.roll(A, 2, axis=0), lambda A: np.roll(A, (1, -1), (0, 1)), lambda A: np.rot90(A, 2)),
        lambda A: np.rot90(A).T,
    ],
)
def test_labels_move_with_their_rows_and_columns(move: Callable[[Any], Any]) -> None:
    edges = {"src": ["a", "b", "c", "a"], "dst": ["x", "y", "z", "w"], "n": [1, 2, 3, 4]}
    moved = move(mn.table(edges).pivot("src", "dst", "n"))
    values = np.asarray(moved)
    for src, dst, n in zip(*edges.values(), strict=True):
        assert values[list(moved.row_labels).index(src), list(moved.column_labels).index(dst)] == n


def test_rolling_over_the_ends_of_rows_leaves_no_labels() -> None:
    assert not hasattr(np.roll(pivot(), 1), "row_labels")


@pytest.mark.parametrize(
    "product", [np.dot, np.linalg.matmul, lambda A, B: mn.matmul(A, B, semiring="min_plus")]
)
def test_every_product_looks_at_inner_labels(product: Callable[[Any, Any], Any]) -> None:
    A = pivot()
    with pytest.raises(ShapeError, match="the product of two pivots"):
        product(A, A)
    assert product(A, A.T).column_labels.tolist() == A.row_labels.tolist()


@pytest.mark.parametrize(
    "edges",
    [
        {"src": ["b", "a"], "dst": ["x", "y"]},
        {"src": [1, 2, 3], "dst": [2, 3, 4]},
        {"src": [1, 2, 2], "dst": ["1", "2", "2"]},
        {"src": ["a", "b", "b"], "dst": ["b", "b", "b"]},
        {
            "src": np.array(["2020-01-01", "2020-01-02"], "M8[D]"),
            "dst": np.array(["2020-01-01", "2020-01-03"], "M8[D]"),
        },
    ],
)
def test_labels_of_every_type(edges: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match="different labels"):
        mn.graph.pagerank(pivot(edges))


@pytest.mark.parametrize(
    "combined",
    [
        lambda A, B: np.where(A > 0, A, B),
        lambda A, B: np.where(B > 0, A, 0),
        lambda A, B: np.clip(A, 0, B),
        lambda A, B: np.isclose(A, B),
    ],
)
def test_functions_of_two_pivots_look_at_their_labels(combined: Callable[[Any, Any], object]) -> None:
    A = pivot()
    with pytest.raises(ShapeError, match=r"with different row labels|whose rows have different labels"):
        combined(A, A.T)
    combined(A, A.copy())


def test_one_set_of_labels_is_a_graph() -> None:
    edges = {"src": ["a", "b", "c", "a"], "dst": ["b", "c", "a", "c"]}
    graph = nx.DiGraph(list(zip(edges["src"], edges["dst"], strict=True)))
    A = pivot(edges)
    ranks = mn.graph.pagerank(A).ranks.compute()
    expected = nx.pagerank(graph)
    np.testing.assert_allclose(ranks, [expected[name] for name in A.row_labels], atol=1e-6)
    mn.graph.pagerank(A[np.ix_([2, 0], [2, 0])])
    with pytest.raises(ShapeError, match="in another order: number 0 of one is 'b', of the other 'a'"):
        mn.graph.pagerank(A[[1, 0, 2]])
    mn.graph.pagerank(A[[1, 0, 2]][:, [1, 0, 2]])
    mn.graph.pagerank(pivot().T @ pivot())


def test_what_the_error_says_is_a_way() -> None:
    table, A = mn.table(EDGES), pivot()
    names = np.union1d(A.row_labels, A.column_labels)
    places = tuple(np.searchsorted(names, np.asarray(table[name])) for name in ("src", "dst"))
    graph = mn.coo_array((np.ones(len(table)), places), shape=(len(names),) * 2)
    found = mn.graph.pagerank(graph, tolerance=1e-12, max_iterations=1000).ranks.compute()
    weighted = nx.MultiDiGraph(list(zip(EDGES["src"], EDGES["dst"], strict=True)))
    expected = nx.pagerank(weighted, tol=1e-12)
    np.testing.assert_allclose(found, [expected[name] for name in names], atol=1e-6)
    assert mn.graph.pagerank(A.without_labels()).ranks.shape == (3,)


ROWS, COLUMNS = ["alice", "bob", "carol"], ["bob", "carol", "dave"]
IS_FIRST = np.array([True, False, True])


@pytest.mark.parametrize(
    ("use", "rows", "columns"),
    [
        (lambda A: A.T, COLUMNS, ROWS),
        (lambda A: np.transpose(A), COLUMNS, ROWS),
        (lambda A: np.swapaxes(A, 0, 1), COLUMNS, ROWS),
        (lambda A: A.T.T, ROWS, COLUMNS),
        (lambda A: 3 * A, ROWS, COLUMNS),
        (lambda A: -A, ROWS, COLUMNS),
        (lambda A: A / 2, ROWS, COLUMNS),
        (lambda A: A / A.sum(axis=1)[:, None], ROWS, COLUMNS),
        (lambda A: np.sqrt(A), ROWS, COLUMNS),
        (lambda A: A.copy(), ROWS, COLUMNS),
        (lambda A: A[:2], ROWS[:2], COLUMNS),
        (lambda A: A[:, ::-1], ROWS, COLUMNS[::-1]),
        (lambda A: A[..., 1:], ROWS, COLUMNS[1:]),
        (lambda A: A[1:, :1], ROWS[1:], COLUMNS[:1]),
        (lambda A: A[[2, 0]], ["carol", "alice"], COLUMNS),
        (lambda A: A[:, IS_FIRST], ROWS, ["bob", "dave"]),
        (lambda A: A[mn.asarray(IS_FIRST)], ["alice", "carol"], COLUMNS),
        (lambda A: A[A.sum(axis=1) > 1], ["alice"], COLUMNS),
        (lambda A: A + A, ROWS, COLUMNS),
        (lambda A: A @ A.T, ROWS, ROWS),
    ],
)
def test_labels_follow(use: Callable[[Any], Any], rows: list[str], columns: list[str]) -> None:
    found = use(pivot())
    assert found.row_labels.tolist() == rows
    assert found.column_labels.tolist() == columns
    assert np.asarray(found).tolist() == np.asarray(use(pivot().without_labels())).tolist()


def test_two_pivots_of_other_labels_are_not_combined() -> None:
    A, other = pivot(), pivot({"src": ["alice", "bob", "eve"], "dst": ["bob", "carol", "dave"]})
    for call in (
        lambda: A + other,
        lambda: np.maximum(A, other),
        lambda: A * A.T,
        lambda: A @ A,
        lambda: np.matmul(A, other),
    ):
        with pytest.raises(ShapeError, match="without_labels"):
            call()
    assert (A.without_labels() + other).shape == (3, 3)


def by_names(name: str, *operands: str) -> Callable[..., Any]:
    """Return a function of NumPy's that is called with its arrays by name."""
    function = getattr(mn if name == "matmul" else np, name)
    return lambda *arrays, **options: function(**dict(zip(operands, arrays, strict=True)), **options)


@pytest.mark.parametrize(
    ("named", "operand", "options"),
    [
        ("flip", "m", {}),
        ("flip", "m", {"axis": 1}),
        ("fliplr", "m", {}),
        ("flipud", "m", {}),
        ("rot90", "m", {"k": 3}),
        ("roll", "a", {"shift": 1, "axis": 0}),
        ("swapaxes", "a", {"axis1": 0, "axis2": 1}),
        ("transpose", "a", {}),
        ("transpose", "a", {"axes": (1, 0)}),
        ("moveaxis", "a", {"source": 0, "destination": 1}),
        ("round", "a", {}),
        ("clip", "a", {"a_min": 0, "a_max": 1}),
    ],
)
def test_arrays_given_by_name_are_those_given_by_place(
    named: str, operand: str, options: dict[str, Any]
) -> None:
    A = mn.table({"u": ["a", "b", "b"], "v": ["x", "y", "z"], "n": [1, 2, 3]}).pivot("u", "v", "n")
    plain, call = A.without_labels(), by_names(named, operand)
    expected = getattr(np, named)(np.asarray(plain), **options)
    np.testing.assert_array_equal(np.asarray(call(plain, **options)), expected)
    found, by_place = call(A, **options), getattr(np, named)(A, **options)
    np.testing.assert_array_equal(np.asarray(found), expected)
    for axis in ("row_labels", "column_labels"):
        assert getattr(found, axis).tolist() == getattr(by_place, axis).tolist()


def test_factors_of_products_may_be_given_by_name() -> None:
    A, dense = pivot(), np.asarray(pivot())
    for product in (
        *(by_names("dot", "a", "b"), by_names("matmul", "left", "right")),
        lambda one, other: mn.matmul(one, right=other),
        lambda one, other: np.dot(one, b=other),
    ):
        for one, other in ((A, A.T), (A.without_labels(), A.T), (A.without_labels(), A.T.without_labels())):
            np.testing.assert_array_equal(np.asarray(product(one, other)), dense @ dense.T)
        assert product(A, A.T).column_labels.tolist() == A.row_labels.tolist()
        with pytest.raises(ShapeError, match="the product of two pivots"):
            product(A, A)


@pytest.mark.parametrize(
    "turn",
    [
        np.transpose,
        np.rot90,
        np.matrix_transpose,
        lambda A: A.T,
        lambda A: A.mT,
        lambda A: A.transpose(1, 0),
        lambda A: A.transpose((-1, 0)),
        lambda A: A.swapaxes(0, 1),
        lambda A: np.moveaxis(A, 0, 1),
        lambda A: np.permute_dims(A, (1, 0)),
        lambda A: np.rollaxis(A, 1),
    ],
)
@pytest.mark.parametrize("rows", [["a"], ["a", "b"]])
def test_axes_change_their_labels_with_their_places(turn: Callable[[Any], Any], rows: list[str]) -> None:
    # Of one row and one column too, whose shape says nothing.
    A = mn.table({"u": rows, "v": [f"of {row}" for row in rows]}).pivot("u", "v")
    found = turn(A)
    assert sorted(found.row_labels.tolist()) == A.column_labels.tolist()
    assert found.column_labels.tolist() == A.row_labels.tolist()


@pytest.mark.parametrize("axes", [(0, 2), (1, -3), (2, 0), (5, 1)])
def test_axes_that_are_not_there_are_refused(axes: tuple[int, int]) -> None:
    for A in (pivot(), pivot().without_labels()):
        with pytest.raises(np.exceptions.AxisError):
            A.swapaxes(*axes)
        with pytest.raises(np.exceptions.AxisError):
            np.moveaxis(A, *axes)


@pytest.mark.parametrize(
    "combined",
    [
        lambda P, A: P + A,
        lambda P, A: A + P,
        lambda P, A: P * A,
        lambda P, A: A < P,
        lambda P, A: P @ A,
        lambda P, A: A @ P,
        lambda P, A: np.matmul(A, P),
        lambda P, A: A.dot(P),
        lambda P, A: P.multiply(A),
        lambda P, A: np.minimum(A, P),
        lambda P, A: np.where(P > 0, P, A),
        lambda P, A: P * mn.graph.pagerank(A).ranks,
        lambda P, A: P @ mn.graph.pagerank(A).ranks,
        lambda P, A: mn.graph.pagerank(A).ranks @ P,
        lambda P, A: P.sum(axis=0) - A.sum(axis=0),
        lambda P, A: P[0] + A[0],
    ],
)
def test_a_pivot_and_a_graph_are_combined_only_where_they_have_the_same_labels(
    combined: Callable[[Any, Any], Any],
) -> None:
    names = ["alice", "bob", "carol"]
    P = mn.table({"src": names, "dst": [*names[1:], names[0]]}).pivot("src", "dst")
    same, other = (mn.asarray(nx.DiGraph([*pairwise(some)])) for some in (names, [*names[:2], "dave"]))
    found, plain = combined(P, same), combined(P.without_labels(), same.without_labels())
    np.testing.assert_array_equal(dense(found), dense(plain))
    with pytest.raises(ShapeError, match=r"'(carol|dave)'.*'(carol|dave)'"):
        combined(P, other)
    combined(P.without_labels(), other)


def dense(found: Any) -> np.ndarray:
    return found.toarray() if found.sparse else np.asarray(found)


def test_equal_pivots_of_other_labels_keep_their_own() -> None:
    rows = mn.table({"src": ["a"], "dst": ["c"]})
    pivots = [rows.pivot("src", "dst", row_labels=labels) for labels in (["a", "b"], ["a", "d"])]
    assert [P.row_labels.tolist() for P in pivots] == [["a", "b"], ["a", "d"]]
    assert [P.sum(axis=1).labels.tolist() for P in pivots] == [["a", "b"], ["a", "d"]]
    assert pivots[0].without_labels().labels is None
    with pytest.raises(ShapeError, match="only an element of one is labeled 'b'"):
        pivots[0].sum(axis=1) + pivots[1].sum(axis=1)


@pytest.mark.parametrize("kind", ["text", "whole", "dates"])
def test_frames_of_pivots_have_their_labels(kind: str) -> None:
    days = ["2020-02-01", "2020-01-01", "2021-01-01"]
    labels: list[Any] = {"text": ["b", "a", "é"], "whole": [3, -1, 7], "dates": days}[kind]
    one = pd.Series([labels[place] for place in (0, 1, 2, 0)])
    one = one.astype("datetime64[us]") if kind == "dates" else one
    frame = pd.DataFrame({"one": one, "other": [1, 2, 1, 1], "value": [1.5, 2.0, 4.0, 8.0]})
    P = mn.table(frame).pivot("one", "other", "value")
    expected = frame.pivot_table("value", "one", "other", "sum", fill_value=0.0)
    for found, wanted in ((P, expected), (P.T, expected.T), (2 * P[:, 1:], 2 * expected.iloc[:, 1:])):
        pd.testing.assert_frame_equal(
            found.to_pandas(), wanted, check_names=False, check_index_type=False, check_column_type=False
        )


HOLES = pd.DataFrame({"time": [1, 1, 2, 3, 3, 3], "sensor": list("pqpqrr"), "value": [5, 0, 4, -7, 2, 8]})


@pytest.mark.parametrize("combine", ["mean", "median", "min", "max", "first", "last", "prod", "std"])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_frames_of_pivots_have_nan_where_there_is_no_row(combine: str, dtype: str) -> None:
    frame = HOLES.astype({"value": dtype})
    P = mn.table(frame).pivot("time", "sensor", "value", combine)
    expected = frame.pivot_table("value", "time", "sensor", combine)
    pairs = [(P, expected), (P.T, expected.T), (P[1:], expected[1:]), (2 * P / 4, 2 * expected / 4)]
    pairs += [(P.copy(), expected), (np.sign(P), np.sign(expected)), (P.persist(), expected)]
    for found, wanted in pairs:
        np.testing.assert_array_equal(found.to_pandas().to_numpy(), wanted.to_numpy())
    filled = frame.pivot_table("value", "time", "sensor", combine, fill_value=-1)
    np.testing.assert_array_equal(P.to_pandas(fill_value=-1).to_numpy(), filled.to_numpy())
    assert P.to_pandas(fill_value=0).notna().all(axis=None)


def test_frames_of_sums_and_counts_have_zeros_unless_others_are_asked_for() -> None:
    t = mn.table(HOLES)
    for values, combine in (("value", "sum"), ("value", "count"), (None, "sum")):
        P = t.pivot("time", "sensor", values, combine)
        expected = HOLES.pivot_table("value", "time", "sensor", "sum" if combine == "sum" else "count")
        assert P.to_pandas().notna().all(axis=None)
        found = P.to_pandas(fill_value=np.nan)
        np.testing.assert_array_equal(found.isna().to_numpy(), expected.isna().to_numpy())


def test_what_stores_no_zeros_has_none_missing() -> None:
    P = mn.table(HOLES).pivot("time", "sensor", "value", "mean")
    for found in (np.maximum(P, 0), P * (P > 3), P + P, P.eliminate_zeros(), P.pattern(float), P > 3):
        np.testing.assert_array_equal(found.to_pandas().to_numpy(), dense(found))


def test_pairs_without_rows_are_shown_blank() -> None:
    P = mn.table(HOLES).pivot("time", "sensor", "value", "mean")
    lines = repr(P).splitlines()
    assert lines[1:4] == ["1  5.0   0.0", "2  4.0", "3       -7.0  5.0"]
    assert "2  4   0   0" in repr(mn.table(HOLES).pivot("time", "sensor", "value"))
