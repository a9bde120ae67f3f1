"""Calls that make arrays from parameters or from data, and of a handle's attributes and methods."""

from __future__ import annotations

import operator
from io import StringIO

import numpy as np

from breadth.case import Case, floats, odd, truths, whole

x = floats(5, 4)

CASES = [
    Case("asarray", lambda xp: xp.asarray([[1, 2], [3, 4]], dtype=xp.float32), (), tolerance=0),
    Case("asarray", lambda xp, x: xp.asarray(x, dtype="int8"), (x,), tolerance=0),
    Case("asarray", lambda xp: xp.asarray([300], dtype=xp.int8), ()),
    Case("asarray", lambda xp: xp.asarray(["a"], dtype=float), ()),
    Case("array", lambda xp, x: xp.array([x.sum(), x.max()]), (x,)),
    Case("array", lambda xp, x: xp.array([[x[0], x[1]], [x[2], x[3]]]), (x,), sparse=False),
    Case("array", lambda xp, x: xp.array(x, ndmin=3), (x,), sparse=False),
    Case("asanyarray", lambda xp, x: xp.asanyarray(x, float), (whole(4),)),
    Case("ascontiguousarray", lambda xp, x: xp.ascontiguousarray(x, float), (whole(5, 4),), tolerance=0),
    Case("asfortranarray", lambda xp, x: xp.asfortranarray(x), (x,), tolerance=0),
    Case("copy", lambda xp, x: xp.copy(x), (x,), tolerance=0),
    Case("zeros", lambda xp: xp.zeros((2, 0, 3), dtype=xp.complex64), (), tolerance=0),
    Case("zeros", lambda xp: xp.zeros(3, int, "F"), (), tolerance=0),
    Case("zeros", lambda xp: xp.zeros(-1), ()),
    Case("ones", lambda xp: xp.ones(4, dtype=bool), (), tolerance=0),
    Case("full", lambda xp: xp.full((2, 3), [1, 2, 3]), (), tolerance=0),
    Case("full", lambda xp: xp.full(3, 1j), (), tolerance=0),
    Case("full", lambda xp: xp.full((), True), (), tolerance=0),
    Case("full", lambda xp: xp.full(2, 300, dtype="int8"), ()),
    Case("empty", lambda xp: xp.zeros_like(xp.empty((2, 3), dtype="int16")), (), tolerance=0),
    Case("full_like", lambda xp, x: xp.full_like(x, 7, dtype=int), (x,), tolerance=0),
    Case("zeros_like", lambda xp, x: xp.zeros_like(x), (truths(3),), tolerance=0),
    Case("ones_like", lambda xp, x: xp.ones_like(x, shape=(2, 2)), (x,), tolerance=0),
    Case("empty_like", lambda xp, x: xp.zeros_like(xp.empty_like(x, dtype=complex)), (x,), tolerance=0),
    Case("eye", lambda xp: xp.eye(3, 5, k=-1, dtype=xp.int64), (), tolerance=0),
    Case("eye", lambda xp: xp.eye(4, dtype=xp.complex64) + xp.eye(4, k=7, dtype="int8"), (), tolerance=0),
    Case("identity", lambda xp: xp.identity(3), (), tolerance=0),
    Case("arange", lambda xp: xp.arange(1, 10, 3), (), tolerance=0),
    Case("arange", lambda xp: xp.arange(5.0), (), tolerance=0),
    Case("arange", lambda xp: xp.arange(stop=5), (), tolerance=0),
    Case("arange", lambda xp: xp.arange(np.uint8(0), np.uint8(3), np.float32(1)), (), tolerance=0),
    Case("eye", lambda xp: xp.eye(N=3, M=2), (), tolerance=0),
    Case("linspace", lambda xp: xp.linspace(np.float32(0), np.float32(1), 7), (), tolerance=0),
    Case(
        "may_share_memory",
        lambda xp, x: (xp.may_share_memory(x, x), xp.may_share_memory(x, x + 1)),
        (floats(3),),
    ),
    Case("shares_memory", lambda xp, x: (xp.shares_memory(x, x), xp.shares_memory(x, -x)), (floats(3),)),
    Case("arange", lambda xp: xp.arange(10, 0, -2, dtype=xp.uint8), (), tolerance=0),
    Case("arange", lambda xp: xp.arange(0, 1, 0), ()),
    Case("linspace", lambda xp: xp.linspace(0, 1, 7), (), tolerance=0),
    Case("linspace", lambda xp: xp.linspace(0, 1, 7, endpoint=False, retstep=True), (), tolerance=0),
    Case("linspace", lambda xp: xp.linspace(0, 9, 4, dtype=int), (), tolerance=0),
    Case("linspace", lambda xp: xp.linspace([0, 1], 3, 4, axis=1), (), tolerance=0),
    Case("linspace", lambda xp: xp.linspace(0, 1 + 2j, 5), ()),
    Case("linspace", lambda xp, x: xp.linspace(x[0], x[1], 3), (x,), sparse=False),
    Case("logspace", lambda xp: xp.logspace(0, 2, 5), ()),
    Case("logspace", lambda xp: xp.logspace(0, 4, 5, base=2, dtype=int), ()),
    Case("geomspace", lambda xp: xp.geomspace(1, 1000, 4), ()),
    Case("geomspace", lambda xp: xp.geomspace(-8, -1, 4, endpoint=False), ()),
    Case("geomspace", lambda xp: xp.geomspace(0, 1, 4), ()),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y), (floats(3), whole(4)), tolerance=0),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y, 5, indexing="ij"), (floats(3), odd(2)), tolerance=0),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y, sparse=True), (floats(3), whole(4)), tolerance=0),
    Case("meshgrid", lambda xp, x: xp.meshgrid(x, indexing="xyz"), (floats(3),)),
    Case("fromfunction", lambda xp: xp.fromfunction(lambda i, j: i + 2 * j, (3, 4), dtype=int), ()),
    Case("fromiter", lambda xp: xp.fromiter(range(4), float), (), tolerance=0),
    Case("frombuffer", lambda xp: xp.frombuffer(b"\1\2\3\4", np.uint8), (), tolerance=0),
    Case("fromfile", lambda xp: xp.fromfile(__file__, np.uint8, 8), (), tolerance=0),
    Case("fromstring", lambda xp: xp.fromstring("1 2.5", sep=" "), (), tolerance=0),
    Case("loadtxt", lambda xp: xp.loadtxt(StringIO("1 2\n3 4"), dtype=int), (), tolerance=0),
    Case("genfromtxt", lambda xp: xp.genfromtxt(StringIO("1,\n,4"), delimiter=","), (), tolerance=0),
    Case("from_dlpack", lambda xp, x: xp.from_dlpack(x), (whole(5, 4),), tolerance=0),
    Case("result_type", lambda xp, x: xp.zeros(1, xp.result_type(x, 2.0, xp.float32)), (whole(2),)),
    Case("can_cast", lambda xp, x: xp.can_cast(x.dtype, xp.float32), (whole(2, dtype="int16"),)),
    Case("isdtype", lambda xp, x: xp.isdtype(x.dtype, ("integral", "bool")), (whole(2),)),
    Case("finfo", lambda xp, x: (float(xp.finfo(x.dtype).eps), xp.finfo(xp.float32).bits), (x,)),
    Case("iinfo", lambda xp: (xp.iinfo(xp.int16).max, xp.iinfo("uint8").min), ()),
    Case("r_", lambda xp, x: xp.r_[0:3, 10, x, 1:2:3j], (floats(3),)),
    Case("c_", lambda xp, x, y: xp.c_[x, y], (floats(3), whole(3)), tolerance=0),
    Case("mgrid", lambda xp: xp.mgrid[0:3, 1:2:3j], ()),
    Case("ogrid", lambda xp: xp.ogrid[0:3, 4:9:2], (), tolerance=0),
    Case("contains", lambda xp, x: (3 in x, 99 in x), (whole(9, low=3, high=4),)),
    # of handles
    Case("T", lambda xp, x: x.T, (x,), tolerance=0),
    Case("mT", lambda xp, x: x.mT, (floats(2, 3, 4),), tolerance=0),
    Case("mT", lambda xp, x: x.mT, (floats(3),)),
    Case("itemsize", lambda xp, x: (x.itemsize, x.nbytes, x.size, x.ndim, x.shape), (x,), sparse=False),
    Case("flatten", lambda xp, x: x.flatten(), (x,)),
    Case("reshape", lambda xp, x: x.reshape(2, -1), (x,), tolerance=0),
    Case("tolist", lambda xp, x: x.tolist(), (floats(3, 2),), sparse=False),
    Case("to_device", lambda xp, x: x.to_device(x.device), (x,), tolerance=0),
    Case("operators", lambda xp, x: (x // 2, x % 3, -x, +x, abs(x), x - 1, 1 - x, x * x), (whole(5, 4),)),
    Case("operators", lambda xp, x: (7 // x, 7 % x, 2**x, x << 1, 1 << x, ~x), (whole(4, low=1),)),
    Case("operators", lambda xp, x: (x & 1, 1 | x, x ^ 5, 3 & x, x >> 1, 64 >> x), (whole(4, low=1),)),
    Case("operators", lambda xp, x: (x < 1, x >= 2, x == 0, x != 0, x > x, x <= 1), (odd(5),)),
    Case("operators", lambda xp, x: (x + 2, 2 + x, 2 * x, x / 2, 2 / x, x**2), (whole(4, low=1),)),
    Case("operators", lambda xp, x: (x | 2, 2 ^ x), (whole(4),)),
    Case("operators", lambda xp, x: (x @ x, [1, 2, 3] @ x, x[1], x[-1:]), (floats(3, 3),)),
    Case("operators", lambda xp, x: xp.asarray(one_value(x[1])), (whole(3),), tolerance=0),
]  # fmt: skip


def changed(xp: object, x: np.ndarray) -> np.ndarray:
    """Return what operators in place leave."""
    x = x.copy()
    x += 1
    x *= 2
    x -= x
    x //= 2
    x |= 6
    x <<= 1
    x ^= 3
    x %= 7
    x **= 2
    x &= 60
    x >>= 1
    return x


def changed_numbers(xp: object, x: np.ndarray) -> np.ndarray:
    """Return what the others in place leave."""
    x = x.copy()
    x /= 2
    x @= np.diag([1.0, 2.0, 3.0])
    x[1] = 7
    return x


def one_value(x: np.ndarray) -> list[complex]:
    """Return an array's one value as Python's numbers."""
    return [bool(x), int(x), float(x), complex(x), operator.index(x)]


CASES.append(Case("operators", changed, (whole(5, 4),), sparse=False, tolerance=0))
CASES.append(Case("operators", changed_numbers, (floats(3, 3),), sparse=False))
