"""Elements are chosen from two arrays with the bits that NumPy gives, in given memory."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.elementwise import elementwise
from matnb.blocks.kernels.elementwise.chains import chain_into
from matnb.blocks.kernels.elementwise.elementwise import Link, apply, select_into

LENGTH = 2_000
TRUTH = np.dtype(np.bool_)


def operands(dtype, chosen_size=LENGTH, other_size=LENGTH):
    draw = np.random.default_rng(4)
    chosen, other = (draw.integers(0, 2, size).astype(dtype) for size in (chosen_size, other_size))
    if np.dtype(dtype).kind == "f":
        chosen[0], other[0] = np.nan, -0.0
    return draw.random(LENGTH) < 0.3, chosen, other


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "int64", "float64"])
@pytest.mark.parametrize("sizes", [(LENGTH, LENGTH), (1, LENGTH), (LENGTH, 1), (1, 1)])
def test_each_element_comes_from_the_array_that_is_named(dtype, sizes):
    condition, chosen, other = operands(dtype, *sizes)
    out = np.empty(LENGTH, dtype)
    assert select_into(condition, chosen, other, out)
    assert out.tobytes() == np.where(condition, chosen, other).tobytes()


@pytest.mark.parametrize("place", [0, 1])
def test_the_memory_of_an_operand_may_be_written(place):
    condition, *sides = operands("int32")
    expected = np.where(condition, *sides)
    assert select_into(condition, *sides, sides[place])
    np.testing.assert_array_equal(sides[place], expected)


def test_what_does_not_fit_is_left_alone():
    condition, chosen, other = operands("int32")
    out = np.full(LENGTH, 7, np.int32)
    assert not select_into(condition, chosen, other.astype(np.int64), out)
    assert not select_into(condition[:1], chosen, other, out)
    assert not select_into(condition, chosen[:2], other, out)
    assert not select_into(condition[::2], chosen[::2], other[::2], out[::2])
    assert not select_into(
        condition, *(one.astype(complex) for one in (chosen, other)), np.empty(LENGTH, complex)
    )
    assert (out == 7).all()


@pytest.mark.parametrize("dtype", ["int32", "float64", "int16", "complex128"])
def test_where_is_chosen_so_alone_and_in_chains(dtype, monkeypatch):
    condition, chosen, other = operands(dtype)
    kind = np.dtype(dtype)
    dtypes, expected = (TRUTH, kind, kind), np.where(condition, chosen, other)
    if kind.itemsize in (4, 8):  # and not by NumPy, but to learn the dtype
        monkeypatch.setattr(np, "where", lambda condition, chosen, other: np.zeros_like(chosen))
    blocks = [Dense(condition), Dense(chosen), Dense(other)]
    np.testing.assert_array_equal(apply("where", blocks, dtypes, kind, 0, False).values, expected)
    monkeypatch.setattr(elementwise, "select_into", lambda *arrays: False)  # chains need no copy
    out, link = np.empty(LENGTH, kind), Link("where", dtypes, kind, 0, False, (0, 1, 2))
    assert chain_into([link], [condition, chosen, other], out, np.empty, lambda memory: None)
    np.testing.assert_array_equal(out, expected)
