"""Random arrays and graphs: counter-based, so they do not follow the cuts; not NumPy's streams."""

from __future__ import annotations

import secrets
from math import prod
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Integers, Normal, Random, Uniform
from matnb.blocks.grid import BlocksSpec
from matnb.errors import OptionError
from matnb.expr.nodes import Load
from matnb.io.rmat import Rmat
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.creation import ShapeLike, asarray, created, regridded, shape_of
from matnb.lazy.loop import loop_numbers
from matnb.lazy.registry import recorded
from matnb.lazy.ufuncs import call, number_dtype
from matnb.ops.maps import Draw

Size = ShapeLike | None
_MOST_SEEDS = 1000
_seeds: dict[int, None] = {}
_num_forgotten = 0


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

    def random(self, size: Size = None, dtype: npt.DTypeLike = float, blocks: BlocksSpec = None) -> DistArray:
        """Return uniform numbers in [0, 1)."""
        return self.uniform(0.0, 1.0, size, dtype, blocks)

    def uniform(
        self,
        low: object = 0.0,
        high: object = 1.0,
        size: Size = None,
        dtype: npt.DTypeLike = float,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return uniform numbers in [low, high), which may be arrays."""
        if _is_number(low) and _is_number(high):
            shape, stream = _lengths(size), self._next_stream()
            return _drawn(Uniform(shape, self.seed, stream, float(low), float(high), _real(dtype)), blocks)  # type: ignore[arg-type]  # numbers
        first, last = asarray(low), asarray(high)
        drawn = self.random(_lengths(size, first, last), dtype, blocks)
        return drawn * (last - first) + first  # type: ignore[no-any-return]  # a handle

    def normal(
        self,
        loc: object = 0.0,
        scale: object = 1.0,
        size: Size = None,
        dtype: npt.DTypeLike = float,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return normal numbers of mean ``loc`` and standard deviation ``scale``, by the inverse CDF."""
        if _is_number(loc) and _is_number(scale):
            _check_positive("normal", "scale", scale)
            shape, stream = _lengths(size), self._next_stream()
            return _drawn(Normal(shape, self.seed, stream, float(loc), float(scale), _real(dtype)), blocks)  # type: ignore[arg-type]  # numbers
        mean, deviation = asarray(loc), asarray(scale)
        drawn = self.normal(0.0, 1.0, _lengths(size, mean, deviation), dtype, blocks)
        return drawn * deviation + mean  # type: ignore[no-any-return]  # a handle

    def standard_normal(
        self, size: Size = None, dtype: npt.DTypeLike = float, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return normal numbers of mean 0 and standard deviation 1."""
        return self.normal(0.0, 1.0, size, dtype, blocks)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: Size = None,
        dtype: npt.DTypeLike = np.int64,
        endpoint: bool = False,
        blocks: BlocksSpec = None,
    ) -> DistArray:
        """Return whole numbers in [low, high), or [0, low) without ``high``; ``endpoint`` adds one."""
        if high is None:
            low, high = 0, low
        if endpoint:
            high += 1
        if low >= high:
            raise OptionError(f"integers: no whole number lies in [{low}, {high})")
        element = number_dtype(dtype)
        if element.kind not in "iu" or low < np.iinfo(element).min or high - 1 > np.iinfo(element).max:
            raise OptionError(f"integers: [{low}, {high}) does not fit dtype {element}")
        shape = _lengths(size)
        return _drawn(Integers(shape, self.seed, self._next_stream(), int(low), int(high), element), blocks)

    def standard_exponential(
        self, size: Size = None, dtype: npt.DTypeLike = float, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return exponential numbers of mean 1, by the inverse CDF."""
        (found,) = call(np.log1p, call(np.negative, (self.random(size, dtype, blocks).expression,)))
        return wrap(call(np.negative, (found,))[0])

    def exponential(self, scale: object = 1.0, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return exponential numbers of mean ``scale``."""
        _check_positive("exponential", "scale", scale)
        factor = asarray(scale)
        return self.standard_exponential(_lengths(size, factor), blocks=blocks) * factor  # type: ignore[no-any-return]  # a handle

    def lognormal(
        self, mean: object = 0.0, sigma: object = 1.0, size: Size = None, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return numbers whose logarithms are normal."""
        return wrap(call(np.exp, (self.normal(mean, sigma, size, blocks=blocks).expression,))[0])

    def choice(
        self,
        a: object,
        size: Size = None,
        replace: bool = True,
        p: object = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> DistArray:
        """Return elements of an array, or whole numbers below ``a``, at random.

        Parameters
        ----------
        a
            An array, of which elements along ``axis`` are drawn, or a whole number.
        replace
            Whether an element may come more than once.
        p
            The probability of each element, equal when left out; only with ``replace``.

        Raises
        ------
        OptionError
            For more elements than there are, or probabilities without replacement.
        """
        is_count = isinstance(a, int | np.integer)
        count = int(a) if is_count else asarray(a).shape[axis]  # type: ignore[call-overload]  # a number
        shape = _lengths(size)
        if p is not None and not replace:
            raise OptionError("choice(p=, replace=False): draw with replacement, or without probabilities")
        if p is not None:
            shares = recorded(np.cumsum)(asarray(p))
            places = recorded(np.searchsorted)(shares / shares[-1:], self.random(shape), side="right")  # type: ignore[index]  # a handle
        elif replace:
            places = self.integers(0, count, shape)
        else:
            if prod(shape) > count:
                raise OptionError(f"choice: {prod(shape)} of {count} elements without replacement")
            places = self.permutation(count)[: prod(shape)].reshape(shape)
        return places if is_count else recorded(np.take)(asarray(a), places, axis=axis)  # type: ignore[return-value]  # handles

    def permutation(self, x: object, axis: int = 0) -> DistArray:
        """Return the parts of an array along an axis, or the whole numbers below ``x``, in random order."""
        if isinstance(x, int | np.integer):
            return recorded(np.argsort)(self.random(int(x)))  # type: ignore[return-value]  # a handle
        array = asarray(x)
        return recorded(np.take)(array, self.permutation(array.shape[axis]), axis=axis)  # type: ignore[return-value]  # a handle

    def shuffle(self, x: DistArray, axis: int = 0) -> None:
        """Put the parts of an array along an axis in random order; the handle changes."""
        x[...] = self.permutation(x, axis)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise AttributeError(f"Generator has no attribute {name!r}")
        raise AttributeError(
            f"matnb's Generator draws no {name!r}; known: {', '.join(_DRAWN)}; or draw with NumPy, and give "
            f"the array: mn.asarray(np.random.default_rng(seed).{name}(...))"
        )


_DRAWN = tuple(name for name in vars(Generator) if not name.startswith("_"))


def default_rng(seed: int | None = None) -> Generator:
    """Return a Generator; the same seed gives the same arrays, None takes one from the operating system."""
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise OptionError(f"seed={seed!r}: give a whole number from 0 to 2**64 - 1")
    _note_seed(int(seed))
    return Generator(int(seed))


def seeds_taken() -> tuple[int, ...]:
    """Return the seeds that generators and graphs were made with in this process, in order, each once."""
    return tuple(_seeds)


def num_seeds_forgotten() -> int:
    """Return how often a seed was given or taken that :func:`seeds_taken` has no room for."""
    return _num_forgotten


def _note_seed(seed: int) -> None:
    global _num_forgotten
    if len(_seeds) < _MOST_SEEDS:
        _seeds[seed] = None
    elif seed not in _seeds:
        _num_forgotten += 1


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
    _note_seed(seed)
    shape = (2**scale, 2**scale)
    return wrap(regridded(Load(source, "matrix", shape, np.dtype(np.float64), True), blocks))


def _drawn(creation: Random, blocks: BlocksSpec) -> DistArray:
    # In the body of a loop, which is recorded once, every iteration draws its own numbers.
    numbers = loop_numbers()
    return wrap(regridded(Draw(creation, numbers), blocks)) if numbers else created(creation, blocks)


def _lengths(size: Size, *parameters: DistArray) -> tuple[int, ...]:
    # NumPy draws one number where no size is given, or one for each of the parameters.
    if size is not None:
        return shape_of(size)
    return np.broadcast_shapes(*(one.shape for one in parameters))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _check_positive(what: str, name: str, value: object) -> None:
    if _is_number(value) and not value >= 0:  # type: ignore[operator]  # a number
        raise OptionError(f"{what}: {name}={value!r} cannot be negative")


def __getattr__(name: str) -> NoReturn:
    if name.startswith("_") or not hasattr(np.random, name):
        raise AttributeError(f"module 'matnb.random' has no attribute {name!r}")
    drawn = {"rand": "random", "randn": "standard_normal", "randint": "integers", "random_sample": "random"}
    way = drawn.get(name, name)
    near = f"mn.random.default_rng(seed).{way}(...)" if way in _DRAWN else "mn.random.default_rng(seed)"
    raise AttributeError(f"mn.random has no {name!r}, as its numbers follow from a seed alone: {near}")


def _real(dtype: npt.DTypeLike) -> np.dtype:
    element = number_dtype(dtype)
    if element.kind != "f":
        raise OptionError(f"random numbers of dtype {element}: choose float64 or float32")
    return element
