"""What the algorithms on graphs are given, looked at before anything is recorded."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any, cast
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.foreign import is_graph
from matnb.blocks.formats import Csr, NumericArray, entries_as
from matnb.errors import (
    DTypeError,
    IndexingError,
    OptionError,
    ShapeError,
    StoredZerosWarning,
    suggestion,
    warn,
)
from matnb.expr.client_data import SHIP_BYTES, held
from matnb.expr.nodes import Data, Elementwise, Expr, Transpose
from matnb.graph.vertex_labels import check_same_vertices, label_values
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, full, zeros
from matnb.lazy.functions.diagonals import diagonal, tril
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import matmul
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.labels import check_one_set
from matnb.lazy.loop import cond

_COMPARISONS = frozenset({"greater", "greater_equal", "less", "less_equal", "equal", "not_equal"})
Shares = npt.ArrayLike | DistArray | Mapping[Any, float]
_warned: WeakSet[Expr] = WeakSet()  # of the zeros that they store
_MOST_NEAR = 100_000  # labels among which one that is near is looked for
_LEAST_NORMAL = np.finfo(np.float64).tiny
_LARGEST_SUM = 1e300  # of weights, so that what is divided by a sum and multiplied by a weight stays finite


def graph_from(A: ArrayLike, algorithm: str, by_weight: bool = False) -> DistArray:
    """Return the matrix of a graph, a sparse one or a NetworkX graph's, as a DistArray.

    A stored entry is an edge, also one that is 0; of a boolean matrix only a True is one. Where a matrix was
    multiplied by a dense mask, so that it stores zeros, a :class:`matnb.errors.StoredZerosWarning`
    says so, once for a matrix.

    Parameters
    ----------
    A
        What the user gave.
    algorithm
        What the user called.
    by_weight
        An edge of weight 0 is as good as none, so that there is nothing to warn of.

    Raises
    ------
    DTypeError
        For a matrix that is not sparse, which does not say which of its zeros are edges.
    ShapeError
        For one that is not square, or whose rows have other labels than its columns.
    """
    if not isinstance(A, DistArray) and not sp.issparse(A) and not is_graph(A):
        given = "a dense array" if hasattr(A, "shape") else type(A).__name__
        raise DTypeError(
            f"{algorithm} of {given}: a graph is a sparse matrix; use mn.load, or mn.asarray(A, "
            "format='sparse'), which makes every nonzero element an edge"
        )
    check_one_set(A, algorithm)
    matrix = asarray(A)
    if not matrix.sparse:
        raise DTypeError(
            f"{algorithm} of a dense DistArray of shape {matrix.shape}: a graph is a sparse matrix; "
            "mn.asarray(A.compute(), format='sparse') makes every nonzero element an edge"
        )
    if matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(
            f"{algorithm} of shape {matrix.shape}: a graph is a square matrix, with a row and a column for "
            "every vertex"
        )
    matrix = DistArray(matrix.expression)  # a pivot's labels of rows and columns stay behind
    if matrix.dtype == np.bool_:
        stored = matrix.expression
        return matrix if stored.is_source and not isinstance(stored, Data) else matrix.eliminate_zeros()
    masked = None if by_weight else _mask_of(matrix.expression)
    if masked is not None and matrix.expression not in _warned:
        _warned.add(matrix.expression)
        warn(
            f"{algorithm} of a matrix masked by {masked}: it stores a 0 where the dense mask is "
            "False, and a stored entry is an edge; A.eliminate_zeros() leaves these out",
            StoredZerosWarning,
        )
    return matrix


def _mask_of(node: Expr) -> str | None:
    # The dense comparison or other mask by which a matrix was multiplied, or from which it was made. What is
    # sparse stores only what is true.
    while isinstance(node, Elementwise | Transpose):
        if isinstance(node, Transpose):
            node = node.operand
            continue
        if node.drops_zeros or not node.sparse:
            return None
        wide = [one for one in node.inputs if one.size > 1]
        mask = next((one for one in wide if one.dtype == np.bool_ and not one.sparse), None)
        others = [one for one in wide if one.dtype != np.bool_]
        if node.name == "multiply" and mask is not None and len(others) <= 1:
            if isinstance(mask, Elementwise) and mask.name in _COMPARISONS:
                return f"a comparison ({mask.name})"
            return "booleans"
        if len(others) != 1:  # of two matrices one has an entry where the other is not chosen
            return None
        node = others[0]
    return None


def loops_again(A: ArrayLike, edges: DistArray, directed: bool | None, *compared: DistArray) -> DistArray:
    """Return what the sums of rows lack of degrees: of an undirected graph a self-loop counts twice.

    Parameters
    ----------
    A
        What the user gave.
    edges
        Sparse n x n: what is summed.
    directed
        Whether the graph is directed. None: a NetworkX graph knows, and a matrix is an undirected graph's if
        it equals its transpose.
    *compared
        The matrices that equal their transposes if it is undirected; ``edges`` where none are given.

    Returns
    -------
    DistArray
        Shape (n,): the diagonal of an undirected graph, else zeros.
    """
    if directed is None and is_graph(A):
        directed = bool(cast(Any, A).is_directed())
    n = edges.shape[0]
    if directed or not n:
        return zeros(n, edges.dtype)
    loops = diagonal(edges)
    if directed is None:
        symmetric = cond(loops.any(), lambda: _all_symmetric(compared or (edges,)), lambda: asarray(False))
        loops = where(symmetric, loops, loops.dtype.type(0))
    return loops


def _all_symmetric(matrices: Iterable[DistArray]) -> DistArray:
    found = asarray(True)
    for one in matrices:
        differ = one != one.T
        if one.dtype.kind in "fc":  # NaN on both sides is the same weight
            differ = differ > (np.isnan(one) & np.isnan(one.T))
        found = found & ~differ.any()
    return found


def vertex_from(vertex: object, A: object, num_vertices: int, algorithm: str) -> int:
    """Return the row of a vertex, as :func:`vertices_from` does."""
    return int(_rows_of([vertex], A, num_vertices, f"{algorithm} from")[0])


def vertices_from(vertices: object, A: object, num_vertices: int, algorithm: str) -> npt.NDArray[np.int64]:
    """Return the rows of vertices, which have their labels where the graph has some.

    Where there are no labels, or none of them is a number, a whole number stands for a row.

    Parameters
    ----------
    vertices
        One or several.
    A
        What the user gave as a graph.
    num_vertices, algorithm
        How many vertices it has, and what the user called.

    Raises
    ------
    DTypeError
        For anything other than a whole number, where there are no labels.
    IndexingError
        For a vertex that the graph does not have.
    """
    if is_one_vertex(vertices, A):
        given = [vertices]
    else:
        given = vertices.tolist() if hasattr(vertices, "tolist") else list(cast(Any, vertices))
    return _rows_of(given, A, num_vertices, f"{algorithm} from")


def is_one_vertex(vertices: object, A: object) -> bool:
    """Tell whether an argument is a vertex, not several: a label may be a tuple."""
    if not isinstance(vertices, tuple):
        return isinstance(vertices, str | bytes) or not np.ndim(cast(Any, vertices))
    labels = label_values(A)
    return labels is not None and labels.dtype == np.object_ and vertices in set(labels.tolist())


def _rows_of(given: list[Any], A: object, n: int, what: str) -> npt.NDArray[np.int64]:
    given = [one.item() if isinstance(one, DistArray) and not one.ndim else one for one in given]
    labels = label_values(A)
    if labels is None:
        return np.array([_row(one, n, what) for one in given], np.int64)
    if labels.dtype.kind in "iu":
        return _rows_of_ids(given, labels, what)
    rows_of = dict(zip(labels.tolist(), range(n), strict=True))
    has_numbers = any(isinstance(one, int) for one in rows_of)
    found = []
    for one in given:
        row = rows_of.get(one) if isinstance(one, Hashable) else None
        if row is None:
            if has_numbers or not isinstance(one, int | np.integer):
                raise IndexingError(_no_label(one, labels, what))
            row = _row(one, n, what)
        found.append(row)
    return np.array(found, np.int64)


def _rows_of_ids(given: list[Any], ids: npt.NDArray[Any], what: str) -> npt.NDArray[np.int64]:
    order = np.argsort(ids, kind="stable")
    in_order = ids[order]
    found = []
    for one in given:
        is_whole = isinstance(one, int | np.integer) and abs(int(one)) < 2**63
        place = int(np.searchsorted(in_order, one)) if is_whole else len(ids)
        if place == len(ids) or in_order[place] != one:
            raise IndexingError(_no_label(one, ids, what))
        found.append(order[place])
    return np.array(found, np.int64)


def _no_label(vertex: object, labels: npt.NDArray[Any], what: str) -> str:
    if isinstance(vertex, str) and len(labels) <= _MOST_NEAR:
        way = suggestion(vertex, labels.tolist(), "the labels are")
    else:
        some = ", ".join(map(repr, labels[:3].tolist()))
        way = f"the labels are {some}{' and others' if len(labels) > 3 else ''}, as A.labels has them"
    is_row = isinstance(vertex, int | np.integer) and 0 <= vertex < len(labels)
    return (
        f"{what} vertex {vertex!r}, which is no label of the graph: {way}"
        f"{f'. The vertex of row {vertex} is A.labels[{vertex}]' if is_row else ''}"
    )


def _row(vertex: Any, num_vertices: int, what: str) -> int:
    try:
        number = operator.index(vertex)
    except TypeError:
        raise DTypeError(f"{what} vertex {vertex!r}: a vertex is an integer, the number of its row") from None
    if not 0 <= number < num_vertices:
        raise IndexingError(
            f"{what} vertex {number} of a graph with {num_vertices} vertices: give 0 to {num_vertices - 1}"
            if num_vertices
            else f"{what} vertex {number} of a graph without vertices"
        )
    return number


def both_ways(matrix: DistArray, symmetric: bool, dtype: npt.DTypeLike = np.float64) -> DistArray:
    """Return the edges as ones, in both directions and without those from a vertex to itself.

    Parameters
    ----------
    matrix
        Sparse n x n; a stored entry is an edge.
    symmetric
        True when every edge is known to be there in both directions.
    dtype
        Of the ones.
    """
    edges = matrix.pattern(dtype)
    if symmetric:
        vertices = vertices_of(matrix.shape[0])
        return edges.select(vertices[:, None] != vertices)
    lower = tril(np.maximum(edges, edges.T), -1)
    return lower + lower.T


def in_batches(vertices: npt.NDArray[np.int64] | DistArray, batch: int, algorithm: str) -> DistArray:
    """Return vertices in rows of ``batch``; the last one is filled up with -1, from where no path begins.

    Raises
    ------
    OptionError
        For a batch below 1.
    """
    if batch < 1:
        raise OptionError(f"{algorithm}: batch={batch}; give 1 or more")
    batch = max(1, min(batch, len(vertices)))
    count = -(-len(vertices) // batch)
    rest = full(count * batch - len(vertices), -1, np.int64)
    return concatenate([asarray(vertices), rest]).reshape(count, batch)


def check_real(matrix: DistArray, algorithm: str) -> None:
    """Refuse complex weights.

    Raises
    ------
    DTypeError
        For them.
    """
    if matrix.dtype.kind == "c":
        raise DTypeError(f"{algorithm}: weights of dtype {matrix.dtype} have no order; give real weights")


def checked(value: float, matrix: DistArray, algorithm: str, rule: str = "0 or more") -> DistArray:
    """Return a number, which cannot be had without a look at the weights of edges.

    Raises
    ------
    DTypeError
        For complex weights.
    OptionError
        When it is computed, for a weight that is not "0 or more", "above 0" or, of "numbers", NaN, of "finite
        numbers", infinite, too.
    """
    check_real(matrix, algorithm)
    if matrix.dtype.kind not in "if" or not matrix.shape[0]:
        return asarray(value)
    here = _weights_here(matrix)
    if here is not None and _hold(here.min(), rule) and _hold(here.max(), rule):
        return asarray(value)
    least = matrix.min()
    if rule == "above 0":  # of what is stored
        least = matmul(matrix.astype(np.float64), zeros(matrix.shape[0]), "min_plus").min()
    if rule == "finite numbers":
        least = where(np.isfinite(least), matrix.max(), least)
    call = partial(_checked, value=value, algorithm=algorithm, rule=rule)
    return cast(DistArray, replicated(call, least, like=value))


def _weights_here(matrix: DistArray) -> NumericArray | None:
    # Of a matrix that came from this process: one look at what is there costs less than planning one. None
    # where there are none, or many, or only workers have them.
    block = held(matrix.expression)
    if not isinstance(block, Csr) or not 0 < block.nbytes <= SHIP_BYTES or not block.nnz:
        return None
    return entries_as(block, block.dtype)


def _hold(weight: np.floating | np.integer, rule: str) -> bool:
    return bool(
        {"0 or more": weight >= 0, "above 0": weight > 0, "numbers": weight == weight}.get(
            rule, np.isfinite(weight)
        )
    )


def _checked(least: np.floating | np.integer, value: float, algorithm: str, rule: str) -> float:
    if not _hold(least, rule):
        raise OptionError(f"{algorithm}: a weight is {float(least)}; weights must be {rule}")
    return value


def checked_sums(sums: DistArray, matrix: DistArray, algorithm: str) -> DistArray:
    """Return 1.0, which cannot be had without a look at weights, and at the sums of those of a vertex.

    Parameters
    ----------
    sums
        float64 of shape (n,).
    matrix
        Sparse n x n: the weights, real and as they were given.
    algorithm
        What the user called.

    Raises
    ------
    OptionError
        When it is computed: for a weight that is negative, NaN or infinite, and for sums that are too large
        or too small for what is computed of them.
    """
    if matrix.dtype.kind != "f" or not matrix.shape[0] or _sums_hold(_weights_here(matrix)):
        return checked(1.0, matrix, algorithm)
    least = where(sums > 0, sums, np.inf).min()
    call = partial(_checked_sums, algorithm=algorithm)
    return cast(DistArray, replicated(call, matrix.min(), least, sums.max(), like=1.0))


def _sums_hold(weights: NumericArray | None) -> bool:
    # Whether any sums of these weights are within bounds: they are at least one of them, and at most all.
    if weights is None:
        return False
    some = weights[weights != 0].astype(np.float64)
    return not some.size or bool(some.min() >= 1 / _LARGEST_SUM and some.max() <= _LARGEST_SUM / some.size)


def _checked_sums(weight: np.floating, least: np.floating, largest: np.floating, algorithm: str) -> float:
    _checked(weight, 1.0, algorithm, "0 or more")
    if largest > _LARGEST_SUM:
        reason = (
            "a weight is inf, or weights sum to" if np.isinf(largest) else "the weights of a vertex sum to"
        )
        raise OptionError(
            f"{algorithm}: {reason} {float(largest):.3g}; weights must be finite, and their sums at most "
            f"{_LARGEST_SUM:g}: divide them by the largest"
        )
    if least < 1 / _LARGEST_SUM:
        raise OptionError(
            f"{algorithm}: the weights of a vertex sum to {float(least):.3g}; sums must be 0 or at least "
            f"{1 / _LARGEST_SUM:g}: divide them by the largest"
        )
    return 1.0


def unit_of_weights(matrix: DistArray, algorithm: str, needs_edges: bool = False) -> DistArray:
    """Return a power of 2 by which the largest weight is from 1 to 2; 1.0 where no weight is above 0.

    Products with it are exact, so what is computed of weights does not depend on their unit.

    Raises
    ------
    DTypeError
        For complex weights.
    OptionError
        When it is computed: for weights that are negative, NaN or infinite; where all are below the least
        normal number of float64; where no weight is above 0 and edges are needed.
    """
    one = checked(1.0, matrix, algorithm)
    if not matrix.shape[0]:
        return one
    call = partial(_unit, algorithm=algorithm, needs_edges=needs_edges)
    return one * cast(DistArray, replicated(call, matrix.max().astype(np.float64), like=1.0))


def _unit(largest: np.floating, algorithm: str, needs_edges: bool) -> float:
    if largest == np.inf:
        raise OptionError(f"{algorithm}: a weight is inf; weights must be finite")
    if needs_edges and largest == 0:
        raise OptionError(f"{algorithm} of a graph in which no edge has a weight above 0: nothing is ranked")
    if not largest > 0:  # of NaN and of what is negative speaks the other check
        return 1.0
    if largest < _LEAST_NORMAL:
        raise OptionError(
            f"{algorithm}: the largest weight is {float(largest):.3g}, too near to 0 for float64 to hold its "
            "digits: give weights in another unit"
        )
    return float(2.0 ** np.clip(1 - np.frexp(largest)[1], -1000, 1000))


def proportions(values: Shares, n: int, algorithm: str, name: str, A: object = None) -> DistArray:
    """Return n numbers as shares, whose sum is 1.

    Parameters
    ----------
    values
        n numbers, or those of some vertices, which are named as in :func:`vertices_from`.
    n, algorithm, name
        The number of vertices, what the user called, and by which argument.
    A
        What the user gave as a graph.

    Raises
    ------
    DTypeError, ShapeError
        For complex numbers, another length, and numbers of the vertices of another graph.
    IndexingError
        For a vertex that the graph does not have.
    OptionError
        For numbers that are negative, NaN or infinite, or all 0:
        at once for numbers of this process, and else when they are computed.
    """
    if isinstance(values, Mapping):
        values = _by_vertex(values, n, f"{algorithm}: {name}", A)
    given = asarray(values)
    check_same_vertices(given, A, f"{algorithm}: {name}")
    if given.dtype.kind == "c":
        raise DTypeError(f"{algorithm}: {name} of dtype {given.dtype}; give real numbers")
    if given.shape != (n,):
        raise ShapeError(
            f"{algorithm}: {name} of shape {given.shape} for {n} vertices; give one number for each vertex, "
            "or a dict of those of some, {vertex: number}"
        )
    given = given.astype(np.float64)
    if n == 0:
        return given
    call = partial(_scale, algorithm=algorithm, name=name)
    if isinstance(values, DistArray):
        scaled = given / cast(DistArray, replicated(call, given.min(), given.max(), given.sum(), like=1.0))
    else:
        numbers = np.asarray(values, np.float64)
        with np.errstate(over="ignore"):  # that is what the scale is for
            scaled = given / call(numbers.min(), numbers.max(), numbers.sum())
    shares: DistArray = scaled / scaled.sum()
    return shares


def _by_vertex(values: Mapping[Any, float], n: int, what: str, A: object) -> npt.NDArray[np.float64]:
    # A number for each vertex, 0 for those that are not named.
    numbers = np.array([*values.values()])
    if numbers.dtype.kind not in "biuf":
        raise DTypeError(f"{what} has values of {numbers.dtype}; give a number for each vertex")
    rows = _rows_of([*values], A, n, f"{what} of")
    if len(set(rows.tolist())) < len(rows):
        raise OptionError(f"{what} names a vertex twice; give one number for each vertex")
    dense = np.zeros(n)
    dense[rows] = numbers
    return dense


def _scale(least: np.floating, largest: np.floating, total: np.floating, algorithm: str, name: str) -> float:
    # By what numbers are divided so that they can be added.
    if not least >= 0 or largest == np.inf:
        bad = least if not least >= 0 else largest
        raise OptionError(f"{algorithm}: {name} has the number {float(bad)}; give finite numbers, 0 or more")
    if largest == 0:
        raise OptionError(f"{algorithm}: {name} is 0 for every vertex; give a number above 0 for some")
    return 1.0 if 1 / _LARGEST_SUM <= total <= _LARGEST_SUM else float(largest)


def check_tolerance(tolerance: float, algorithm: str) -> None:
    """Refuse a tolerance that nothing reaches.

    Raises
    ------
    OptionError
        When it is not above 0.
    """
    if not tolerance > 0:
        raise OptionError(f"{algorithm}: tolerance={tolerance}; give a number above 0")


def vertices_of(num_vertices: int) -> DistArray:
    """Return the numbers of all vertices, in the shortest dtype that has room for them."""
    return arange(num_vertices, dtype=np.int32 if num_vertices <= np.iinfo(np.int32).max else np.int64)
