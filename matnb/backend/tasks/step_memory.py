"""Where the value of a step is allocated, in fresh or pooled memory, and its scratch space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matnb.blocks.formats import Csr, Dense, NumericArray, sparse_bytes, uninitialized
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.products.sparse_products import most_stored, num_stored
from matnb.blocks.kernels.shaping.shaping import root_of
from matnb.blocks.semiring import ANNIHILATORS
from matnb.errors import TooLargeError
from matnb.pictures.quantities import bytes_text
from matnb.program.program import LESS_IN_LOOPS

Take: TypeAlias = Callable[[tuple[int, ...], np.dtype], NumericArray]  # an array in C order with any elements
Give: TypeAlias = Callable[[NumericArray], None]  # gets such an array back
Claim: TypeAlias = Callable[[int], int]  # asks for bytes, and returns how many are left then


class StepMemory(NamedTuple):
    """Where a step's value is made, and what it needs on the way.

    Attributes
    ----------
    take
        Gives an array in C order, of a shape and dtype, with any elements, that nobody else writes.
    give
        Gets those of them back that are not part of the value.
    out
        Memory for a Dense value of this shape and dtype, or None: in C order, or, for functions of elements
        that write their part of a larger array, in rows with gaps between them. Without it the value lies in
        an array from ``take``, or is small, or is a view of one of the values read. Where arrays are not
        pooled, it is used where that costs nothing.
    is_pooled
        Whether arrays are used again, so that steps are run in memory that is there. Values are then in C
        order, and a view that is so is no copy; in fresh memory a value that is part of another is a copy,
        so that the other can go, and blocks that lie one after the other are put together as they are.
    claim
        Asks for the bytes of a value that may be large, beside all that is held; what it returns is less than
        0 where there are not so many. None where nothing limits them.
    """

    take: Take
    give: Give
    out: NumericArray | None
    is_pooled: bool
    claim: Claim | None = None

    def into(self, out: NumericArray | None) -> StepMemory:
        """Return the same with another ``out``; ``_replace`` takes twice as long, and each task asks."""
        return StepMemory(self.take, self.give, out, self.is_pooled, self.claim)

    def target(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        """Return the memory for a Dense value."""
        out = self.out
        fits = out is not None and out.shape == shape and out.dtype == dtype
        return out if out is not None and fits else self.take(shape, dtype)


def _let_go(array: NumericArray) -> None:
    """Do nothing: fresh memory goes with its last reader."""


FRESH = StepMemory(uninitialized, _let_go, None, False)


def claim_product(left: Csr, right: Csr, dtype: np.dtype, claim: Claim) -> None:
    """Claim the bytes of a sparse product: an upper bound or, if that does not fit, the exact number.

    One of shapes that do not fit is refused by what makes it.

    Raises
    ------
    TooLargeError
        When they are not left.
    """
    rows = left.shape[0]
    if left.shape[1] != right.shape[0] or claim(sparse_bytes(rows, most_stored(left, right), dtype)) >= 0:
        return
    num_bytes = sparse_bytes(rows, num_stored(left, right), dtype)
    if (left_bytes := claim(num_bytes)) < 0:
        raise _outgrown("a product in a loop stores", num_bytes, left_bytes)


def claim_functions(links: Sequence[Link], values: Sequence[Any], claim: Claim) -> None:
    """Claim the bytes that a chain of functions can need for its sparse results, inner ones included.

    Raises
    ------
    TooLargeError
        When they are not left.
    """
    counts = [value.nnz if isinstance(value, Csr) else 0 for value in values]
    num_bytes = 0
    for link in links:
        found = [(place, counts[number]) for place, number in enumerate(link.arguments) if counts[number]]
        meet = [count for place, count in found if place in ANNIHILATORS.get(link.name, ())]
        counts.append((min(meet) if meet else sum(count for _, count in found)) if link.sparse else 0)
        num_bytes += sparse_bytes(0, counts[-1], link.dtype)
    if (left_bytes := claim(num_bytes)) < 0:
        raise _outgrown("sparse arrays in a loop may store up to", num_bytes, left_bytes)


def _outgrown(what: str, num_bytes: int, left_bytes: int) -> TooLargeError:
    missing = f"{bytes_text(-left_bytes)} more than the worker has left"
    return TooLargeError(f"{what} {bytes_text(num_bytes)}, {missing}; {LESS_IN_LOOPS}")


class TakenArrays:
    """What the steps of a task took of a pool and did not give back yet."""

    def __init__(self, memory: StepMemory) -> None:
        self._memory = memory
        self._arrays: dict[int, NumericArray] = {}  # by the identity of what they look at
        self.memory = StepMemory(self._take, self._give, None, True, memory.claim)

    def give_back(self, gone: Sequence[Any], registers: Sequence[Any]) -> None:
        """Give back the arrays behind values that are gone, unless a register still holds a view of one."""
        if not self._arrays:
            return
        held = {id(root_of(one.values)) for one in registers if isinstance(one, Dense)}
        for one in gone:
            if isinstance(one, Dense):
                root = id(root_of(one.values))
                if root in self._arrays and root not in held:
                    self._memory.give(self._arrays.pop(root))

    def give_all(self) -> None:
        """Give back all that is left."""
        for array in self._arrays.values():
            self._memory.give(array)

    def _take(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        array = self._memory.take(shape, dtype)
        self._arrays[id(root_of(array))] = array
        return array

    def _give(self, array: NumericArray) -> None:
        self._arrays.pop(id(root_of(array)), None)
        self._memory.give(array)
