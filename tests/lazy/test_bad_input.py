"""Every bad input is told of with the right error, naming what was wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn
from matnb.errors import (
    DTypeError,
    IndexingError,
    MatnbError,
    NotScalarError,
    OptionError,
    ShapeError,
    UnsupportedError,
)

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda x: x + np.ones(4), ShapeError, ["(2, 3)", "(4,)", "add"]),
        (lambda x: x @ np.ones((2, 2)), ShapeError, ["(2, 3)", "(2, 2)"]),
        (lambda x: x @ 2.0, ShapeError, ["scalar"]),
        (lambda x: np.where(x, x, np.ones(5)), ShapeError, ["(2, 3)", "(5,)", "where"]),
        (lambda x: x.sum(axis=2), ShapeError, ["axis 2", "2 axes"]),
        (lambda x: x.sum(axis=(0, 0)), ShapeError, ["twice"]),
        (lambda x: x.sum(axis="rows"), DTypeError, ["'rows'"]),
        (lambda x: x.transpose(0, 2), ShapeError, ["(0, 2)", "2 axes"]),
        (lambda x: np.broadcast_to(x, (4, 4)), ShapeError, ["(2, 3)", "(4, 4)"]),
        (lambda x: np.squeeze(x, 0), ShapeError, ["(2, 3)", "axis 0"]),
        (lambda x: x[2], IndexingError, ["index 2", "length 2"]),
        (lambda x: x[:, :, 0], IndexingError, ["too many indices: 3", "2 axes"]),
        (lambda x: x[["a"]], IndexingError, ["list"]),
        (lambda x: x["a"], IndexingError, ["str"]),
        (lambda x: x & 1.5, DTypeError, ["bitwise_and", "float64"]),
        (lambda x: x << x, DTypeError, ["left_shift", "float64"]),
        (lambda x: x.astype("U3"), DTypeError, ["U3"]),
        (lambda x: x.astype("no such"), DTypeError, ["no such"]),
        (lambda x: x.astype(object), DTypeError, ["object"]),
        (lambda x: (x + 1j).astype(float, casting="safe"), DTypeError, ["complex128", "safe"]),
        (lambda x: x + "text", DTypeError, ["'text' is text"]),
        (lambda x: x + None, DTypeError, []),
        (lambda x: x + np.array([1, "a"], dtype=object), DTypeError, ["object"]),
        (lambda x: x + np.array(["a", "b", "c"]), DTypeError, ["U1"]),
        (lambda x: x + np.array(["2020-01-01"], "M8[D]"), DTypeError, ["datetime64"]),
        (lambda x: x.astype(np.uint8) + 300, DTypeError, ["add", "300", "uint8"]),
        (lambda x: x.min(axis=0)[:0].min(), ShapeError, ["min", "(0,)"]),
        (lambda x: np.subtract.reduce(x), UnsupportedError, ["np.subtract.reduce", "add, multiply"]),
        (lambda x: np.where(x, x), OptionError, ["three"]),
        (lambda x: np.clip(x, 0, 1, out=np.ones(3)), UnsupportedError, ["ndarray"]),
        (lambda x: np.linalg.norm(x, "no such"), OptionError, ["'no such'"]),
        (lambda x: np.linalg.norm(np.broadcast_to(x, (2, 2, 3)), 1), ShapeError, ["3 axes"]),
        (lambda x: x.__setitem__((0, slice(None, None, 2)), [1, 2, 3]), ShapeError, ["(3,)", "(2,)"]),
        (lambda x: x.__setitem__(x > 1, [0, 1]), ShapeError, ["(2,)", "4 elements"]),
        (lambda x: bool(x), NotScalarError, ["(2, 3)", ".any() or .all()"]),
        (lambda x: float(x), NotScalarError, ["(2, 3)", "6 elements"]),
        (lambda x: int(x[0]), NotScalarError, ["(3,)", "3 elements"]),
        (lambda x: x[:0].item(), NotScalarError, ["(0, 3)", "0 elements"]),
        (lambda x: range(x[0, 0]), DTypeError, ["float64", "index"]),
        (lambda x: len(x[0, 0]), NotScalarError, ["length"]),
        (lambda x: list(x[0, 0]), NotScalarError, ["iterated"]),
        (lambda x: x.to_scipy(), DTypeError, ["dense"]),
        (lambda x: np.asarray(x, copy=False), DTypeError, ["copy"]),
        (lambda x: mn.matmul(x, x.T, semiring="max_mean"), OptionError, ["max_mean"]),
        (lambda x: mn.matmul(x, x.T, mask=np.ones((2, 3))), ShapeError, ["(2, 3)", "(2, 2)"]),
        (
            lambda x: mn.matmul(x.astype(np.int8), x.T.astype(np.int8), mask=mn.eye(2)),
            DTypeError,
            ["int8", "float64", "astype"],
        ),
        (lambda x: mn.asarray(x, format="sparse"), DTypeError, ["compute()"]),
        (lambda x: mn.asarray(x, blocks=[[0, 1], None]), ShapeError, ["[0, 1]"]),
        (lambda x: mn.asarray([1.0], format="csr"), OptionError, ["'csr'"]),
        (lambda x: mn.asarray([1.0], format="sparse"), ShapeError, ["(1,)"]),
        (lambda x: mn.asarray([[1], [1, 2]]), ShapeError, ["shape"]),
        (lambda x: mn.zeros((2, -1)), ShapeError, ["(2, -1)"]),
        (lambda x: mn.zeros(2.5), ShapeError, ["2.5"]),
        (lambda x: mn.full(3, [1, 2]), ShapeError, ["(2,)"]),
        (lambda x: mn.zeros(3, dtype="U2"), DTypeError, ["U2"]),
        (lambda x: mn.zeros(3, dtype="no such"), DTypeError, ["no such"]),
        (lambda x: mn.arange(0, 5, 0), OptionError, ["step"]),
        (lambda x: mn.random.default_rng(-1), OptionError, ["-1"]),
        (lambda x: mn.random.default_rng(0).integers(5, 5), OptionError, ["[5, 5)"]),
        (lambda x: mn.random.default_rng(0).normal(scale=-1), OptionError, ["-1"]),
        (lambda x: mn.random.default_rng(0).random(3, dtype=int), OptionError, ["int64"]),
        (lambda x: mn.random.default_rng(0).integers(0, 300, 3, dtype=np.uint8), OptionError, ["uint8"]),
    ],
)  # fmt: skip
def test_bad_input_is_told_of(
    wrong: Callable[[mn.DistArray], object], error: type[MatnbError], words: list[str]
):
    x = mn.asarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(error) as caught:
        wrong(x)
    for word in words:
        assert word in str(caught.value)


def test_a_complex_number_is_no_float():
    with pytest.raises(TypeError):
        float(mn.asarray(1j))
