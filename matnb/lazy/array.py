"""DistArray, the user's handle on an expression; operators and NumPy's protocols build new expressions."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from types import EllipsisType, MethodType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, NotScalarError, OptionError, ShapeError, UnsupportedError, no_attribute
from matnb.expr.nodes import Expr
from matnb.lazy import lost_writes, reductions, small_parts, ufuncs
from matnb.lazy.element_reads import chunks_of, note_iteration
from matnb.lazy.evaluator import shown
from matnb.lazy.foreign_names import (
    as_numpy,
    asks,
    instead_of,
    is_in_matplotlib,
    refuse_dask,
    refuse_networkx,
    refuse_pickling,
)
from matnb.lazy.handles import expression_of, leads, noted
from matnb.lazy.indexing.basic import replacing
from matnb.lazy.indexing.getitem import BooleanSelection, filled, read, written
from matnb.lazy.labels import LABEL_FINDERS
from matnb.lazy.operators import Operators
from matnb.lazy.portable import portable
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import METHODS, SPARSE_METHODS, recorded
from matnb.lazy.ufunc_calls import called, into
from matnb.lazy.values import Values
from matnb.ops.pattern import Pattern
from matnb.ops.selecting import Prune, Select, SelectBy
from matnb.pictures.arrays import array_html, array_text, way_text


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    call = function if isinstance(function, np.ufunc) else None

    @wraps(getattr(np.ndarray, name))
    def method(self: object, *args: object, **kwargs: object) -> object:
        return (call or recorded(function))(self, *args, **kwargs)

    method.__doc__ = f"``numpy.{name}`` of this array."
    return method


class DistArray(Operators, Values):
    """A lazy array, sparse or dense, split into blocks on the workers and computed when a value is asked for.

    It supports NumPy's operators, ufuncs, functions and indexing, including indexing by integer and boolean
    DistArrays. Nothing is computed until ``compute()``, ``float()``, ``np.asarray()``, ``persist()`` or the
    end of a ``%%distmat`` cell. Assigning to elements changes this array but no slice taken from it before:
    slices are not views. An element that a sparse array does not store counts as zero, and its product with
    anything, even infinity, is not stored either.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> float((x * x).sum())
    55.0
    """

    __slots__ = ()
    __array_priority__ = 1000

    # Each is NumPy's function of that name with the array first.

    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose")
    clip = _method("clip")
    conj = _method("conj")
    conjugate = _method("conjugate")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    nonzero = _method("nonzero")
    put = _method("put")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")

    @property
    def real(self) -> Any:
        """The real parts."""
        return recorded(np.real)(self)

    @real.setter
    def real(self, value: Any) -> None:
        self[...] = value + 1j * self.imag if self._expression.dtype.kind == "c" else value

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return recorded(np.imag)(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self._expression.dtype.kind != "c":
            raise DTypeError(
                f"x.imag = ... on {self._expression.dtype}, which has no imaginary part: x = x + 1j * ..."
            )
        self[...] = self.real + 1j * value

    def reshape(self, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Any:
        """Return the elements, last axis fastest, in another shape; -1 is what the others leave."""
        lengths = shape[0] if len(shape) == 1 else shape
        return recorded(np.reshape)(self, lengths, order=order, copy=copy)

    def flatten(self, order: str = "C") -> Any:
        """Return the elements along one axis, last axis fastest."""
        return lost_writes.owned(recorded(np.ravel)(self, order=order))

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Raise, since blocks are never resized where they are."""
        lengths = shape[0] if len(shape) == 1 else shape
        raise UnsupportedError(
            f"x.resize({lengths!r}) would change an array in place: use x = np.resize(x, {lengths!r}), or "
            "np.pad"
        )

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Return the parts along an axis where a condition is true."""
        return recorded(np.compress)(condition, self, axis=axis, out=out)

    def sort(
        self, axis: int = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None
    ) -> None:
        """Sort along an axis; the handle changes, as by an assignment."""
        self[...] = recorded(np.sort)(self, axis=axis, stable=stable)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect", order: None = None) -> None:
        """Put what a sort would have at ``kth`` there, less before, more behind; the handle changes."""
        self[...] = recorded(np.partition)(self, kth, axis=axis)

    def _recorded(self, node: Expr) -> DistArray:
        # Notes what an operator gives, and returns a handle on it.
        return DistArray(noted(node))

    def _changed_to(self, node: Expr) -> DistArray:
        # What an operator in place leaves: this handle with a new version, or another handle. A scalar has no
        # elements to change: `s += 1` makes another one, as with NumPy's scalars.
        if not self.shape:
            return wrap(node)
        if node.dtype is self.dtype and node.shape == self.shape:
            self._become(node)  # most often
        else:
            into(self, (node,))
        return self

    @property
    def labels(self) -> Any:
        """Labels of the first axis, or None: ids of vertices as a DistArray, a graph's names as NumPy's.

        They follow slices, picked rows and columns, transposes, products, sums along an axis and functions
        element by element, and results of ``mn.graph`` have them. Ids that are 0 to n - 1 are the numbers of
        the rows, and there are no labels. ``without_labels()`` gives an array that has none.
        """
        found = (find(self._expression) for find in LABEL_FINDERS)
        return next((one for one in found if one is not None), None)

    @labels.setter
    def labels(self, labels: object) -> None:
        raise UnsupportedError(
            "labels come with what a matrix is made of: an edge list, a NetworkX graph or a pivot. Keep "
            "others in an array, and use names[places]"
        )

    @property
    def T(self) -> DistArray:
        """Axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int] | None) -> DistArray:
        """Return the array with its axes permuted; by default in reverse order."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
        return recorded(np.transpose)(self, order or None)

    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> DistArray:
        """Return the array converted to a dtype, following NumPy's rules for ``astype``."""
        if (made := METHODS["astype"](self, dtype) if "astype" in METHODS else None) is not None:
            return made  # type: ignore[return-value]  # of a table's column, to which NumPy's rules are unsafe
        return lost_writes.owned(wrap(ufuncs.astype(self._expression, dtype, casting)))

    def eliminate_zeros(self) -> DistArray:
        """Return a copy without stored zeros; unlike SciPy's method, it does not change this array.

        The values stay the same; ``nnz`` is then the number of nonzero elements. Stored zeros matter in some
        semirings: over ``min_plus`` one is an edge of weight 0, and in a pattern it is an edge. A dense array
        is returned unchanged.
        """
        return self.prune(0.0)

    def prune(self, threshold: float) -> DistArray:
        """Return the array without elements whose magnitude is at most a threshold; NaN is kept.

        Parameters
        ----------
        threshold
            Elements whose absolute value is greater are kept, compared as NumPy compares an array with a
            number. With 0 this is :meth:`eliminate_zeros`.

        Returns
        -------
        DistArray
            Of the same shape and dtype. A sparse array loses the entries; a dense one has zeros in their
            place.

        Raises
        ------
        OptionError
            For a threshold that is negative or not a number.

        Examples
        --------
        >>> import matnb as mn
        >>> import scipy.sparse as sp
        >>> A = mn.asarray(sp.csr_array([[0.5, 0.0], [0.25, -2.0]]))
        >>> A.prune(0.4).nnz
        2
        """
        limit = float(threshold) if isinstance(threshold, int | float | np.integer | np.floating) else np.nan
        if not limit >= 0:
            raise OptionError(f"threshold={threshold!r}: give 0 or more")
        if self.sparse:
            return wrap(Prune(self._expression, limit))
        if not limit:
            return self.copy()
        is_small = np.abs(self) <= limit if self.dtype.kind == "c" else (self <= limit) & (self >= -limit)
        return recorded(np.where)(is_small, self.dtype.type(0), self)

    def select(self, condition: Any) -> DistArray:
        """Return a sparse array with only the entries where a condition is true, as GraphBLAS's ``select``.

        Parameters
        ----------
        condition
            Booleans of this shape, sparse or dense; elements that are not stored count as False. Or a
            function of three NumPy arrays, the row and column numbers (int64) and the values of some entries,
            that returns a boolean for each. It is called on the workers with the entries of each block, and
            its result must depend on its arguments alone.

        Returns
        -------
        DistArray
            Sparse, of the same shape and dtype; stored zeros are entries like any other.

        Raises
        ------
        DTypeError
            For a dense array: ``np.where(condition, x, 0)``; and for anything other than a boolean.
        ShapeError
            For booleans of another shape.
        OptionError
            For a function that cannot be sent to workers.
        KernelError
            When the function raises on a worker.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp, matnb as mn
        >>> A = mn.asarray(sp.csr_array([[1.0, 2.0], [3.0, 4.0]]))
        >>> np.asarray(A.select(lambda row, column, value: (row != column) & (value > 2)))
        array([[0., 0.],
               [3., 0.]])
        >>> A.select(A > 2).nnz
        2
        """
        if not self.sparse:
            raise DTypeError("select works on sparse arrays; for a dense one use np.where(condition, x, 0)")
        if callable(condition):
            name = getattr(condition, "__name__", type(condition).__name__)
            return wrap(SelectBy(self._expression, portable(condition, name, "select")))
        mask = expression_of(condition)
        if mask.dtype.kind != "b":
            raise DTypeError(f"select: the condition has dtype {mask.dtype}; give booleans, such as A > 0")
        return wrap(Select(self._expression, mask))

    def count_nonzero(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> DistArray:
        """Return the number of nonzero elements, in total or along axes, int64; stored zeros do not count."""
        return recorded(np.count_nonzero)(self, axis, keepdims=keepdims)

    def pattern(self, dtype: npt.DTypeLike = bool) -> DistArray:
        """Return the sparsity pattern: a 1 for each stored entry, whatever its value, including stored zeros.

        A pattern takes no memory for values. ``matmul(A, eye(n), semiring="plus_pair")`` is rewritten to it.

        Raises
        ------
        DTypeError
            For a dense array, which stores every element: ``x != 0`` tells which are not 0; and for anything
            other than a dtype of numbers or booleans.

        Examples
        --------
        >>> import scipy.sparse as sp, matnb as mn
        >>> A = mn.asarray(sp.csr_array([[0.0, -2.0], [0.5, 0.0]]))
        >>> np.asarray(A.pattern(int))
        array([[0, 1],
               [1, 0]])
        """
        return wrap(Pattern(self._expression, ufuncs.number_dtype(dtype)))

    def copy(self, order: str = "C") -> DistArray:
        """Return an array with the same values; later assignments to either do not affect the other."""
        return lost_writes.owned(DistArray(self._expression))

    def __getitem__(self, key: Any) -> DistArray:
        if is_in_matplotlib():
            return self.to_numpy()[as_numpy(key)]  # type: ignore[no-any-return]  # which takes it for NumPy's
        found = picked_by(self._expression, key)
        if all(isinstance(one, EllipsisType | slice) for one in (key if type(key) is tuple else (key,))):
            return lost_writes.view(found, self)
        return found

    def __setitem__(self, key: object, value: object) -> None:
        value = (isinstance(value, Selection) and value.place) or value
        self._become(small_parts.written(written(self._expression, key, value), self._expression, key))

    def fill(self, value: object) -> None:
        """Set every element to one value, converted as in an assignment.

        Raises
        ------
        ShapeError
            For several values.
        """
        if isinstance(value, list | tuple) or np.ndim(value):  # type: ignore[arg-type]  # or it raises
            raise ShapeError("fill: give one number; to assign an array, use x[...] = values")
        self[...] = value

    def __copy__(self) -> DistArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> DistArray:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        refuse_pickling()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # libraries ask for protocols that there are not
            refuse_dask(name, "a DistArray")
            if name == "_adj":
                refuse_networkx()
            raise AttributeError(f"DistArray has no attribute {name!r}")
        is_sparse = self.sparse
        methods = SPARSE_METHODS if is_sparse else METHODS
        if name in methods:
            return MethodType(methods[name], self)
        for_networkx = asks("networkx")
        if name == "format" and is_sparse and for_networkx:
            return "distributed"  # by which it takes what tocoo() gives
        raise no_attribute(
            "DistArray",
            name,
            lambda: dir(self),
            lambda: instead_of("adj" if for_networkx else name, is_sparse),
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(SPARSE_METHODS if self.sparse else METHODS)]

    def __len__(self) -> int:
        if not self.shape:
            raise NotScalarError("a 0-d array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        # Of one axis its elements, as NumPy's numbers, in chunks; of more axes rows, each a DistArray.
        if not self.shape:
            raise NotScalarError("a 0-d array cannot be iterated over")
        node = self._expression
        if is_in_matplotlib():
            return iter(self.to_numpy())
        if self.ndim == 2:
            refuse_networkx()
        if self.ndim == 1 and not node.free:
            return itertools.chain.from_iterable(chunks_of(node))
        note_iteration(node)
        return map(DistArray(node).__getitem__, range(self.shape[0]))

    def __reversed__(self) -> Iterator[Any]:
        return iter(self[::-1])

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        if is_in_matplotlib():
            return getattr(ufunc, method)(*as_numpy(inputs), **as_numpy(options))
        if any(map(leads, map(type, inputs))):
            return NotImplemented  # a nested array, a table or a column with a mask takes others with it
        return handles_of(called(ufunc, method, inputs, options))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        if is_in_matplotlib():
            return function(*as_numpy(args), **as_numpy(kwargs))
        return NotImplemented if any(map(leads, types)) else recorded(function)(*args, **kwargs)

    def __repr__(self) -> str:
        is_read = hasattr(sys, "ps1")  # by somebody at a prompt
        return array_text(shown(self._expression, starts=is_read))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        facts = shown(self._expression, starts=True)
        return {"text/plain": array_text(facts), "text/html": array_html(facts)}


def wrap(node: Expr) -> DistArray:
    """Return a handle on an expression that was just built, and note it in the cell's recording."""
    return DistArray(noted(node))


def handle_of(value: object) -> DistArray:
    """Return a handle itself, or one on an array or number as a constant.

    What NumPy's functions make of handles are handles, though their stubs promise NumPy's arrays.
    """
    return value if isinstance(value, DistArray) else DistArray(expression_of(value))


def handles_of(results: Sequence[object]) -> object:
    """Return handles on new expressions, and what is none as it is: alone, or several as a tuple."""
    if len(results) > 1:
        return tuple(handles_of((one,)) for one in results)
    (one,) = results
    return wrap(one) if isinstance(one, Expr) else one


def picked_by(node: Expr, key: object) -> DistArray:
    """Return what ``array[key]`` is: a handle, or a selection where only a run can tell how many."""
    found = read(node, key)
    return Selection(found) if isinstance(found, BooleanSelection) else wrap(found)


# What ``x[mask]`` is: a handle on the elements that booleans pick, whose number is asked for when needed.

_IDENTITIES = {"sum": "plus", "prod": "times", "any": "lor", "all": "land", "min": "min", "max": "max"}
_REDUCTIONS = ("sum", "prod", "any", "all", "min", "max", "mean")
_MOST_COUNTED = 10**6  # booleans, to show what they pick
_ALONE = {getattr(np, name) for name in _REDUCTIONS}


def _reduction(name: str) -> Any:
    usual = getattr(DistArray, name)

    @wraps(usual)
    def method(self: Selection, *arguments: object, **options: object) -> object:
        if self.place is None or arguments or options:
            return usual(self, *arguments, **options)
        return self._alone_reduced(name)

    return method


class Selection(DistArray):
    """The elements of an array where booleans are true, recorded and not computed.

    How many they are stays open as long as nobody asks: while they meet numbers, what broadcasts to their
    rows, and selections by the same booleans; go back where they came from, as in ``x[mask] += 1``; and are
    reduced to numbers. Anything else asks, and from there on they are an array as any other.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> x[x > 2] *= 10
    >>> x.compute()
    array([ 0.,  1.,  2., 30., 40., 50.])
    >>> float(x[x > 2].sum())
    120.0
    >>> x[x > 2][-1].compute()
    np.float64(50.0)
    """

    __slots__ = ("_alone", "place")
    __array_priority__ = 1001

    sum = _reduction("sum")
    prod = _reduction("prod")
    any = _reduction("any")
    all = _reduction("all")
    min = _reduction("min")
    max = _reduction("max")
    mean = _reduction("mean")

    def __init__(self, place: BooleanSelection) -> None:
        self.place: BooleanSelection | None = place
        self._alone: DistArray | None = None

    @property
    def _expression(self) -> Expr:
        if self._alone is None:
            assert self.place is not None, "either is there"
            self._alone = wrap(self.place.alone())
        return self._alone.expression

    @_expression.setter
    def _expression(self, node: Expr) -> None:
        self.place, self._alone = None, wrap(node)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._expression.dtype if self.place is None else self.place.values.dtype

    @property
    def ndim(self) -> int:
        """Number of axes: one for all that the booleans stand for."""
        if self.place is None:
            return self._expression.ndim
        return self.place.values.ndim - self.place.mask.ndim + 1

    def copy(self, order: str = "C") -> DistArray:
        """Return another handle on the same elements."""
        return super().copy() if self.place is None else Selection(self.place)

    def astype(self, dtype: npt.DTypeLike, *arguments: Any, **options: Any) -> DistArray:
        """Return the elements converted to a dtype."""
        if self.place is None or arguments or options:
            return super().astype(dtype, *arguments, **options)
        return self._with(ufuncs.astype(self.place.values, dtype))

    def _alone_reduced(self, operation: str) -> DistArray:
        # Over all elements, where what is not picked changes nothing.
        place = self.place
        assert place is not None, "asked before"
        if operation == "mean":
            return self._mean(place)
        if operation in ("min", "max") and not self.size:
            raise ShapeError(f"{operation} of an empty selection: no element of the mask is true")
        if operation in ("min", "max") and self.dtype.kind == "c":  # which no number is neutral to
            return wrap(reductions.reduce(self._expression, operation))
        if operation in ("any", "all"):
            place = BooleanSelection(ufuncs.astype(place.values, np.bool_), place.mask, place.axis)
        neutral = MONOIDS[_IDENTITIES[operation]].identity(place.values.dtype)
        return wrap(reductions.reduce(filled(place, neutral), operation))

    def _mean(self, place: BooleanSelection) -> DistArray:
        element = reductions.mean(place.values).dtype
        wide = np.dtype(np.float32) if element == np.float16 else element
        total = self._with(ufuncs.astype(place.values, wide))._alone_reduced("sum")
        row_size = place.values.size // max(place.mask.size, 1)
        (number,) = ufuncs.call(np.multiply, (reductions.count_nonzero(place.mask), row_size))
        (ratio,) = ufuncs.call(np.divide, (total.expression, number))
        return wrap(ufuncs.astype(ratio, element))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        if function in _ALONE and len(args) == 1 and args[0] is self and not kwargs:
            return getattr(self, function.__name__)()
        return super().__array_function__(function, types, args, kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        out, dtype = options.get("out"), options.get("dtype")
        is_own = out is None or (isinstance(out, tuple) and len(out) == 1 and out[0] is inputs[0] is self)
        lazily = (
            method == "__call__"
            and is_own
            and not set(options) - {"out", "dtype"}
            and ufunc.signature is None
        )
        operands = [self._operand(one, ufunc) for one in inputs] if lazily else [None]
        if self.place is None or any(one is None for one in operands):
            return super().__array_ufunc__(ufunc, method, *inputs, **options)
        nodes = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
        if out is not None:
            self.place, self._alone = self._with(replacing(self.place.values, nodes[0])).place, None
            return self
        made = tuple(self._with(node) for node in nodes)
        return made[0] if len(made) == 1 else made

    def _with(self, values: Expr) -> Selection:
        # The same elements of another array.
        assert self.place is not None, "asked before"
        return Selection(BooleanSelection(values, self.place.mask, self.place.axis))

    def _operand(self, value: object, ufunc: np.ufunc) -> Expr | ufuncs.Weak | None:
        # What a value is for all elements, picked or not; None where it meets the picked ones alone.
        place = self.place
        if place is None or ufuncs.is_weak(value):
            return value if place is not None else None  # type: ignore[return-value]  # a number
        if isinstance(value, Selection) and value.place is not None:
            other = value.place
            same = other.mask is place.mask and other.axis == place.axis
            if not same or other.values.ndim != place.values.ndim:
                return None
            node = other.values
        else:
            node = expression_of(value)
            if node.ndim > self.ndim or place.has_each(node):
                return None
            node = place.aligned(node)
        if ufunc is np.power and node.dtype.kind in "iu" and node.shape:
            # a negative power of whole numbers that are not picked is not an error
            node = filled(BooleanSelection(node, place.mask, place.axis), node.dtype.type(1))
        return node

    def _pending(self, starts: bool = False) -> str:
        # What is shown where their number is not known, and not cheap to find.
        if self.place is None or self._alone is not None:
            return ""
        values, mask = self.place.values, self.place.mask
        if mask.size <= _MOST_COUNTED and shown(reductions.count_nonzero(mask), starts).value:
            return ""
        told = f"<elements of {values.shape} {values.dtype} that booleans of shape {mask.shape} pick"
        return f"{told}; {way_text(active_recording() is not None)}>"

    def __repr__(self) -> str:
        return self._pending(starts=hasattr(sys, "ps1")) or super().__repr__()

    def __str__(self) -> str:
        return self._pending(starts=True) or super().__str__()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        pending = self._pending(starts=True)
        return {"text/plain": pending} if pending else super()._repr_mimebundle_()


# What DistArray.astype asks for itself: a column of a table may become another kind of column.
METHODS.taken = SPARSE_METHODS.taken = frozenset(dir(DistArray)) - {"astype"}
# The shorter ways that a handle's operators have would ask; NumPy's mixin calls the ufunc, which need not.
for _name, _operator in vars(NDArrayOperatorsMixin).items():
    if callable(_operator) and _name != "__hash__":
        setattr(Selection, _name, _operator)
