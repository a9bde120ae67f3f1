"""DistArray, the person's handle on an expression; operators and NumPy's protocols build new expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn
from weakref import ref

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, block_from, to_gcxs, to_numpy, to_scipy
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, NotScalarError, ShapeError, UnsupportedError
from matnb.lazy import reductions, ufuncs
from matnb.lazy.evaluator import evaluator
from matnb.lazy.expr import Data, Expr, MatMul, Transpose
from matnb.lazy.holdings import given
from matnb.lazy.methods import Methods
from matnb.lazy.operators import Operators
from matnb.lazy.places import replacing
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import recorded
from matnb.pictures.arrays import array_html, array_text
from matnb.pictures.facts import ArrayFacts

if TYPE_CHECKING:
    from sparse import GCXS

Result = np.ndarray | np.generic  # what NumPy code receives


# The handles by their ids: they compare elementwise, and a weak table of Python's costs much more.
_live: dict[int, ref[DistArray]] = {}
_live_labels: dict[int, Expr] = {}


def live_expressions() -> set[Expr]:
    """Return the expressions that some handle stands for now."""
    handles = [handle() for handle in _live.copy().values()]
    return {*(one._expression for one in handles if one is not None), *_live_labels.copy().values()}


def renew(new: Mapping[Expr, Expr]) -> None:
    """Let every handle stand for what its expression became: another of the same meaning."""
    for handle in _live.copy().values():
        one = handle()
        if one is not None and one._expression in new:
            one._expression = new[one._expression]


def wrap(node: Expr, labels: Expr | None = None) -> DistArray:
    """Return a handle on an expression that was just built, and note it in the cell's recording."""
    record = active_recording()
    if record is not None:
        record.note(node)
    return DistArray(node, labels)


def expression_of(value: object) -> Expr:
    """Return the expression of a handle, or of an array or number as a constant."""
    if isinstance(value, DistArray):
        return value.expression
    return expression_of_block(block_from(value))


def expression_of_block(block: Block) -> Expr:
    """Return the expression of a person's data: copied, or sent to the workers at once when it is large."""
    node, ship_now = given(block)
    if ship_now:
        assert isinstance(node, Data)
        evaluator().ship(node, block)
    return node


