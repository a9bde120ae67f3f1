"""Ways to change arrays and to ask for almost the same twice, written once for NumPy and for matnb."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np

Given = Callable[[object], np.ndarray]  # makes an array, NumPy's or ours
Case = Callable[[Given], Iterator[object]]
CASES: dict[str, Case] = {}

# Each case is written once and run by NumPy and by matnb, where what it yields is looked at either at once or
# in the end. (A slice is copied where NumPy's would be a view.)


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


@case
def added_to_after_its_sum(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    yield a.sum()
    a += 1
    yield a.sum()
    yield a


@case
def element_assigned_after_a_sum_of_two(of: Given) -> Iterator[object]:
    a, b = of([1.0, 2, 3]), of([4.0, 5, 6])
    c = a + b
    a[0] = 9
    yield c
    yield a + b
    yield a


@case
def one_of_two_equal_expressions_changed(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    b, c = a * 2, a * 2
    b[1] = 0
    yield from (a, b, c, a * 2)


@case
def powers_the_other_way_round(of: Given) -> Iterator[object]:
    a, b = of([2, 3]), of([3, 2])
    yield a**b
    yield b**a


@case
def filled(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    b, total = a * 2, a.sum()
    a.fill(7)
    yield from (a, b, total, a.sum(), a * 2)


@case
def temporary_collected_before_its_reader(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    b = (a + 1) * 2
    c = b - (a + 1)
    del b
    gc.collect()
    yield c
    b = (a + 2) * 2
    yield b - (a + 1)


@case
def operands_swapped(of: Given) -> Iterator[object]:
    a, b, A = of([1.0, 2]), of([4.0, 8]), of([[0.0, 1], [2, 3]])
    B = A.T * 2 + 1
    yield from (a - b, b - a, a / b, b / a, a < b, b < a, a // b, b // a, a @ A, A @ a, A @ B, B @ A)
    yield from (np.where(a > 1, a, b), np.where(a > 1, b, a), np.arctan2(a, b), np.arctan2(b, a))


@case
def axes_and_options(of: Given) -> Iterator[object]:
    A = of([[1.0, 2], [4, 8]])
    yield from (A.sum(), A.sum(axis=0), A.sum(axis=1), A.sum(axis=0, keepdims=True), A.sum(axis=(0, 1)))
    yield from (
        A.std(),
        A.std(ddof=1),
        A.var(),
        A.var(axis=0),
        A.var(axis=0, ddof=1),
        A.mean(),
        A.mean(axis=1),
    )
    yield from (A.min(), A.max(), A.any(), A.all(), A.prod(), A.min(axis=0), A.max(axis=0))


@case
def literals(of: Given) -> Iterator[object]:
    a, i = of([0.0, -0.0, 1.0]), of([0, 1, 2])
    yield from (i + 1, i + 1.0, i + True, i + np.int8(1), i * np.float32(1))
    yield from (
        np.copysign(1.0, a * 0.0),
        np.copysign(1.0, a * -0.0),
        np.copysign(a, 0.0),
        np.copysign(a, -0.0),
    )
    yield from (np.arctan2(a, 0.0), np.arctan2(a, -0.0), a + 0.0, a + -0.0, a - 0.0)


@case
def bits_of_nan(of: Given) -> Iterator[object]:
    quiet = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(np.float64)
    for payload in quiet:
        yield of([payload]) * 1
        yield np.where(of([True, False]), payload, of([1.0, 2.0]))


@case
def dtypes_and_shapes_of_equal_bytes(of: Given) -> Iterator[object]:
    zeros = np.zeros(8, np.int8)
    yield from (of(zeros) + 1, of(zeros.view(np.int64)) + 1, of(zeros.view(np.float64)) + 1)
    yield from (of(zeros.reshape(2, 4)) + 1, of(zeros.reshape(4, 2)) + 1, of(zeros.view(bool)).sum())
    yield from (
        of(np.zeros((0, 3))).sum(axis=0),
        of(np.zeros((3, 0))).sum(axis=0),
        of(np.zeros((3, 0))).sum(axis=1),
    )


@case
def array_changed_in_place_by_its_owner(of: Given) -> Iterator[object]:
    mine = np.arange(100.0)
    a = of(mine)
    yield a.sum()
    mine[0] = 1000
    b = of(mine)
    yield from (a.sum(), b.sum(), b - a)


@case
def slices_by_step(of: Given) -> Iterator[object]:
    a = of(np.arange(12.0))
    yield from (a[::2] * 1, a[::3] * 1, a[1::2] * 1, a[::-2] * 1, a[:6:2] * 1, a[-1:0:-1] * 1, a[::2].sum())


@case
def steps_assigned(of: Given) -> Iterator[object]:
    a = of(np.arange(12.0))
    evens = a[::2] * 1
    a[::2] = 5
    a[::-3] = [1, 2, 3, 4]
    yield from (a, evens, a[::2] * 1)
    a[::2] += a[1::2]
    yield a


@case
def booleans_assigned(of: Given) -> Iterator[object]:
    a = of(np.arange(6.0))
    mask = a > 2
    a[mask] = 0
    yield from (a, mask, a > 2)  # the mask is of the old version
    a[mask] += 5
    a[~mask] *= 2
    yield from (a, a[mask].sum())


@case
def places_assigned(of: Given) -> Iterator[object]:
    a, places = of(np.arange(6.0)), of([1, 3, 1])
    before = a[places]
    a[places] = [7, 8, 9]
    yield from (a, before, a[places])
    places[0] = 5
    a[places] = 0
    yield a


@case
def out_aliases_an_operand(of: Given) -> Iterator[object]:
    a, b = of([1.0, 2, 3]), of([5.0, 6, 7])
    before = a + b
    np.add(a, b, out=a)
    yield from (a, b, before)
    np.multiply(a, a, out=a)
    np.subtract(b, a, out=b)
    yield from (a, b, a + b)
    np.negative(a, out=b)
    yield from (a, b)


@case
def two_names_of_one_array(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    b, c = a, a.copy()
    b += 1
    b[0] = 10
    yield from (a, b, c)
    a = a * 2  # another array under an old name
    yield from (a, b, c)


@case
def swapped_names(of: Given) -> Iterator[object]:
    x, y = of([1.0, 2]), of([3.0, 5])
    for _ in range(3):
        x, y = y, x + y
        yield from (x, y)


@case
def versions_in_a_chain(of: Given) -> Iterator[object]:
    a = of(np.ones(4))
    for k in range(4):
        a[k] = a.sum() + k
        yield a.sum()
    yield a


@case
def loop_variable_captured_late(of: Given) -> Iterator[object]:
    a = of([1.0, 2])
    functions = [lambda: a * k for k in range(3)]  # noqa: B023  late on purpose
    yield from (f() for f in functions)
    a += 1
    yield from (f() for f in functions)


@case
def handles_made_anew_at_the_same_address(of: Given) -> Iterator[object]:
    for value in range(4):
        a = of([float(value), 1])
        yield a + 1
        del a
        gc.collect()


@case
def assigned_from_itself(of: Given) -> Iterator[object]:
    a = of(np.arange(5.0))
    a[1:] = a[:-1] * 1
    yield a
    a[::-1] = a * 1
    yield a
    a[...] = a + a
    yield a


@case
def put_back_as_it_was(of: Given) -> Iterator[object]:
    a = of([1.0, 2, 3])
    total = a.sum()
    a[0] = 9
    yield a.sum()
    a[0] = 1
    yield from (a.sum(), total)


@case
def functions_that_write(of: Given) -> Iterator[object]:
    a, b = of([1.0, 2, 3]), of([7.0, 8, 9])
    total = (a + b).sum()
    np.copyto(a, b, where=b > 7)
    yield from (a, total, (a + b).sum())
    np.putmask(b, b > 8, a)
    yield from (b, a)


@case
def converted(of: Given) -> Iterator[object]:
    a = of([1.7, -2.2, 300])
    yield from (a.astype(int), a.astype(np.float32), a.astype(bool), a.astype(int).astype(float), a * 1)


@case
def transposed_and_changed(of: Given) -> Iterator[object]:
    A = of(np.arange(6.0).reshape(2, 3))
    B = A.T * 1
    A[0] = -1
    yield from (A.T * 1, B, A @ B, B @ A)


@case
def compared_with_numbers_beyond(of: Given) -> Iterator[object]:
    i = of([0, 255])
    yield from (i < 256, i < 256.0, i <= 255, i == True, i == 1)  # noqa: E712  the literal is the point
