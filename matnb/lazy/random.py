"""Random arrays and graphs: counter-based, so they do not follow the cuts; not NumPy's streams."""

from __future__ import annotations

import secrets
from math import prod
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Integers, Normal, Random, Uniform
from matnb.blocks.grid import BlocksSpec
from matnb.errors import OptionError, ShapeError, no_attribute
from matnb.expr.nodes import Elementwise, Expr, Load, broadcast_shapes
from matnb.io.rmat import Rmat
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import ShapeLike, asarray, created, regridded, shape_of
from matnb.lazy.loop import loop_numbers
from matnb.lazy.registry import recorded
from matnb.lazy.special import softmax
from matnb.lazy.ufuncs import astype, call, densified, literal, number_dtype
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
        return handle_of(drawn * (last - first) + first)

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
        return handle_of(drawn * deviation + mean)

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
            raise OptionError(f"integers: there is no integer in [{low}, {high})")
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
        return handle_of(self.standard_exponential(_lengths(size, factor), blocks=blocks) * factor)

    def lognormal(
        self, mean: object = 0.0, sigma: object = 1.0, size: Size = None, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return numbers whose logarithms are normal."""
        return wrap(call(np.exp, (self.normal(mean, sigma, size, blocks=blocks).expression,))[0])

    def standard_gamma(self, shape: object, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return gamma numbers of scale 1; ``shape`` is a number, or an array of them, of 0 and more.

        By the rejections of Marsaglia and Tsang ("A simple method for generating gamma variables", 2000),
        each element from random bits of its own.
        """
        return self._variates("gamma", size, {"shape": shape}, blocks)

    def gamma(
        self, shape: object, scale: object = 1.0, size: Size = None, blocks: BlocksSpec = None
    ) -> DistArray:
        """Return gamma numbers; ``shape`` and ``scale`` are numbers, or arrays of them, of 0 and more.

        Raises
        ------
        OptionError
            For a parameter below 0; of arrays that are not computed yet, such numbers give NaN.
        ShapeError
            When arrays do not broadcast to ``size``.

        Examples
        --------
        >>> import matnb as mn
        >>> rng = mn.random.default_rng(0)
        >>> rng.gamma([1.0, 50.0], 2.0, (10000, 2)).mean(axis=0).compute().round(-1)
        array([  0., 100.])
        """
        _check_known("gamma", {"scale": scale})
        factor = asarray(scale)
        sized = _lengths(size, asarray(shape), factor)
        return handle_of(self._variates("gamma", sized, {"shape": shape}, blocks) * factor)

    def beta(self, a: object, b: object, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return beta numbers; ``a`` and ``b`` are numbers, or arrays of them, above 0.

        Each is a gamma number over the sum of two, of which the logarithms are drawn.

        Raises
        ------
        OptionError
            For a parameter that is not above 0; of arrays that are not computed yet, such numbers give NaN.
        ShapeError
            When arrays do not broadcast to ``size``.
        """
        return self._variates("beta", size, {"a": a, "b": b}, blocks)

    def standard_t(self, df: object, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return numbers of Student's t; ``df`` is a number, or an array of them, above 0.

        Raises
        ------
        OptionError
            For degrees of freedom that are not above 0; of an array that is not computed yet, such give NaN.
        """
        return self._variates("standard_t", size, {"df": df}, blocks)

    def poisson(self, lam: object = 1.0, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return Poisson numbers of mean ``lam``, a number or an array of them, as int64.

        By products of uniform numbers, and from a mean of 10 by Hoermann's transformed rejection (1993).

        Raises
        ------
        OptionError
            For a mean below 0; of an array that is not computed yet, once it is.

        Examples
        --------
        >>> import matnb as mn
        >>> rng = mn.random.default_rng(0)
        >>> bool(abs(rng.poisson(4.0, 10000).mean() - 4) < 0.1)
        True
        """
        return self._variates("poisson", size, {"lam": lam}, blocks)

    def binomial(self, n: object, p: object, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return how many of ``n`` trials of chance ``p`` succeed, as int64; both may be arrays.

        By adding chances up, and where 10 and more are expected by Hoermann's transformed rejection (1993).
        Beyond 2**53 trials the number of trials is rounded to a float.

        Raises
        ------
        OptionError
            For a count below 0 or a chance outside [0, 1]; of arrays not computed yet, once they are.
        ShapeError
            When arrays do not broadcast to ``size``.
        """
        return self._variates("binomial", size, {"n": n, "p": p}, blocks)

    def multinomial(self, n: object, pvals: object, size: Size = None) -> DistArray:
        """Return how many of ``n`` trials have each of several outcomes, along a new last axis, as int64.

        Outcomes are halved and halved again, each half a binomial number of those that are left: the numbers
        of all trials take as many steps as the count of outcomes has binary digits.

        Parameters
        ----------
        n
            The number of trials, or an array of them.
        pvals
            The chances of the outcomes along the last axis; the last one is what the others leave of 1.
        size
            The shape in front of the outcomes, to which ``n`` and the other axes of ``pvals`` broadcast.

        Raises
        ------
        OptionError
            For a count below 0, or chances below 0 or of a sum above 1.
        ShapeError
            For ``pvals`` without an outcome, or that do not broadcast to ``size``.

        Examples
        --------
        >>> import matnb as mn
        >>> rng = mn.random.default_rng(0)
        >>> int(rng.multinomial(100, [0.2, 0.3, 0.5], 5).sum())
        500
        """
        chances = pvals if isinstance(pvals, DistArray) else np.asarray(pvals, float)
        if not chances.ndim or not chances.shape[-1]:
            raise ShapeError(
                f"multinomial: pvals of shape {chances.shape}: give a probability for each outcome"
            )
        if isinstance(chances, np.ndarray):
            _check_known("multinomial", {"pvals": chances})
            if (chances[..., :-1].sum(axis=-1) > 1.0 + 1e-12).any():
                raise OptionError("multinomial: sum(pvals[:-1]) is above 1")
        counts, outcomes = asarray(n), chances.shape[-1]
        lengths = shape_of(size) if size is not None else None
        fitting = broadcast_shapes(counts.shape, chances.shape[:-1], name="multinomial")
        lengths = fitting if lengths is None else lengths
        found = recorded(np.broadcast_to)(counts, _fitting("multinomial", lengths, fitting))[..., None]
        for shares in _halvings(chances, outcomes):
            parameters = {"n": found, "p": shares}
            left: DistArray = self._variates("binomial", (*lengths, shares.shape[-1]), parameters)
            both = recorded(np.stack)([left, found - left], axis=-1)
            found = recorded(np.reshape)(both, (*lengths, 2 * shares.shape[-1]))
        return found[..., :outcomes]

    def dirichlet(self, alpha: object, size: Size = None, blocks: BlocksSpec = None) -> DistArray:
        """Return numbers along a new last axis that add up to 1, of Dirichlet's law.

        Parameters
        ----------
        alpha
            Numbers above 0 along the last axis; other axes, if any, broadcast to ``size``.
        size
            The shape in front of the last axis.

        Raises
        ------
        OptionError
            For a parameter that is not above 0; of arrays that are not computed yet, such numbers give NaN.
        ShapeError
            For ``alpha`` without an element, or that does not broadcast to ``size``.

        Notes
        -----
        Gamma numbers over their sum, by their logarithms, so that small parameters do not give 0 / 0.

        Examples
        --------
        >>> import matnb as mn
        >>> rng = mn.random.default_rng(0)
        >>> rng.dirichlet([1.0, 1.0, 3.0], 10000).mean(axis=0).compute().round(1)
        array([0.2, 0.2, 0.6])
        """
        _check_known("dirichlet", {"a": alpha})
        shares = asarray(alpha)
        if not shares.ndim or not shares.shape[-1]:
            raise ShapeError(f"dirichlet: alpha of shape {shares.shape}: give at least one number")
        lengths = shares.shape[:-1] if size is None else shape_of(size)
        drawn = self._variates("log_gamma", (*lengths, shares.shape[-1]), {"shape": shares}, blocks)
        return softmax(drawn, axis=-1)

    def _variates(
        self, name: str, size: Size, parameters: dict[str, object], blocks: BlocksSpec = None
    ) -> DistArray:
        # Numbers of a law, a function of random bits and of parameters that broadcast to the size.
        _check_known(name, parameters)
        nodes = [_parameter(one, name, "n" if key == "n" else "") for key, one in parameters.items()]
        lengths = _lengths(size, *map(wrap, nodes))
        _fitting(name, lengths, broadcast_shapes(*(one.shape for one in nodes), name=name))
        bits = Integers(lengths, self.seed, self._next_stream(), 0, 2**64, np.dtype(np.uint64))
        read = (_drawn(bits, blocks).expression, *nodes)
        element = np.dtype(np.int64 if name in ("poisson", "binomial") else np.float64)
        return wrap(Elementwise(f"{name}_variate", read, tuple(one.dtype for one in read), element))

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
            places = recorded(np.searchsorted)(shares / shares[-1:], self.random(shape), side="right")
        elif replace:
            places = self.integers(0, count, shape)
        else:
            if prod(shape) > count:
                raise OptionError(
                    f"choice: cannot draw {prod(shape)} of {count} elements without replacement"
                )
            places = self.permutation(count)[: prod(shape)].reshape(shape)
        return places if is_count else recorded(np.take)(asarray(a), places, axis=axis)

    def permutation(self, x: object, axis: int = 0) -> DistArray:
        """Return the parts of an array along an axis, or the whole numbers below ``x``, in random order."""
        if isinstance(x, int | np.integer):
            return recorded(np.argsort)(self.random(int(x)))
        array = asarray(x)
        return recorded(np.take)(array, self.permutation(array.shape[axis]), axis=axis)

    def shuffle(self, x: DistArray, axis: int = 0) -> None:
        """Put the parts of an array along an axis in random order; the handle changes."""
        x[...] = self.permutation(x, axis)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(np.random.Generator, name):
            raise no_attribute("matnb's Generator", name, lambda: _DRAWN)
        way = f"draw with NumPy: mn.asarray(np.random.default_rng(seed).{name}(...))"
        raise no_attribute("matnb's Generator", name, instead=lambda: way)


_DRAWN = tuple(name for name in vars(Generator) if not name.startswith("_"))


def default_rng(seed: int | None = None) -> Generator:
    """Return a Generator; the same seed gives the same arrays, None takes one from the operating system.

    The numbers are drawn on the workers, whatever the cuts, and are not those of NumPy's generators: for
    these write ``mn.asarray(np.random.default_rng(seed).normal(size=n))``.
    """
    if seed is None:
        seed = secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise OptionError(f"seed={seed!r}: give an integer from 0 to 2**64 - 1")
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
    return broadcast_shapes(*(one.shape for one in parameters), name="size=")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


_ABOVE_ZERO = ("a", "b", "df")


def _check_known(law: str, parameters: dict[str, object]) -> None:
    # Parameters that are known here are checked before anything is drawn.
    for name, value in parameters.items():
        if isinstance(value, DistArray):
            continue
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "biuf":
            raise OptionError(f"{law}: {name}={value!r}: give real numbers")
        inside = numbers > 0 if name in _ABOVE_ZERO else numbers >= 0
        if name in ("p", "pvals"):
            inside &= numbers <= 1
        if not inside.all():
            wanted = "chances from 0 to 1" if name in ("p", "pvals") else "numbers of 0 and more"
            wanted = "numbers above 0" if name in _ABOVE_ZERO else wanted
            raise OptionError(f"{law}: {name}={numbers[~inside].flat[0]}: give {wanted}")


def _parameter(value: object, law: str, kind: str) -> Expr:
    node = literal(value) if _is_number(value) else densified(asarray(value).expression, law)  # type: ignore[arg-type]  # a number
    if node.dtype.kind not in "biuf":
        raise OptionError(f"{law}: parameters of dtype {node.dtype}: give real numbers")
    return astype(node, np.int64 if kind == "n" else np.float64)


def _fitting(law: str, lengths: tuple[int, ...], parameters: tuple[int, ...]) -> tuple[int, ...]:
    if broadcast_shapes(lengths, parameters, name=law) != lengths:
        raise ShapeError(f"{law}: parameters of shape {parameters} do not broadcast to size={lengths}")
    return lengths


def _halvings(chances: Any, outcomes: int) -> list[Any]:
    # Of each half of outcomes, first all, then the halves: the chance of its own first half. What is padded
    # has none.
    array: Any = recorded if isinstance(chances, DistArray) else lambda function: function
    rest = 1.0 - array(np.sum)(chances[..., :-1], axis=-1, keepdims=True)
    last = array(np.clip)(rest, 0.0, 1.0)
    digits = (outcomes - 1).bit_length()
    padded = np.zeros((*chances.shape[:-1], 2**digits - outcomes))
    level = array(np.concatenate)([chances[..., :-1], last, padded], axis=-1)
    found: list[Any] = []
    for _ in range(digits):
        pairs = array(np.reshape)(level, (*level.shape[:-1], level.shape[-1] // 2, 2))
        level = pairs[..., 0] + pairs[..., 1]
        share = pairs[..., 0] / array(np.where)(level > 0, level, 1.0)
        found.insert(0, array(np.clip)(share, 0.0, 1.0))
    return found


def _check_positive(what: str, name: str, value: object) -> None:
    if _is_number(value) and not value >= 0:  # type: ignore[operator]  # a number
        raise OptionError(f"{what}: {name}={value!r} cannot be negative")


def __getattr__(name: str) -> NoReturn:
    if name.startswith("_") or not hasattr(np.random, name):
        raise no_attribute("module 'matnb.random'", name, __dir__)
    drawn = {"rand": "random", "randn": "standard_normal", "randint": "integers", "random_sample": "random"}
    way = drawn.get(name, name)
    near = f"mn.random.default_rng(seed).{way}(...)" if way in _DRAWN else "mn.random.default_rng(seed)"
    way = f"its numbers follow from a seed alone: {near}"
    raise no_attribute("module 'matnb.random'", name, instead=lambda: way)


def __dir__() -> list[str]:
    return ["Generator", "default_rng", "rmat"]


def _real(dtype: npt.DTypeLike) -> np.dtype:
    element = number_dtype(dtype)
    if element.kind != "f":
        raise OptionError(f"random numbers of dtype {element}: choose float64 or float32")
    return element
