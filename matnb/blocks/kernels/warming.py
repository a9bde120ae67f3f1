"""Reading the compiled code of the commonest loops from disk before the first task that is timed."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Csr, Dense, freeze
from matnb.blocks.kernels.elementwise import apply
from matnb.blocks.kernels.products import multiply
from matnb.blocks.kernels.reductions import reduce_block
from matnb.blocks.kernels.sampled_products import masked_multiply
from matnb.blocks.kernels.shaping import transpose
from matnb.blocks.kernels.transposed_products import multiply_transposed
from matnb.blocks.semiring import LOR_LAND, MIN_PLUS, PLUS_TIMES

_FLOAT, _TRUTH = np.dtype(np.float64), np.dtype(np.bool_)


def warm_up() -> None:
    """Run the commonest loops on blocks of a few entries, so that their machine code is in memory.

    Double precision, with values and without; what else is used is read, or compiled, when it is met. Where
    the cache on disk holds the code it takes 0.2 s, most of it Numba's own start; a loop that was never
    compiled on this machine takes about 0.3 s, once.
    """
    pointers, columns = np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32)
    ones = _frozen(Csr((2, 2), pointers, columns, None, _FLOAT))
    block = _frozen(Csr((2, 2), pointers, columns, np.ones(2), _FLOAT))
    other = _frozen(Csr((2, 2), pointers, np.array([0, 1], np.int32), np.ones(2), _FLOAT))
    x, X = Dense(np.ones(2)), Dense(np.ones((2, 2)))
    for one in (ones, block):
        multiply(one, x, PLUS_TIMES, _FLOAT)
        multiply(one, x, MIN_PLUS, _FLOAT)
        multiply(one, X, PLUS_TIMES, _FLOAT)
        multiply_transposed(one, x, PLUS_TIMES, _FLOAT)
        multiply(one, one, PLUS_TIMES, _FLOAT)
        masked_multiply(one, one, one, PLUS_TIMES, _FLOAT)
        transpose(one, (1, 0))
    multiply(ones, Dense(np.ones(2, np.bool_)), LOR_LAND, _TRUTH)
    masked_multiply(X, X, block, PLUS_TIMES, _FLOAT, structural=True, scaled=_FLOAT)
    for name in ("add", "multiply"):
        apply(name, [block, other], (_FLOAT, _FLOAT), _FLOAT, 0, True)
    for whole in (x, X, block):
        reduce_block("sum", whole, tuple(range(len(whole.shape))), _FLOAT)


def _frozen(block: Csr) -> Csr:
    freeze(block)
    return block
