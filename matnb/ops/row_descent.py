"""Stochastic gradient descent of linear scores by single rows: whole passes in one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, all_of
from matnb.blocks.kernels.rows.row_descent import HEAD, Descent, descend
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.reference import Value, dense
from matnb.ops.registry import lowers, means
from matnb.program.kinds import SCAN
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter


@dataclass(frozen=True, eq=False, repr=False)
class RowDescent(Expr):
    """What passes over rows come to, of which each is a step: the numbers of :func:`descend`.

    Inputs are the rows, dense or sparse, their targets, n x k, perhaps with a column of weights, and the
    state before. Steps follow from each other, so one worker has all rows.
    """

    inputs: tuple[Expr, ...]
    descent: Descent

    def __post_init__(self) -> None:
        rows, targets, state = self.inputs
        assert rows.ndim == targets.ndim == 2, "matrices"
        assert rows.shape[0] == targets.shape[0], "a target for each row"
        size = self.descent.state_size(rows.shape[1], targets.shape[1] - self.descent.is_weighted)
        assert state.shape == (size,), "a state of these rows"
        self.settle((HEAD + size + self.descent.passes,), np.dtype(np.float64), False, *self.inputs)

    def _text(self, operands: Sequence[str]) -> str:
        return f"row by row({', '.join(operands)})"


def _lost(name: str, p: np.ndarray, y: np.ndarray, e: float) -> tuple[np.ndarray, np.ndarray]:
    # The loss of scores and its slope.
    m, beyond = p * y, np.maximum(p - y - e, 0) - np.maximum(y - p - e, 0)
    hinge, near = np.maximum(1 - m, 0), abs(p - y) <= e
    found = {
        "hinge": (hinge, np.where(m <= 1, -y, 0)),
        "log_loss": (np.logaddexp(0, -m), -y / (1 + np.exp(m))),
        "modified_huber": (np.where(m >= -1, hinge**2, -4 * m), np.where(m >= -1, -2 * y * hinge, -4 * y)),
        "perceptron": (np.maximum(-m, 0), np.where(m <= 0, -y, 0)),
        "squared_hinge": (hinge**2, -2 * y * hinge),
        "epsilon_insensitive": (abs(beyond), np.sign(beyond)),
        "huber": (np.where(near, (p - y) ** 2 / 2, e * abs(p - y) - e * e / 2), np.clip(p - y, -e, e)),
        "squared_epsilon_insensitive": (beyond**2, 2 * beyond),
        "squared_error": ((p - y) ** 2 / 2, p - y),
    }
    return found[name]


@means(RowDescent)
def _(node: RowDescent, operands: Sequence[Value]) -> Value:
    """Return where steps lead, taken one by one in NumPy."""
    rows = operands[0].toarray() if sp.issparse(operands[0]) else dense(operands[0])
    touched = np.ones(rows.shape, bool)
    if sp.issparse(operands[0]):  # the penalty of absolute values is taken by a row's entries alone
        entries = sp.coo_array(operands[0])
        touched[:] = False
        touched[entries.row, entries.col] = True
    targets, state, it = dense(operands[1]), dense(operands[2]).astype(np.float64), node.descent
    (n, p), k = rows.shape, targets.shape[1] - it.is_weighted
    w, b = state[: k * p].reshape(k, p) * state[-2], state[k * p :][:k].copy()
    got = state[k * p + k : -3].reshape(k, p).copy() if it.l1 > 0 else np.zeros((k, p))
    count, losses, last, is_finite = state[-1], np.full(it.passes, np.nan), n, True
    most = state[-3] if it.l1 > 0 else 0.0
    made = 0
    while made < it.passes and is_finite and not (made and it.is_settled(losses[:made].tolist())):
        order, total = np.arange(n), 0.0
        if it.seed is not None:
            order = np.random.default_rng([it.seed, it.epoch + made]).permutation(n)
        for number, row in enumerate(order):
            x, factor = rows[row].astype(np.float64), targets[row, k] if it.is_weighted else 1.0
            by_schedule = {"constant": 1.0, "invscaling": (count + 1) ** -it.power}
            if it.schedule == "optimal":
                by_schedule = {"optimal": 1 / (it.power * (it.first + count))}
            rate = it.rate * by_schedule[it.schedule]
            loss, slope = _lost(it.loss, w @ x + b, targets[row, :k], it.epsilon)
            lost = float((loss * factor).sum() + it.l1 * abs(w).sum() + it.l2 / 2 * (w * w).sum())
            slope = np.clip(slope, -1e12, 1e12) * factor
            moved = w - rate * (slope[:, None] * x + it.l2 * w)
            size = abs(moved) - (most + rate * it.l1 + np.sign(moved) * got)
            nearer = np.where(touched[row], np.sign(moved) * np.maximum(size, 0), moved) if it.l1 else moved
            if not (np.isfinite(lost) and np.isfinite(nearer).all()):
                total, last, is_finite = lost * n, number, False
                break
            got, most = got + (nearer - moved), most + rate * it.l1
            w, b, count, total = nearer, b - rate * it.intercept * slope, count + 1, total + lost
        losses[made] = total / n
        made += 1
    penalties = [got.ravel(), [most]] if it.l1 > 0 else []
    return np.concatenate([[made, last, is_finite], w.ravel(), b, *penalties, [1.0, count], losses])


@lowers(RowDescent)
def _(node: RowDescent, writer: PlanWriter, workers: Workers) -> None:
    """Write one task, where most of the rows are."""
    rows = node.inputs[0]
    owner = writer.home_of(rows, all_of(rows.shape))
    layout = Layout(Grid(((0, node.shape[0]),)), (owner,))
    for block in writer.each_block(node, layout, SCAN, f"{rows.shape[0]} rows"):
        values = [writer.read(block, one, all_of(one.shape), block.owner) for one in node.inputs]
        copied = 0 if rows.dtype == np.float64 else writer.entries_of(rows, all_of(rows.shape))
        # An order of rows, the state three times.
        block.take(8 * (copied + 2 * rows.shape[0] + 4 * node.shape[0]))
        block.do(Run(descend, (node.descent,)), *values)
