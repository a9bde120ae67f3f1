"""Expressions: interned, digested alike everywhere, bare of data, of any depth, strict about shapes."""

from __future__ import annotations

import copy
import gc
import importlib.util
import pickle
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.errors import ShapeError
from matnb.expr import digest
from matnb.expr.digest import digest_of
from matnb.expr.interning import InterningType
from matnb.expr.nodes import (
    Broadcast,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    MatMul,
    Reduce,
    Regrid,
    Transpose,
    broadcast_shapes,
)
from matnb.expr.traverse import topological
from matnb.lazy.ufuncs import call, literal
from matnb.ops.interpret import interpret

FLOAT = np.dtype(np.float64)


def data(name: str, shape: tuple[int, ...], sparse: bool = False, dtype: np.dtype = FLOAT) -> Data:
    return Data(name.encode(), shape, dtype, sparse)


def add(left: Expr, right: Expr) -> Expr:
    return call(np.add, (left, right))[0]


# one object a meaning


def test_equal_expressions_are_the_same_object():
    a, b = data("a", (3, 3)), data("b", (3, 3))
    assert data("a", (3, 3)) is a
    assert a is not b
    assert add(a, b) is add(a, b)
    assert add(a, b) is not add(b, a)
    assert MatMul(a, b) is MatMul(a, b, "plus_times")
    assert MatMul(a, b) is not MatMul(a, b, "min_plus")
    assert Transpose(a, (1, 0)) is not Transpose(a, (0, 1))
    assert Index(a, (slice(0, 2, 1), 0)) is Index(a, (slice(0, 2, 1), 0))
    assert Reduce(a, "sum", (0,), False, FLOAT) is not Reduce(a, "sum", (0,), True, FLOAT)
    assert data("a", (3, 3), sparse=True) is not a
    assert data("a", (9,)) is not a


def test_operand_order_is_part_of_the_meaning():
    a, b = data("a", ()), data("b", ())
    (one,), (other,) = call(np.power, (a, b)), call(np.power, (b, a))
    assert one is not other


def test_threads_make_no_twins():
    rounds, made = 200, [[] for _ in range(4)]
    barrier = threading.Barrier(4)
    start = data("start", (2,))

    def build(mine: list[Expr]) -> None:
        barrier.wait()
        node: Expr = start
        for number in range(rounds):
            node = add(node, literal(float(number)))
            mine.append(node)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=build, args=(mine,)) for mine in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for nodes in zip(*made, strict=True):
        assert len({id(node) for node in nodes}) == 1


def test_literals_that_compare_equal_do_not_merge():
    values = [1, True, 1.0, np.float32(1), np.int32(1), 1 + 0j, 0.0, -0.0, 0, False, [1.0], [[1.0]]]
    nodes = [literal(value) for value in values]
    assert len({id(node) for node in nodes}) == len(values)
    assert literal(-0.0) is literal(-0.0)
    assert np.signbit(interpret(literal(-0.0)))


def test_nan_payloads_do_not_merge():
    quiet, other = (np.array(bits, np.uint64).view(np.float64) for bits in (0x7FF8 << 48, (0x7FF8 << 48) + 1))
    assert literal(quiet) is not literal(other)
    assert literal(quiet) is literal(quiet.copy())
    assert interpret(literal(other)).view(np.uint64) == (0x7FF8 << 48) + 1


def test_parameters_that_compare_equal_have_digests_of_their_own():
    groups = [0.0, -0.0, 0, False, None, "", b"", (), (0,), ((),), ((0,),), "0", slice(0, None, None), FLOAT]
    assert len({digest_of(value) for value in groups}) == len(groups)
    assert digest_of("a", "b") != digest_of("asb")  # though their bytes, put side by side, are alike
    assert digest_of((1, 2), 3) != digest_of(1, (2, 3))
    with pytest.raises(TypeError, match="list has no digest"):
        digest_of([])


