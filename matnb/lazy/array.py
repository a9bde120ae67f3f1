"""DistArray, the user's handle on an expression; operators and NumPy's protocols build new expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn
from weakref import ref

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Block, block_from
from matnb.errors import NotScalarError, ShapeError, UnsupportedError
from matnb.expr.client_data import given
from matnb.expr.nodes import Data, Expr, Transpose
from matnb.lazy import ufuncs
from matnb.lazy.evaluator import evaluator
from matnb.lazy.methods import Methods
from matnb.lazy.operators import Operators
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import recorded
from matnb.lazy.values import Values
from matnb.pictures.arrays import array_html, array_text

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


def operand_of(value: object) -> ufuncs.Operand:
    """Return a Python number as it is, since it takes on a dtype; of anything else the expression."""
    return value if ufuncs.is_weak(value) else expression_of(value)


def handle_of(value: object) -> DistArray:
    """Return a handle itself, or one on an array or number as a constant.

    What NumPy's functions make of handles are handles, though their stubs promise NumPy's arrays.
    """
    return value if isinstance(value, DistArray) else DistArray(expression_of(value))


def expression_of_block(block: Block) -> Expr:
    """Return the expression of a user's data: copied, or sent to the workers at once when it is large."""
    node, ship_now = given(block)
    if ship_now:
        assert isinstance(node, Data)
        evaluator().ship(node, block)
    return node


class DistArray(Methods, Operators, Values):
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
            from matnb.lazy.ufunc_calls import into  # which makes handles

            into(self, (node,))
        return self

    @property
    def expression(self) -> Expr:
        """The expression this handle stands for now."""
        return self._expression

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
        if order:
            return recorded(np.transpose)(self, order)  # type: ignore[return-value]  # what it gives
        return wrap(Transpose(self._expression, tuple(reversed(range(self.ndim)))))

    def astype(
        self,
        dtype: npt.DTypeLike,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> DistArray:
        """Return the array converted to a dtype, by NumPy's rules for ``astype``."""
        return wrap(ufuncs.astype(self._expression, dtype, casting))

    def copy(self, order: str = "C") -> DistArray:
        """Return another handle on the same values; later changes through one do not show in the other."""
        return DistArray(self._expression, self._labels)

    def __getitem__(self, key: object) -> DistArray:
        from matnb.lazy.indexing.getitem import read  # which makes handles

        return read(self._expression, key)

    def __setitem__(self, key: object, value: object) -> None:
        from matnb.lazy.indexing.getitem import written

        self._become(written(self._expression, key, value))

    def fill(self, value: object) -> None:
        """Give every element one value, converted as assignment does.

        Raises
        ------
        ShapeError
            For several values.
        """
        if isinstance(value, list | tuple) or np.ndim(value):  # type: ignore[arg-type]  # or it raises
            raise ShapeError("fill: give one number; several are assigned: x[...] = values")
        self[...] = value

    def _become(self, version: Expr) -> None:
        # The handle gets a new version; whoever read the old one keeps it.
        record = active_recording()
        if record is not None:
            record.note(version)
        self._expression = version

    def __copy__(self) -> DistArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> DistArray:
        return self.copy()

    def __reduce__(self) -> NoReturn:
        raise UnsupportedError("a DistArray is not pickled; write it with mn.save, or pickle x.compute()")

    def __getattr__(self, name: str) -> NoReturn:
        if name == "flat":
            raise AttributeError("DistArray has no 'flat': x.ravel() has the elements along one axis")
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise AttributeError(f"DistArray has no {name!r} yet; compute first: x.compute().{name}")
        if not name.startswith("_") and self.sparse and hasattr(sp.csr_array, name):
            raise AttributeError(f"DistArray has no {name!r}: x.to_scipy().{name} is SciPy's")
        raise AttributeError(f"DistArray has no attribute {name!r}")

    def __len__(self) -> int:
        if not self.shape:
            raise NotScalarError("a 0-d array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[DistArray]:
        if not self.shape:
            raise NotScalarError("a 0-d array cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        from matnb.lazy.ufunc_calls import called  # which makes handles

        return called(ufunc, method, inputs, options)

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
