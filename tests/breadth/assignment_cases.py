"""Calls that assign to elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from breadth.case import Case, Maker, truths, whole
from breadth.case import floats as with_signs


def floats(*shape: int) -> Maker:
    """Return what makes an array without negative zeros, which a sparse one does not store."""
    return lambda rng: with_signs(*shape)(rng) + 0.0


I = np.array([2, -1, 0, 2])  # noqa: E741  an index, as in what it tests


def after(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return what gives a copy of the first array after a change."""

    def call(xp: Any, x: Any, *others: Any) -> Any:
        x = x.copy()
        change(xp, x, *others)
        return x

    return call


def put(key: object, new: object, *makers: Maker) -> Case:
    """Return an assignment."""

    def change(xp: Any, x: Any, *others: Any) -> None:
        x[key] = new

    return Case(f"x[{key}] = {np.shape(new)}", after(change), makers, tolerance=0)


def by(change: Callable[..., Any], *makers: Maker, name: str = "x[key] = v", **more: Any) -> Case:
    """Return a change."""
    return Case(name, after(change), makers, tolerance=0, **more)


def each(x: Any) -> Any:
    """Return a value for each element that is greater than 0."""
    return np.arange(1.0, 1.0 + int((x > 0).sum()))


CASES = [
    put((slice(None), I), 5.0, floats(6, 5)),
    put((slice(None), I), np.arange(24.0).reshape(6, 4), floats(6, 5)),
    put((I, I[::-1]), np.arange(4.0), floats(6, 5)),
    put((I[:, None], I), -2.0, floats(6, 5)),
    put((0, I), np.arange(4.0), floats(6, 5)),
    put((slice(1, 4), I), np.arange(4.0), floats(6, 5)),
    put((I, slice(None, None, -2)), np.arange(12.0).reshape(4, 3), floats(6, 5)),
    put((I, slice(None), I), np.arange(4.0)[:, None], floats(3, 2, 5)),
    put((0, slice(None), I), np.arange(8.0).reshape(4, 2), floats(3, 2, 5)),
    put((slice(None), None), np.arange(6.0)[:, None], floats(6)),
    put((1, 2), 5.0, floats(6, 5)),
    put(1, 0, floats(6, 5)),
    put((slice(None), 2), 0, floats(6, 5)),
    put((slice(1, 5, 2), slice(0, 3)), np.arange(3.0), floats(6, 5)),
    put((slice(None), I), np.arange(5.0), floats(6, 5)),
    put((9, I), 1, floats(6, 5)),
    put((I, I), 1j, floats(6, 5)),
    put(True, 3.0, floats(6, 5)),
    by(
        lambda xp, x, i, v: x.__setitem__(i, v),
        floats(9),
        whole(5, low=-9, high=9),
        floats(5),
        large=(floats(400000), whole(200000, low=0, high=400000), floats(200000)),
    ),
    by(
        lambda xp, x, i, v: x.__setitem__((slice(None), i), v),
        floats(9, 4),
        whole(5, low=-4, high=4),
        floats(9, 5),
        large=(floats(40, 10000), whole(10000, low=0, high=10000), floats(40, 10000)),
    ),
    by(lambda xp, x, m: x.__setitem__(m, 7), floats(9, 4), truths(9, 4)),
    by(lambda xp, x, m: x.__setitem__((m, 1), 0), floats(9, 4), truths(9)),
    by(
        lambda xp, x: x.__setitem__(x > 0, each(x)),
        floats(9, 4),
        name="x[mask] = each",
        large=(floats(60000, 4),),
    ),
    by(lambda xp, x: x.__setitem__(x > 0, each(x)), floats(19), name="x[mask] = each"),
    by(lambda xp, x: x.__setitem__(x > 0, np.arange(2.0)), floats(39), name="x[mask] = each"),
    by(lambda xp, x, y: x.__setitem__(x > 0, y[: int((x > 0).sum())]), floats(19), floats(19)),
    by(lambda xp, x: x.__setitem__((slice(None), x[0] > 0), x[:, x[0] > 0] * 2), floats(9, 4)),
    by(lambda xp, x: x.__setitem__((x[:, 0] > 0, [1]), -1), floats(9, 4)),
    by(lambda xp, x, i: x.__setitem__(i, x[i] + 1), floats(9), whole(5, low=-9, high=9)),
    by(lambda xp, x: x.__setitem__(x > 0, x[x > 0][::-1]), floats(9), name="x[mask] = x[mask][::-1]"),
    by(lambda xp, x: xp.put(x, [0, -1, 5, 5], [7, 8, 9]), floats(4, 3), name="put"),
    by(lambda xp, x: x.put([1, 30], 2, mode="wrap"), floats(4, 3), name="put"),
    by(lambda xp, x: xp.put(x, [30], 2), floats(4), name="put"),
    by(
        lambda xp, x, i: xp.put_along_axis(x, i, 9, axis=1),
        floats(5, 4),
        whole(5, 2, low=-4, high=4),
        name="put_along_axis",
        large=(floats(50000, 6), whole(50000, 2, low=0, high=6)),
    ),
    by(
        lambda xp, x, i: xp.put_along_axis(x, i, i * 2.0, 0),
        floats(9),
        whole(3, low=-9, high=9),
        name="put_along_axis",
    ),
    by(lambda xp, x: xp.place(x, x > 0, [1, 2, 3]), floats(5, 4), name="place"),
    by(lambda xp, x: xp.place(x, x > 0, 4), floats(5, 4), name="place"),
    by(lambda xp, x: xp.putmask(x, x > 0, [1, 2, 3]), floats(5, 4), name="putmask"),
    by(lambda xp, x: xp.copyto(x, [1, 2, 3, 4], where=x > 0), floats(5, 4), name="copyto"),
    by(lambda xp, x: xp.fill_diagonal(x, 3), floats(5, 4), name="fill_diagonal", large=(floats(600, 600),)),
    by(lambda xp, x: xp.fill_diagonal(x, [1, 2]), floats(4, 5), name="fill_diagonal"),
    by(lambda xp, x: xp.fill_diagonal(x, 3, wrap=True), floats(9, 3), name="fill_diagonal"),
    by(lambda xp, x: xp.fill_diagonal(x, 3), floats(3, 3, 3), name="fill_diagonal"),
    by(lambda xp, x: xp.fill_diagonal(x, 3), floats(3, 3, 2), name="fill_diagonal"),
]
