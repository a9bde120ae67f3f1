"""Matrices whose rows and columns have labels, as pivots of tables: which may be taken for graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from matnb.errors import ShapeError
from matnb.expr.nodes import Elementwise, Expr

# Labels of rows, by what they came with: an expression, or names. A family follows them from there.
NOTED_LABELS: WeakKeyDictionary[Expr, Any] = WeakKeyDictionary()
LABEL_FINDERS: list[Callable[[Expr], Any]] = []
LABEL_CHECKS: list[Callable[[Expr], object]] = []  # that refuse what combines matrices of different labels
_OF_COLUMNS = (
    "Names in two columns become vertices by "
    'mn.asarray(nx.from_pandas_edgelist(t.to_pandas(), "src", "dst", create_using=nx.DiGraph))'
)
_SHOWN = 3  # labels of a kind in an error
_Function = TypeVar("_Function", bound=Callable[..., Any])


def check_labels(node: Expr) -> None:
    """Refuse a new expression that combines matrices of different labels."""
    for check in LABEL_CHECKS if NOTED_LABELS else ():
        check(node)


def labeled(node: Expr, *labels: npt.NDArray[Any]) -> Expr:
    """Return an expression of the same values whose axes have labels, and that is planned as the given one.

    Equal matrices with other labels are other expressions.
    """
    found = _same(node)
    while not all(map(are_same, NOTED_LABELS.setdefault(found, labels), labels)):
        found = _same(found)
    return found


def unlabeled(node: Expr) -> Expr:
    """Return an expression of the same values that has no labels, and is planned as the given one."""
    found = node
    while isinstance(NOTED_LABELS.get(found), tuple):
        (found,) = found.operands
    return _same(node) if found is node else found


def _same(node: Expr) -> Expr:
    return Elementwise("astype", (node,), (node.dtype,), node.dtype)


def row_by_label(node: Expr, key: object) -> str:
    """Return how a row is picked by its label, for an index that may be one; nothing where there are none."""
    first = key[0] if isinstance(key, tuple) and key else key
    if not isinstance(first, str | int | np.integer) or all(find(node) is None for find in LABEL_FINDERS):
        return ""
    label = first if isinstance(first, str) else int(first)
    return f"rows have numbers from 0, and by its label one is A[A.labels == {label!r}]"


class LabeledMatrix(Protocol):
    """A matrix with labels, which knows the labels of the results that are made of it."""

    def _labeled_alike(self, name: str, found: Any, others: tuple[LabeledMatrix, ...]) -> Any:
        # The result of a function element by element, also of other labeled matrices.
        ...

    def _labeled_moved(self, move: Callable[..., Any], found: Any) -> Any:
        # The result of a function that gives rows and columns other places.
        ...

    def _labeled_product(self, product: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
        # The product of two matrices, of which this is one.
        ...


def keeps_labels(function: _Function) -> _Function:
    """Return a function of elements whose results keep the labels of its arguments."""

    @wraps(function)
    def kept(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        given = _with_labels(args, options) if options.get("out") is None else ()
        return given[0]._labeled_alike(function.__name__, found, given[1:]) if given else found

    return cast(_Function, kept)


def moves_labels(move: Callable[..., Any]) -> Callable[[_Function], _Function]:
    """Return a decorator of a function that moves rows and columns as NumPy's does: their labels go along."""

    def decorated(function: _Function) -> _Function:
        @wraps(function)
        def moved(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            if not _with_labels(args, options):
                return found
            (matrix, *rest), options = by_place(function, args, options)
            return matrix._labeled_moved(lambda places: move(places, *rest, **options), found)

        return cast(_Function, moved)

    return decorated


def joins_labels(product: _Function) -> _Function:
    """Return a product of matrices with the row labels of the first and the column labels of the second."""

    @wraps(product)
    def joined(*args: Any, **options: Any) -> Any:
        given = _with_labels(args, options)
        if not given or options.get("out") is not None:
            return product(*args, **options)
        (one, other, *rest), options = by_place(product, args, options)
        return given[0]._labeled_product(lambda a, b: product(a, b, *rest, **options), one, other)

    return cast(_Function, joined)


def by_place(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, those given by name before any that is left out in their places."""
    given = signature(function).bind(*args, **options)
    return given.args, given.kwargs


def _with_labels(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[LabeledMatrix, ...]:
    return tuple(one for one in (*args, *options.values()) if hasattr(type(one), "_labeled_alike"))


def check_one_set(A: object, name: str) -> None:
    """Refuse a matrix as a graph, or another map of vertices to themselves, whose axes name different things.

    Raises
    ------
    ShapeError
        For row labels that are not the column labels; it lists some that only one side has.
    """
    rows, columns = (getattr(A, f"{word}_labels", None) for word in ("row", "column"))
    if rows is None or columns is None or are_same(rows, columns):
        return
    raise ShapeError(
        f"{name}: rows and columns have different labels, and a vertex is a row and a column of one label: "
        f"{difference(rows, columns, ('a row', 'a column'))}. {_OF_COLUMNS}; "
        "A.without_labels() is the matrix alone"
    )


def are_same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Tell whether two axes have the same labels in the same order."""
    return one is other or (len(one) == len(other) and bool(np.all(one == other)))


def difference(one: npt.NDArray[Any], other: npt.NDArray[Any], names: tuple[str, str]) -> str:
    """Return in words where the labels of two axes differ, each of which has a name."""
    parts = []
    for name, own, others in ((names[0], one, other), (names[1], other, one)):
        known = set(others.tolist())
        alone = [repr(label) for label in own.tolist() if label not in known]
        if alone:
            more = f" and {len(alone) - _SHOWN:,} more" if len(alone) > _SHOWN else ""
            parts.append(f"only {name} is labeled {', '.join(alone[:_SHOWN])}{more}")
    if parts:
        return "; ".join(parts)
    length = min(len(one), len(other))
    place = int(np.argmax(one[:length] != other[:length])) if length else 0
    place = place if place < length else length - 1
    first, second = one.tolist()[place], other.tolist()[place]
    return f"they are in another order: number {place} of one is {first!r}, of the other {second!r}"
