"""The compiled loops that reduce the rows and the columns of a sparse block."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import IndexArray, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled

# ``out`` comes filled with the identity. It is written after every entry where its dtype must wrap, since
# Numba computes narrow integers in 64 bits. "any" and "all" of truth values are their max and min.


@compiled
def add_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Add up the entries of each row."""
    for i in range(out.size):
        for place in range(pointers[i], pointers[i + 1]):
            out[i] += values[place]


@compiled
def multiply_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    length: int,
    with_absent: bool,
    shared: bool,
    out: NumericArray,
) -> None:
    """Multiply what ``out`` holds by the elements of each row, one after the other.

    Absent elements are zeros where they take part, at their place: of several the first one tells.
    ``shared``: all rows have one product, and go on from each other.
    """
    zero = out.dtype.type(0)
    for i in range(pointers.size - 1):
        line = 0 if shared else i
        total, column = out[line], 0
        for place in range(pointers[i], pointers[i + 1]):
            if with_absent and column >= 0 and np.int64(columns[place]) != column:
                total, column = total * zero, -1
            total *= values[place]
            column += column >= 0
        if with_absent and 0 <= column < length:
            total *= zero
        out[line] = total


@compiled
def least_of_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the least entry of each row; NaN if there is one."""
    for i in range(out.size):
        least = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            value = values[place]
            if value < least or value != value:
                least = value
        out[i] = least


@compiled
def greatest_of_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the greatest entry of each row; NaN if there is one."""
    for i in range(out.size):
        greatest = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            value = values[place]
            if value > greatest or value != value:
                greatest = value
        out[i] = greatest


@compiled
def count_columns(columns: UnsignedArray, out: IndexArray) -> None:
    """Count the entries of each column."""
    for place in range(columns.size):
        out[columns[place]] += 1


@compiled
def add_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Add up the entries of each column."""
    for place in range(columns.size):
        out[columns[place]] += values[place]


@compiled
def multiply_columns(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    with_absent: bool,
    out: NumericArray,
) -> None:
    """Multiply what ``out`` holds by the elements of each column, as ``multiply_rows`` does of each row."""
    zero, rows = out.dtype.type(0), pointers.size - 1
    following = np.zeros(out.size, np.int64)  # the row whose element is the next one; -1 behind an absent one
    for i in range(rows):
        for place in range(pointers[i], pointers[i + 1]):
            column = columns[place]
            if with_absent and following[column] >= 0:
                if following[column] != i:
                    out[column] *= zero
                    following[column] = -1
                else:
                    following[column] += 1
            out[column] *= values[place]
    if with_absent:
        for column in range(out.size):
            if 0 <= following[column] < rows:
                out[column] *= zero


@compiled
def least_of_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the least entry of each column; NaN if there is one."""
    for place in range(columns.size):
        column, value = columns[place], values[place]
        if value < out[column] or value != value:
            out[column] = value


@compiled
def greatest_of_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the greatest entry of each column; NaN if there is one."""
    for place in range(columns.size):
        column, value = columns[place], values[place]
        if value > out[column] or value != value:
            out[column] = value
