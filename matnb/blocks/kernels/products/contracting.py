"""Sums of products of blocks by the names of their axes, as matrix products where they are; Kronecker's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from string import ascii_letters

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, cast, csr_block, to_numpy, to_scipy

Names = tuple[int, ...]  # of a block's axes, from 0 to 51; axes of one name go together
_LETTERS = ascii_letters
# Of what is between two products: it stays in a core's own cache.
_BETWEEN_BYTES = 512 * 1024


def contract(values: Sequence[Block], names: tuple[Names, ...], output: Names, dtype: np.dtype) -> Dense:
    """Return the sum, over the names that ``output`` lacks, of the products of blocks' elements.

    Parameters
    ----------
    values
        Blocks of the result's dtype. One is summed and its diagonals taken; several are multiplied one after
        the other, the first with the second and so on, in parts along the first axis of the first, so
        that nothing as large as the blocks is made in between.
    names
        Of the axes of each block; of several blocks, none twice in one.
    output
        The names of the result's axes.
    dtype
        Of the result; half precision is summed in single precision.
    """
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    with np.errstate(all="ignore"):
        if len(values) == 1:
            return Dense(cast(_of_one(values[0], names[0], output, wide), dtype))
        arrays = [cast(to_numpy(one), wide) for one in values]
        if len(arrays) == 2:
            return Dense(cast(_product(arrays[0], names[0], arrays[1], names[1], output), dtype))
        return Dense(cast(_chain(arrays, names, output, wide), dtype))


def _of_one(block: Block, names: Names, output: Names, wide: np.dtype) -> NumericArray:
    if isinstance(block, Csr | Empty):
        # A sparse block on the diagonal of a matrix; others are reduced and transposed by other kernels.
        assert (*names, *output) == (names[0],) * 3, "the diagonal of a sparse matrix"
        return cast(np.asarray(to_scipy(block).diagonal()), wide)
    return np.array(_einsum([names], output, cast(block.values, wide)))


def _einsum(names: Sequence[Names], output: Names, *arrays: NumericArray) -> NumericArray:
    # NumPy's own loop: it reads each array once.
    read = ",".join("".join(_LETTERS[one] for one in own) for own in names)
    text = f"{read}->{''.join(_LETTERS[one] for one in output)}"
    return np.asarray(np.einsum(text, *arrays))  # type: ignore[arg-type]  # the stubs want a dtype


def _chain(
    arrays: Sequence[NumericArray], names: Sequence[Names], output: Names, wide: np.dtype
) -> NumericArray:
    lengths = {
        name: length
        for array, own in zip(arrays, names, strict=True)
        for name, length in zip(own, array.shape, strict=True)
    }
    between = list(_names_between(names, output))
    along = names[0][0] if names[0] else None
    if along is None:
        return _one_after_another(arrays, names, between)
    row_bytes = max(prod(lengths[one] for one in some if one != along) for some in between[:-1])
    step = max(1, _BETWEEN_BYTES // max(1, row_bytes * wide.itemsize))
    out = np.zeros(tuple(lengths[one] for one in output), wide)
    for start in range(0, lengths[along], step):
        chosen = slice(start, start + step)
        part = _one_after_another(
            [
                array[tuple(chosen if one == along else slice(None) for one in own)]
                for array, own in zip(arrays, names, strict=True)
            ],
            names,
            between,
        )
        if along in output:
            out[tuple(chosen if one == along else slice(None) for one in output)] = part
        else:
            np.add(out, part, out=out)
    return out


def _names_between(names: Sequence[Names], output: Names) -> Iterator[Names]:
    # The axes of each product in between, and of the last one.
    held = names[0]
    for place, other in enumerate(names[1:], 2):
        needed = {one for some in names[place:] for one in some}.union(output)
        both = (*held, *(one for one in other if one not in held))
        held = output if place == len(names) else tuple(one for one in both if one in needed)
        yield held


def _one_after_another(
    arrays: Sequence[NumericArray], names: Sequence[Names], between: Sequence[Names]
) -> NumericArray:
    held, own = arrays[0], names[0]
    for array, other, result in zip(arrays[1:], names[1:], between, strict=True):
        held, own = _product(held, own, array, other, result), result
    return held


def _product(
    left: NumericArray, left_names: Names, right: NumericArray, right_names: Names, output: Names
) -> NumericArray:
    # The product of two arrays, summed over what is in both and not in the output.
    rows = [one for one in left_names if one not in right_names]
    columns = [one for one in right_names if one not in left_names]
    batch = [one for one in left_names if one in right_names and one in output]
    inner = [one for one in left_names if one in right_names and one not in output]
    kept = set(output)
    is_plain = kept.issuperset(rows) and kept.issuperset(columns)
    if not is_plain or (batch and not (rows and columns)):
        return _einsum((left_names, right_names), output, left, right)  # sums of elementwise products
    if not inner:
        return np.asarray(np.multiply(_spread(left, left_names, output), _spread(right, right_names, output)))
    lengths = dict(zip((*left_names, *right_names), (*left.shape, *right.shape), strict=True))
    sizes = [tuple(lengths[one] for one in some) for some in (batch, rows, inner, columns)]
    one = _ordered(left, left_names, (*batch, *rows, *inner))
    other = _ordered(right, right_names, (*batch, *inner, *columns))
    product = np.matmul(
        one.reshape((*sizes[0], prod(sizes[1]), prod(sizes[2]))),
        other.reshape((*sizes[0], prod(sizes[2]), prod(sizes[3]))),
    )
    made = product.reshape((*sizes[0], *sizes[1], *sizes[3]))
    return np.asarray(_ordered(made, (*batch, *rows, *columns), output), order="C")


def _ordered(array: NumericArray, names: Sequence[int], wanted: Sequence[int]) -> NumericArray:
    return array.transpose([names.index(one) for one in wanted])


def _spread(array: NumericArray, names: Names, output: Names) -> NumericArray:
    # The array with its axes in the order of the output, of length 1 where it has none.
    own = _ordered(array, names, [one for one in output if one in names])
    return own[tuple(slice(None) if one in names else None for one in output)]


def kronecker(values: Sequence[Block], dtype: np.dtype) -> Block:
    """Return the Kronecker product of blocks of as many axes, of one dtype; sparse where one of them is."""
    left, right = values
    if isinstance(left, Dense) and isinstance(right, Dense):
        first = left.values.reshape(tuple(one for length in left.shape for one in (length, 1)))
        second = right.values.reshape(tuple(one for length in right.shape for one in (1, length)))
        with np.errstate(all="ignore"):
            product = np.asarray(np.multiply(first, second))
        return Dense(product.reshape([a * b for a, b in zip(left.shape, right.shape, strict=True)]))
    with np.errstate(all="ignore"):
        found: sp.csr_array = sp.kron(_matrix(left), _matrix(right), format="csr").astype(dtype)
    return csr_block(found)


def _matrix(block: Block) -> sp.csr_array:
    if not isinstance(block, Dense):
        return to_scipy(block)
    matrix: sp.csr_array = sp.csr_array(block.values)
    return matrix
