"""What stands for an expression: which handles are alive, and the expression of any value that is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

import numpy as np

from matnb.blocks.formats import Block, block_from
from matnb.blocks.layout import Layout
from matnb.errors import DTypeError, UnsupportedError
from matnb.expr.client_data import given
from matnb.expr.nodes import Data, Expr
from matnb.lazy import lost_writes, ufuncs
from matnb.lazy.evaluator import evaluator
from matnb.lazy.foreign_names import refuse_dense_parts
from matnb.lazy.labels import NOTED_LABELS, check_labels
from matnb.lazy.limits import check_incoming
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import recorded


class Handle:
    """Stands for an expression, which stays as long as a handle on it lives."""

    __slots__ = ("__weakref__", "_expression")

    def __init__(self, expression: Expr, labels: Expr | None = None) -> None:
        self._expression = expression
        _live[id(self)], live_nodes[id(self)] = ref(self), expression
        if labels is not None:
            NOTED_LABELS[expression] = labels

    def __del__(self) -> None:
        _live.pop(id(self), None)
        live_nodes.pop(id(self), None)
        lost_writes.views.pop(id(self), None)
        if id(self) in lost_writes.noted:
            lost_writes.forget(self)

    @property
    def expression(self) -> Expr:
        """The expression that computes this array."""
        return self._expression

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        shape = self._expression.shape
        if self._expression.sparse:
            refuse_dense_parts(shape)
        return shape

    @shape.setter
    def shape(self, shape: object) -> None:
        raise UnsupportedError(
            f"x.shape = {shape!r} would change an array in place, which DistArrays do not support: use x = "
            f"x.reshape({shape!r})"
        )

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
    def layout(self) -> Layout | None:
        """Cuts and owners of the blocks, or None while nothing is computed."""
        return evaluator().layout(self._expression)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, as a dense array would take; absent ones included."""
        return self.size * self.itemsize

    def _become(self, version: Expr) -> None:
        # The handle gets a new version; whoever read the old one keeps it.
        noted(version)
        lost_writes.note_write(self, self._expression, live_nodes)
        self._expression = live_nodes[id(self)] = version


# The handles by their ids: they compare elementwise, and a weak table of Python's costs much more.
_live: dict[int, ref[Handle]] = {}
live_nodes: dict[int, Expr] = {}  # what each stands for


def live_expressions() -> set[Expr]:
    """Return the expressions that some handle stands for now."""
    found = set(live_nodes.copy().values())
    noted = (NOTED_LABELS.get(one) for one in found) if NOTED_LABELS else ()
    return found.union(one for one in noted if isinstance(one, Expr))


def renew(new: Mapping[Expr, Expr]) -> None:
    """Let every handle stand for what its expression became: another of the same meaning."""
    for handle in _live.copy().values():
        one = handle()
        if one is not None and one._expression in new:
            one._expression = live_nodes[id(one)] = new[one._expression]


def noted(node: Expr) -> Expr:
    """Note an expression that was just built in the cell's recording, and return it."""
    check_labels(node)
    record = active_recording()
    if record is not None:
        record.note(node)
    return node


def expression_of(value: object) -> Expr:
    """Return the expression of a handle, or of an array or number as a constant."""
    if isinstance(value, Handle):
        return value.expression
    if hasattr(value, "__matnb_array__"):  # a table, or a column that is not a plain array
        made: Handle = value.__matnb_array__()
        return made.expression
    check_incoming(value)
    return expression_of_block(block_from(value))


def operand_of(value: object) -> ufuncs.Operand:
    """Return a Python number as it is, since it takes on a dtype; of anything else the expression."""
    if isinstance(value, str | bytes):
        raise DTypeError(f"{value!r} is text, and this array holds numbers: give a number")
    return value if ufuncs.is_weak(value) else expression_of(value)


def expression_of_block(block: Block, names: bytes = b"") -> Expr:
    """Return the expression of a user's data: copied, or sent to the workers at once when it is large.

    Data whose rows have other ``names`` is another expression.
    """
    node, ship_now = given(block, names)
    if ship_now:
        assert isinstance(node, Data)
        evaluator().ship(node, block)
    return node


def leads(kind: type) -> bool:
    """Tell whether values of a type are asked first what NumPy's functions make of them and a handle."""
    return getattr(kind, "__matnb_leads__", False) is True


def holds_handles(value: object) -> bool:
    """Tell whether a value is a handle, or nested lists with one among their items."""
    return isinstance(value, Handle) or (isinstance(value, list | tuple) and any(map(holds_handles, value)))


def stacked(value: Any) -> Any:
    """Return nested lists with a handle among their items, or a table, as one array; else the value as it is.

    Raises
    ------
    DTypeError
        For a result of several values, also among the items.
    """
    if hasattr(value, "__matnb_array__"):  # a table, or one of its columns that is not a plain array
        return value.__matnb_array__()
    is_nested = isinstance(value, list | tuple) and holds_handles(value)
    return recorded(np.stack)(list(map(stacked, value))) if is_nested else value
