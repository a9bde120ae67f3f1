"""Random arrays and graphs: counter-based, so they do not follow the cuts; not NumPy's streams."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Integers, Normal, Random, Uniform
from matnb.blocks.grid import BlocksSpec
from matnb.errors import OptionError
from matnb.io.rmat import Rmat
from matnb.lazy.access import Draw
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import ShapeLike, created, regridded, shape_of
from matnb.lazy.expr import Load
from matnb.lazy.scopes import loop_numbers
from matnb.lazy.ufuncs import number_dtype


class Generator:
    """Draws random arrays; each call takes the next stream of the seed.

    Element i of a stream is a function of seed, stream and i alone, so any cutting and any number of workers
    give the same array. In the body of a loop each iteration draws other numbers, which follow from the
    stream and the number of the iteration. Made by :func:`default_rng`.

    Examples
    --------
    >>> import matnb as mn
    >>> rng = mn.random.default_rng(0)
    >>> def step(x):
    ...     return x + rng.integers(0, 10, 3)
    >>> x, n = mn.iterate(step, mn.zeros(3, int), max_iterations=1000)
    >>> bool((abs(x / 1000 - 4.5) < 0.5).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams = 0

    def _next_stream(self) -> int:
        self._streams += 1
        return self._streams - 1

    def random(
        self, size: ShapeLike = (), dtype: npt.DTypeLike = float, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return uniform numbers in [0, 1)."""
        return self.uniform(0.0, 1.0, size, dtype, blocks)

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: ShapeLike = (),
        dtype: npt.DTypeLike = float,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return uniform numbers in [low, high)."""
        shape = shape_of(size)
        stream = self._next_stream()
        return _drawn(Uniform(shape, self.seed, stream, float(low), float(high), _real(dtype)), blocks)

    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: ShapeLike = (),
        dtype: npt.DTypeLike = float,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return normal numbers of mean ``loc`` and standard deviation ``scale``, by the inverse CDF."""
        if not scale >= 0:
            raise OptionError(f"normal: scale={scale!r} cannot be negative")
        shape = shape_of(size)
        stream = self._next_stream()
        return _drawn(Normal(shape, self.seed, stream, float(loc), float(scale), _real(dtype)), blocks)

    def standard_normal(
        self, size: ShapeLike = (), dtype: npt.DTypeLike = float, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return normal numbers of mean 0 and standard deviation 1."""
        return self.normal(0.0, 1.0, size, dtype, blocks)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: ShapeLike = (),
        dtype: npt.DTypeLike = np.int64,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return whole numbers in [low, high), or [0, low) when ``high`` is left out."""
        if high is None:
            low, high = 0, low
        if low >= high:
            raise OptionError(f"integers: no whole number lies in [{low}, {high})")
        element = number_dtype(dtype)
        if element.kind not in "iu" or low < np.iinfo(element).min or high - 1 > np.iinfo(element).max:
            raise OptionError(f"integers: [{low}, {high}) does not fit dtype {element}")
        shape = shape_of(size)
        return _drawn(Integers(shape, self.seed, self._next_stream(), int(low), int(high), element), blocks)


def default_rng(seed: int | None = None) -> Generator:
    """Return a Generator; the same seed gives the same arrays, None takes one from the operating system."""
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise OptionError(f"seed={seed!r}: give a whole number from 0 to 2**64 - 1")
    return Generator(int(seed))


def rmat(
    scale: int,
    edge_factor: int = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    seed: int = 0,
    permute: bool = False,
    blocks: BlocksSpec = None,
) -> DistArray:
    """Return a random graph with a skewed degree distribution as a pattern-only sparse matrix.

    Each of ``edge_factor * 2**scale`` edges falls into a quarter of the matrix with probabilities a, b, c and
    1 - a - b - c, ``scale`` times over; duplicates are merged and self-loops kept.

    Parameters
    ----------
    scale
        The graph has ``2**scale`` vertices; ``A[i, j]`` is the edge i -> j.
    edge_factor
        Edges drawn for each vertex.
    a, b, c
        Probabilities of the upper left, upper right and lower left quarter.
    seed
        The same seed gives the same graph.
    permute
        Relabel the vertices at random, so that the heavy ones are not the first.
    blocks
        As in :func:`matnb.asarray`.

    References
    ----------
    Chakrabarti, Zhan, Faloutsos: R-MAT, a recursive model for graph mining, 2004.
    """
    source = Rmat(scale, edge_factor, a, b, c, seed, permute)
    shape = (2**scale, 2**scale)
    return wrap(regridded(Load(source, "matrix", shape, np.dtype(np.float64), True), blocks))


def _drawn(creation: Random, blocks: BlocksSpec) -> DistArray:
    # In the body of a loop, which is recorded once, every iteration draws its own numbers.
    numbers = loop_numbers()
    return wrap(regridded(Draw(creation, numbers), blocks)) if numbers else created(creation, blocks)


def _real(dtype: npt.DTypeLike) -> np.dtype:
    element = number_dtype(dtype)
    if element.kind != "f":
        raise OptionError(f"random numbers of dtype {element}: choose float64 or float32")
    return element