def test_digests_repeat_in_another_process():
    program = (
        "import numpy as np\n"
        "from matnb.expr.nodes import Data, Index, MatMul, Reduce\n"
        "from matnb.lazy.ufuncs import call, literal\n"
        "a = Data(b'a', (3, 4), np.dtype('float64'), True)\n"
        "(b,) = call(np.multiply, (a, literal(-0.0)))\n"
        "c = Index(MatMul(b, Data(b'v', (4,), np.dtype('int32'), False)), (slice(0, 2, 1),))\n"
        "result = Reduce(c, 'sum', (0,), False, np.dtype('float64')).digest.hex()\n"
    )
    here: dict[str, str] = {}
    exec(program, here)
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", program + "print(result)"],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here["result"]


# bare values


def test_nodes_refuse_to_pickle():
    node = add(data("a", (2,)), literal(1.0))
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(node)
    with pytest.raises(TypeError, match="not pickled"):
        copy.deepcopy(node)


def test_nodes_are_frozen():
    node = data("a", (2,))
    with pytest.raises(AttributeError):
        node.shape = (3,)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        node.lengths = (3,)  # type: ignore[misc]


def test_a_node_dies_with_its_last_reference():
    node = add(data("short-lived", (2,)), literal(5.0))
    digest, gone = node.digest, weakref.ref(node)
    assert digest in InterningType._nodes
    del node
    gc.collect()
    assert gone() is None
    assert digest not in InterningType._nodes


# deep and shared


def test_a_long_chain_records_walks_and_runs():
    start = literal(0.0)
    begin = time.process_time()
    node: Expr = start
    for _ in range(5000):
        node = add(node, literal(1.0))
    assert len(topological([node])) == 5002
    assert interpret(node) == 5000.0
    assert time.process_time() - begin < 5.0
    del node  # taking a chain apart must not recurse either


def test_a_doubling_graph_is_as_small_as_its_nodes():
    begin = time.process_time()
    node: Expr = literal(1.0)
    for _ in range(60):
        node = add(node, node)
    assert len(topological([node])) == 61
    assert interpret(node) == 2.0**60
    repr(node)
    hash(node)
    assert time.process_time() - begin < 2.0


def test_with_operands_changes_the_operands_alone():
    a, b, c = data("a", (3, 3)), data("b", (3, 3)), data("c", (3, 3))
    assert add(a, b).with_operands(a, c) is add(a, c)
    assert add(a, b).with_operands(a, b) is add(a, b)
    assert MatMul(a, b, "min_plus").with_operands(c, b) is MatMul(c, b, "min_plus")
    assert Index(a, (0, slice(0, 2, 1))).with_operands(b) is Index(b, (0, slice(0, 2, 1)))
    assert Broadcast(a, (2, 3, 3)).with_operands(b) is Broadcast(b, (2, 3, 3))
    with pytest.raises(ValueError, match="1 operands for a node of 2"):
        add(a, b).with_operands(a)


# shapes, formats


def test_results_that_stay_sparse():
    a, b, dense = data("a", (3, 3), True), data("b", (3, 3), True), data("d", (3, 3))
    row = data("r", (1, 3), True)
    (product,) = call(np.multiply, (a, dense))
    assert product.sparse
    assert add(a, b).sparse
    assert call(np.multiply, (a, 2.0))[0].sparse
    assert call(np.sqrt, (a,))[0].sparse
    assert not add(a, dense).sparse
    assert not call(np.exp, (a,))[0].sparse  # exp(0) = 1
    assert not call(np.add, (a, 1.0))[0].sparse
    assert not call(np.greater, (1.0, a))[0].sparse  # 1 > 0 is true of absent elements
    assert call(np.greater, (a, 1.0))[0].sparse
    assert not call(np.multiply, (row, dense))[0].sparse  # a stretched row
    pattern = data("p", (3, 3), True, np.dtype(bool))
    assert call(np.sqrt, (pattern,))[0].dtype == np.float16
    assert not call(np.sqrt, (pattern,))[0].sparse  # SciPy has no matrices of half precision
    assert MatMul(a, b).sparse
    assert not MatMul(a, dense).sparse
    assert not Index(a, (0, slice(0, 3, 1))).sparse  # a row has one axis
    assert Index(a, (slice(0, 1, 1), slice(0, 3, 1))).sparse


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (4, 5)), ((3,), (4,)), ((2, 3), (2,)), ((2,), (3, 2)), ((2, 1, 3), (4, 3, 2, 1))],
)
def test_products_that_do_not_fit_name_both_shapes(left: tuple[int, ...], right: tuple[int, ...]):
    with pytest.raises(ValueError):  # noqa: PT011  NumPy's own message is not ours to match
        np.ones(left) @ np.ones(right)
    with pytest.raises(ShapeError) as caught:
        MatMul(data("a", left), data("b", right))
    message = str(caught.value)
    assert message.startswith(("cannot multiply", "matmul: "))
    if message.startswith("cannot"):
        assert f"{left} and {right}" in message


