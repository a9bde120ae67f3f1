"""Steps of stochastic gradient descent of linear scores, one row at a time, in whole passes over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, entries_as, to_numpy
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, inlined, prefetch, unsigned
from matnb.blocks.kernels.patterns import as_csr

DoubleArray = npt.NDArray[np.float64]
PlaceArray = npt.NDArray[np.int64]
LOSSES = (
    "hinge", "log_loss", "modified_huber", "perceptron", "squared_hinge", "epsilon_insensitive", "huber",
    "squared_epsilon_insensitive", "squared_error",
)  # fmt: skip
SCHEDULES = ("constant", "optimal", "invscaling")
HEAD = 3  # numbers before the state: passes made, rows of the last of them, and whether all were finite
_LONGEST = 1e12  # slope that is not cut, as scikit-learn's
_AHEAD = 8  # rows before it is used, a row is asked for
_CACHE_LINE = 8  # elements
_SMALLEST = 1e-9  # scale of weights before it is multiplied into them


@dataclass(frozen=True)
class Descent:
    """What the steps are, and when they end.

    Attributes
    ----------
    loss, epsilon
        A name of ``LOSSES``, and the epsilon of those that have one.
    l1, l2
        What ``sum |w|`` and ``sum w^2 / 2`` count.
    intercept
        What the intercept's slope counts: 0 without one.
    is_weighted
        Whether the last column of targets is the weight of the row.
    schedule, rate, power, first
        A name of ``SCHEDULES`` and its numbers: steps of ``rate``, ``rate / (power * (first + count))`` and
        ``rate / (count + 1) ** power``.
    passes
        How many at most.
    seed, epoch
        Of the orders of rows, or None; the number of the first pass.
    patience, tol
        It ends after so many passes whose mean loss is not less by ``tol`` than the least before; None for
        never.
    """

    loss: str
    epsilon: float
    l1: float
    l2: float
    intercept: float
    is_weighted: bool
    schedule: str
    rate: float
    power: float
    first: float
    passes: int = 1
    seed: int | None = None
    epoch: int = 0
    patience: int | None = None
    tol: float = 0.0

    def state_size(self, num_features: int, num_targets: int) -> int:
        """Return how many numbers a state has.

        Weights, intercepts, with ``l1`` what each weight has got of it and what it could have got in all, the
        weights' scale, and steps taken.
        """
        size = num_targets * (num_features + 1) + 2
        return size + num_targets * num_features + 1 if self.l1 > 0 else size

    def order(self, number: int, num_rows: int) -> PlaceArray:
        """Return the order in which a pass takes the rows."""
        if self.seed is None:
            return np.arange(num_rows)
        return np.random.default_rng([self.seed, self.epoch + number]).permutation(num_rows)

    def is_settled(self, losses: Sequence[float]) -> bool:
        """Return whether the given number of passes brought no smaller loss."""
        if self.patience is None:
            return False
        least, quiet = inf, 0
        for loss in losses:
            quiet = 0 if loss < least - self.tol else quiet + 1
            least = min(least, loss)
        return quiet >= self.patience


def descend(values: Sequence[Block], descent: Descent) -> Dense:
    """Return what whole passes over rows come to, each row a step from where the last one led.

    A run of rows gives the same bits as its parts one after the other. Weights of sparse rows have a scale,
    which all of them share, so that a step takes as long as the row has entries. The penalty ``l1`` is
    cumulative: a weight of the row is moved towards 0, and not beyond, by all that weights could have got so
    far less what it has got (Tsuruoka, Tsujii and Ananiadou 2009, "Stochastic gradient descent training for
    L1-regularized log-linear models with cumulative penalty"), so that the noise of single rows makes no
    weight other than 0.

    Peak memory: the rows once more where they are not in float64, and the result.

    Parameters
    ----------
    values
        Rows, n x p, dense or sparse; targets, n x k, with one more column of weights; and the state before.

    Returns
    -------
    Dense
        ``HEAD`` numbers, the state after, and the mean loss of each pass, padded with NaN. Where a loss or a
        weight is no finite number, the state is that before this row's step.
    """
    rows = _rows(values[0])
    targets = given(to_numpy(values[1]).astype(np.float64, copy=False))
    before = to_numpy(values[2]).astype(np.float64)
    n, p = values[0].shape
    k = targets.shape[1] - descent.is_weighted
    if not isinstance(rows, Csr):
        # These steps know no scale, but those of sparse rows before may have left one.
        before[: p * k] *= before[-2]
        before[-2] = 1.0
    losses = np.full(descent.passes, np.nan)
    state, made, last, is_finite = before.copy(), 0, n, True
    for number in range(descent.passes):
        order = descent.order(number, n)
        before = state.copy()
        total, failed = _one_pass(rows, targets, order, state, p, k, descent)
        if failed >= 0:
            # The rows before once more, or all but the last of them, whose weights were infinite.
            losses[number], is_finite, made = total, False, made + 1
            for last in (failed, failed - 1, 0):
                state = before.copy()
                if last > 0:
                    _one_pass(rows, targets, order[:last], state, p, k, descent)
                if np.isfinite(state).all():
                    break
            break
        losses[number] = total / n
        made += 1
        if descent.is_settled(losses[:made].tolist()):
            break
    return Dense(np.concatenate([[made, max(last, 0), is_finite], state, losses]))


def _one_pass(
    rows: Csr | NumericArray, targets: DoubleArray, order: PlaceArray, state: DoubleArray, p: int, k: int,
    descent: Descent,
) -> tuple[float, int]:  # fmt: skip
    weights = state[: p * k].reshape(k, p)
    numbers = (
        LOSSES.index(descent.loss), descent.epsilon, descent.l1, descent.l2, descent.intercept,
        descent.is_weighted, SCHEDULES.index(descent.schedule), descent.rate, descent.power, descent.first,
    )  # fmt: skip
    rest, shape = state[p * k :], (k, p if descent.l1 > 0 else 0)
    got = rest[k : k + k * shape[1]].reshape(shape)
    if isinstance(rows, Csr):
        entries = given(entries_as(rows, np.dtype(np.float64)))
        total, failed = _sparse_rows(
            unsigned(rows.pointers), unsigned(rows.columns), entries, targets, given(order), weights, got,
            rest, *numbers,
        )  # fmt: skip
    else:
        total, failed = _dense_rows(given(rows), targets, given(order), weights, got, rest, *numbers)
    if failed < 0 and not (np.isfinite(state).all() and isfinite(total)):
        failed = order.size - 1
    return float(total), int(failed)


def _rows(block: Block) -> Csr | NumericArray:
    if isinstance(block, Csr | Empty):
        return as_csr(block)
    return to_numpy(block).astype(np.float64, copy=False)


@inlined
def _loss_of(loss: int, score: Any, target: Any, epsilon: float) -> Any:
    product = score * target
    beyond = max(score - target - epsilon, 0.0) - max(target - score - epsilon, 0.0)
    distance = abs(score - target)
    if loss == 0:
        return max(1 - product, 0.0)
    if loss == 1:
        return np.log1p(np.exp(-abs(product))) + max(-product, 0.0)
    if loss == 2:
        return max(1 - product, 0.0) ** 2 if product >= -1 else -4 * product
    if loss == 3:
        return max(-product, 0.0)
    if loss == 4:
        return max(1 - product, 0.0) ** 2
    if loss == 5:
        return abs(beyond)
    if loss == 6:
        return 0.5 * distance * distance if distance <= epsilon else epsilon * distance - 0.5 * epsilon**2
    if loss == 7:
        return beyond * beyond
    return 0.5 * (score - target) ** 2


@inlined
def _slope_of(loss: int, score: Any, target: Any, epsilon: float) -> Any:
    product = score * target
    beyond = max(score - target - epsilon, 0.0) - max(target - score - epsilon, 0.0)
    if loss == 0:
        return -target if product <= 1 else 0.0
    if loss == 1:
        small = np.exp(-abs(product))
        return -target * (small if product > 0 else 1.0) / (1 + small)
    if loss == 2:
        return -2 * target * max(1 - product, 0.0) if product >= -1 else -4 * target
    if loss == 3:
        return -target if product <= 0 else 0.0
    if loss == 4:
        return -2 * target * max(1 - product, 0.0)
    if loss == 5:
        return np.sign(beyond)
    if loss == 6:
        return min(max(score - target, -epsilon), epsilon)
    if loss == 7:
        return 2 * beyond
    return score - target


@inlined
def _rate_at(schedule: int, rate: float, power: float, first: float, count: Any) -> Any:
    if schedule == 0:
        return rate
    if schedule == 1:
        return rate / (power * (first + count))
    return rate * (count + 1) ** -power


@inlined
def _truncated(weight: Any, got: Any, most: Any) -> Any:
    if weight > 0:
        return max(weight - (most + got), 0.0)
    if weight < 0:
        return min(weight + (most - got), 0.0)
    return weight


@compiled
def _penalty(weights: DoubleArray, scale: Any, squares: DoubleArray, sizes: DoubleArray) -> None:
    for target in range(weights.shape[0]):
        squares[target], sizes[target] = 0.0, 0.0
        for feature in range(weights.shape[1]):
            weight = scale * weights[target, feature]
            squares[target] += weight * weight
            sizes[target] += abs(weight)


@compiled
def _dense_rows(
    rows: DoubleArray, targets: DoubleArray, order: PlaceArray, weights: DoubleArray, got: DoubleArray,
    rest: DoubleArray, loss: int, epsilon: float, l1: float, l2: float, counts: float, is_weighted: bool,
    schedule: int, start_rate: float, power: float, first: float,
) -> tuple[float, int]:  # fmt: skip
    k, p = weights.shape
    squares, sizes = np.empty(k), np.empty(k)
    _penalty(weights, 1.0, squares, sizes)
    total, count, most = 0.0, rest[-1], rest[-3] * 1.0
    fours = p - p % 4
    for number in range(order.size):
        row = order[number]
        if number + _AHEAD < order.size:
            following = order[number + _AHEAD] * p
            for line in range(0, p, _CACHE_LINE):
                prefetch(rows, np.uint64(following + line))
        factor = targets[row, k] if is_weighted else 1.0
        rate = _rate_at(schedule, start_rate, power, first, count)
        lost = 0.0
        # Four sums at a time: the next product waits for none before it.
        square, a, b, c, d = 0.0, 0.0, 0.0, 0.0, 0.0
        if l2 > 0 and l1 == 0:
            for feature in range(0, fours, 4):
                a += rows[row, feature] * rows[row, feature]
                b += rows[row, feature + 1] * rows[row, feature + 1]
                c += rows[row, feature + 2] * rows[row, feature + 2]
                d += rows[row, feature + 3] * rows[row, feature + 3]
            square = (a + c) + (b + d)
            for feature in range(fours, p):
                square += rows[row, feature] * rows[row, feature]
        for target in range(k):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for feature in range(0, fours, 4):
                a += rows[row, feature] * weights[target, feature]
                b += rows[row, feature + 1] * weights[target, feature + 1]
                c += rows[row, feature + 2] * weights[target, feature + 2]
                d += rows[row, feature + 3] * weights[target, feature + 3]
            product = (a + c) + (b + d)
            for feature in range(fours, p):
                product += rows[row, feature] * weights[target, feature]
            score, truth = product + rest[target], targets[row, target]
            lost += _loss_of(loss, score, truth, epsilon) * factor
            lost += l1 * sizes[target] + 0.5 * l2 * squares[target]
            slope = min(max(_slope_of(loss, score, truth, epsilon), -_LONGEST), _LONGEST) * factor
            if l1 > 0:
                squares[target], sizes[target] = 0.0, 0.0
                for feature in range(p):
                    own = weights[target, feature]
                    moved = own - rate * (rows[row, feature] * slope + l2 * own)
                    nearer = _truncated(moved, got[target, feature], most + rate * l1)
                    got[target, feature] += nearer - moved
                    weights[target, feature] = nearer
                    sizes[target] += abs(nearer)
                    squares[target] += nearer * nearer
            else:
                # |f w - r x|^2 without going through w again.
                kept, move = 1 - rate * l2, rate * slope
                squares[target] = max(
                    kept * kept * squares[target] - 2 * kept * move * product + move * move * square, 0.0
                )
                for feature in range(p):
                    own = weights[target, feature]
                    weights[target, feature] = own - rate * (rows[row, feature] * slope + l2 * own)
            rest[target] -= rate * counts * slope
        if not np.isfinite(lost):
            return lost, number
        total += lost
        count += 1
        most += rate * l1
    rest[-1] = count
    if l1 > 0:
        rest[-3] = most
    return total, -1


@compiled
def _sparse_rows(
    pointers: UnsignedArray, columns: UnsignedArray, entries: DoubleArray, targets: DoubleArray,
    order: PlaceArray, weights: DoubleArray, got: DoubleArray, rest: DoubleArray, loss: int, epsilon: float,
    l1: float, l2: float, counts: float, is_weighted: bool, schedule: int, start_rate: float, power: float,
    first: float,
) -> tuple[float, int]:  # fmt: skip
    k, p = weights.shape
    squares, sizes = np.empty(k), np.empty(k)
    scale: Any = rest[-2]
    total, count, most = 0.0, rest[-1], rest[-3] * 1.0
    _penalty(weights, scale, squares, sizes)
    for number in range(order.size):
        row = order[number]
        if number + _AHEAD < order.size:
            place, stop = pointers[order[number + _AHEAD]], pointers[order[number + _AHEAD] + 1]
            for line in range(place, stop, _CACHE_LINE):
                prefetch(entries, np.uint64(line))
                prefetch(columns, np.uint64(line))
        begin, end = np.int64(pointers[row]), np.int64(pointers[row + 1])
        factor = targets[row, k] if is_weighted else 1.0
        rate = _rate_at(schedule, start_rate, power, first, count)
        kept = 1 - rate * l2
        lost, next_scale = 0.0, scale * kept
        if kept <= 0 or next_scale < _SMALLEST:
            for target in range(k):
                for feature in range(p):
                    weights[target, feature] *= scale
            scale, next_scale = 1.0, kept
        is_gone = kept <= 0
        next_scale = 1.0 if is_gone else next_scale
        for target in range(k):
            own = weights[target]
            product, square = 0.0, 0.0
            for entry in range(begin, end):
                product += entries[entry] * own[columns[entry]]
                square += entries[entry] * entries[entry]
            product *= scale
            score, truth = product + rest[target], targets[row, target]
            lost += _loss_of(loss, score, truth, epsilon) * factor
            lost += l1 * sizes[target] + 0.5 * l2 * squares[target]
            slope = min(max(_slope_of(loss, score, truth, epsilon), -_LONGEST), _LONGEST) * factor
            move = rate * slope
            squares[target] = max(
                kept * kept * squares[target] - 2 * kept * move * product + move * move * square, 0.0
            )
            if is_gone:
                for feature in range(p):
                    own[feature] *= kept
            sizes[target] *= abs(kept)
            for entry in range(begin, end):
                before = own[columns[entry]]
                own[columns[entry]] = before - move / next_scale * entries[entry]
                if l1 > 0:
                    moved = next_scale * own[columns[entry]]
                    nearer = _truncated(moved, got[target, columns[entry]], most + rate * l1)
                    got[target, columns[entry]] += nearer - moved
                    own[columns[entry]] = nearer / next_scale
                    sizes[target] += abs(nearer) - abs(next_scale * before)
                    squares[target] += nearer * nearer - moved * moved
            rest[target] -= rate * counts * slope
        scale = next_scale
        if not np.isfinite(lost):
            return lost, number
        total += lost
        count += 1
        most += rate * l1
    rest[-2], rest[-1] = scale, count
    if l1 > 0:
        rest[-3] = most
    return total, -1
