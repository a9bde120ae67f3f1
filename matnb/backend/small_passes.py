"""What a repeated task need not find out again: shapes of small values, and where arrays that stay lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from matnb.backend.step_memory import StepMemory
from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.kernels.row_parts import WholeRows, product_fits
from matnb.blocks.kernels.small_chains import (
    MOST_SMALL,
    Form,
    SmallChain,
    SmallShare,
    form_of_array,
    small_chain,
)
from matnb.blocks.kernels.tiles import BoundPass, Tiles
from matnb.program import operators as op

_MOST_BOUND = 16  # sets of arrays


class SmallPass:
    """A product, functions and at most one reduction, where all that they read and make is small.

    Parameters
    ----------
    operator
        What is run, but for its ending.
    """

    def __init__(self, operator: op.Fused) -> None:
        self._operator = operator
        self._forms: list[Form] = []  # for which there is a chain, or none
        self._chain: SmallChain | None = None
        self._share: SmallShare | None = None
        self._rows: WholeRows | None = None

    def forget(self) -> None:
        """Let go of the block that was looked at."""
        self._rows = None

    def run(self, values: Sequence[Any], memory: StepMemory) -> Dense | None:
        """Return the value; None where it is not small, or another way has its bits or is faster."""
        product, operands = None, values
        arrays: list[NumericArray] = []
        if self._operator.product is not None:
            matrix, x, *operands = values
            if matrix.shape[0] > MOST_SMALL or not product_fits(matrix, x):
                return None
            if self._rows is None or matrix is not self._rows.matrix:
                self._rows = WholeRows(matrix)
            arrays.append(product := np.empty(matrix.shape[0]))
        for one in operands:
            if type(one) is not Dense or one.values.size > MOST_SMALL:
                return None
            arrays.append(one.values)
        forms = [form_of_array(one) for one in arrays]
        if forms != self._forms:
            self._analyze(forms)
        chain = self._chain
        if chain is None:
            return None
        if product is not None and self._rows is not None:
            self._rows.multiply_into(x.values, product)
        if self._share is None:
            target = memory.target(chain.shape, chain.dtype)
            chain.write(arrays, target)
            return Dense(target)
        return self._share.of(chain.values(arrays)[self._operator.shares[0].place])

    def _analyze(self, forms: list[Form]) -> None:
        operator = self._operator
        self._forms, self._chain = forms, small_chain(operator.links, forms)
        if self._chain is not None and operator.shares:
            (share,) = operator.shares
            self._share = SmallShare(share, *self._chain.form(share.place))


class BoundPasses:
    """The tile machine's arguments for sets of arrays, by their identities, as long as these arrays live."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], tuple[BoundPass, tuple[ref[NumericArray], ...]]] = {}

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()

    def of(
        self,
        tiles: Tiles,
        operands: Sequence[NumericArray],
        target: NumericArray,
        buffers: NumericArray,
        product: NumericArray | None,
        room: NumericArray | None,
    ) -> BoundPass:
        """Return the pass over these arrays in one part; arguments as of ``Tiles.begin`` and ``Pass.run``.

        Of operands of one element, and of the target of a sum, others may be given when it is run.
        """
        seen = [operands[place] for place in (*tiles.input_places, *tiles.truth_places)]
        seen += [one for one in (buffers, product, room) if one is not None]
        if not tiles.is_sum:
            seen.append(target)
        key = tuple(map(id, seen))
        bound, those = self._found.get(key, (None, ()))
        is_there = bound is not None and not any(
            one() is not array for one, array in zip(those, seen, strict=True)
        )
        if bound is None or not is_there or bound.is_outdated():
            if len(self._found) >= _MOST_BOUND:
                self._found.clear()
            bound = tiles.begin(operands, target).bind(buffers, product, room)
            self._found[key] = bound, tuple(map(ref, seen))
        return bound
