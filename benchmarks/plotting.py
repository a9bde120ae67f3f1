"""matplotlib's functions over DistArrays of 10^6 numbers, against the same functions over NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS
from matplotlib.figure import Figure

import matnb as mn

SIZE, BARS, SIDE, VERTICES, TARGET = 10**6, 2_000, 1000, 100_000, 2.0
Draw = Callable[[Any, list[Any]], object]
VECTORS, FEW, IMAGE, SPARSE = "two vectors", "few", "an image", "sparse"
FUNCTIONS: dict[str, tuple[str, Draw]] = {
    "plot": (VECTORS, lambda ax, given: ax.plot(*given)),
    "scatter": (VECTORS, lambda ax, given: ax.scatter(*given, s=1)),
    "hist": (VECTORS, lambda ax, given: ax.hist(given[0], bins=100)),
    "hist2d": (VECTORS, lambda ax, given: ax.hist2d(*given, bins=100)),
    "hexbin": (VECTORS, lambda ax, given: ax.hexbin(*given, gridsize=50)),
    "boxplot": (VECTORS, lambda ax, given: ax.boxplot(given[0])),
    "ecdf": (VECTORS, lambda ax, given: ax.ecdf(given[0])),
    "fill_between": (VECTORS, lambda ax, given: ax.fill_between(*given)),
    "bar": (FEW, lambda ax, given: ax.bar(*given)),
    "errorbar": (FEW, lambda ax, given: ax.errorbar(*given, yerr=abs(given[1]))),
    "imshow": (IMAGE, lambda ax, given: ax.imshow(given[0])),
    "pcolormesh": (IMAGE, lambda ax, given: ax.pcolormesh(given[0])),
    "contour": (IMAGE, lambda ax, given: ax.contour(given[0])),
    "spy": (SPARSE, lambda ax, given: ax.spy(given[0], markersize=1)),
}


def values(kind: str, number: int) -> list[Any]:
    """Return the arrays that functions of a kind are given in a round."""
    draws = np.random.default_rng(number)
    if kind == SPARSE:
        return [sp.random_array((VERTICES, VERTICES), density=1e-4, rng=draws, format="csr")]
    if kind == IMAGE:
        return [draws.normal(size=(SIDE, SIDE))]
    size = BARS if kind == FEW else SIZE
    return [np.sort(draws.normal(size=size)), draws.normal(size=size)]


def contenders(kind: str, draw: Draw) -> list[Contender]:
    """Return what draws a figure of DistArrays, and of NumPy's arrays."""

    def figure(given: list[Any]) -> Figure:
        made = Figure()
        draw(made.add_subplot(), given)
        return made

    def limits(made: Figure) -> np.ndarray:
        (axes,) = made.axes
        return np.array([*axes.get_xlim(), *axes.get_ylim()])

    def ours(number: int) -> list[mn.DistArray]:
        return [mn.asarray(one).persist() for one in values(kind, number)]

    def theirs(number: int) -> list[Any]:
        return values(kind, number)

    return [Contender(OURS, figure, ours, limits), Contender("NumPy", figure, theirs, limits)]


def main() -> None:
    bench = Bench(__doc__)
    mpl.use("agg")
    with mn.start(threads=THREADS):
        for name, (kind, draw) in FUNCTIONS.items():
            work = {
                FEW: f"two vectors of {BARS:,}", IMAGE: f"{SIDE} x {SIDE}",
                SPARSE: f"{VERTICES:,} x {VERTICES:,}, 1,000,000 entries", VECTORS: f"vectors of {SIZE:,}",
            }[kind]  # fmt: skip
            bench.compare(Claim(f"matplotlib's {name}", work, TARGET), contenders(kind, draw))


if __name__ == "__main__":
    main()
