"""The compiled loops that reduce the rows and the columns of a sparse block."""

from __future__ import annotations

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
def multiply_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Multiply the entries of each row."""
    for i in range(out.size):
        for place in range(pointers[i], pointers[i + 1]):
            out[i] *= values[place]


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
def multiply_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Multiply the entries of each column."""
    for place in range(columns.size):
        out[columns[place]] *= values[place]


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
