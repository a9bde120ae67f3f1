"""Operators of handles: they record what NumPy's ufuncs record, in few calls."""

from __future__ import annotations

import gc
import operator
import struct
import sys
from collections.abc import Callable

import numpy as np
import pytest

import matnb as mn
from matnb.errors import DTypeError
from matnb.lazy import labels
from matnb.lazy.handles import live_expressions
from matnb.lazy.operators import Operators
from matnb.lazy.recording import recording

BINARY: dict[Callable[..., object], np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.floordiv: np.floor_divide,
    operator.mod: np.remainder,
    operator.pow: np.power,
    operator.and_: np.bitwise_and,
    operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor,
    operator.matmul: np.matmul,
    operator.lt: np.less,
    operator.le: np.less_equal,
    operator.gt: np.greater,
    operator.ge: np.greater_equal,
    operator.eq: np.equal,
    operator.ne: np.not_equal,
}
UNARY = {
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.abs: np.absolute,
    operator.invert: np.invert,
}


def outcome(call: Callable[[], object]) -> object:
    """Return the expression that a call records, or the kind of its error."""
    try:
        found = call()
    except (TypeError, ValueError) as error:
        return type(error)
    assert type(found) is mn.DistArray
    return found.expression


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
@pytest.mark.parametrize("written", [*BINARY, *UNARY], ids=lambda one: one.__name__)
def test_operators_are_numpys_ufuncs(written: Callable[..., object], dtype: type[np.generic]):
    x, matrix = mn.asarray(np.ones(3, dtype)), mn.asarray(np.ones((3, 3)))
    if written in UNARY:
        assert outcome(lambda: written(x)) == outcome(lambda: UNARY[written](x))
        return
    for other in (x, matrix, 2, -1.5, 1j, True, np.float32(3), np.arange(3), 10**30):
        one, two = outcome(lambda o=other: written(x, o)), outcome(lambda o=other: BINARY[written](x, o))
        if written is operator.pow and dtype is np.bool_ and type(other) is int and other == 2:
            two = outcome(lambda: np.square(x))  # as NumPy's operator, which makes int8 of booleans
        assert one is two, other
        one, two = outcome(lambda o=other: written(o, x)), outcome(lambda o=other: BINARY[written](o, x))
        # Python turns a comparison around that its left operand does not know.
        assert one is two or written.__name__ in ("lt", "le", "gt", "ge", "eq", "ne"), other


def test_strangers_get_their_turn():
    class Stranger:
        __array_ufunc__ = None

        def __radd__(self, other: object) -> str:
            return "theirs"

    assert mn.zeros(3) + Stranger() == "theirs"
    with pytest.raises(TypeError):
        mn.zeros(3) - Stranger()


@pytest.mark.parametrize("other", [2, mn.arange(3.0), np.arange(3.0)], ids=["number", "handle", "NumPy"])
def test_in_place_makes_a_version_in_the_dtype_of_the_array(other: object):
    x = mn.asarray(np.ones(3, np.float32))
    same, before = x, x.expression
    x += other
    assert x is same
    assert x.expression is mn.asarray(np.ones(3, np.float32)).__add__(other).astype(np.float32).expression
    assert x.expression in live_expressions()
    assert before not in live_expressions()
    scalar = old = mn.asarray(1.0)
    scalar *= 2
    assert scalar is not old
    whole = mn.arange(3)
    with pytest.raises(DTypeError, match="astype"):
        whole /= 2


def test_numbers_that_compare_equal_stay_apart():
    x = mn.zeros(3)
    other_nan = struct.unpack("<d", struct.pack("<Q", (0x7FF8 << 48) + 1))[0]
    numbers = [0.0, -0.0, 1.0, float("nan"), other_nan, 2.0, 1j, complex(0.0, -0.0), complex(-0.0, 0.0), 0j]
    for _ in range(2):
        assert len({(x + number).expression for number in numbers}) == len(numbers)
    whole = mn.arange(3)
    assert (whole + 1).dtype == np.int64
    assert (whole + 1.0).dtype == np.float64
    assert (x.astype(np.float32) + 1.0).dtype == np.float32


def test_live_expressions_follow_versions_and_ends():
    x = mn.arange(4.0)
    first = x.expression
    x += 1
    assert x.expression in live_expressions()
    assert first not in live_expressions()
    last = x.expression
    del x
    gc.collect()
    assert last not in live_expressions()


def test_events_are_all_that_was_written_in_order():
    x = mn.zeros(3)
    with recording("<cell>") as record:
        y = x + 1
        z = y * y
        again = x + 1
        z -= again
    assert [one.name for one in record.written] == ["add", "multiply", "add", "subtract"]  # type: ignore[attr-defined]
    assert record.written[0] is record.written[2] is y.expression
    assert record.written[3] is z.expression
    assert (record.num_operations, record.num_merged) == (4, 1)


@pytest.mark.parametrize("write", [lambda x: x + 1.5, lambda x: x * x, lambda x: x.sum(), lambda x: -x])
def test_recording_takes_few_calls(write: Callable[[Operators], object], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(labels, "NOTED_LABELS", {})  # other tests' pivots may be there still
    x = mn.zeros((100, 100)) + 0.25
    with recording(__file__):
        write(x)
        x = x + 1.25
        calls = []
        sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
        try:
            write(x)
        finally:
            sys.setprofile(None)
    assert len(calls) < 60, len(calls)
