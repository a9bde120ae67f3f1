"""A user's functions on small whole arrays: what is recorded, found out and refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.ndimage
from results import check, value

import matnb as mn
from matnb.errors import DTypeError, KernelError, OptionError, ShapeError, TooLargeError
from matnb.ops.mapping import Part, Replicated


def unknown(number: int) -> mn.DistArray:
    """A whole number that only a run can tell."""
    return mn.full(1, number, np.int64).max()


def scaled(array: np.ndarray, factor: float = 2.0) -> np.ndarray:
    return array * factor


def test_replicated_calls_a_function_of_whole_arrays():
    A = mn.asarray(np.array([[2.0, 1], [1, 3]]))
    values, vectors = mn.replicated(np.linalg.eigh, A)
    assert isinstance(values.expression, Part)
    assert isinstance(vectors.expression, Part)
    assert values.expression.call is vectors.expression.call
    expected = np.linalg.eigh(np.array([[2.0, 1], [1, 3]]))
    check(values, expected[0])
    check(vectors, expected[1])
    check(mn.replicated(np.linalg.solve, A, mn.asarray([1.0, 2])), np.linalg.solve(value(A), [1.0, 2]))
    check(mn.replicated(lambda x, y: x + y, unknown(3), 2), 5)
    check(mn.replicated(lambda A: A.sum(axis=0), mn.eye(3)), np.ones(3))
    (only,) = mn.replicated(lambda x: [x], A)
    check(only, value(A))
    assert mn.replicated(scaled, A).expression is mn.replicated(scaled, A).expression
    assert mn.replicated(lambda x: x + 1, A).expression is not mn.replicated(lambda x: x + 2, A).expression


def test_versions_of_a_function_in_a_module_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    first = mn.replicated(scaled, unknown(3)).expression
    monkeypatch.setattr(scaled, "__code__", (lambda array, factor=2.0: array * factor * 2).__code__)
    assert mn.replicated(scaled, unknown(3)).expression is not first


def test_replicated_learns_shapes_from_examples():
    A = mn.asarray(np.array([[0.0, 2], [2, 0]]))
    B = mn.replicated(lambda A: np.linalg.inv(A)[0], A)
    assert B.shape == (2,)

    def picky(x: np.ndarray) -> np.ndarray:
        if x[0] == 1:
            raise ValueError("one is not allowed")
        return np.array([x.sum(), 1.0])

    x = mn.asarray([2.0, 3.0])
    with pytest.raises(OptionError, match=r"picky raised ValueError on examples .*\(2,\) float64.* like="):
        mn.replicated(picky, x)
    check(mn.replicated(picky, x, like=np.empty(2)), np.array([5.0, 1.0]))
    check(mn.replicated(picky, x, like=(x,))[0], np.array([5.0, 1.0]))
    with pytest.raises(ShapeError, match="like="):
        value(mn.replicated(lambda x: np.arange(x[0]), x))


def test_replicated_refuses_what_it_cannot_call():
    x = mn.arange(3.0)
    with pytest.raises(OptionError, match="give every DistArray as an argument"):
        mn.replicated(lambda y: y + x.shape[0] + (x is None), x)
    lock = threading.Lock()
    with pytest.raises(OptionError, match="cannot be sent to a worker"):
        mn.replicated(lambda y: y + lock.locked(), x)
    with pytest.raises(OptionError, match="is not a function"):
        mn.replicated(3, x)  # type: ignore[arg-type]
    with pytest.raises(TooLargeError, match=r"argument 0 of <lambda>.* up to 64"):
        mn.replicated(lambda y: y, mn.zeros(8_000_001))
    with pytest.raises(DTypeError, match="gave a str"):
        mn.replicated(lambda y: "y", x)
    bad = mn.replicated(lambda y: y[int(y[0])], x + 4)
    with pytest.raises(KernelError, match="<lambda> raised IndexError"):
        value(bad)
    assert isinstance(bad.expression.operands[0], Replicated)


def test_images_are_filtered_whole() -> None:
    def smooth(images: np.ndarray) -> np.ndarray:
        return scipy.ndimage.gaussian_filter(images, 2, axes=(-2, -1))

    stack = np.random.default_rng(0).random((4, 40, 60))
    with mn.start(workers=2, threads=1):
        images, image = mn.asarray(stack, blocks=(2, 2, 2)), mn.asarray(stack[0], blocks=(2, 2))
        np.testing.assert_array_equal(mn.map_blocks(smooth, images, align="rows"), smooth(stack))
        np.testing.assert_array_equal(mn.replicated(smooth, image), smooth(stack[0]))
