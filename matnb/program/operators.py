"""The operators of a plan: what one step of a task does to blocks; parameters that travel to workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from matnb.blocks.creation import Creation
from matnb.blocks.formats import Dense
from matnb.blocks.grid import Region
from matnb.blocks.kernels.calls import Function, Output
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.expr.nodes import Literal


@dataclass(frozen=True)
class Make:
    """A rectangle of an array made from parameters; random numbers differ with the numbers it is given."""

    creation: Creation
    region: Region


@dataclass(frozen=True)
class Constant:
    """A literal, a rectangle of one, or an array filled with one, written in the task.

    It is made of a literal alone, whose value a plan follows from. A block of a user's data has a slot that
    each run fills, since other runs of the plan have other data.
    """

    content: bytes
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, literal: Literal, region: Region) -> Constant:
        """Return a rectangle of a literal."""
        part = literal.value[tuple(slice(*bounds) for bounds in region)]
        return cls(part.tobytes(), part.shape, part.dtype)

    @classmethod
    def filled(cls, number: np.generic | int, shape: tuple[int, ...], dtype: np.dtype) -> Constant:
        """Return an array of a shape, filled with a number."""
        return cls(np.array(number, dtype).tobytes() * prod(shape), shape, dtype)

    @property
    def block(self) -> Dense:
        """The constant as a read-only block."""
        return Dense(np.frombuffer(self.content, self.dtype).reshape(self.shape))


@dataclass(frozen=True)
class Cut:
    """A rectangle out of a block; ``bounds`` are local."""

    bounds: Region


@dataclass(frozen=True)
class Join:
    """Rectangles put together to a block; ``offsets`` say where each begins."""

    offsets: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    sparse: bool


@dataclass(frozen=True)
class Fill:
    """Rectangles that tile a block, by their ``bounds``; functions write there what they give."""

    bounds: tuple[Region, ...]
    shape: tuple[int, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class Multiply:
    """A product of two blocks over a semiring, or of the first one's transpose with the second.

    One ``in_parts`` is of a sparse block and a vector in double precision: it can be made and used a few rows
    at a time.
    """

    semiring: str
    dtype: np.dtype
    transposed: bool = False
    in_parts: bool = False


@dataclass(frozen=True)
class MaskedMultiply:
    """A product of two blocks where a third one is true; ``scaled`` multiplies with its entries, all true.

    Where ``turned``, the second block is that of a transpose.
    """

    semiring: str
    dtype: np.dtype
    turned: bool
    complement: bool
    scaled: np.dtype | None


@dataclass(frozen=True)
class MaskedSum:
    """The sum along each row of what MaskedMultiply would store, in columns of length 1."""

    semiring: str
    dtype: np.dtype
    turned: bool
    scaled: np.dtype
    total: np.dtype


@dataclass(frozen=True)
class Accumulate:
    """Partial products put together by a monoid, in order."""

    monoid: str
    dtype: np.dtype


@dataclass(frozen=True)
class Push:
    """A dense vector, in pieces, times a block of a graph, without the rows where the vector has nothing.

    The block comes first, then a vector that is true where the product is wanted, if it is ``masked`` (false,
    if ``complement``), then the pieces.
    """

    semiring: str
    dtype: np.dtype
    masked: bool
    complement: bool


@dataclass(frozen=True)
class PutTogether:
    """A range of what was pushed from several blocks of rows, combined by a monoid.

    ``bounds`` are those of the range in each part. Sparse parts alone give a sparse block unless ``whole``.
    """

    monoid: str
    dtype: np.dtype
    bounds: tuple[tuple[int, int], ...]
    whole: bool


@dataclass(frozen=True)
class Finish:
    """The shares of several blocks combined, converted, and the reduced axes dropped unless kept.

    ``along`` an axis of shares in a sum, ``ranges`` tell what part of it each is of.
    """

    operation: str
    axes: tuple[int, ...]
    keepdims: bool
    dtype: np.dtype
    along: int | None
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FusedKernel:
    """Elementwise functions of blocks, or of a product, and reductions of what they give, in one pass.

    Attributes
    ----------
    links
        The functions. They number the operands first, then themselves in their order; the last one's value
        is the step's, if nothing is reduced.
    shares
        Reductions of operands or of what links give: a block's share of each, in which reduced axes keep
        length 1.
    outputs
        What several shares are packed as.
    product
        Made of the first two values that the step is given, in whose place it is the first operand; or None.
    ending
        What is made of the only share, or None.
    """

    links: tuple[Link, ...]
    shares: tuple[Share, ...] = ()
    outputs: tuple[Output, ...] = ()
    product: Multiply | None = None
    ending: Finish | None = None


@dataclass(frozen=True)
class Flip:
    """A block with its axes in another order."""

    axes: tuple[int, ...]


@dataclass(frozen=True)
class Take:
    """Basic indexing of a block; slices as (start, stop, step), integers, or None for a new axis."""

    key: tuple[tuple[int, int | None, int] | int | None, ...]


@dataclass(frozen=True)
class Stretch:
    """A block broadcast to a shape."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class PutAt:
    """A block with a value written at a place of the whole array, of ``shape``; ``region`` is the block's.

    ``key`` has for each axis bounds and a step, a number, or None for the next of the numbers given after
    block and value.
    """

    key: tuple[tuple[int, int, int] | int | None, ...]
    region: Region
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PutEachAt:
    """A block with values written at places of the first axis of the whole array, which has ``length``.

    The block begins at ``start`` on it. After the block come the places and the values.
    """

    start: int
    length: int


@dataclass(frozen=True)
class GatherAt:
    """The elements, or rows, of a whole array at the places that a block of an index lists."""


@dataclass(frozen=True)
class TakeWindow:
    """A stretch of an axis that begins at a number given before blocks that follow one another on the axis.

    It has ``size`` elements, of an axis of ``length``; ``part`` is which of them are wanted, ``starts`` where
    the blocks begin. Where ``is_whole`` the blocks have all of it, else what they have of it.
    """

    axis: int
    starts: tuple[int, ...]
    length: int
    size: int
    part: tuple[int, int]
    is_whole: bool


@dataclass(frozen=True)
class JoinWindow:
    """Parts of a stretch one after the other along an axis, some of them of length 0."""

    axis: int
    shape: tuple[int, ...]
    dtype: np.dtype
    sparse: bool


@dataclass(frozen=True)
class PutWindow:
    """A block with a value written over a stretch of an axis of ``length``, which begins at a given number.

    ``rows`` are what the block has of the axis. After the block come the value, which has all ``size``
    elements of the stretch, and the number.
    """

    axis: int
    rows: tuple[int, int]
    length: int
    size: int


@dataclass(frozen=True)
class ScatterBy:
    """Values combined by their labels, which begin at the global place ``start``."""

    length: int
    monoid: str
    dtype: np.dtype
    start: int


@dataclass(frozen=True)
class Call:
    """A user's function on whole arrays; its results packed as bytes."""

    function: Function
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Run:
    """A kernel, called with the values of its registers and with parameters, which are hashable.

    It is a function of a module, so that it travels by name: of one under ``blocks.kernels``, or of
    ``io.source``.
    """

    kernel: Callable[..., object]
    parameters: tuple[object, ...] = ()


Operator: TypeAlias = (
    FusedKernel | Make | Constant | Cut | Join | Fill | Multiply | MaskedMultiply | MaskedSum | Accumulate
    | Push | PutTogether | Finish | Flip | Take | Stretch | PutAt | PutEachAt | GatherAt | TakeWindow
    | JoinWindow | PutWindow | ScatterBy | Call | Run
)  # fmt: skip
