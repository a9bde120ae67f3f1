"""The reference evaluator, in plain NumPy and SciPy: the oracle of tests, and of `engine="interpret"`.

It is written for plainness and shares no kernel with the workers. A sparse value is a SciPy CSR array whose
stored entries, zeros among them, are its pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import reduce

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Grid, Region, whole
from matnb.blocks.kernels.elementwise import ANNIHILATORS
from matnb.blocks.semiring import LAND, MAX, MIN, MONOIDS, TIMES, Semiring, semiring_named
from matnb.errors import SessionEnded
from matnb.expr.client_data import held
from matnb.expr.control import Body, Cond, Final, Loop
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    Load,
    MaskedMatMul,
    MatMul,
    Reduce,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import topological
from matnb.io.source import Found, Source
from matnb.ops.registry import Value, means
from matnb.ops.registry import dense as densified


def interpret(
    root: Expr, known: MutableMapping[Expr, Value] | None = None, check: Callable[[], None] = lambda: None
) -> Value:
    """Return the value of an expression; values in ``known`` are used, and those of all operands added.

    ``check`` is called before each operation; what it raises ends all.
    """
    values: MutableMapping[Expr, Value] = {} if known is None else known
    for node in topological([root], values):
        if node not in values:
            check()
            with np.errstate(all="ignore"):
                if isinstance(node, Final):
                    values.update(_controlled(node.control, values, check))
                else:
                    values[node] = _value(node, [values[operand] for operand in node.operands], check)
    return values[root]


def _controlled(node: Expr, values: Mapping[Expr, Value], check: Callable[[], None]) -> dict[Expr, Value]:
    # All that a loop or a branch gives.
    operands = [values[operand] for operand in node.operands]
    match node:
        case Loop():
            _, results = _looped(node, operands, check)
        case Cond(_, then, otherwise):
            body = then if operands[0] else otherwise
            inside: dict[Expr, Value] = dict(zip(node.variables, operands[1:], strict=True))
            results = _body(body, inside, check)[: len(body.results)]
    return {Final(node, place): value for place, value in enumerate(results)}


def _looped(node: Loop, operands: Sequence[Value], check: Callable[[], None]) -> tuple[int, Sequence[Value]]:
    state = list(operands[: node.num_state])
    limit, given = int(densified(operands[node.num_state])[()]), operands[node.num_state + 1 :]
    for number in range(limit):
        arrays = (*state, np.asarray(number), *given)
        results = _body(node.body, dict(zip(node.variables, arrays, strict=True)), check)
        state = results[: node.num_state]
        if node.body.until is not None and results[-1]:
            return number + 1, state
    return max(0, limit), state


def _body(body: Body, values: MutableMapping[Expr, Value], check: Callable[[], None]) -> list[Value]:
    check()
    return [interpret(root, values, check) for root in body.roots]


def block_of(value: Value) -> Block:
    """Return a value as a block with memory of its own."""
    return csr_block(value.copy()) if sp.issparse(value) else Dense(np.array(value))


def _value(node: Expr, operands: Sequence[Value], check: Callable[[], None]) -> Value:
    match node:
        case Literal():
            return node.value
        case Data():
            block = held(node)
            if block is None:
                raise SessionEnded(
                    "an array that was sent to the workers is not in this process; give it again"
                )
            return _from_block(block)
        case Create(creation):
            return _from_block(creation.make(tuple((0, length) for length in creation.shape)))
        case Load(source, "matrix"):
            return _from_block(read_here(source)[1])
        case Load(source):
            return _from_block(labels_here(source))
        case Elementwise() if node.sparse:
            return _sparse_elementwise(node, operands)
        case Elementwise():
            # Not stretched first: NumPy takes the power of a number, such as 0.5, by another function.
            return np.asarray(_call(node, [densified(value) for value in operands]))
        case Broadcast():
            return np.broadcast_to(densified(operands[0]), node.shape)
        case Transpose(_, axes):
            value = operands[0]
            if not sp.issparse(value):
                return np.transpose(value, axes)
            return sp.csr_array(value.T) if axes == (1, 0) else value
        case Index(_, key):
            if node.sparse:
                return _sparse_index(operands[0], key)  # type: ignore[arg-type]  # sparse here
            return np.asarray(densified(operands[0])[key])
        case Reduce():
            return _reduced(node, operands[0])
        case MatMul(_, _, semiring):
            return _product(operands[0], operands[1], semiring_named(semiring), node.dtype)
        case MaskedMatMul(_, _, _, semiring, complement):
            product = _product(operands[0], operands[1], semiring_named(semiring), node.dtype)
            return _masked(node, product, operands[2], complement)
        case Regrid():
            return operands[0]
        case Loop():
            return np.asarray(_looped(node, operands, check)[0])
        case Cond():
            return np.asarray(operands[0])
    return means.of(node)(node, operands)


def _from_block(block: Block) -> Value:
    return to_numpy(block) if isinstance(block, Dense) else to_scipy(block)


def _call(node: Elementwise, arguments: Sequence[np.ndarray]) -> np.ndarray:
    cast = [one.astype(dtype) for one, dtype in zip(arguments, node.input_dtypes, strict=True)]
    match node.name:
        case "astype":
            from_complex = cast[0].dtype.kind == "c" and node.dtype.kind not in "cb"
            return (cast[0].real if from_complex else cast[0]).astype(node.dtype)
        case "where":
            return np.where(*cast)
        case "complex_of":
            parts = np.broadcast_arrays(*cast)
            return np.stack(parts, axis=-1).view(node.dtype)[..., 0]
    result = getattr(np, node.name)(*cast)
    return np.asarray(result[node.output] if isinstance(result, tuple) else result).astype(node.dtype)


def _keys(value: sp.csr_array) -> np.ndarray:
    rows = np.repeat(np.arange(value.shape[0], dtype=np.int64), np.diff(value.indptr))
    return rows * value.shape[1] + value.indices


def _sparse_elementwise(node: Elementwise, operands: Sequence[Value]) -> sp.csr_array:
    # The pattern is the union of the patterns; of those alone whose absent elements annihilate, if there are
    # any, the intersection.
    patterns = {place: _keys(value) for place, value in enumerate(operands) if sp.issparse(value)}
    meet = [keys for place, keys in patterns.items() if place in ANNIHILATORS.get(node.name, ())]
    keys = reduce(np.intersect1d, meet) if meet else reduce(np.union1d, patterns.values())
    arguments = []
    for value in operands:
        if sp.issparse(value):
            own = _keys(value)
            picked = np.zeros(len(keys), value.dtype)
            _, at, source = np.intersect1d(keys, own, return_indices=True)
            picked[at] = value.data[source]
        elif not value.shape:
            picked = value
        else:
            picked = np.broadcast_to(value, node.shape)[keys // node.shape[1], keys % node.shape[1]]
        arguments.append(picked)
    return _from_keys(keys, _call(node, arguments), node.shape)


def _from_keys(keys: np.ndarray, data: np.ndarray, shape: tuple[int, ...]) -> sp.csr_array:
    columns = max(1, shape[1])
    pointers = np.searchsorted(keys, np.arange(shape[0] + 1, dtype=np.int64) * columns)
    return sp.csr_array((data, keys % columns, pointers), shape=(shape[0], shape[1]))


def _sparse_index(value: sp.csr_array, key: Sequence[slice | int | None]) -> sp.csr_array:
    # SciPy's own slicing with a negative step drops nothing, so stored zeros stay.
    result = sp.csr_array(value[key[0], :][:, key[1]])  # type: ignore[index]  # SciPy takes slices
    result.sort_indices()
    return result


def _reduced(node: Reduce, value: Value) -> np.ndarray:
    axes, keep = node.axes, node.keepdims
    if node.operation == "stored":
        pattern: np.ndarray = np.ones(value.shape, np.int64)
        if sp.issparse(value):
            pattern = sp.csr_array(
                (np.ones(value.nnz, np.int64), value.indices, value.indptr), value.shape
            ).toarray()
        return np.asarray(pattern.sum(axis=axes, keepdims=keep))
    dense = densified(value)
    if node.operation.endswith(" of stored"):
        return _reduced_stored(node, value)
    if node.operation in ("sum", "prod"):
        return np.asarray(getattr(np, node.operation)(dense, axis=axes, keepdims=keep, dtype=node.dtype))
    if node.operation == "deviation":
        wide = dense.astype(np.float64)
        away = wide - wide.mean(axis=axes, keepdims=True) if dense.size else wide
        return np.asarray((away**2).sum(axis=axes, keepdims=keep)).astype(node.dtype)
    return np.asarray(getattr(np, node.operation)(dense, axis=axes, keepdims=keep)).astype(node.dtype)


def _reduced_stored(node: Reduce, value: Value) -> np.ndarray:
    # Elements that are not stored are what changes nothing.
    operation = node.operation.removesuffix(" of stored")
    monoid = {"prod": TIMES, "min": MIN, "max": MAX, "all": LAND}[operation]
    element = np.dtype(bool) if operation == "all" else node.dtype
    elements = np.full(value.shape, monoid.identity(element))
    assert sp.issparse(value)
    elements[_positions(value)] = value.data
    found = getattr(np, monoid.ufunc).reduce(elements, axis=node.axes, keepdims=node.keepdims)
    return np.asarray(found).astype(node.dtype)


def _product(left: Value, right: Value, semiring: Semiring, dtype: np.dtype) -> Value:
    if not sp.issparse(left) and not sp.issparse(right) and semiring.name == "plus_times":
        return np.asarray(np.matmul(left, right)).astype(dtype)
    if max(left.ndim, right.ndim) > 2:
        return _stacked_product(left, right, semiring, dtype)  # type: ignore[arg-type]  # dense here
    rows = _entries(left if left.ndim == 2 else left.reshape((1, -1)))
    columns = _entries(right if right.ndim == 2 else right.reshape((-1, 1)))
    if semiring.leaves_out and sp.issparse(left) != sp.issparse(right):
        rows = _present(rows, semiring) if left.ndim == 1 else rows
        columns = _present(columns, semiring) if right.ndim == 1 else columns
    shape = (left.shape[0] if left.ndim == 2 else 1, right.shape[1] if right.ndim == 2 else 1)
    result = _joined(rows, columns, shape, semiring, dtype)
    if sp.issparse(left) and sp.issparse(right):
        return result
    dense = np.full(shape, semiring.add.identity(dtype))
    dense[_positions(result)] = result.data
    return dense.reshape(left.shape[: left.ndim - 1] + right.shape[1:])


def _masked(node: MaskedMatMul, product: Value, mask: Value, complement: bool) -> Value:
    chosen = (densified(mask) != 0) ^ complement
    if not node.sparse:
        return np.where(chosen, densified(product), semiring_named(node.semiring).add.identity(node.dtype))
    if sp.issparse(product):
        kept = chosen[_positions(product)]
        return _from_keys(_keys(product)[kept], product.data[kept], node.shape)
    rows, columns = np.nonzero(chosen)
    return _from_keys(rows.astype(np.int64) * node.shape[1] + columns, product[rows, columns], node.shape)


def _stacked_product(left: np.ndarray, right: np.ndarray, semiring: Semiring, dtype: np.dtype) -> np.ndarray:
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    first = np.broadcast_to(left, (*batch, *left.shape[-2:])) if left.ndim > 1 else left
    second = np.broadcast_to(right, (*batch, *right.shape[-2:])) if right.ndim > 1 else right
    ends = (*(left.shape[-2:-1] if left.ndim > 1 else ()), *(right.shape[-1:] if right.ndim > 1 else ()))
    result = np.empty((*batch, *ends), dtype)
    for place in np.ndindex(batch):
        one = first[place] if left.ndim > 1 else first
        other = second[place] if right.ndim > 1 else second
        result[place] = _product(one, other, semiring, dtype)
    return result


def _entries(value: Value) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if sp.issparse(value):
        rows = np.repeat(np.arange(value.shape[0]), np.diff(value.indptr))
        return rows, value.indices.astype(np.int64), value.data
    places = np.indices(value.shape)
    return places[0].ravel(), places[1].ravel(), value.ravel()


def _present(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], semiring: Semiring
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns, data = entries
    kept = data != semiring.add.identity(data.dtype)
    return rows[kept], columns[kept], data[kept]


def _positions(value: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(value.shape[0]), np.diff(value.indptr)), value.indices


def _joined(
    left: tuple[np.ndarray, np.ndarray, np.ndarray],
    right: tuple[np.ndarray, np.ndarray, np.ndarray],
    shape: tuple[int, int],
    semiring: Semiring,
    dtype: np.dtype,
) -> sp.csr_array:
    # Every entry (i, k) of the left meets every entry (k, j) of the right; products of one (i, j) are added.
    i, k, a = left
    row, j, b = right
    order = np.argsort(row, kind="stable")
    row, j, b = row[order], j[order], b[order]
    begin, end = np.searchsorted(row, k), np.searchsorted(row, k, side="right")
    counts = end - begin
    meets = np.repeat(np.arange(len(k)), counts)
    partner = (
        np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(begin, counts)
    )
    match semiring.multiply:
        case "times":
            products = a[meets].astype(dtype) * b[partner].astype(dtype)
        case "plus":
            products = a[meets].astype(dtype) + b[partner].astype(dtype)
        case "pair":
            products = np.ones(len(meets), dtype)
        case "first" | "second":
            products = (a[meets] if semiring.multiply == "first" else b[partner]).astype(dtype)
        case _:
            products = (a[meets] != 0) & (b[partner] != 0)
    keys: np.ndarray = i[meets].astype(np.int64) * max(1, shape[1]) + j[partner]
    order = np.argsort(keys, kind="stable")
    keys, products = keys[order], products[order]
    firsts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, int)
    add = getattr(np, MONOIDS[semiring.add.name].ufunc)
    data = add.reduceat(products, firsts).astype(dtype) if len(keys) else products.astype(dtype)
    return _from_keys(keys[firsts], data, shape)


# A source read in this process, piece by piece: what the engine does on workers.


def read_blocks(source: Source, num_pieces: int = 1, grid: Grid | None = None) -> tuple[Found, list[Block]]:
    """Return what was found in a source, and its blocks in the order of the grid; None is a single block."""
    parsed = [source.parse(piece) for piece in source.pieces(num_pieces)]
    context = source.merge([source.summary(one) for one in parsed])
    found: Found = context.found

    def block(region: Region) -> Block:
        return source.assemble([source.part(one, context, region) for one in parsed], context, region)

    return found, [block(region) for region in (grid or whole(found.shape)).regions()]


def read_here(source: Source, num_pieces: int = 1) -> tuple[Found, Block]:
    """Return what was found in a source, and all of it as one block."""
    found, blocks = read_blocks(source, num_pieces)
    return found, blocks[0]


def labels_here(source: Source) -> Block:
    """Return the original ids of a graph's vertices as a dense block."""
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(1)])
    return source.labels(context, 0, context.found.shape[0])
