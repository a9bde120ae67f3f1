"""Every operation on sparse arrays gives what it gives on the same arrays dense; zeros stay absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from breadth.case import Case
from breadth.test_cases import compare

# Lists of functions as in dask/array/tests/test_sparse.py, and what matnb has besides.
KEEPS = True  # of zeros zeros are made, so that what is sparse stays so
FILLS = False
ROWS, COLUMNS = 11, 7


@dataclass(frozen=True)
class Like:
    """A call on one matrix, on it and another, or on whole numbers, and whether its result is sparse."""

    name: str
    call: Callable[..., Any]
    is_sparse: bool


def _named(names: str, is_sparse: bool, **options: Any) -> list[Like]:
    return [
        Like(
            f"{name} {options or ''}".strip(),
            lambda xp, x, _, n=name: getattr(xp, n)(x, **options),
            is_sparse,
        )
        for name in names.split()
    ]


def _of_two(names: str, is_sparse: bool) -> list[Like]:
    return [Like(name, lambda xp, x, y, n=name: getattr(xp, n)(x, y), is_sparse) for name in names.split()]


ELEMENTWISE = [
    *_named("sin tan arctan sinh tanh arcsinh expm1 log1p sqrt square cbrt negative absolute sign", KEEPS),
    *_named("rint floor ceil trunc fix deg2rad rad2deg conj real round isnan isinf positive fabs", KEEPS),
    *_named("cos exp exp2 cosh isfinite logical_not", FILLS),
    *_of_two("add subtract multiply maximum minimum hypot arctan2 not_equal logical_or logical_xor", KEEPS),
    *_of_two("logical_and fmax fmin copysign less greater", KEEPS),
    *_of_two("equal less_equal greater_equal logaddexp", FILLS),
    Like("x + 1", lambda xp, x, _: x + 1, FILLS),
    Like("x * 2", lambda xp, x, _: x * 2, KEEPS),
    Like("2 * x", lambda xp, x, _: 2 * x, KEEPS),
    Like("x / 2", lambda xp, x, _: x / 2, KEEPS),
    Like("x // 2", lambda xp, x, _: x // 2, KEEPS),
    Like("x ** 2", lambda xp, x, _: x**2, KEEPS),
    Like("x > 0.5", lambda xp, x, _: x > 0.5, KEEPS),
    Like("x < 0.5", lambda xp, x, _: x < 0.5, FILLS),
    Like("x == 0", lambda xp, x, _: x == 0, FILLS),
    Like("x != 0", lambda xp, x, _: x != 0, KEEPS),
    Like("-abs(x)", lambda xp, x, _: -abs(x), KEEPS),
    Like("expm1(x) * y - x", lambda xp, x, y: xp.expm1(x) * y - x, KEEPS),
    Like("x * row", lambda xp, x, _: x * np.arange(1.0, COLUMNS + 1), KEEPS),
    Like("x * column", lambda xp, x, _: x * np.arange(1.0, ROWS + 1)[:, None], KEEPS),
    Like("x + row", lambda xp, x, _: x + np.arange(1.0, COLUMNS + 1), FILLS),
    Like("astype", lambda xp, x, _: x.astype(np.float32), KEEPS),
    Like("astype bool", lambda xp, x, _: x.astype(bool), KEEPS),
    Like("clip", lambda xp, x, _: xp.clip(x, -0.2, 0.3), KEEPS),
    Like("clip from 1", lambda xp, x, _: xp.clip(x, 1, 2), FILLS),
    Like("nan_to_num", lambda xp, x, _: xp.nan_to_num(x), KEEPS),
    Like("isclose", lambda xp, x, y: xp.isclose(x, y), FILLS),
    Like("allclose", lambda xp, x, y: xp.allclose(x, y), FILLS),
    Like("array_equal", lambda xp, x, y: xp.array_equal(x, y), FILLS),
    Like("where(x > 0, x, 0)", lambda xp, x, _: xp.where(x > 0, x, 0), KEEPS),
    Like("where(x > 0, x, y)", lambda xp, x, y: xp.where(x > 0, x, y), KEEPS),
    Like("where(x > 0, 1, x)", lambda xp, x, _: xp.where(x > 0, 1, x), KEEPS),
    Like("where(x > 0, x, 1)", lambda xp, x, _: xp.where(x > 0, x, 1), FILLS),
    Like("where(x == 0, x, y)", lambda xp, x, y: xp.where(x == 0, x, y), FILLS),
]
REDUCTIONS = [
    like
    for axis in (None, 0, 1, (0, 1))
    for like in _named("sum prod min max mean var std any all count_nonzero", FILLS, axis=axis)
] + [
    *_named("argmin argmax nansum nanprod nanmin nanmax nanmean nanstd median ptp", FILLS, axis=0),
    *_named("argmin argmax nanargmin nanargmax median ptp average", FILLS),
    *_named("sum max mean any", FILLS, axis=1, keepdims=True),
    *_named("cumsum cumprod nancumsum", FILLS, axis=0),
    *_named("trace", FILLS),
    Like("norm", lambda xp, x, _: xp.linalg.norm(x), FILLS),
    Like("norm 1", lambda xp, x, _: xp.linalg.norm(x, 1), FILLS),
    Like("norm of rows", lambda xp, x, _: xp.linalg.norm(x, axis=1), FILLS),
    Like("quantile", lambda xp, x, _: xp.quantile(x, 0.75, axis=0), FILLS),
    Like("histogram", lambda xp, x, _: xp.histogram(x, bins=5)[0], FILLS),
]
SHAPES = [
    *_named("transpose matrix_transpose tril triu fliplr flipud flip rot90 copy squeeze", KEEPS),
    *_named("roll", KEEPS, shift=2, axis=0),
    *_named("roll", KEEPS, shift=-3, axis=1),
    *_named("roll", KEEPS, shift=5),
    *_named("repeat", KEEPS, repeats=2, axis=0),
    *_named("tile", KEEPS, reps=(2, 3)),
    *_named("pad", KEEPS, pad_width=1),
    *_named("swapaxes", KEEPS, axis1=0, axis2=1),
    *_named("diff", KEEPS, axis=0),
    *_named("diag diagonal ravel unique argwhere flatnonzero nonzero", FILLS),
    *_named("sort", FILLS, axis=0),
    *_named("argsort", FILLS, axis=0, kind="stable"),
    Like("T", lambda xp, x, _: x.T, KEEPS),
    Like("reshape", lambda xp, x, _: xp.reshape(x, (COLUMNS, ROWS)), KEEPS),
    Like("reshape flat", lambda xp, x, _: x.reshape(-1), FILLS),
    Like("reshape to three axes", lambda xp, x, _: x.reshape(ROWS, COLUMNS, 1), FILLS),
    Like("expand_dims", lambda xp, x, _: xp.expand_dims(x, 1), FILLS),
    Like("broadcast_to", lambda xp, x, _: xp.broadcast_to(x, (2, ROWS, COLUMNS)), FILLS),
    Like("concatenate", lambda xp, x, y: xp.concatenate([x, y]), KEEPS),
    Like("concatenate columns", lambda xp, x, y: xp.concatenate([x, y], axis=1), KEEPS),
    Like("concatenate slices", lambda xp, x, y: xp.concatenate([x[:5], y[3:]]), KEEPS),
    Like("concatenate dense", lambda xp, x, _: xp.concatenate([x, np.ones((2, COLUMNS))]), FILLS),
    Like("vstack", lambda xp, x, y: xp.vstack([x, y]), KEEPS),
    Like("hstack", lambda xp, x, y: xp.hstack([x, y]), KEEPS),
    Like("stack", lambda xp, x, y: xp.stack([x, y]), FILLS),
    Like("split", lambda xp, x, _: xp.array_split(x, 3)[1], KEEPS),
    Like("delete", lambda xp, x, _: xp.delete(x, 2, axis=0), KEEPS),
]
INDICES = [
    Like(f"x[{text}]", lambda xp, x, _, t=text: eval(f"x[{t}]", {"x": x, "np": np}), is_sparse)
    for text, is_sparse in (
        ("::-1", KEEPS),
        ("2:9", KEEPS),
        (":, 1:5", KEEPS),
        ("2:9, ::-2", KEEPS),
        ("5:5", KEEPS),
        ("[3, 1, 3]", KEEPS),
        (":, [3, 1, 3]", KEEPS),
        ("np.arange(11) % 3 == 0", KEEPS),
        (":, np.arange(7) % 3 == 0", KEEPS),
        ("...", KEEPS),
        ("3", FILLS),
        (":, -2", FILLS),
        ("3, 4", FILLS),
        ("[3, 1], [2, 6]", FILLS),
        ("None", FILLS),
        ("x > 0.5", FILLS),
    )
]
PRODUCTS = [
    Like("x @ y.T", lambda xp, x, y: x @ y.T, KEEPS),
    Like("x @ vector", lambda xp, x, _: x @ np.arange(COLUMNS), FILLS),
    Like("vector @ x", lambda xp, x, _: np.arange(ROWS) @ x, FILLS),
    Like("x @ dense", lambda xp, x, _: x @ np.ones((COLUMNS, 2)), FILLS),
    Like("dot", lambda xp, x, y: xp.dot(x, y.T), KEEPS),
    Like("inner", lambda xp, x, y: xp.inner(x, y), KEEPS),
    Like("vdot", lambda xp, x, y: xp.vdot(x, y), FILLS),
    Like("tensordot", lambda xp, x, y: xp.tensordot(x, y, axes=([1], [1])), KEEPS),
    Like("tensordot of rows", lambda xp, x, y: xp.tensordot(x, y, axes=([0], [0])), KEEPS),
    Like("tensordot of all", lambda xp, x, y: xp.tensordot(x, y), FILLS),
    Like("einsum", lambda xp, x, y: xp.einsum("ij,kj->ik", x, y), KEEPS),
    Like("einsum of rows", lambda xp, x, y: xp.einsum("ij,ij->i", x, y), FILLS),
    Like("kron", lambda xp, x, y: xp.kron(x, y[:2]), KEEPS),
    Like("outer", lambda xp, x, y: xp.outer(x[0], y[1]), FILLS),
]
GROUPS = {
    "elementwise": ELEMENTWISE,
    "reductions": REDUCTIONS,
    "shapes": SHAPES,
    "indices": INDICES,
    "products": PRODUCTS,
}


@pytest.fixture(scope="module", params=[1, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    with mn.start(workers=request.param, threads=1):
        yield request.param
    mn.stop()


@pytest.mark.parametrize("group", GROUPS)
def test_sparse_is_as_dense(workers: int, group: str) -> None:
    rng = np.random.default_rng(7)
    # Positive, so that logarithms and roots are numbers; four of five are absent.
    theirs = [rng.random((ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.2) for _ in range(2)]
    mine = [
        mn.asarray(sp.csr_array(one), blocks=cuts)
        for one, cuts in zip(theirs, (([0, 4, 11], None), (3, 2)), strict=True)
    ]
    likes = GROUPS[group]
    found = [like.call(mn, *mine) for like in likes]
    alone = [place for place, one in enumerate(found) if type(one) is mn.DistArray]
    values = dict(zip(alone, mn.compute(*(found[place] for place in alone)), strict=True))
    failures = []
    for place, (like, result) in enumerate(zip(likes, found, strict=True)):
        value = values.get(place)
        is_sparse = hasattr(value, "todense")
        if place in values and is_sparse != like.is_sparse:
            failures.append(f"{like.name}: {'sparse' if is_sparse else 'dense'}")
        if is_sparse:
            if value.nnz > 0.7 * value.size:
                failures.append(f"{like.name}: {value.nnz} of {value.size} elements are stored")
            value = value.todense()
        known = {} if value is None else {"value": value}
        try:
            compare(
                result,
                like.call(np, *theirs),
                Case(like.name, like.call, (), tolerance=1e-12),
                like.name,
                **known,
            )
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)