class DistArray(Methods, Operators):
    """An array, sparse or dense, cut in blocks over the workers and computed when a value is asked for.

    It takes NumPy's operators, ufuncs, functions and indices, also integer and boolean DistArrays. Nothing is
    computed until ``compute()``, ``float()``, ``np.asarray()``, ``persist()`` or the end of a ``%%distmat``
    cell. Assigning to elements changes this handle, but no slice that was taken before.
    An absent element of a sparse array is a zero; a product with it is absent, whatever meets it.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(6.0)
    >>> float((x * x).sum())
    55.0
    """

    __slots__ = ("__weakref__", "_expression", "_labels")
    __array_priority__ = 1000

    def __init__(self, expression: Expr, labels: Expr | None = None) -> None:
        self._expression = expression
        self._labels = labels
        _live[id(self)] = ref(self)
        if labels is not None:
            _live_labels[id(self)] = labels

    def __del__(self) -> None:
        _live.pop(id(self), None)
        if _live_labels:
            _live_labels.pop(id(self), None)

    def _recorded(self, node: Expr) -> DistArray:
        return wrap(node)

    def _changed_to(self, node: Expr) -> DistArray:
        # A scalar has no elements to change: `s += 1` makes another one, as with NumPy's scalars.
        if not self.shape:
            return wrap(node)
        if node.dtype is self.dtype and node.shape == self.shape:
            self._become(node)  # most often
        else:
            _assign(self, (node,), None)
        return self

    @property
    def expression(self) -> Expr:
        """The expression this handle stands for now."""
        return self._expression

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._expression.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._expression.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._expression.ndim

    @property
    def size(self) -> int:
        """Number of elements, absent ones included."""
        return self._expression.size

    @property
    def sparse(self) -> bool:
        """True when absent elements are not stored."""
        return self._expression.sparse

    @property
    def nnz(self) -> int:
        """Number of stored entries; counted on the workers when it is not known yet."""
        known = self.facts().nnz
        if known is not None:
            return known
        return int(DistArray(reductions.reduce(self._expression, "stored")))

    @property
    def layout(self) -> Layout | None:
        """Cuts and owners of the blocks, or None while nothing is computed."""
        return evaluator().layout(self._expression)

    @property
    def labels(self) -> DistArray | None:
        """Original vertex ids of a relabelled graph, int64 of length n; None when it was not relabelled."""
        return None if self._labels is None else DistArray(self._labels)

    @property
    def T(self) -> DistArray:
        """Axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int] | None) -> DistArray:
        """Return the array with its axes reordered; reversed when none are given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
        if not order:
            order = tuple(reversed(range(self.ndim)))
        places = tuple(int(axis) for axis in order)  # type: ignore[arg-type]  # numbers by now
        if len(places) != self.ndim or any(not -self.ndim <= axis < self.ndim for axis in places):
            raise ShapeError(f"axes {places} do not reorder the {self.ndim} axes of the array")
        return wrap(Transpose(self._expression, tuple(axis % self.ndim for axis in places)))

    def astype(self, dtype: npt.DTypeLike) -> DistArray:
        """Return the array converted to a dtype, by NumPy's rules for ``astype``."""
        return wrap(ufuncs.astype(self._expression, dtype))

    def copy(self) -> DistArray:
        """Return another handle on the same values; later changes through one do not show in the other."""
        return DistArray(self._expression, self._labels)

    def dot(self, other: object) -> DistArray:
        """Return ``self @ other``, or the product with a scalar."""
        right = expression_of(other)
        if not right.shape or not self.shape:
            return wrap(ufuncs.call(np.multiply, (self._expression, right))[0])
        return wrap(MatMul(self._expression, right))

    def __getitem__(self, key: object) -> DistArray:
        from matnb.lazy.elements import read  # which makes handles

        return read(self._expression, key)  # type: ignore[return-value]  # a Selection is used like a handle

    def __setitem__(self, key: object, value: object) -> None:
        from matnb.lazy.elements import written

        self._become(written(self._expression, key, value))

    def fill(self, value: object) -> None:
        """Give every element one value."""
        self[...] = value

    def _become(self, version: Expr) -> None:
        # The handle gets a new version; whoever read the old one keeps it.
        record = active_recording()
        if record is not None:
            record.note(version)
        self._expression = version

    # values

    def compute(self) -> Result | GCXS:
        """Compute the array and return it: NumPy's array, or scalar when 0-d; ``sparse.GCXS`` when sparse.

        Raises
        ------
        TooLargeError
            When the result exceeds the session's ``compute_limit``.
        """
        block = evaluator().value(self._expression)
        if not isinstance(block, Dense):
            return to_gcxs(block)
        return block.values if block.shape else block.values[()]

    def to_scipy(self) -> sp.csr_array:
        """Compute a sparse array and return it as SciPy's CSR array."""
        if not self.sparse:
            raise DTypeError("a dense array; use compute(), or scipy.sparse.csr_array(x.compute())")
        block = evaluator().value(self._expression)
        assert not isinstance(block, Dense)
        return to_scipy(block)

    def persist(self) -> DistArray:
        """Compute the array, keep its blocks on the workers, and return this handle."""
        evaluator().persist([self._expression])
        return self

    def explain(self, stage: str | None = None, measured: bool = False) -> str:
        """Return how the array is computed: recorded, after each pass, and the plan; nothing is computed.

        Of what is there already, and of stages that ran before, what was made is told beside the estimates.

        Parameters
        ----------
        stage
            Only "recorded", the name of a pass, or "plan".
        measured
            Whether seconds of the last run are told, too; the text depends on time then.

        Raises
        ------
        OptionError
            For a stage that there is not; the message names them.

        Examples
        --------
        >>> import matnb as mn
        >>> x = mn.ones(4)
        >>> print((x * 1).explain(stage="identities"))
        after identities
             e0  full                                         (4,) float64  = value
        """
        return evaluator().explain({"value": self._expression}, stage, measured)

    def facts(self) -> ArrayFacts:
        """Return what is known of the array, computing nothing."""
        return evaluator().facts(self._expression)

    def item(self) -> bool | int | float | complex:
        """Return the only element as a Python number.

        Raises
        ------
        NotScalarError
            When there are more, or none.
        """
        if self.size != 1:
            raise NotScalarError(f"an array of shape {self.shape} holds {self.size} elements, not one")
        number: bool | int | float | complex = to_numpy(evaluator().value(self._expression)).item()
        return number

    def __float__(self) -> float:
        return float(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __int__(self) -> int:
        return int(self.item())  # type: ignore[arg-type]  # a complex number raises, as it should

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(f"an array of dtype {self.dtype} is no index")
        return int(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise NotScalarError(
                f"the truth of an array of shape {self.shape} is ambiguous; use .any() or .all()"
            )
        return bool(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec or not self.shape else repr(self)

    def __round__(self, num_digits: int | None = None) -> float:
        return round(self.item(), num_digits)  # type: ignore[arg-type]  # as Python rounds it

    def __deepcopy__(self, memo: object) -> DistArray:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a DistArray is not pickled; write it with mn.save, or pickle x.compute()")

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise AttributeError(f"DistArray has no {name!r} yet; compute first: x.compute().{name}")
        raise AttributeError(f"DistArray has no attribute {name!r}")

    def __len__(self) -> int:
        if not self.shape:
            raise NotScalarError("a 0-d array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[DistArray]:
        if not self.shape:
            raise NotScalarError("a 0-d array cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise DTypeError(
                "np.asarray(..., copy=False): the blocks are on the workers, so a copy is needed"
            )
        values = to_numpy(evaluator().value(self._expression))
        return values if dtype is None else values.astype(dtype, copy=False)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        out = options.pop("out", None)
        dtype = options.pop("dtype", None)
        where = options.pop("where", True)
        if where is not True and (out is None or method != "__call__"):
            raise UnsupportedError(
                f"np.{ufunc.__name__}(where=) without out= is not recorded; use np.where(mask, new, old)"
            )
        result: tuple[Expr, ...]
        if method == "reduce":
            result = (reductions.ufunc_reduce(ufunc, expression_of(inputs[0]), dtype, options),)
        elif method == "__call__":
            if options:
                raise UnsupportedError(f"np.{ufunc.__name__}({', '.join(options)}=) is not recorded")
            operands = [one if ufuncs.is_weak(one) else expression_of(one) for one in inputs]
            result = ufuncs.call(ufunc, operands, dtype)  # type: ignore[arg-type]  # checked there
        else:
            raise UnsupportedError(f"np.{ufunc.__name__}.{method} is not recorded; compute() the array first")
        # A scalar has no elements to change: `s += 1` makes another one, as with NumPy's scalars.
        is_scalar = isinstance(out, tuple) and out[0] is inputs[0] and not self.shape
        if out is not None and (not is_scalar or where is not True):
            return _assign(out, result, None if where is True else expression_of(where))
        handles = tuple(wrap(node) for node in result)
        return handles[0] if len(handles) == 1 else handles

    def __array_function__(
        self,
        function: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        return recorded(function)(*args, **kwargs)

    def __repr__(self) -> str:
        return array_text(self.facts())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        facts = self.facts()
        return {"text/plain": array_text(facts), "text/html": array_html(facts)}


def _assign(out: object, results: Sequence[Expr], where: Expr | None) -> object:
    targets = out if isinstance(out, tuple) else (out,)
    for target, node in zip(targets, results, strict=True):
        if not isinstance(target, DistArray):
            raise UnsupportedError(f"out= of type {type(target).__name__}: give a DistArray, or compute()")
        target._become(replacing(target.expression, node, where))
    return targets[0] if len(targets) == 1 else targets
