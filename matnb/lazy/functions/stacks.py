"""Many small systems at once: NumPy's linear algebra of stacks, and least squares of sparse rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matnb.blocks.kernels.calls import Output
from matnb.errors import DTypeError, OptionError
from matnb.expr.nodes import Expr, Shape
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.handles import expression_of
from matnb.ops.solving import Decompose, SegmentSolves, StackPart


def decomposed(
    name: str, nodes: Sequence[Expr], batch: Shape, outputs: Sequence[Output], options: dict[str, object]
) -> tuple[DistArray, ...]:
    """Return what ``numpy.linalg`` has under a name, of stacks, made block by block along the first axis.

    Parameters
    ----------
    batch
        The lengths of the stack, at least one.
    outputs
        Shapes, with those lengths, and dtypes of the results.
    """
    cut = tuple(node.ndim - min(node.ndim, 2) == len(batch) and node.shape[0] == batch[0] for node in nodes)
    each = tuple((shape[1:], dtype) for shape, dtype in outputs)
    node = Decompose(tuple(nodes), name, tuple(sorted(options.items())), each, cut)
    if len(outputs) == 1:
        return (wrap(node),)
    call = wrap(node).expression
    return tuple(wrap(StackPart(call, place)) for place in range(len(outputs)))


def segment_solves(
    R: object, V: object, regularization: float, *, weighted: bool = False, confidence: float | None = None
) -> DistArray:
    """Solve ``(V_S' V_S + c I) x = V_S' r`` for each row of a sparse R, with entries r in columns S.

    A half step of alternating least squares: given ratings R (users x items) and item factors V, the result U
    has the user factors, and ``segment_solves(R.T, U, c)`` then gives new item factors.

    Parameters
    ----------
    R
        n x m, sparse, real; stored zeros count as entries.
    V
        m x k, dense; it is copied to every worker.
    regularization
        c, not negative.
    weighted
        Whether to multiply c by the number of entries in the row.
    confidence
        a, not negative, for implicit feedback: the entries of R are counts that raise the confidence that a
        user likes an item to 1 + a r, and entries not stored are preferences of 0 with confidence 1: ``(V' V
        + a V_S' diag(r) V_S + c I) x = V_S' (1 + a r)`` is solved, without 1 + a r where r is 0. Entries must
        not be negative.

    Returns
    -------
    DistArray
        n x k, with the result dtype of R and V, float64 for integers; zeros for a row without entries.
        Computed in float64, and bit-identical however R is split.

    Raises
    ------
    DTypeError
        For a dense R and for complex numbers.
    ShapeError
        If V does not have a row for each column of R.
    OptionError
        For a regularization or confidence that is negative or not finite.
    SingularError
        If the system of a row is not positive definite; the message names the row.

    Examples
    --------
    >>> import matnb as mn, numpy as np, scipy.sparse as sp
    >>> R = mn.asarray(sp.csr_array([[4.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
    >>> mn.linalg.segment_solves(R, np.array([[2.0], [1.0], [1.0]]), 0.5).compute().round(3)
    array([[1.818],
           [2.   ]])

    References
    ----------
    Zhou, Wilkinson, Schreiber and Pan, "Large-scale parallel collaborative filtering for the Netflix prize",
    2008, section 3.1. Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", 2008,
    section 4.
    """
    ratings, factors = expression_of(R), expression_of(V)
    _check_number("regularization", regularization)
    if confidence is not None:
        _check_number("confidence", confidence)
    element = np.result_type(ratings.dtype, factors.dtype)
    if element.kind == "c":
        raise DTypeError(f"segment_solves of dtype {element}: give real numbers")
    element = element if element.kind == "f" else np.dtype(np.float64)
    inputs: tuple[Expr, ...] = (ratings, factors)
    if confidence is not None:
        dense = wrap(factors).astype(np.float64)
        inputs = (*inputs, (dense.T @ dense).expression)
    surely = None if confidence is None else float(confidence)
    return wrap(SegmentSolves(inputs, float(regularization), bool(weighted), surely, element))


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise OptionError(f"segment_solves: {name} {value!r}: give a number")
    if not (math.isfinite(value) and value >= 0):
        raise OptionError(f"segment_solves: {name} {value}: give a finite number, not negative")