def test_other_bad_shapes():
    a, s = data("a", (3, 4)), data("s", (4, 3), True)
    with pytest.raises(ShapeError, match="use \\* instead"):
        MatMul(a, literal(2.0))
    with pytest.raises(ShapeError, match=r"\(4, 3\).*\(2, 3, 4\)|\(2, 3, 4\).*\(4, 3\)"):
        MatMul(data("t", (2, 3, 4)), s)
    with pytest.raises(ShapeError, match="are not a permutation of the array's 2 axes"):
        Transpose(a, (0, 0))
    with pytest.raises(ShapeError, match=r"broadcast_to: shapes \(3, 4\) and \(3,\)"):
        Broadcast(a, (3,))
    with pytest.raises(ShapeError, match=r"\(3, 4\) cannot be broadcast to \(1, 4\)"):
        Broadcast(a, (1, 4))
    with pytest.raises(ShapeError, match=r"add: shapes \(3, 4\) and \(4, 3\)"):
        add(a, s)
    with pytest.raises(ShapeError, match=r"max of an array of shape \(0, 2\)"):
        Reduce(data("e", (0, 2)), "max", (0,), False, FLOAT)
    assert Reduce(data("e", (0, 2)), "max", (1,), False, FLOAT).shape == (0,)


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple), min_size=1, max_size=3))
def test_broadcasting_is_numpys(shapes: list[tuple[int, ...]]):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast_shapes(*shapes, name="add")
    else:
        assert broadcast_shapes(*shapes, name="add") == expected


def test_a_literal_is_read_only_and_keeps_its_value():
    node = literal([[1, 2], [3, 4]], np.int32)
    assert isinstance(node, Literal)
    np.testing.assert_array_equal(node.value, [[1, 2], [3, 4]])
    assert node.value.dtype == np.int32
    assert not node.value.flags.writeable
    assert repr(node) == "Literal(2, 2) int32"
    (scaled,) = call(np.multiply, (node, 2))
    assert isinstance(scaled, Elementwise)
    assert (scaled.size, scaled.ndim) == (4, 2)


def test_cuts_are_part_of_an_arrays_name_and_of_nothing_else():
    s = data("s", (4, 3), True)
    halves = Regrid(s, ((0, 2, 4), (0, 3)))
    assert halves is Regrid(s, ((0, 2, 4), (0, 3)))
    assert halves is not Regrid(s, ((0, 1, 4), (0, 3)))
    assert halves is not s
    assert (halves.shape, halves.dtype, halves.sparse) == (s.shape, s.dtype, s.sparse)
    other = data("o", (4, 3))
    assert halves.with_operands(other) is Regrid(other, halves.cuts)
    for cuts in [((0, 2, 4),), ((0, 2, 4), (0, 2)), ((0, 3, 2, 4), (0, 3))]:
        with pytest.raises(ShapeError, match="cuts"):
            Regrid(s, cuts)


def test_digests_follow_the_version(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("matnb.version.VERSION", "0.0.0")
    spec = importlib.util.spec_from_file_location("digest_of_another_version", digest.__file__)
    assert spec is not None
    assert spec.loader is not None
    another = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(another)
    assert another.digest_of(1) != digest_of(1)
