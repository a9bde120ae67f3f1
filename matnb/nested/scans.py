"""Running values along segments: of a monoid in compiled loops, or of an operator of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.blocks.kernels.reductions.labels import reduced_dtype
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, OptionError, suggestion
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import zeros
from matnb.lazy.functions.scanning import scan_segments
from matnb.lazy.ufuncs import astype
from matnb.nested.segments import SCANS, SegmentPlaces, SegmentScan

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray

_UFUNC_OF = {monoid.name: ufunc for ufunc, monoid in SCANS.items()}


def monoid_of(given: object, what: str) -> str | None:
    """Return the name of a monoid that is given by its name, by that of its ufunc, or as its ufunc.

    None for another ufunc or function.

    Raises
    ------
    OptionError
        For another name, and for what is neither a name nor a function.
    """
    ufunc = getattr(given, "__wrapped__", given)  # of matnb's ufuncs NumPy's
    name = ufunc.__name__ if isinstance(ufunc, np.ufunc) else given
    if isinstance(name, str):
        if name in _UFUNC_OF:
            return name
        if name in SCANS:
            return SCANS[name].name
    if not callable(given):
        raise OptionError(f"{what}: monoid={given!r}; {suggestion(str(given), _UFUNC_OF)}")
    return None


def only_monoid(given: object, what: str) -> str:
    """Return the name of a monoid, as :func:`monoid_of`, where there has to be one.

    Raises
    ------
    OptionError
        For anything else.
    """
    found = monoid_of(given, what)
    if found is None:
        name = getattr(given, "__name__", type(given).__name__)
        raise OptionError(
            f"{what}: {name} is none of the monoids {', '.join(_UFUNC_OF)} or their ufuncs; running values "
            "by an operator of your own are N.scan(operator, identity=)"
        )
    return found


class RunningValues:
    """Methods of nested arrays that give a value for each value and those before it in its segment."""

    __slots__ = ()

    def scan(
        self,
        operator: str | Callable[..., object],
        *,
        identity: object = None,
        update: Callable[..., object] | None = None,
        exclusive: bool = False,
        reverse: bool = False,
        stable: bool = False,
        check: bool = False,
    ) -> NestedArray:
        """Return running values along each segment, such as cumulative sums or maxima.

        Parameters
        ----------
        operator
            A monoid: "plus", "times", "min", "max", "lor" or "land", or its ufunc, such as ``np.maximum``. Or
            another ufunc or a function, as of :func:`matnb.scan`, which takes running values and the values
            that follow them.
        identity, update, check
            Of an operator that is no monoid, as of :func:`matnb.scan`: what running values begin with, whose
            dtype they have; what combines two of them, where that is not the operator; whether to try its
            laws on values that are drawn.
        exclusive
            Leave each value out of its own running value: the first one of a segment is the identity.
        reverse
            Go from the end of each segment.
        stable
            Of a monoid: add floats in the order of values, one block after the other, so that the bits do not
            depend on how the array is cut. Otherwise those of long segments may differ in the last bits.
            Whole numbers, "min" and "max" have the same bits in either case, but for the sign of a zero.

        Returns
        -------
        NestedArray
            Of the same segments, of the dtype of ``np.cumsum`` and its like, or of the identity.

        Raises
        ------
        OptionError
            For another name, and for an operator without an identity.
        DTypeError, ShapeError, UnsupportedError, LoopBodyError, KernelError
            As :func:`matnb.scan`, for an operator that is no monoid.

        Notes
        -----
        A user-defined operator is applied to pairs of a flag, whether a segment begins, and a running value
        (Blelloch, "Prefix sums and their applications", 1990, section 1.5).

        Examples
        --------
        >>> import numpy as np, matnb as mn
        >>> N = mn.nested.from_lists([[2, 1, 3], [], [1, 4]])
        >>> N.scan("max").tolist(), N.scan(np.add, exclusive=True).tolist()
        ([[2, 2, 3], [], [1, 4]], [[0, 2, 3], [], [0, 1]])
        >>> N.scan(lambda total, value: total + (value > 1), identity=np.int64(0), update=np.add).tolist()
        [[1, 1, 2], [], [0, 1]]
        """
        array: Any = self  # a nested array, which has these methods
        may_be_monoid = identity is None and update is None
        monoid = monoid_of(operator, "scan") if may_be_monoid else None
        if monoid is not None:
            return _by_monoid(array, monoid, exclusive, reverse, stable)
        if stable:
            name = getattr(operator, "__name__", type(operator).__name__)
            raise OptionError(f"scan: stable=True with {name}: it is for monoids, given by name or ufunc")
        return _by_operator(array, operator, identity, update, exclusive, reverse, check)

    def cumsum(self, *, stable: bool = False) -> NestedArray:
        """Return the cumulative sum within each segment; ``stable`` as in :meth:`scan`."""
        return self.scan("plus", stable=stable)

    def cumprod(self) -> NestedArray:
        """Return the cumulative product within each segment."""
        return self.scan("times")


def _by_monoid(array: NestedArray, monoid: str, exclusive: bool, reverse: bool, stable: bool) -> NestedArray:
    if monoid in ("min", "max") and array.dtype.kind == "c":
        raise DTypeError(f"{monoid} of complex segments: complex numbers have no order")
    dtype = reduced_dtype(MONOIDS[monoid], array.dtype)
    if not array.num_values:
        return array._like(array.values.astype(dtype))
    given = array._turned() if reverse else array
    values = astype(given.values.expression, dtype)
    offsets, knots, ufunc = given.offsets.expression, given._structure.knots, _UFUNC_OF[monoid]
    found = wrap(SegmentScan(values, offsets, knots, ufunc, bool(exclusive), bool(stable), dtype))
    return array._like(handle_of(np.flip(found) if reverse else found))


def _by_operator(
    array: NestedArray,
    operator: object,
    identity: object,
    update: Callable[..., object] | None,
    exclusive: bool,
    reverse: bool,
    check: bool,
) -> NestedArray:
    name = getattr(operator, "__name__", type(operator).__name__)
    if not callable(operator):
        raise OptionError(
            f"scan: {operator!r} with identity= or update=: a monoid has its own; give a ufunc or a function"
        )
    if identity is None:
        identity = getattr(operator, "identity", None)
        if identity is None:
            raise OptionError(
                f"scan: {name} is none of the monoids {', '.join(_UFUNC_OF)}: give identity=, what running "
                "values begin with, as to mn.scan"
            )
    ufunc_or_function: Any = getattr(operator, "__wrapped__", operator)
    given = array._turned() if reverse else array
    found = scan_segments(
        given.values, _is_first(given), ufunc_or_function, identity, update, exclusive=exclusive, check=check
    )
    return array._like(handle_of(np.flip(found) if reverse else found))


def _is_first(array: NestedArray) -> DistArray:
    # For each value whether a segment begins with it, whatever positions there are.
    if not array.num_values:
        return zeros(0, np.bool_)
    own = array._structure
    places = wrap(SegmentPlaces(own.offsets.expression, own.knots, own.cuts, own.ranks))
    return places == 0  # type: ignore[no-any-return]  # operators of arrays give Any
